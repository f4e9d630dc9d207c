#include "trainer/train_state.h"

#include "core/json.h"
#include "core/memory.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

tdm_status tdm_train_state_init(tdm_train_state *state, tdm_keep_best keep_best)
{
    *state =
        (tdm_train_state){.eval_step = -1, .keep_best = keep_best, .best_step = -1, .end_step = -1};
    tdm_status status = tdm_metrics_init(&state->window, 0);
    if (status == TDM_OK)
        status = tdm_metrics_init(&state->total, 0);
    if (status != TDM_OK)
        tdm_train_state_deinit(state);
    return status;
}

void tdm_train_state_deinit(tdm_train_state *state)
{
    tdm_metrics_deinit(&state->window);
    tdm_metrics_deinit(&state->total);
    tdm_free(state->scores);
    *state = (tdm_train_state){0};
}

/* ---- the best -------------------------------------------------------------------------------- */

bool tdm_train_state_is_better(const tdm_train_state *state, double score)
{
    if (isnan(score) || state->best_step < 0)
        return !isnan(score);
    return state->keep_best == TDM_KEEP_BEST_LOGLOSS ? score < state->best_score
                                                     : score > state->best_score;
}

tdm_status tdm_train_state_note_score(tdm_train_state *state)
{
    double score =
        state->keep_best == TDM_KEEP_BEST_LOGLOSS ? state->eval.logloss : state->eval.auc;
    if (state->keep_best == TDM_KEEP_BEST_NONE)
        return TDM_OK;
    TDM_TRY(tdm_grow(&state->scores, &state->score_capacity, state->score_count + 1,
                     sizeof *state->scores));
    state->scores[state->score_count++] = (tdm_score){.step = state->step, .score = score};
    if (tdm_train_state_is_better(state, score)) {
        state->best_step = state->step;
        state->best_score = score;
    }
    return TDM_OK;
}

/* ---- the flat part --------------------------------------------------------------------------- */

/* One table for both ways. Reals keep all their bits through 17 digits; NaN is null. */

typedef struct state_entry {
    const char *name;
    size_t offset;
    bool is_real;
} state_entry;

#define INTEGER(type, name, member)                                                                \
    {                                                                                              \
        (name), offsetof(type, member), false                                                      \
    }
#define REAL(type, name, member)                                                                   \
    {                                                                                              \
        (name), offsetof(type, member), true                                                       \
    }

static const state_entry state_entries[] = {
    INTEGER(tdm_train_state, "step", step),
    REAL(tdm_train_state, "epoch_share", share),
    INTEGER(tdm_train_state, "rows", rows),
    REAL(tdm_train_state, "seconds", seconds),
    REAL(tdm_train_state, "learning_rate", learning_rate),
    REAL(tdm_train_state, "gradient_norm", gradient_norm),
    INTEGER(tdm_train_state, "end_step", end_step),
    INTEGER(tdm_train_state, "eval_step", eval_step),
    INTEGER(tdm_train_state, "best_step", best_step),
    REAL(tdm_train_state, "best_score", best_score),
    INTEGER(tdm_train_state, "records", bad.records),
    INTEGER(tdm_train_state, "bad_records", bad.bad),
    INTEGER(tdm_train_state, "encoding_errors", bad.encoding_errors),
    INTEGER(tdm_train_state, "quarantine_bytes", bad.quarantine_bytes),
    INTEGER(tdm_train_state, "metrics_bytes", metrics_bytes),
};

static const state_entry eval_entries[] = {
    INTEGER(tdm_metrics_result, "rows", rows),
    REAL(tdm_metrics_result, "auc", auc),
    REAL(tdm_metrics_result, "auc_error", auc_error),
    REAL(tdm_metrics_result, "logloss", logloss),
    REAL(tdm_metrics_result, "normalized_entropy", normalized_entropy),
    REAL(tdm_metrics_result, "calibration", calibration),
    REAL(tdm_metrics_result, "mean_label", mean_label),
    REAL(tdm_metrics_result, "mean_prediction", mean_prediction),
    INTEGER(tdm_metrics_result, "positives", positives),
};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static tdm_status put(json_t *object, const char *name, json_t *value)
{
    TDM_FAIL_IF(json_object_set_new(object, name, value) != 0, TDM_E_NOMEM,
                "out of memory for the state of the training");
    return TDM_OK;
}

