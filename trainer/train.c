#include "trainer/training.h"

#include "core/clock.h"
#include "core/file.h"
#include "core/log.h"
#include "core/memory.h"
#include "trainer/checkpoint.h"
#include "trainer/init_from.h"

#include <math.h>

/* ---- beginning ------------------------------------------------------------------------------- */

static tdm_status put_recipe(const tdm_training *training)
{
    tdm_text text = {0};
    tdm_status status = tdm_text_printf(
        &text, "# tandem run folder, format %d; made by tandem %s\n", TDM_RUN_FORMAT, TDM_VERSION);
    if (status == TDM_OK)
        status = tdm_recipe_emit(training->recipe, &text);
    if (status == TDM_OK)
        status = tdm_file_put(tdm_run_folder_file(training->folder, TDM_RUN_RECIPE), text.bytes,
                              text.length, NULL);
    tdm_text_free(&text);
    return status;
}

static tdm_status begin_anew(tdm_training *training)
{
    const tdm_run_folder *folder = training->folder;
    const tdm_bad_record_counts none = {0};
    TDM_TRY(tdm_model_init(training->session.model));
    if (training->recipe->init_from != NULL)
        TDM_TRY(tdm_init_from_load(&training->session));
    TDM_TRY(tdm_run_folder_cut(training->folder, 0));
    TDM_TRY(tdm_bad_record_log_restore(training->bad, &none));
    const tdm_task *task = &training->session.task;
    return task->type->save(task, training->session.input, tdm_run_folder_path(folder));
}

/* Takes from the run that will be resumed what the input's size once decided. */
static tdm_status adopt_block_bytes(tdm_recipe *recipe)
{
    tdm_checkpoint_list list;
    TDM_TRY(tdm_checkpoint_list_read(recipe->output.dir, &list));
    bool none = list.count == 0;
    tdm_checkpoint_list_free(&list);
    if (none || recipe->data.block_bytes != 0)
        return TDM_OK;
    tdm_recipe *saved;
    TDM_TRY(tdm_recipe_load_run(recipe->output.dir, &saved));
    recipe->data.block_bytes = saved->data.block_bytes;
    tdm_recipe_free(saved);
    return TDM_OK;
}

/* Finds the checkpoint to go on from, *step -1 where there is none. */
static tdm_status find_checkpoint(const tdm_training *training, int64_t *step)
{
    const char *folder = training->recipe->output.dir;
    bool found = false;
    *step = -1;
    if (training->control->resume)
        TDM_TRY(tdm_checkpoint_newest_good(folder, step, &found));
    if (!found)
        *step = -1;
    return TDM_OK;
}

/* The recipe is that of the run, but for what may change. */
static tdm_status compare_recipes(const tdm_training *training)
{
    const char *folder = tdm_run_folder_path(training->folder);
    tdm_recipe *saved;
    TDM_TRY(tdm_recipe_load_run(folder, &saved));
    tdm_status status = tdm_recipe_check_resume(saved, training->recipe);
    tdm_recipe_free(saved);
    return status;
}

static tdm_status allocate(tdm_training *training)
{
    tdm_session *session = &training->session;
    const tdm_backend_type *type = session->backend->type;
    const tdm_recipe *recipe = training->recipe;
    TDM_TRY(tdm_model_allocate(session->model, true));
    TDM_TRY(tdm_optimizer_create(&recipe->optimizer, session->model, session->backend,
                                 &training->optimizer));
    TDM_TRY(type->alloc(session->backend, sizeof(tdm_step_scalars), &training->device_scalars));
    TDM_TRY(tdm_batch_parts_create(&session->task.featurizer->batch, &session->task.model_batch,
                                   session->backend, &training->parts));
    TDM_TRY(tdm_outputs_init(&training->outputs, session->model, &session->task, session->backend));
    TDM_TRY(tdm_train_state_init(&training->state, &session->task.metrics, training->best));
    TDM_TRY(tdm_bad_record_log_create(
        (tdm_bad_record_policy)recipe->data.on_bad_record, recipe->data.max_bad_records,
        tdm_run_folder_file(training->folder, TDM_RUN_QUARANTINE), &training->bad));
    if (session->eval_extractor == NULL) {
        if (recipe->train.eval_every_steps > 0)
            tdm_warn("train.eval_every_steps: there is nothing to evaluate on: set data.eval");
        return TDM_OK;
    }
    TDM_TRY(tdm_metrics_init(&training->eval_metrics, &session->task.metrics,
                             recipe->metrics.exact_auc_rows));
    return tdm_scorer_create(session->model, &session->task, session->backend, &training->scorer);
}

