/* Small trainings for tests: their data, recipes and results. */
#ifndef TDM_TESTS_TRAINING_H
#define TDM_TESTS_TRAINING_H

#include "core/backend.h"
#include "trainer/trainer.h"

extern const tdm_train_control tdm_from_start, tdm_go_on;

/* A new empty folder, in memory where that can be: nothing in these tests loses power, and syncs
 * would take most of their time. */
void tdm_test_fast_folder(char folder[256]);

/* Writes `rows` records "label,a,b,c,x" with a header: categorical a, b, c and a number x, from
 * which the label follows with noise. */
void tdm_test_write_clicks(const char *path, int rows, uint64_t seed);

/* Appends text to a file. */
void tdm_test_append(const char *path, const char *text);

/* Overrides of a recipe, ended by NULL. */
#define WITH(...)                                                                                  \
    (const char *[])                                                                               \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

/* A recipe for those records that trains into <folder>/run; `model` is the section in flow style.
 * The data may be NULL. */
tdm_recipe *tdm_test_recipe(const char *folder, const char *data, const char *model,
                            const char *overrides[], int override_count);

/* A file's whole text, zero-ended; freed with tdm_free(). */
char *tdm_test_read(const char *path);

/* metrics.jsonl without its times; freed with tdm_free(). */
char *tdm_test_metrics(const char *run_folder);

/* For tdm_device_set_test_create(): a CPU without bfloat16 that puts every op off until a sync, and
 * whose memory the host may not look at: what a GPU looks like to the loop. */
TDM_MUST_CHECK tdm_status tdm_test_create_far(tdm_pool *pool, tdm_backend **out);

/* Messages of core/log.h from now on, a line each, in a buffer that begins empty. */
const char *tdm_test_log(void);

#endif
