/* Where checkpoints lie on the disk. Private to the checkpoint files of this folder. */
#ifndef TDM_TRAINER_CHECKPOINT_FOLDER_H
#define TDM_TRAINER_CHECKPOINT_FOLDER_H

#include "core/status.h"

#include <stdbool.h>

/* A step's folder in one of its three states. */
typedef enum tdm_checkpoint_state {
    TDM_CHECKPOINT_FINAL,
    TDM_CHECKPOINT_TEMPORARY,
    TDM_CHECKPOINT_REPLACED,
} tdm_checkpoint_state;

#define TDM_CHECKPOINT_NAME_BYTES 48

/* "step-00001200" with the state's ending. */
void tdm_checkpoint_name(int64_t step, tdm_checkpoint_state state,
                         char name[TDM_CHECKPOINT_NAME_BYTES]);

/* The step and state that a folder's name says; false for any other name. */
bool tdm_checkpoint_parse_name(const char *name, int64_t *step, tdm_checkpoint_state *state);

/* "<run>/checkpoints/<name>", in new memory. */
TDM_MUST_CHECK tdm_status tdm_checkpoints_path(const char *run_folder, const char *name,
                                               char **out);

/* The path of the step's folder in that state, in new memory. */
TDM_MUST_CHECK tdm_status tdm_checkpoint_folder(const char *run_folder, int64_t step,
                                                tdm_checkpoint_state state, char **out);

/* The folder that counts for the step: the final one, or the replaced one where only that is there.
 */
TDM_MUST_CHECK tdm_status tdm_checkpoint_folder_find(const char *run_folder, int64_t step,
                                                     char **out);

typedef struct tdm_checkpoint_entry {
    int64_t step;
    tdm_checkpoint_state state;
} tdm_checkpoint_entry;

/* All checkpoint folders, in no order; *entries is freed with tdm_free(). */
TDM_MUST_CHECK tdm_status tdm_checkpoint_scan(const char *run_folder,
                                              tdm_checkpoint_entry **entries, size_t *count);

/* Deletes a checkpoint's folder, the manifest first, so that half a checkpoint never verifies. */
TDM_MUST_CHECK tdm_status tdm_checkpoint_delete(const char *folder);

#endif
