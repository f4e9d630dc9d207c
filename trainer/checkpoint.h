/* Checkpoints: sets of files that are there whole or not at all.
 *
 *   <run>/checkpoints/step-00001200/           the files, and manifest.json with length and XXH3
 *                                              of each
 *   <run>/checkpoints/step-00001200.tmp/       being written, or left by a run that was killed
 *   <run>/checkpoints/step-00001200.replaced/  the former one of that step, while it is replaced
 *   <run>/checkpoints/best                     a link to the folder of the best step
 *
 * A checkpoint is written beside its place, synced and renamed, so that at any instant, killed or
 * out of power, the last good one is still there. A ".replaced" counts as its step while the step's
 * own folder is missing. This module knows nothing of what is in the files. One process writes to a
 * run folder at a time; others may read. Errors name the file. */
#ifndef TDM_TRAINER_CHECKPOINT_H
#define TDM_TRAINER_CHECKPOINT_H

#include "core/status.h"

#include <stdbool.h>

#define TDM_CHECKPOINT_VERSION 1

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct tdm_checkpoint_writer tdm_checkpoint_writer;

/* Begins the checkpoint of `step` (not negative). Creates what is missing of the folders and clears
 * away what a killed run has left. */
TDM_MUST_CHECK tdm_status tdm_checkpoint_writer_begin(const char *run_folder, int64_t step,
                                                      tdm_checkpoint_writer **out);

/* Where to write the file `name` ("model.safetensors", a plain name): in new memory, freed with
 * tdm_free(). It must be written with core/file.h, which syncs it. */
TDM_MUST_CHECK tdm_status tdm_checkpoint_writer_path(const tdm_checkpoint_writer *writer,
                                                     const char *name, char **out);

/* Notes that the file is finished, with what tdm_file_writer_commit() gave back for it. */
TDM_MUST_CHECK tdm_status tdm_checkpoint_writer_add(tdm_checkpoint_writer *writer, const char *name,
                                                    uint64_t hash, int64_t bytes);

/* Writes a small file whole and notes it. */
TDM_MUST_CHECK tdm_status tdm_checkpoint_writer_put(tdm_checkpoint_writer *writer, const char *name,
                                                    const void *data, size_t bytes);

/* Writes the manifest and puts the checkpoint in its place; one of the same step is replaced. On
 * failure the checkpoints that were there still are. The writer stays to be closed. */
TDM_MUST_CHECK tdm_status tdm_checkpoint_writer_commit(tdm_checkpoint_writer *writer);

/* Without a commit, removes what was written. NULL is allowed. */
void tdm_checkpoint_writer_close(tdm_checkpoint_writer *writer);

/* ---- finding --------------------------------------------------------------------------------- */

typedef struct tdm_checkpoint_list {
    int64_t *steps; /* newest first */
    int64_t count;
} tdm_checkpoint_list;

/* The steps that have a folder, good or not. No run folder at all is an empty list. */
TDM_MUST_CHECK tdm_status tdm_checkpoint_list_read(const char *run_folder,
                                                   tdm_checkpoint_list *out);
void tdm_checkpoint_list_free(tdm_checkpoint_list *list);

/* Checks that the manifest is whole and every file in it has its length and hash: TDM_E_FORMAT
 * where not, TDM_E_VERSION where a newer tandem wrote it. */
TDM_MUST_CHECK tdm_status tdm_checkpoint_verify(const char *run_folder, int64_t step);

/* The newest step that verifies. Newer ones that do not are named with the reason in a warning
 * each. *found is false where there is no checkpoint; where there are some and none is good, the
 * error is that of the newest. */
TDM_MUST_CHECK tdm_status tdm_checkpoint_newest_good(const char *run_folder, int64_t *step,
                                                     bool *found);

/* The path of a file of a checkpoint, in new memory, freed with tdm_free(). */
TDM_MUST_CHECK tdm_status tdm_checkpoint_path(const char *run_folder, int64_t step,
                                              const char *name, char **out);

/* ---- keeping --------------------------------------------------------------------------------- */

/* Deletes checkpoints older than `saved_step`, which was just saved, so that with it `keep_last`
 * (at least 1) are left, and `best_step` (-1: none) besides. Those of later steps, which a resumed
 * run could not use, neither count nor go. */
TDM_MUST_CHECK tdm_status tdm_checkpoint_prune(const char *run_folder, int64_t saved_step,
                                               int64_t keep_last, int64_t best_step);

/* Makes the link `best` point to the checkpoint of `step`, in one step. A ".replaced" one goes back
 * to its place before. */
TDM_MUST_CHECK tdm_status tdm_checkpoint_set_best(const char *run_folder, int64_t step);

/* The step that `best` points to. *found is false where there is no such link, or (with a warning)
 * no checkpoint behind it. */
TDM_MUST_CHECK tdm_status tdm_checkpoint_best(const char *run_folder, int64_t *step, bool *found);

#endif
