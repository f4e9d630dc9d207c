/* The names of input files as users write them. */
#ifndef TDM_DATA_PATHS_H
#define TDM_DATA_PATHS_H

#include "core/config.h"

/* The files that `names` stand for: globs are expanded, sorted, unless a file has that very name.
 * TDM_E_IO where nothing matches, TDM_E_CONFIG where "-" is there twice or no file is named. The
 * list is freed with tdm_strings_free(), and empty on failure. *origins, where it is not NULL,
 * tells of each file which of the names it comes of; it is freed with tdm_free(), and NULL on
 * failure. */
TDM_MUST_CHECK tdm_status tdm_paths_expand(const tdm_strings *names, tdm_strings *out,
                                           int64_t **origins);

#endif
