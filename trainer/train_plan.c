/* The dry run: what a training will hold, without allocating the large parts. */
#include "core/memory.h"
#include "data/block_stream.h"
#include "data/input_sample.h"
#include "trainer/batch_feed.h"
#include "trainer/batch_parts.h"
#include "trainer/outputs.h"
#include "trainer/scorer.h"
#include "trainer/session.h"
#include "trainer/tensor_file.h"
#include "trainer/trainer.h"

#include <math.h>
#include <stdio.h>

/* Measured: what a process holds beside all that is planned. oneDNN's kernels and the C library's
 * arenas grow with threads. */
#define BASE_BYTES   ((int64_t)12 << 20)
#define THREAD_BYTES ((int64_t)2 << 20)

/* A saved window of progressive metrics as JSON, and the buffers of files. */
#define SAVE_BYTES ((int64_t)6 << 20)

static int64_t trained_elements(const tdm_model *model)
{
    int64_t count = 0;
    for (int i = 0; i < tdm_model_parameter_count(model); i++)
        count += tdm_shape_elements(&tdm_model_parameter(model, i)->shape);
    return count;
}

static void plan_model(const tdm_session *session, tdm_train_plan *plan)
{
    const tdm_model *model = session->model;
    const int64_t element = sizeof(float);
    tdm_model_memory memory = tdm_model_memory_get(model);
    tdm_optimizer_memory moments = tdm_optimizer_memory_get(&session->recipe->optimizer, model);
    plan->parameters = trained_elements(model);
    plan->dense_bytes = memory.dense_elements * element;
    plan->gradient_bytes = memory.dense_elements * element;
    plan->sparse_bytes = memory.sparse_elements * element;
    plan->moment_bytes = moments.dense_bytes + moments.sparse_bytes;
    plan->arena_bytes = memory.arena_bytes + tdm_outputs_bytes(&session->task);
    plan->checkpoint_disk_bytes = plan->dense_bytes + plan->sparse_bytes + plan->moment_bytes;
}

static tdm_status plan_pipeline(const tdm_session *session, tdm_train_plan *plan)
{
    const tdm_train_options *train = &session->recipe->train;
    const tdm_batch_layout *batch = &session->task.featurizer->batch;
    const tdm_pipeline_options options = tdm_session_pipeline(session);
    tdm_pipeline_plan pipeline;
    int64_t live = tdm_memory_stats_get().live_bytes;
    TDM_TRY(tdm_pipeline_plan_make(&options, &pipeline));
    /* What this thread keeps, having extracted, every other one will. */
    plan->other_bytes += (plan->threads - 1) * (tdm_memory_stats_get().live_bytes - live);
    plan->batch_bytes = (int64_t)batch->bytes;
    plan->pipeline_bytes =
        pipeline.bytes + tdm_batch_feed_bytes(&session->properties, batch->bytes) +
        tdm_batch_parts_bytes(&session->task.model_batch, session->properties.host_memory);
    plan->rows = pipeline.rows;
    plan->tokens = pipeline.tokens;
    plan->steps = -1;
    if (pipeline.batches >= 0 && train->epochs > 0)
        plan->steps = pipeline.batches * train->epochs;
    if (train->max_steps > 0 && (plan->steps < 0 || train->max_steps < plan->steps))
        plan->steps = train->max_steps;
    return TDM_OK;
}

/* Of an AUC over so many rows, exact up to `exact` of them. */
static int64_t auc_bytes(const tdm_metrics_type *type, int64_t rows, int64_t exact)
{
    const int64_t entry = sizeof(tdm_auc_entry);
    if (type != &tdm_click_metrics_type && type != &tdm_binary_metrics_type)
        return 0;
    return rows <= exact ? rows * entry
                         : exact * entry + TDM_AUC_BINS * (int64_t)sizeof(tdm_auc_bin);
}

static tdm_status plan_evaluation(const tdm_session *session, tdm_train_plan *plan)
{
    if (session->eval_extractor == NULL)
        return TDM_OK;
    tdm_input *input = tdm_extractor_input(session->eval_extractor);
    tdm_input_sample sample;
    TDM_TRY(tdm_input_sample_take(session->eval_extractor, 1, 1, &sample));
    double block_bytes = (double)tdm_input_block_bytes(input);
    double blocks = tdm_block_stream_depth(session->pool);
    plan->eval_rows = llround(sample.text * (double)tdm_input_stored_bytes(input) * sample.rows);
    plan->eval_bytes =
        auc_bytes(session->task.metrics.type, plan->eval_rows,
                  session->recipe->metrics.exact_auc_rows) +
        tdm_scorer_bytes(&session->task, session->properties.host_memory) +
        (int64_t)(block_bytes * (blocks * (1 + sample.extract_bytes) + sample.window_bytes));
    return TDM_OK;
}

