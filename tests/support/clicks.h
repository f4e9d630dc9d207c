/* A folder with clicks, and trainings on them: what the tests of trainings share. Whatever goes
 * wrong fails the test, unless it is the training. */
#ifndef TDM_TESTS_CLICKS_H
#define TDM_TESTS_CLICKS_H

#include "tests/support/training.h"

#define LOGISTIC "{type: logistic_regression}"
#define DEEPFM   "{type: deepfm, mlp: {units: [16, 8], dropout: 0.1}}"

/* Where the files of a test are. */
typedef struct tdm_click_paths {
    char folder[256];
    char data[300];
    char eval_data[300];
    char run[300]; /* the run folder */
} tdm_click_paths;

extern tdm_click_paths tdm_clicks;

/* Makes the folder, with `rows` records to train on and 1500 others to evaluate on. */
void tdm_clicks_begin(int rows);
/* Removes it. */
void tdm_clicks_end(void);

/* Trains by tdm_test_recipe(); `overrides` may be NULL. */
TDM_MUST_CHECK tdm_status tdm_clicks_train(const char *model, const char *overrides[],
                                           const tdm_train_control *control,
                                           tdm_train_result *result);

/* The override that evaluates on the other clicks. */
const char *tdm_clicks_eval(void);

/* The path of a checkpoint's file, in a buffer that the next call reuses. */
const char *tdm_clicks_file(int64_t step, const char *name);

/* Of the weights of a checkpoint. */
uint64_t tdm_clicks_hash(int64_t step);

/* Changes a byte near the end of a file. */
void tdm_clicks_damage(const char *path);

#endif
