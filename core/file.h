/* Files that are whole or not there: written beside their place, synced, checked, renamed. */
#ifndef TDM_CORE_FILE_H
#define TDM_CORE_FILE_H

#include "core/status.h"

#include <stdbool.h>

/* A file being written. Bytes go to "<path>.tmp"; commit syncs it, renames it to `path` and syncs
 * the folder; close without commit removes it. Bytes are buffered and hashed (XXH3-64) on the way.
 * After a failed write nothing but close succeeds. */
typedef struct tdm_file_writer tdm_file_writer;

TDM_MUST_CHECK tdm_status tdm_file_writer_open(const char *path, tdm_file_writer **out);
TDM_MUST_CHECK tdm_status tdm_file_writer_write(tdm_file_writer *writer, const void *data,
                                                size_t bytes);
/* Writes over bytes from `offset` on that were written before. The file has no hash then. */
TDM_MUST_CHECK tdm_status tdm_file_writer_patch(tdm_file_writer *writer, int64_t offset,
                                                const void *data, size_t bytes);
/* Hash and length of all that was written; either may be NULL. */
TDM_MUST_CHECK tdm_status tdm_file_writer_commit(tdm_file_writer *writer, uint64_t *hash,
                                                 int64_t *bytes);
/* NULL is allowed. */
void tdm_file_writer_close(tdm_file_writer *writer);

/* Writes a small file whole: open, write, commit. `hash` may be NULL. */
TDM_MUST_CHECK tdm_status tdm_file_put(const char *path, const void *data, size_t bytes,
                                       uint64_t *hash);

/* Reads a whole file of at most `limit` bytes; *data gets a zero byte behind its end and is freed
 * with tdm_free(). */
TDM_MUST_CHECK tdm_status tdm_file_get(const char *path, size_t limit, char **data, size_t *bytes);

/* XXH3-64 and length of a file's bytes. */
TDM_MUST_CHECK tdm_status tdm_file_hash(const char *path, uint64_t *hash, int64_t *bytes);

/* True for a file, a folder, or a link to one. */
bool tdm_file_exists(const char *path);

/* Removes a file or link; one that is not there is no error. */
TDM_MUST_CHECK tdm_status tdm_file_remove(const char *path);

/* mkdir -p. */
TDM_MUST_CHECK tdm_status tdm_folder_create(const char *path);

/* Syncs the entries of a folder to the disk. */
TDM_MUST_CHECK tdm_status tdm_folder_sync(const char *path);

/* Removes a folder and all that is in it; one that is not there is no error. */
TDM_MUST_CHECK tdm_status tdm_folder_remove(const char *path);

/* rename(2), then syncs the folder that holds `to`. */
TDM_MUST_CHECK tdm_status tdm_file_rename(const char *from, const char *to);

/* Makes `path` a symbolic link to `target`; a link that is there already is replaced in one step.
 */
TDM_MUST_CHECK tdm_status tdm_link_replace(const char *target, const char *path);

/* "folder/name" in new memory, freed with tdm_free(). */
TDM_MUST_CHECK tdm_status tdm_path_join(const char *folder, const char *name, char **out);

/* The text of errno `error` with advice for the common ones (disk full, no permission). */
const char *tdm_io_error_text(int error);

/* Tests only: called before every write, fsync, rename, mkdir, symlink and unlink (rmdir too) that
 * this module does, with the call's name; non-zero makes the call fail with that errno. A test may
 * also end the process. */
void tdm_file_set_test_hook(int (*hook)(const char *call, const char *path));

#endif
