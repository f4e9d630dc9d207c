/* The state of a training as JSON: both ways, and without memory. */
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "trainer/train_state.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#define LANES 3

/* ---- memory of the JSON ---------------------------------------------------------------------- */

static int64_t live, calls_left;

static void *count_alloc(size_t bytes)
{
    if (calls_left > 0 && --calls_left == 0)
        return NULL;
    void *memory = malloc(bytes);
    live += memory != NULL;
    return memory;
}

static void count_free(void *memory)
{
    live -= memory != NULL;
    free(memory);
}

/* ---- a state --------------------------------------------------------------------------------- */

static const tdm_metrics_spec clicks = {.type = &tdm_click_metrics_type};

static const tdm_metric *metric(const char *name)
{
    const tdm_metric *found = clicks.type->metrics;
    while (strcmp(found->name, name) != 0)
        found++;
    return found;
}

static void fill(tdm_train_state *state)
{
    static const float probabilities[] = {0.25f, 0.75f}, labels[] = {0, 1};
    ck_assert_ok(tdm_train_state_init(state, &clicks, metric("auc")));
    state->step = 20;
    state->share = 0.1;
    state->position = (tdm_position){.epoch = 1, .batches = 4};
    for (int i = 0; i < LANES; i++)
        state->position.lanes[i] = (tdm_lane_position){.window = i, .row = 2 * i, .bytes = 100};
    for (int i = 1; i <= 2; i++) {
        state->step = state->eval_step = 10 * i;
        tdm_metrics_result *eval = &state->eval;
        *eval = tdm_metrics_result_make(clicks.type->metrics, clicks.type->metric_count, 0.5);
        eval->items[0].value = i == 1 ? 0.75 : NAN;
        ck_assert_ok(tdm_train_state_note_score(state));
    }
    ck_assert_ok(tdm_click_metrics_add(&state->window.click, probabilities, labels, NULL, 2));
}

START_TEST(test_both_ways)
{
    tdm_train_state state, restored;
    json_t *saved;
    fill(&state);
    ck_assert_ok(tdm_train_state_save(&state, LANES, &saved));
    ck_assert_ok(tdm_train_state_init(&restored, &clicks, metric("auc")));
    ck_assert_ok(tdm_train_state_restore(&restored, LANES, saved));
    ck_assert_int_eq(restored.step, 20);
    ck_assert_double_eq(restored.share, 0.1);
    ck_assert_mem_eq(&restored.position, &state.position, sizeof state.position);
    ck_assert_int_eq(restored.best_step, 10);
    ck_assert_double_eq(restored.best_score, 0.75);
    ck_assert_uint_eq(restored.score_count, 2);
    ck_assert(isnan(restored.scores[1].score));
    ck_assert_int_eq(restored.window.rows, 2);
    ck_assert(isnan(tdm_metrics_result_get(&restored.eval, "auc")));
    ck_assert_double_eq(tdm_metrics_result_get(&restored.eval, "logloss"), 0.5);
    tdm_train_state_deinit(&restored);
    ck_assert_ok(tdm_train_state_init(&restored, &clicks, metric("logloss")));
    ck_assert_ok(tdm_train_state_restore(&restored, LANES, saved));
    ck_assert_int_eq(restored.best_step, -1);
    ck_assert_uint_eq(restored.score_count, 0);
    tdm_train_state_deinit(&restored);
    tdm_train_state_deinit(&state);
    json_decref(saved);
}
END_TEST

/* Every allocation of the JSON fails once: that is the error, and nothing is lost. */
START_TEST(test_out_of_memory)
{
    tdm_train_state state;
    json_t *saved;
    json_set_alloc_funcs(count_alloc, count_free);
    fill(&state);
    int64_t failures = 0;
    for (int64_t n = 1;; n++) {
        calls_left = n;
        tdm_status status = tdm_train_state_save(&state, LANES, &saved);
        bool reached = calls_left == 0;
        calls_left = 0;
        json_decref(saved);
        ck_assert_msg(live == 0, "allocation %lld: %lld are lost", (long long)n, (long long)live);
        if (!reached)
            break;
        ck_assert_fails(status, TDM_E_NOMEM, "out of memory");
        failures++;
    }
    ck_assert_int_gt(failures, 100);
    tdm_train_state_deinit(&state);
}
END_TEST

TDM_CHECK_MAIN(test_both_ways, test_out_of_memory)
