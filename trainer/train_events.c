#include "trainer/training.h"

#include "core/clock.h"
#include "core/json.h"
#include "core/log.h"
#include "text/text_counts.h"

#include <math.h>
#include <stdlib.h>

#define TELL_SECONDS 0.2

double tdm_training_progress(const tdm_training *training)
{
    const tdm_train_options *train = &training->recipe->train;
    const tdm_train_state *state = &training->state;
    bool knows_share = tdm_input_stored_bytes(training->session.input) > 0;
    double by_steps = train->max_steps > 0 ? (double)state->step / (double)train->max_steps : NAN;
    double by_epochs = train->epochs > 0 && knows_share
                           ? ((double)state->position.epoch + state->share) / (double)train->epochs
                           : NAN;
    return fmax(by_steps, by_epochs);
}

double tdm_training_seconds(const tdm_training *training)
{
    return training->progress.seconds_before + tdm_clock_seconds() - training->progress.start;
}

/* ---- how fast -------------------------------------------------------------------------------- */

tdm_train_pace tdm_training_pace(const tdm_training *training)
{
    const tdm_progress *progress = &training->progress;
    tdm_pipeline_stats stats = {0};
    if (training->pipeline != NULL)
        stats = tdm_pipeline_stats_get(training->pipeline);
    return (tdm_train_pace){
        .seconds = tdm_clock_seconds() - progress->pause,
        .rows = progress->work.rows,
        .steps = progress->work.steps,
        .full_steps = progress->full_steps,
        .wait_seconds = stats.wait_seconds,
        .reading_seconds = stats.work_seconds,
        .flops = progress->work.flops,
    };
}

static tdm_train_pace pace_between(const tdm_train_pace *before, const tdm_train_pace *now)
{
    return (tdm_train_pace){
        .seconds = now->seconds - before->seconds,
        .rows = now->rows - before->rows,
        .steps = now->steps - before->steps,
        .full_steps = now->full_steps - before->full_steps,
        .wait_seconds = now->wait_seconds - before->wait_seconds,
        .reading_seconds = now->reading_seconds - before->reading_seconds,
        .flops = now->flops - before->flops,
    };
}

static void add_pace(tdm_train_pace *into, const tdm_train_pace *pace)
{
    into->seconds += pace->seconds;
    into->rows += pace->rows;
    into->steps += pace->steps;
    into->full_steps += pace->full_steps;
    into->wait_seconds += pace->wait_seconds;
    into->reading_seconds += pace->reading_seconds;
    into->flops += pace->flops;
}

/* A second; NaN where they are not counted. */
static double flops_of(const tdm_train_pace *pace)
{
    return pace->flops > 0 ? tdm_ratio(pace->flops, pace->seconds) : NAN;
}

double tdm_training_cut_share(const tdm_training *training)
{
    const tdm_task *task = &training->session.task;
    if (task->encoder == NULL)
        return NAN;
    const tdm_progress *progress = &training->progress;
    tdm_text_counts counts = tdm_text_featurizer_counts(task->featurizer);
    return tdm_ratio((double)(progress->cut_tokens + counts.cut_tokens),
                     (double)(progress->read_tokens + counts.tokens));
}

void tdm_training_keep_counts(tdm_training *training)
{
    const tdm_task *task = &training->session.task;
    if (task->encoder == NULL)
        return;
    tdm_text_counts counts = tdm_text_featurizer_counts(task->featurizer);
    training->progress.cut_tokens += counts.cut_tokens;
    training->progress.read_tokens += counts.tokens;
}

/* ---- the monitor ----------------------------------------------------------------------------- */

static void fill_rates(tdm_training *training)
{
    tdm_progress *progress = &training->progress;
    tdm_train_status *status = &progress->status;
    tdm_pipeline_stats stats = tdm_pipeline_stats_get(training->pipeline);
    tdm_train_pace now = tdm_training_pace(training);
    tdm_train_pace pace = pace_between(&progress->told, &now);
    status->ring_ready = stats.batches_ready;
    status->ring_depth = stats.depth;
    if (pace.seconds <= 0 || pace.steps == 0)
        return;
    status->rows_per_second = (double)pace.rows / pace.seconds;
    status->flops = flops_of(&pace);
    status->wait_for_batches = pace.wait_seconds / pace.seconds;
    status->wait_for_step = (double)pace.full_steps / (double)pace.steps;
    progress->told = now;
}

