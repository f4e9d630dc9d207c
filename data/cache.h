/* A file of extracted blocks, so that later epochs parse no text.
 *
 * It is named by its key: a hash of the files' identities, the featurizer's spec and what was
 * selected. Every block and the index have checksums. docs/FORMATS.md gives the layout. */
#ifndef TDM_DATA_CACHE_H
#define TDM_DATA_CACHE_H

#include "data/extract.h"

typedef struct tdm_cache tdm_cache;
typedef struct tdm_cache_writer tdm_cache_writer;

/* The path of the cache for what `extractor` makes: "<folder>/<key>.cache"; freed with tdm_free().
 */
TDM_MUST_CHECK tdm_status tdm_cache_path(const tdm_extractor *extractor, const char *folder,
                                         char **out);

/* Opens a cache. *out is NULL where there is none; one that is damaged is removed with a warning.
 */
TDM_MUST_CHECK tdm_status tdm_cache_open(const char *path, const tdm_columns_layout *layout,
                                         tdm_cache **out);
int64_t tdm_cache_block_count(const tdm_cache *cache);
int64_t tdm_cache_bytes(const tdm_cache *cache);

/* Lines that begin in a block. */
int64_t tdm_cache_lines(const tdm_cache *cache, int64_t block);

/* The file that a block begins in, and the bytes of input that it stands for. */
int32_t tdm_cache_file(const tdm_cache *cache, int64_t block);
int64_t tdm_cache_stored_bytes(const tdm_cache *cache, int64_t block);

/* Reads a block as it was extracted, bad records included. From any thread. TDM_E_FORMAT where its
 * checksum does not match. */
TDM_MUST_CHECK tdm_status tdm_cache_read(const tdm_cache *cache, int64_t block, tdm_extract *out);
/* NULL is allowed. */
void tdm_cache_close(tdm_cache *cache);

/* Writes beside the path; commit makes the cache whole. A writer that is closed without leaves
 * nothing. */
TDM_MUST_CHECK tdm_status tdm_cache_writer_create(const char *path,
                                                  const tdm_columns_layout *layout,
                                                  tdm_cache_writer **out);
/* From any thread, each block once, in any order. */
TDM_MUST_CHECK tdm_status tdm_cache_writer_add(tdm_cache_writer *writer,
                                               const tdm_extract *extract);
TDM_MUST_CHECK tdm_status tdm_cache_writer_commit(tdm_cache_writer *writer, int64_t block_count);
/* NULL is allowed. */
void tdm_cache_writer_close(tdm_cache_writer *writer);

#endif