static tdm_status start_pipeline(tdm_training *training)
{
    tdm_session *session = &training->session;
    tdm_pipeline_options options = tdm_session_pipeline(session);
    if (training->resumed_step >= 0)
        options.start = &training->state.position;
    TDM_TRY(tdm_pipeline_create(&options, &training->pipeline));
    return tdm_batch_feed_init(&training->feed, training->pipeline, session->backend,
                               &session->properties, session->task.featurizer->batch.bytes);
}

/* Those of a process; what tells of the time since the last line begins anew with each phase. */
static void start_clocks(tdm_training *training, bool is_first)
{
    tdm_progress *progress = &training->progress;
    double now = tdm_clock_seconds();
    double done = tdm_training_progress(training);
    training->saved_at = now;
    progress->told = progress->logged = tdm_training_pace(training);
    if (!is_first)
        return;
    progress->start = now;
    progress->seconds_before = training->state.seconds;
    progress->start_progress = isnan(done) ? 0 : done;
    training->resumed_from = training->resumed_step;
}

/* Sequences of another length are other rows: where they change, training goes on with a new
 * epoch. */
static void enter_phase(tdm_training *training)
{
    const tdm_recipe *recipe = training->recipe;
    tdm_train_state *state = &training->state;
    int64_t phase = training->phase;
    if (phase == 0 || state->step != tdm_recipe_phase_begin(recipe, phase) ||
        tdm_recipe_phase_get(recipe, phase - 1).max_length == recipe->text.max_length)
        return;
    bool has_begun = state->position.batches > 0;
    state->position = (tdm_position){.epoch = state->position.epoch + (has_begun ? 1 : 0)};
    state->share = 0;
}

/* Where the phase in force ends and another follows. */
static bool is_phase_over(const tdm_training *training)
{
    const tdm_recipe *recipe = training->recipe;
    int64_t next = training->phase + 1;
    return next < tdm_recipe_phase_count(recipe) &&
           training->state.step >= tdm_recipe_phase_begin(recipe, next);
}

static bool is_done(const tdm_training *training)
{
    const tdm_train_options *train = &training->recipe->train;
    const tdm_train_state *state = &training->state;
    return is_phase_over(training) || (train->max_steps > 0 && state->step >= train->max_steps) ||
           (train->epochs > 0 && state->position.epoch >= train->epochs);
}

/* Goes on from a step that is saved. */
static tdm_status go_on(tdm_training *training, int64_t step)
{
    const tdm_task *task = &training->session.task;
    TDM_TRY(compare_recipes(training));
    TDM_TRY(allocate(training));
    TDM_TRY(
        task->type->check(task, training->session.input, tdm_run_folder_path(training->folder)));
    TDM_TRY(tdm_training_restore(training, step));
    enter_phase(training);
    return TDM_OK;
}

