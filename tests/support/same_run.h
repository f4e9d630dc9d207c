/* Whether two trainings that should be the same one are, and stopping one on its way. Whatever
 * differs fails the test. */
#ifndef TDM_TESTS_SAME_RUN_H
#define TDM_TESTS_SAME_RUN_H

#include "trainer/trainer.h"

/* Two run folders whose trainings ended at `step` hold the same bits: weights, moments, and all but
 * times in state.json, metrics.jsonl and quarantine.txt; and the same checkpoint is the best. */
void tdm_assert_same_runs(const char *a, const char *b, int64_t step);

/* The path of a checkpoint's file, in one of a few buffers that later calls reuse. */
const char *tdm_test_checkpoint(const char *run_folder, int64_t step, const char *name);

/* The XXH3 of a checkpoint's weights. */
uint64_t tdm_test_weights_hash(const char *run_folder, int64_t step);

/* Stops a training at the first event of its kind from step `step` on. */
typedef struct tdm_test_stop {
    tdm_train_event event;
    int64_t step;
    atomic_bool stop;
} tdm_test_stop;

/* `stop` must stay as long as the training runs. */
tdm_train_control tdm_test_stopping(tdm_test_stop *stop, bool resume);

#endif
