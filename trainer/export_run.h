/* A run's encoder, written for other programs. */
#ifndef TDM_TRAINER_EXPORT_RUN_H
#define TDM_TRAINER_EXPORT_RUN_H

#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tdm_export_options {
    /* "best", "last" or a step; NULL: best if there is one, else the last */
    const char *checkpoint;
    bool force; /* replace a folder of an earlier export */
} tdm_export_options;

/* Writes the run to `folder` as tdm_export_huggingface() does, with its classes by name; *step is
 * that of the checkpoint. TDM_E_STATE where `run` holds no run, TDM_E_UNSUPPORTED for a run of ctr
 * and where no class of Transformers computes the same. */
TDM_MUST_CHECK tdm_status tdm_export_run(const char *run, const char *folder,
                                         const tdm_export_options *options, int64_t *step);

#endif