/* Begins the training, or the phase behind `step`, which is saved; -1: that is to be found out. */
static tdm_status begin(tdm_training *training, int64_t step)
{
    const tdm_train_control *control = training->control;
    tdm_recipe *recipe = training->recipe;
    bool is_first = step < 0;
    if (is_first)
        TDM_TRY(find_checkpoint(training, &step));
    if (is_first && control->resume)
        TDM_TRY(adopt_block_bytes(recipe));
    training->phase = tdm_recipe_phase_of(recipe, step);
    tdm_recipe_set_phase(recipe, training->phase);
    /* Nothing is written before the inputs are open and the model is planned. */
    TDM_TRY(tdm_session_init(&training->session, recipe, control->stop));
    if (control->watch != NULL)
        control->watch(control->watch_context, training->session.backend);
    TDM_TRY(tdm_recipe_best_metric(recipe, training->session.task.metrics.type, &training->best));
    if (is_first)
        TDM_TRY(tdm_run_folder_open(recipe->output.dir, control->resume, &training->folder));
    if (step >= 0) {
        TDM_TRY(go_on(training, step));
    } else {
        TDM_TRY(allocate(training));
        TDM_TRY(begin_anew(training));
    }
    start_clocks(training, is_first);
    if (!is_done(training))
        TDM_TRY(start_pipeline(training));
    /* With its recipe the folder holds a run. */
    return put_recipe(training);
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Bad records on the way to this delivery, and whether they are too many. They are judged in the
 * first epoch only. */
static tdm_status take_bad_records(tdm_training *training, const tdm_delivery *delivery)
{
    for (size_t i = 0; i < delivery->report_count; i++)
        TDM_TRY(
            tdm_bad_record_log_add(training->bad, training->session.input, &delivery->reports[i]));
    if (delivery->epoch > 0)
        return TDM_OK;
    return tdm_bad_record_log_judge(training->bad, delivery->good_records, delivery->epoch_end);
}

/* An evaluation belongs to this step and was not made: a training that was stopped during one makes
 * it where it goes on. Behind the last step of a phase that is the next one, whose sequences and
 * batches it is made with in any case. */
static bool is_evaluation_due(const tdm_training *training)
{
    int64_t every = training->recipe->train.eval_every_steps;
    int64_t step = training->state.step;
    return training->scorer != NULL && every > 0 && step > 0 && step % every == 0 &&
           training->state.eval_step != step && !is_phase_over(training);
}

static bool is_save_due(const tdm_training *training)
{
    const tdm_checkpoint_options *checkpoint = &training->recipe->checkpoint;
    const tdm_train_state *state = &training->state;
    double minutes = (tdm_clock_seconds() - training->saved_at) / 60;
    return state->best_step == state->step ||
           (checkpoint->every_steps > 0 && state->step % checkpoint->every_steps == 0) ||
           (checkpoint->every_minutes > 0 && minutes >= checkpoint->every_minutes);
}

static tdm_status evaluate_and_save(tdm_training *training)
{
    if (is_evaluation_due(training))
        TDM_TRY(tdm_training_evaluate(training));
    return is_save_due(training) ? tdm_training_save(training) : TDM_OK;
}

/* What follows a step, in the order in which a resumed training repeats it. */
static tdm_status after_step(tdm_training *training)
{
    if (training->state.step % training->recipe->train.log_every_steps == 0)
        TDM_TRY(tdm_training_log_window(training));
    TDM_TRY(evaluate_and_save(training));
    tdm_training_tell_step(training);
    return TDM_OK;
}

static tdm_status fail_without_rows(const tdm_training *training)
{
    return tdm_fail(TDM_E_DATA,
                    "%s: there is no row to train on: all records are bad, empty or held out",
                    tdm_input_file_get(training->session.input, 0)->path);
}

/* Where corpora have weights an epoch may leave out all blocks. */
static tdm_status end_epoch(tdm_training *training, const tdm_delivery *delivery)
{
    bool is_weighted = tdm_input_weighted(training->session.input);
    if (training->state.position.batches == 0 && (delivery->windows > 0 || !is_weighted))
        return fail_without_rows(training);
    training->state.position = delivery->batch.after;
    training->state.share = 0;
    return tdm_training_log_epoch(training);
}

static tdm_status consume(tdm_training *training, const tdm_fed_batch *fed)
{
    TDM_TRY(take_bad_records(training, fed->delivery));
    if (fed->delivery->epoch_end)
        return end_epoch(training, fed->delivery);
    return tdm_training_step(training, fed);
}

static tdm_status run(tdm_training *training)
{
    while (!is_done(training)) {
        TDM_FAIL_IF(tdm_training_is_stopped(training), TDM_E_CANCELLED, "the training was stopped");
        tdm_fed_batch fed;
        TDM_TRY(tdm_batch_feed_next(&training->feed, &fed));
        bool was_step = !fed.delivery->epoch_end;
        tdm_status status = consume(training, &fed);
        tdm_batch_feed_release(&training->feed, &fed);
        TDM_TRY(status);
        if (was_step)
            TDM_TRY(after_step(training));
    }
    return TDM_OK;
}

/* ---- the end --------------------------------------------------------------------------------- */

static tdm_status finish(tdm_training *training)
{
    tdm_train_state *state = &training->state;
    if (state->end_step == state->step)
        return TDM_OK;
    if (state->step == 0)
        return fail_without_rows(training);
    TDM_TRY(tdm_bad_record_log_judge(training->bad, 0, true));
    if (state->window.rows > 0)
        TDM_TRY(tdm_training_log_window(training));
    if (training->scorer != NULL && state->eval_step != state->step)
        TDM_TRY(tdm_training_evaluate(training));
    TDM_TRY(tdm_training_log_end(training));
    state->end_step = state->step;
    return tdm_training_save(training);
}

static tdm_status train(tdm_training *training)
{
    tdm_status status = TDM_OK;
    if (is_evaluation_due(training))
        status = evaluate_and_save(training);
    if (status == TDM_OK)
        status = run(training);
    if (status == TDM_OK && is_phase_over(training))
        return training->saved_step == training->state.step ? TDM_OK : tdm_training_save(training);
    if (status == TDM_OK)
        status = finish(training);
    if (status != TDM_E_CANCELLED)
        return status;
    long long step = training->state.step;
    TDM_FAIL_IF(step == 0, TDM_E_CANCELLED, "stopped before the first step");
    if (step != training->saved_step)
        TDM_TRY(tdm_training_save(training));
    return tdm_fail(TDM_E_CANCELLED, "stopped at step %lld, which is saved: --resume goes on",
                    step);
}

static tdm_status fill_result(tdm_training *training, tdm_train_result *result)
{
    const tdm_train_state *state = &training->state;
    double seconds = tdm_clock_seconds() - training->progress.start;
    tdm_bad_record_counts bad = tdm_bad_record_log_counts(training->bad);
    tdm_train_pace pace = training->progress.total;
    *result = (tdm_train_result){
        .step = state->step,
        .epoch = state->position.epoch,
        .rows = state->rows,
        .seconds = seconds,
        .rows_per_second = tdm_ratio((double)pace.rows, pace.seconds),
        .flops = pace.flops > 0 ? tdm_ratio(pace.flops, pace.seconds) : NAN,
        .pace = pace,
        .cut_share = tdm_training_cut_share(training),
        .has_eval = state->eval_step >= 0,
        .eval = state->eval,
        .best_step = state->best_step,
        .best_score = state->best_score,
        .records = bad.records,
        .bad_records = bad.bad,
        .encoding_errors = bad.encoding_errors,
        .resumed_step = training->resumed_from,
    };
    return tdm_training_total(training, &result->train);
}

/* All but the run folder. */
static void close_parts(tdm_training *training)
{
    tdm_session *session = &training->session;
    tdm_batch_feed_deinit(&training->feed);
    tdm_pipeline_destroy(training->pipeline);
    tdm_scorer_destroy(training->scorer);
    tdm_metrics_deinit(&training->eval_metrics);
    tdm_bad_record_log_destroy(training->bad);
    tdm_optimizer_destroy(training->optimizer);
    tdm_train_state_deinit(&training->state);
    if (training->device_scalars != NULL)
        session->backend->type->free(session->backend, training->device_scalars);
    tdm_outputs_deinit(&training->outputs);
    tdm_batch_parts_destroy(training->parts);
    tdm_session_deinit(session);
    training->pipeline = NULL;
    training->scorer = NULL;
    training->bad = NULL;
    training->optimizer = NULL;
    training->device_scalars = NULL;
    training->parts = NULL;
}

/* Phase by phase; *begun where there is a result. */
static tdm_status run_phases(tdm_training *training, bool *begun)
{
    for (int64_t step = -1;; step = training->saved_step) {
        TDM_TRY(begin(training, step));
        *begun = true;
        TDM_TRY(train(training));
        if (!is_phase_over(training))
            return TDM_OK;
        *begun = false;
        tdm_training_keep_counts(training);
        close_parts(training);
    }
}

tdm_status tdm_train(tdm_recipe *recipe, const tdm_train_control *control, tdm_train_result *result)
{
    tdm_training *training;
    tdm_error error = {0};
    if (result != NULL)
        *result = (tdm_train_result){.best_step = -1, .resumed_step = -1};
    TDM_TRY(tdm_alloc(1, sizeof *training, &training));
    training->recipe = recipe;
    training->control = control;
    training->resumed_step = training->resumed_from = training->saved_step = -1;
    bool begun = false;
    tdm_status status = run_phases(training, &begun);
    if (status != TDM_OK)
        tdm_error_keep(&error, status);
    if (begun && result != NULL) {
        tdm_status filled = fill_result(training, result);
        if (status == TDM_OK && filled != TDM_OK)
            tdm_error_keep(&error, filled);
    }
    close_parts(training);
    tdm_run_folder_close(training->folder);
    tdm_free(training);
    return error.status == TDM_OK ? TDM_OK : tdm_error_raise(&error);
}
