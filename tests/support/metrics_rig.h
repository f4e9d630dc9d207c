/* What tests of metrics share. */
#ifndef TDM_TESTS_METRICS_RIG_H
#define TDM_TESTS_METRICS_RIG_H

#include "trainer/metrics.h"

tdm_metrics_result tdm_test_result(tdm_metrics *metrics);

/* The value of this name; fails where the result lacks it. */
double tdm_test_metric(const tdm_metrics_result *result, const char *name);

/* Saves one and restores the other through text, as a checkpoint does. */
void tdm_test_save_and_restore(const tdm_metrics *from, tdm_metrics *to);

/* Of accumulators that can be saved. */
void tdm_test_same_bits(const tdm_metrics *a, const tdm_metrics *b);

/* Every metric is there in both, and differs by at most `tolerance`, or is NaN in both. */
void tdm_test_same_result(tdm_metrics *a, tdm_metrics *b, double tolerance);

/* A key of saved metrics, a value in JSON that damages it, and what the error says. */
typedef struct tdm_test_damage {
    const char *key, *value, *message;
} tdm_test_damage;

/* Restoring what `metrics` saved, each damaged in one way, and then without that key, fails so and
 * leaves an empty accumulator. */
void tdm_test_damaged_metrics(const tdm_metrics *metrics, const tdm_test_damage *damages,
                              size_t count);

/* Every allocation of the JSON that `metrics` are saved as fails once: that is the error, and
 * nothing is lost. */
void tdm_test_save_without_memory(const tdm_metrics *metrics);

#endif
