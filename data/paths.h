/* The names of input files as users write them. */
#ifndef TDM_DATA_PATHS_H
#define TDM_DATA_PATHS_H

#include "core/config.h"

/* The files that `names` stand for: globs are expanded, sorted, unless a file has that very name.
 * TDM_E_IO where nothing matches, TDM_E_CONFIG where "-" is there twice or no file is named. The
 * list is freed with tdm_strings_free(), and empty on failure. */
TDM_MUST_CHECK tdm_status tdm_paths_expand(const tdm_strings *names, tdm_strings *out);

#endif