static void fill_status(tdm_training *training, tdm_train_event event, double now)
{
    const tdm_train_state *state = &training->state;
    tdm_progress *progress = &training->progress;
    tdm_train_status *status = &progress->status;
    double done = tdm_training_progress(training);
    double here = done - progress->start_progress;
    double seconds = now - progress->start;
    status->event = event;
    status->step = state->step;
    status->max_steps = training->recipe->train.max_steps;
    status->epoch = state->position.epoch;
    status->epochs = training->recipe->train.epochs;
    status->epoch_share = state->share;
    status->progress = done;
    status->rows = state->rows;
    status->seconds = seconds;
    status->seconds_left = here > 0 ? (1 - done) / here * seconds : NAN;
    status->learning_rate = training->state.learning_rate;
    status->gradient_norm = training->state.gradient_norm;
    status->window = progress->window;
    status->bad_records = tdm_bad_record_log_counts(training->bad).bad;
    status->has_eval = state->eval_step >= 0;
    status->eval = state->eval;
    status->is_best = state->best_step == state->step;
}

void tdm_training_tell(tdm_training *training, tdm_train_event event)
{
    const tdm_train_control *control = training->control;
    const tdm_metrics_type *type = training->state.window.spec.type;
    tdm_progress *progress = &training->progress;
    if (control->monitor == NULL)
        return;
    double now = tdm_clock_seconds();
    if (event == TDM_EVENT_STEP)
        fill_rates(training);
    if (!progress->has_window && tdm_metrics_get(&training->state.window, training->session.pool,
                                                 &progress->window) != TDM_OK)
        progress->window = tdm_metrics_result_make(type->metrics, type->metric_count, NAN);
    fill_status(training, event, now);
    control->monitor(control->monitor_context, &progress->status);
}

void tdm_training_tell_step(tdm_training *training)
{
    tdm_progress *progress = &training->progress;
    if (tdm_clock_seconds() - progress->pause >= progress->told.seconds + TELL_SECONDS)
        tdm_training_tell(training, TDM_EVENT_STEP);
}

/* ---- metrics.jsonl --------------------------------------------------------------------------- */

/* A line being made; writing it tells whether memory ran out on the way. */
typedef struct metrics_line {
    json_t *json;
    bool failed;
} metrics_line;

static void set(metrics_line *line, const char *key, json_t *value)
{
    line->failed |= json_object_set_new(line->json, key, value) != 0;
}

static void set_int(metrics_line *line, const char *key, int64_t value)
{
    set(line, key, json_integer((json_int_t)value));
}

static void set_real(metrics_line *line, const char *key, double value)
{
    set(line, key, tdm_json_number(value));
}

static metrics_line begin_line(const tdm_training *training, const char *event)
{
    const tdm_train_state *state = &training->state;
    metrics_line line = {.json = json_object()};
    set(&line, "event", json_string(event));
    set_int(&line, "step", state->step);
    set_int(&line, "epoch", state->position.epoch);
    set_int(&line, "rows", state->rows);
    return line;
}

/* The metrics' own rows are "scored_rows". */
static void set_metrics(metrics_line *line, const tdm_metrics_result *metrics)
{
    json_t *object;
    if (tdm_metrics_result_json(metrics, &object) != TDM_OK) {
        line->failed = true;
        return;
    }
    set(line, "scored_rows", json_incref(json_object_get(object, "rows")));
    line->failed |= json_object_del(object, "rows") != 0;
    line->failed |= json_object_update(line->json, object) != 0;
    json_decref(object);
}

static void set_pace(metrics_line *line, const tdm_metrics_result *metrics,
                     const tdm_train_pace *pace)
{
    double rows_per_second = tdm_ratio((double)pace->rows, pace->seconds);
    set_real(line, "rows_per_second", rows_per_second);
    line->failed |= tdm_metrics_result_set_speed(metrics, rows_per_second, line->json) != 0;
    if (pace->flops > 0)
        set_real(line, "flops", flops_of(pace));
    set_real(line, "wait_for_batches", tdm_ratio(pace->wait_seconds, pace->seconds));
    set_real(line, "wait_for_step", tdm_ratio((double)pace->full_steps, (double)pace->steps));
}

