/* The manifest of a checkpoint: its files with their lengths and hashes. Private to the checkpoint
 * files of this folder.
 *
 *   {"format_version": 1,
 *    "files": {"state.json": {"bytes": 812, "xxh3": "00c3f1e2a4b59687"}, …}} */
#ifndef TDM_TRAINER_CHECKPOINT_MANIFEST_H
#define TDM_TRAINER_CHECKPOINT_MANIFEST_H

#include "core/status.h"

#define TDM_MANIFEST_NAME "manifest.json"

typedef struct tdm_manifest_file {
    char *name;
    int64_t bytes;
    uint64_t hash;
} tdm_manifest_file;

typedef struct tdm_manifest {
    tdm_manifest_file *files;
    size_t count;
    size_t capacity;
} tdm_manifest;

/* Appends a file: TDM_E_ARG unless `name` is a plain name that the manifest lacks. */
TDM_MUST_CHECK tdm_status tdm_manifest_add(tdm_manifest *manifest, const char *name, uint64_t hash,
                                           int64_t bytes);

/* Writes "<folder>/manifest.json". */
TDM_MUST_CHECK tdm_status tdm_manifest_write(const tdm_manifest *manifest, const char *folder);

/* Reads "<folder>/manifest.json". On failure nothing is left to free. */
TDM_MUST_CHECK tdm_status tdm_manifest_read(const char *folder, tdm_manifest *out);

void tdm_manifest_free(tdm_manifest *manifest);

#endif
