/* How long each kind of op takes in a training: a table of ops that calls the backend's own and
 * looks at the clock before and behind. One training at a time. */
#ifndef TDM_CLI_OP_PROFILE_H
#define TDM_CLI_OP_PROFILE_H

#include "core/ops.h"

typedef struct tdm_op_time {
    const char *name; /* of the op; products of matrices go by what they are for */
    double seconds;
    int64_t calls;
} tdm_op_time;

/* Puts the table in the place of the backend's and begins at 0, or goes on where a training makes a
 * second backend. `context` is not looked at: it is a tdm_train_control's `watch`. */
void tdm_op_profile_watch(void *context, tdm_backend *backend);

/* The kinds that were called, those that took longest first; valid until the next call. */
const tdm_op_time *tdm_op_profile_get(int *count);

#endif