static tdm_status write_line(tdm_training *training, metrics_line *line)
{
    char *text =
        line->failed ? NULL : json_dumps(line->json, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(line->json);
    TDM_FAIL_IF(text == NULL, TDM_E_NOMEM, "out of memory for a line of %s", TDM_RUN_METRICS);
    tdm_status status = tdm_run_folder_log(training->folder, text);
    free(text);
    return status;
}

tdm_status tdm_training_log_window(tdm_training *training)
{
    tdm_train_state *state = &training->state;
    tdm_progress *progress = &training->progress;
    tdm_train_pace now = tdm_training_pace(training);
    tdm_train_pace pace = pace_between(&progress->logged, &now);
    TDM_TRY(tdm_metrics_get(&state->window, training->session.pool, &progress->window));
    metrics_line line = begin_line(training, "train");
    set_metrics(&line, &progress->window);
    set_real(&line, "learning_rate", state->learning_rate);
    set_real(&line, "gradient_norm", state->gradient_norm);
    set_real(&line, "seconds", tdm_training_seconds(training));
    set_pace(&line, &progress->window, &pace);
    TDM_TRY(write_line(training, &line));
    TDM_TRY(tdm_metrics_merge(&state->total, &state->window));
    tdm_metrics_reset(&state->window);
    progress->has_window = true;
    progress->logged = now;
    add_pace(&progress->total, &pace);
    tdm_training_tell(training, TDM_EVENT_LOG);
    return TDM_OK;
}

tdm_status tdm_training_log_epoch(tdm_training *training)
{
    metrics_line line = begin_line(training, "epoch");
    set_real(&line, "seconds", tdm_training_seconds(training));
    TDM_TRY(write_line(training, &line));
    tdm_training_tell(training, TDM_EVENT_EPOCH);
    return TDM_OK;
}

tdm_status tdm_training_total(tdm_training *training, tdm_metrics_result *out)
{
    tdm_metrics all;
    TDM_TRY(tdm_metrics_init(&all, &training->state.total.spec, 0));
    tdm_status status = tdm_metrics_merge(&all, &training->state.total);
    if (status == TDM_OK)
        status = tdm_metrics_merge(&all, &training->state.window);
    if (status == TDM_OK)
        status = tdm_metrics_get(&all, training->session.pool, out);
    tdm_metrics_deinit(&all);
    return status;
}

tdm_status tdm_training_log_end(tdm_training *training)
{
    tdm_metrics_result total;
    TDM_TRY(tdm_training_total(training, &total));
    metrics_line line = begin_line(training, "end");
    set_metrics(&line, &total);
    set_real(&line, "seconds", tdm_training_seconds(training));
    set_pace(&line, &total, &training->progress.total);
    if (training->session.task.encoder != NULL)
        set_real(&line, "cut_share", tdm_training_cut_share(training));
    return write_line(training, &line);
}

/* ---- evaluations ----------------------------------------------------------------------------- */

static void tell_evaluating(void *context, int64_t rows, double share)
{
    tdm_training *training = context;
    (void)rows;
    training->progress.status.eval_share = share;
    tdm_training_tell(training, TDM_EVENT_EVALUATING);
}

static tdm_status log_evaluation(tdm_training *training, const tdm_evaluation *evaluation)
{
    const tdm_train_state *state = &training->state;
    metrics_line line = begin_line(training, "eval");
    set_metrics(&line, &evaluation->metrics);
    set_int(&line, "bad_records", evaluation->bad_records);
    set(&line, "best", json_boolean(state->best_step == state->step));
    set_real(&line, "seconds", tdm_training_seconds(training));
    return write_line(training, &line);
}

/* What is wrong with the records is told once, at the first evaluation of a process. */
static tdm_status run_evaluation(tdm_training *training, tdm_evaluation *out)
{
    tdm_bad_record_log *log = NULL;
    const tdm_share any = {.value = 1, .is_share = true};
    if (!training->eval_told)
        TDM_TRY(tdm_bad_record_log_create(TDM_BAD_RECORD_SKIP, any, NULL, &log));
    const tdm_evaluate_options options = {
        .stop = training->control->stop,
        .progress = training->control->monitor == NULL ? NULL : tell_evaluating,
        .context = training,
        .bad_records = log,
    };
    tdm_status status =
        tdm_evaluate(&training->session.task, training->scorer, training->session.eval_extractor,
                     training->session.pool, &training->eval_metrics, &options, out);
    tdm_bad_record_log_destroy(log);
    if (status == TDM_OK && !training->eval_told && out->metrics.rows == 0)
        tdm_warn("data.eval: there is no row to evaluate on: name other files, or a larger share "
                 "to hold out");
    training->eval_told = true;
    return status;
}

tdm_status tdm_training_evaluate(tdm_training *training)
{
    double start = tdm_clock_seconds();
    tdm_evaluation evaluation;
    TDM_TRY(run_evaluation(training, &evaluation));
    training->state.eval = evaluation.metrics;
    training->state.eval_step = training->state.step;
    TDM_TRY(tdm_train_state_note_score(&training->state));
    TDM_TRY(log_evaluation(training, &evaluation));
    tdm_training_add_pause(training, tdm_clock_seconds() - start);
    tdm_training_tell(training, TDM_EVENT_EVAL);
    return TDM_OK;
}
