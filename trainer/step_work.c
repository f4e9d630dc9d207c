#include "trainer/step_work.h"

#include "text/masked_batch.h"
#include "trainer/batch_parts.h"

static void add_text(tdm_step_work *work, const tdm_task *task, const tdm_batch *batch)
{
    tdm_masked_batch text = tdm_masked_batch_of(batch);
    tdm_encoder_work each = tdm_bert_work(task->encoder, &task->inputs);
    double contexts = 0;
    for (int64_t r = 0; r < text.rows; r++) {
        tdm_token_range range = tdm_masked_batch_row(&text, r);
        contexts += tdm_bert_contexts(task->encoder, range.end - range.begin);
    }
    double attention = each.per_token_and_context * contexts;
    work->tokens += text.tokens;
    work->predictions += text.mask_count;
    work->attention_flops += attention;
    work->flops += attention + each.per_token * (double)text.tokens +
                   each.per_prediction * (double)text.mask_count +
                   each.per_sequence * (double)text.rows;
}

void tdm_step_work_add(tdm_step_work *work, const tdm_task *task, const tdm_batch *batch)
{
    work->steps++;
    work->rows += batch->rows;
    if (task->encoder != NULL)
        add_text(work, task, batch);
}

/* ---- ahead ----------------------------------------------------------------------------------- */

/* Nothing is copied to a device: what is wanted is how many there are. */
static tdm_status count_parts(tdm_batch_parts *parts, const tdm_batch *batch, int64_t *count)
{
    tdm_batch_parts_begin(parts, batch, batch->data);
    for (;;) {
        const unsigned char *data;
        tdm_row_range rows;
        TDM_TRY(tdm_batch_parts_next(parts, &data, &rows));
        if (data == NULL)
            return TDM_OK;
        ++*count;
    }
}

static tdm_status count_batches(const tdm_session *session, tdm_pipeline *pipeline,
                                tdm_batch_parts *parts, const atomic_bool *stop,
                                tdm_step_work *work)
{
    int64_t most = session->recipe->train.max_steps;
    for (bool last = false; !last && (most == 0 || work->steps < most);) {
        TDM_FAIL_IF(stop != NULL && atomic_load(stop), TDM_E_CANCELLED, "stopped");
        tdm_delivery *delivery;
        tdm_status status = TDM_OK;
        TDM_TRY(tdm_pipeline_next(pipeline, &delivery));
        last = delivery->last;
        if (!delivery->epoch_end) {
            tdm_step_work_add(work, &session->task, &delivery->batch);
            status = count_parts(parts, &delivery->batch, &work->parts);
        }
        tdm_pipeline_release(pipeline, delivery);
        TDM_TRY(status);
    }
    return TDM_OK;
}

tdm_status tdm_step_work_count(const tdm_session *session, const atomic_bool *stop,
                               tdm_step_work *out)
{
    tdm_pipeline_options options = tdm_session_pipeline(session);
    tdm_pipeline *pipeline = NULL;
    tdm_batch_parts *parts = NULL;
    tdm_status status;
    *out = (tdm_step_work){0};
    options.write_cache = false;
    TDM_TRY_GOTO(tdm_batch_parts_create(&session->task.featurizer->batch,
                                        &session->task.model_batch, session->backend, &parts),
                 done);
    TDM_TRY_GOTO(tdm_pipeline_create(&options, &pipeline), done);
    status = count_batches(session, pipeline, parts, stop, out);
done:
    tdm_pipeline_destroy(pipeline);
    tdm_batch_parts_destroy(parts);
    return status;
}
