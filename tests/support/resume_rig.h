/* Trainings that are stopped, killed or run out of disk on their way, and go on: each ends with the
 * bits of one that went through. Whatever goes wrong fails the test. */
#ifndef TDM_TESTS_RESUME_RIG_H
#define TDM_TESTS_RESUME_RIG_H

#include "trainer/trainer.h"

/* Sanitizers look at the same paths with fewer repetitions. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TDM_TEST_FEWER 1
#else
#define TDM_TEST_FEWER 0
#endif

/* What the data is given as. */
typedef enum tdm_resume_data {
    TDM_RESUME_PLAIN = 0,
    TDM_RESUME_GZIP = 1,
    TDM_RESUME_STDIN = 2,
} tdm_resume_data;

/* A kind of training, and its folder with the data and the run that was never stopped. */
typedef struct tdm_resume_case {
    tdm_task_kind task; /* recipes of tests/support/training.h, of text of texts.h */
    const char *model;  /* of ctr */
    int documents;      /* of text; 0: 300 */
    tdm_resume_data kind;
    const char *overrides[12]; /* ended by NULL */
    /* set by tdm_resume_begin() */
    char folder[256];
    char data[512];
    char whole[512]; /* the folder of the undisturbed training */
    int64_t steps;
} tdm_resume_case;

/* The case, with its data, among which records are bad, and the undisturbed training. */
tdm_resume_case tdm_resume_begin(const tdm_resume_case *kind);
void tdm_resume_end(const tdm_resume_case *test);

/* Trains by the case's recipe in `folder`; `extra` is one more override, NULL: none. */
TDM_MUST_CHECK tdm_status tdm_resume_train(const tdm_resume_case *test, const char *folder,
                                           const char *extra, const tdm_train_control *control,
                                           tdm_train_result *result);

/* Goes on, compares with the undisturbed training, and removes the folder. */
void tdm_resume_and_compare(const tdm_resume_case *test, const char *folder, const char *extra);

/* The path of the folder's run, in a buffer that the call after the next reuses. */
const char *tdm_resume_run_of(const char *folder);

/* ---- what happens on the way ----------------------------------------------------------------- */

/* Stopped at the line that is logged at every `stride`-th step from about `share` of the training
 * on. */
void tdm_resume_test_stops(const tdm_resume_case *kind, double share, int stride,
                           const char *extra);

/* Stopped again and again, at every `stride`-th step. */
void tdm_resume_test_many_stops(const tdm_resume_case *kind, int stride);

/* Stopped in the evaluation of the best step, which must not be the last: it is made where the
 * training goes on, and the step is kept as the best. */
void tdm_resume_test_stop_in_evaluation(const tdm_resume_case *kind);

/* Killed at every `stride`-th of its last `most` calls that change the disk. */
void tdm_resume_test_kills_at_calls(const tdm_resume_case *kind, int most, int stride);

/* Killed at random instants, some of them twice. */
void tdm_resume_test_kills(const tdm_resume_case *kind, int kills);

/* From every `stride`-th call on nothing can be written; then the disk has room again. */
void tdm_resume_test_full_disk(const tdm_resume_case *kind, int stride);

#endif
