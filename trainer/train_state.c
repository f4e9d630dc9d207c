#include "trainer/train_state.h"

#include "core/json.h"
#include "core/memory.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

tdm_status tdm_train_state_init(tdm_train_state *state, const tdm_metrics_spec *metrics,
                                const tdm_metric *best)
{
    const tdm_metrics_type *type = metrics->type;
    *state = (tdm_train_state){.eval_step = -1, .best = best, .best_step = -1, .end_step = -1};
    state->eval = tdm_metrics_result_make(type->metrics, type->metric_count, 0);
    tdm_status status = tdm_metrics_init(&state->window, metrics, 0);
    if (status == TDM_OK)
        status = tdm_metrics_init(&state->total, metrics, 0);
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
    return state->best->goal == TDM_GOAL_LOWER ? score < state->best_score
                                               : score > state->best_score;
}

tdm_status tdm_train_state_note_score(tdm_train_state *state)
{
    if (state->best == NULL)
        return TDM_OK;
    double score = tdm_metrics_result_get(&state->eval, state->best->name);
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

#define INTEGER(name, member)                                                                      \
    {                                                                                              \
        (name), offsetof(tdm_train_state, member), false                                           \
    }
#define REAL(name, member)                                                                         \
    {                                                                                              \
        (name), offsetof(tdm_train_state, member), true                                            \
    }

static const state_entry state_entries[] = {
    INTEGER("step", step),
    REAL("epoch_share", share),
    INTEGER("rows", rows),
    REAL("seconds", seconds),
    REAL("learning_rate", learning_rate),
    REAL("gradient_norm", gradient_norm),
    INTEGER("end_step", end_step),
    INTEGER("eval_step", eval_step),
    INTEGER("best_step", best_step),
    REAL("best_score", best_score),
    INTEGER("records", bad.records),
    INTEGER("bad_records", bad.bad),
    INTEGER("encoding_errors", bad.encoding_errors),
    INTEGER("quarantine_bytes", bad.quarantine_bytes),
    INTEGER("metrics_bytes", metrics_bytes),
};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static tdm_status put(json_t *object, const char *name, json_t *value)
{
    TDM_FAIL_IF(json_object_set_new(object, name, value) != 0, TDM_E_NOMEM,
                "out of memory for the state of the training");
    return TDM_OK;
}

static tdm_status pack_entries(json_t *object, const tdm_train_state *state)
{
    for (size_t i = 0; i < COUNT(state_entries); i++) {
        const char *at = (const char *)state + state_entries[i].offset;
        json_t *value = state_entries[i].is_real
                            ? tdm_json_number(*(const double *)(const void *)at)
                            : json_integer(*(const int64_t *)(const void *)at);
        TDM_TRY(put(object, state_entries[i].name, value));
    }
    return TDM_OK;
}

static tdm_status damaged(const char *name)
{
    return tdm_fail(TDM_E_FORMAT, "%s is missing or wrong", name);
}

static tdm_status unpack_entries(const json_t *object, tdm_train_state *state)
{
    for (size_t i = 0; i < COUNT(state_entries); i++) {
        const state_entry *entry = &state_entries[i];
        const json_t *value = json_object_get(object, entry->name);
        char *at = (char *)state + entry->offset;
        if (entry->is_real && json_is_null(value))
            *(double *)(void *)at = NAN;
        else if (entry->is_real && json_is_number(value))
            *(double *)(void *)at = json_number_value(value);
        else if (!entry->is_real && json_is_integer(value))
            *(int64_t *)(void *)at = json_integer_value(value);
        else
            return damaged(entry->name);
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

static const char *kind_of_scores(const tdm_train_state *state)
{
    return state->best == NULL ? "none" : state->best->name;
}

/* Before there was a key for it, what the recipe says stood for it. */
static tdm_status unpack_kind_of_scores(const json_t *object, tdm_train_state *state)
{
    const json_t *saved = json_object_get(object, "keep_best");
    if (saved == NULL)
        return TDM_OK;
    if (!json_is_string(saved))
        return damaged("keep_best");
    if (strcmp(json_string_value(saved), kind_of_scores(state)) == 0)
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
    TDM_TRY(pack_entries(object, state));
    TDM_TRY(pack_position(object, &state->position, lanes));
    TDM_TRY(put(object, "keep_best", json_string(kind_of_scores(state))));
    TDM_TRY(pack_scores(object, state));
    json_t *eval;
    TDM_TRY(tdm_metrics_result_json(&state->eval, &eval));
    TDM_TRY(put(object, "eval", eval));
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
    TDM_TRY(unpack_entries(saved, state));
    TDM_TRY(unpack_position(saved, &state->position, lanes));
    TDM_TRY(unpack_scores(saved, state));
    TDM_TRY(unpack_kind_of_scores(saved, state));
    const tdm_metrics_type *type = state->window.spec.type;
    TDM_TRY(tdm_metrics_result_restore(json_object_get(saved, "eval"), type->metrics,
                                       type->metric_count, &state->eval));
    TDM_TRY(tdm_metrics_restore(&state->window, json_object_get(saved, "window")));
    return tdm_metrics_restore(&state->total, json_object_get(saved, "total"));
}