/* `live`: bytes of memory before there was the session, whose own stay until the end. */
static tdm_status plan_session(const tdm_session *session, int64_t live, tdm_train_plan *plan)
{
    plan->threads = tdm_pool_threads(session->pool);
    plan->other_bytes = BASE_BYTES + plan->threads * THREAD_BYTES;
    snprintf(plan->device, sizeof plan->device, "%s", session->properties.name);
    plan_model(session, plan);
    TDM_TRY(plan_pipeline(session, plan));
    TDM_TRY(plan_evaluation(session, plan));
    plan->other_bytes += tdm_memory_stats_get().live_bytes - live;
    plan->metrics_bytes = 3 * auc_bytes(session->task.metrics.type, 1, 0);
    plan->checkpoint_bytes = (int64_t)TDM_TENSOR_FILE_BYTES + SAVE_BYTES;
    plan->peak_bytes = plan->dense_bytes + plan->gradient_bytes + plan->sparse_bytes +
                       plan->moment_bytes + plan->arena_bytes + plan->pipeline_bytes +
                       plan->eval_bytes + plan->metrics_bytes + plan->checkpoint_bytes +
                       plan->other_bytes;
    return TDM_OK;
}

static tdm_status plan_phase(tdm_recipe *recipe, const atomic_bool *stop, tdm_train_plan *out)
{
    tdm_session session;
    int64_t live = tdm_memory_stats_get().live_bytes;
    *out = (tdm_train_plan){0};
    TDM_TRY(tdm_session_init(&session, recipe, stop));
    tdm_status status = plan_session(&session, live, out);
    tdm_session_deinit(&session);
    return status;
}

tdm_status tdm_train_plan_make(tdm_recipe *recipe, const atomic_bool *stop, tdm_train_plan *out)
{
    *out = (tdm_train_plan){0};
    for (int64_t i = 0; i < tdm_recipe_phase_count(recipe); i++) {
        tdm_train_plan plan;
        tdm_recipe_set_phase(recipe, i);
        TDM_TRY(plan_phase(recipe, stop, &plan));
        if (plan.peak_bytes > out->peak_bytes)
            *out = plan;
    }
    return TDM_OK;
}

/* ---- text ------------------------------------------------------------------------------------ */

static tdm_status append(tdm_text *text, const char *name, int64_t bytes, const char *what)
{
    return tdm_text_printf(text, "  %-12s %10.1f MiB  %s\n", name, (double)bytes / (1 << 20), what);
}

static tdm_status append_counts(const tdm_train_plan *plan, tdm_text *text)
{
    TDM_TRY(tdm_text_printf(text, "device        %s, %d threads\n", plan->device, plan->threads));
    TDM_TRY(tdm_text_printf(text, "parameters    %lld\n", (long long)plan->parameters));
    if (plan->rows >= 0)
        TDM_TRY(tdm_text_printf(text, "rows          about %lld\n", (long long)plan->rows));
    if (plan->tokens > 0)
        TDM_TRY(tdm_text_printf(text, "tokens        about %lld\n", (long long)plan->tokens));
    if (plan->steps >= 0)
        TDM_TRY(tdm_text_printf(text, "steps         about %lld\n", (long long)plan->steps));
    if (plan->eval_rows > 0)
        TDM_TRY(tdm_text_printf(text, "eval rows     about %lld\n", (long long)plan->eval_rows));
    return TDM_OK;
}

tdm_status tdm_train_plan_text(const tdm_train_plan *plan, tdm_text *text)
{
    TDM_TRY(append_counts(plan, text));
    TDM_TRY(tdm_text_printf(text, "memory\n"));
    TDM_TRY(append(text, "dense", plan->dense_bytes, "parameters"));
    TDM_TRY(append(text, "gradients", plan->gradient_bytes, "of dense parameters"));
    TDM_TRY(append(text, "sparse", plan->sparse_bytes, "embedding tables"));
    TDM_TRY(append(text, "moments", plan->moment_bytes, "of the optimizer"));
    TDM_TRY(append(text, "arena", plan->arena_bytes, "values of a step and their gradients"));
    TDM_TRY(append(text, "pipeline", plan->pipeline_bytes, "blocks read ahead, ring of batches"));
    TDM_TRY(append(text, "evaluation", plan->eval_bytes, "blocks, batch, scores"));
    TDM_TRY(append(text, "metrics", plan->metrics_bytes, "progressive"));
    TDM_TRY(append(text, "checkpoint", plan->checkpoint_bytes, "while one is saved"));
    TDM_TRY(append(text, "other", plan->other_bytes, "inputs, libraries, threads"));
    TDM_TRY(append(text, "peak", plan->peak_bytes, "all of it"));
    return tdm_text_printf(text, "disk\n  %-12s %10.1f MiB  each\n", "checkpoint",
                           (double)plan->checkpoint_disk_bytes / (1 << 20));
}
