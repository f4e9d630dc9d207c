/* A run folder with checkpoints to test with. */
#ifndef TDM_TESTS_CHECKPOINT_RUN_H
#define TDM_TESTS_CHECKPOINT_RUN_H

#include "trainer/checkpoint.h"

#define TDM_TEST_RUN_BYTES 300

/* The folder, and the warnings since tdm_test_run_watch_warnings(), a line each. */
extern char tdm_test_run[TDM_TEST_RUN_BYTES];
extern char tdm_test_run_warnings[4000];

/* A new run folder, removed when the test ends. It lies in memory where there is such a place:
 * these tests sync some ten thousand times. */
void tdm_test_run_make(void);
void tdm_test_run_watch_warnings(void);

/* Saves a checkpoint of which every file, model.safetensors and state.json, says `content`. */
TDM_MUST_CHECK tdm_status tdm_test_run_save(int64_t step, int content);
TDM_MUST_CHECK tdm_status tdm_test_run_save_files(tdm_checkpoint_writer *writer, int content);

/* Loads all files, which must say the same content, and returns it. */
int tdm_test_run_load(int64_t step);

/* The newest good and the best step, or -1. */
int64_t tdm_test_run_newest(void);
int64_t tdm_test_run_best(void);

/* The steps that are there, "30 20 10"; a static buffer. */
const char *tdm_test_run_listed(void);

/* The count of temporary and replaced folders. */
int tdm_test_run_leftovers(void);

#endif