static tdm_status pack_entries(json_t *object, const state_entry *entries, size_t count,
                               const void *values)
{
    for (size_t i = 0; i < count; i++) {
        const char *at = (const char *)values + entries[i].offset;
        json_t *value = entries[i].is_real ? tdm_json_number(*(const double *)(const void *)at)
                                           : json_integer(*(const int64_t *)(const void *)at);
        TDM_TRY(put(object, entries[i].name, value));
    }
    return TDM_OK;
}

static tdm_status damaged(const char *name)
{
    return tdm_fail(TDM_E_FORMAT, "%s is missing or wrong", name);
}

static tdm_status unpack_entries(const json_t *object, const state_entry *entries, size_t count,
                                 void *values)
{
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_object_get(object, entries[i].name);
        char *at = (char *)values + entries[i].offset;
        if (entries[i].is_real && json_is_null(value))
            *(double *)(void *)at = NAN;
        else if (entries[i].is_real && json_is_number(value))
            *(double *)(void *)at = json_number_value(value);
        else if (!entries[i].is_real && json_is_integer(value))
            *(int64_t *)(void *)at = json_integer_value(value);
        else
            return damaged(entries[i].name);
    }
    return TDM_OK;
}

/* ---- positions and scores -------------------------------------------------------------------- */

static tdm_status pack_position(json_t *object, const tdm_position *position, int lanes)
{
    json_t *saved = json_pack("{s:I, s:I}", "epoch", (json_int_t)position->epoch, "batches",
                              (json_int_t)position->batches);
    TDM_TRY(put(object, "position", saved));
    json_t *list = json_array();
    TDM_TRY(put(saved, "lanes", list));
    for (int i = 0; i < lanes; i++) {
        const tdm_lane_position *lane = &position->lanes[i];
        json_t *item = json_pack("[I, I, I]", (json_int_t)lane->window, (json_int_t)lane->row,
                                 (json_int_t)lane->bytes);
        TDM_FAIL_IF(json_array_append_new(list, item) != 0, TDM_E_NOMEM,
                    "out of memory for the state of the training");
    }
    return TDM_OK;
}

static tdm_status unpack_position(const json_t *object, tdm_position *position, int lanes)
{
    const json_t *saved = json_object_get(object, "position");
    const json_t *epoch = json_object_get(saved, "epoch");
    const json_t *batches = json_object_get(saved, "batches");
    const json_t *list = json_object_get(saved, "lanes");
    *position =
        (tdm_position){.epoch = json_integer_value(epoch), .batches = json_integer_value(batches)};
    if (!json_is_integer(epoch) || !json_is_integer(batches) || position->epoch < 0 ||
        json_array_size(list) != (size_t)lanes)
        return damaged("position");
    for (int i = 0; i < lanes; i++) {
        const json_t *item = json_array_get(list, (size_t)i);
        json_int_t lane[3];
        for (size_t k = 0; k < 3; k++) {
            const json_t *number = json_array_get(item, k);
            lane[k] = json_integer_value(number);
            if (!json_is_integer(number) || lane[k] < 0)
                return damaged("position.lanes");
        }
        position->lanes[i] =
            (tdm_lane_position){.window = lane[0], .row = lane[1], .bytes = lane[2]};
    }
    return TDM_OK;
}

static tdm_status pack_scores(json_t *object, const tdm_train_state *state)
{
    json_t *list = json_array();
    TDM_TRY(put(object, "scores", list));
    for (size_t i = 0; i < state->score_count; i++) {
        json_t *item = json_pack("[I, o]", (json_int_t)state->scores[i].step,
                                 tdm_json_number(state->scores[i].score));
        TDM_FAIL_IF(json_array_append_new(list, item) != 0, TDM_E_NOMEM,
                    "out of memory for the state of the training");
    }
    return TDM_OK;
}

static tdm_status unpack_scores(const json_t *object, tdm_train_state *state)
{
    const json_t *list = json_object_get(object, "scores");
    size_t count = json_array_size(list);
    if (!json_is_array(list))
        return damaged("scores");
    TDM_TRY(tdm_grow(&state->scores, &state->score_capacity, count, sizeof *state->scores));
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, i);
        const json_t *step = json_array_get(item, 0);
        const json_t *score = json_array_get(item, 1);
        if (!json_is_integer(step))
            return damaged("scores");
        state->scores[i] =
            (tdm_score){.step = json_integer_value(step),
                        .score = json_is_null(score) ? NAN : json_number_value(score)};
    }
    state->score_count = count;
    return TDM_OK;
}

/* Before there was a key for it, what the recipe says stood for it. */
static tdm_status unpack_kind_of_scores(const json_t *object, tdm_train_state *state)
{
    const json_t *saved = json_object_get(object, "keep_best");
    if (saved == NULL)
        return TDM_OK;
    if (!json_is_string(saved))
        return damaged("keep_best");
    if (strcmp(json_string_value(saved), tdm_keep_best_names[state->keep_best]) == 0)
        return TDM_OK;
    state->best_step = -1;
    state->score_count = 0;
    return TDM_OK;
}

/* ---- both ways ------------------------------------------------------------------------------- */

static tdm_status pack_metrics(json_t *object, const char *name, const tdm_metrics *metrics)
{
    json_t *saved;
    TDM_TRY(tdm_metrics_save(metrics, &saved));
    return put(object, name, saved);
}

static tdm_status pack(const tdm_train_state *state, int lanes, json_t *object)
{
    TDM_TRY(put(object, "version", json_integer(TDM_STATE_VERSION)));
    TDM_TRY(pack_entries(object, state_entries, COUNT(state_entries), state));
    TDM_TRY(pack_position(object, &state->position, lanes));
    TDM_TRY(put(object, "keep_best", json_string(tdm_keep_best_names[state->keep_best])));
    TDM_TRY(pack_scores(object, state));
    json_t *eval = json_object();
    TDM_TRY(put(object, "eval", eval));
    TDM_TRY(pack_entries(eval, eval_entries, COUNT(eval_entries), &state->eval));
    TDM_TRY(pack_metrics(object, "window", &state->window));
    return pack_metrics(object, "total", &state->total);
}

tdm_status tdm_train_state_save(const tdm_train_state *state, int lanes, json_t **out)
{
    *out = json_object();
    TDM_FAIL_IF(*out == NULL, TDM_E_NOMEM, "out of memory for the state of the training");
    tdm_status status = pack(state, lanes, *out);
    if (status != TDM_OK) {
        json_decref(*out);
        *out = NULL;
    }
    return status;
}

tdm_status tdm_train_state_restore(tdm_train_state *state, int lanes, const json_t *saved)
{
    const json_t *version = json_object_get(saved, "version");
    TDM_FAIL_IF(json_integer_value(version) > TDM_STATE_VERSION, TDM_E_VERSION,
                "has version %lld, this tandem (%s) knows up to %d: use a newer tandem",
                (long long)json_integer_value(version), TDM_VERSION, TDM_STATE_VERSION);
    if (json_integer_value(version) != TDM_STATE_VERSION)
        return damaged("version");
    TDM_TRY(unpack_entries(saved, state_entries, COUNT(state_entries), state));
    TDM_TRY(unpack_position(saved, &state->position, lanes));
    TDM_TRY(unpack_scores(saved, state));
    TDM_TRY(unpack_kind_of_scores(saved, state));
    TDM_TRY(unpack_entries(json_object_get(saved, "eval"), eval_entries, COUNT(eval_entries),
                           &state->eval));
    TDM_TRY(tdm_metrics_restore(&state->window, json_object_get(saved, "window")));
    return tdm_metrics_restore(&state->total, json_object_get(saved, "total"));
}
