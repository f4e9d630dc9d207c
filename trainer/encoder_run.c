#include "trainer/encoder_run.h"

#include "core/memory.h"
#include "trainer/run_model.h"
#include "trainer/tensor_file.h"

/* Of positions without end. */
#define ROTARY_LENGTH 512

#define LEAST_LENGTH 3

/* ---- opening --------------------------------------------------------------------------------- */

static tdm_status choose_length(tdm_encoder_run *run, int64_t wanted)
{
    int64_t positions = run->source.from.config.options.max_positions;
    bool is_learned = run->source.from.config.options.positions == TDM_POSITION_LEARNED;
    run->max_length = is_learned ? positions : ROTARY_LENGTH;
    if (run->source.recipe != NULL)
        run->max_length = run->source.recipe->text.max_length;
    TDM_FAIL_IF(is_learned && wanted > positions, TDM_E_CONFIG,
                "sequences of %lld tokens are too long: the model has %lld positions",
                (long long)wanted, (long long)positions);
    if (wanted > 0)
        run->max_length = wanted;
    TDM_FAIL_IF(
        run->max_length < LEAST_LENGTH, TDM_E_CONFIG,
        "sequences of %lld tokens hold no text: [CLS], [SEP] and a token between them are %d",
        (long long)run->max_length, LEAST_LENGTH);
    return TDM_OK;
}

static tdm_status choose_precision(tdm_encoder_run *run, int precision)
{
    tdm_backend_properties properties;
    TDM_TRY(run->backend->type->properties(run->backend, &properties));
    TDM_FAIL_IF(precision == TDM_PRECISION_BF16 && !properties.bf16, TDM_E_UNSUPPORTED,
                "%s has no products in bfloat16 (AVX512_BF16 or AMX): take fp32, or auto",
                properties.name);
    run->bf16 = properties.bf16 && precision != TDM_PRECISION_FP32;
    return TDM_OK;
}

static tdm_sequence_room room_of(const tdm_encoder_run *run, const tdm_encoder_run_options *options)
{
    int64_t tokens = options->batch_tokens;
    bool predicts = options->head != TDM_HEAD_NONE;
    if (tokens < run->max_length)
        tokens = run->max_length;
    return (tdm_sequence_room){
        .sequences = tokens / 2, /* [CLS] [SEP] */
        .tokens = tokens,
        .predictions = !predicts                  ? 0
                       : options->predictions > 0 ? options->predictions
                                                  : run->max_length,
        .labels = options->head == TDM_HEAD_MASKED,
    };
}

static tdm_status load_weights(tdm_encoder_run *run, const tdm_model_inputs *inputs)
{
    const tdm_pretrained *from = &run->source.from;
    tdm_saved_tensor *tensors;
    int count;
    TDM_TRY(tdm_model_tensors(run->model, &tensors, &count));
    tdm_status status = tdm_pretrained_load_all(from, &from->config.options, inputs, run->tokenizer,
                                                run->backend, tensors, count);
    tdm_free(tensors);
    return status;
}

static tdm_status make_model(tdm_encoder_run *run, const tdm_encoder_run_options *options)
{
    const tdm_bert_options *model = &run->source.from.config.options;
    const tdm_model_setup setup = {.compute = run->bf16 ? TDM_BF16 : TDM_F32};
    const tdm_sequence_room room = room_of(run, options);
    const tdm_model_inputs inputs = {
        .vocabulary = tdm_tokenizer_size(run->tokenizer),
        .max_length = run->max_length,
        .head = options->head,
    };
    TDM_TRY(tdm_sequence_batch_init(&run->batch, &room, run->backend));
    TDM_TRY(tdm_model_create(&tdm_bert, model, &inputs, &run->batch.layout, run->backend, &setup,
                             &run->model));
    TDM_TRY(tdm_model_allocate(run->model, false));
    return load_weights(run, &inputs);
}

static tdm_status open_run(tdm_encoder_run *run, const char *path,
                           const tdm_encoder_run_options *options)
{
    const tdm_encoder_source_options source = {.checkpoint = options->checkpoint};
    TDM_TRY(tdm_encoder_source_open(path, &source, &run->source));
    run->tokenizer = run->source.from.tokenizer;
    run->hidden = run->source.from.config.options.hidden;
    TDM_FAIL_IF(run->tokenizer == NULL, TDM_E_DATA,
                "%s: has neither vocab.txt nor tokenizer.json, which say what tokens are", path);
    TDM_TRY(choose_length(run, options->max_length));
    TDM_TRY(tdm_pool_create(options->threads, &run->pool));
    TDM_TRY(tdm_run_create_backend(run->source.recipe, run->pool, &run->backend));
    TDM_TRY(choose_precision(run, options->precision));
    TDM_TRY(
        run->backend->type->alloc(run->backend, sizeof *run->device_scalars, &run->device_scalars));
    return make_model(run, options);
}

tdm_status tdm_encoder_run_open(const char *path, const tdm_encoder_run_options *options,
                                tdm_encoder_run **out)
{
    tdm_encoder_run *run;
    *out = NULL;
    TDM_TRY(tdm_alloc(1, sizeof *run, &run));
    tdm_status status = open_run(run, path, options);
    if (status == TDM_OK)
        *out = run;
    else
        tdm_encoder_run_close(run);
    return status;
}

void tdm_encoder_run_close(tdm_encoder_run *run)
{
    if (run == NULL)
        return;
    if (run->output != NULL)
        run->backend->type->host_free(run->backend, run->output);
    if (run->device_scalars != NULL)
        run->backend->type->free(run->backend, run->device_scalars);
    tdm_model_destroy(run->model);
    tdm_sequence_batch_deinit(&run->batch);
    tdm_backend_destroy(run->backend);
    tdm_pool_destroy(run->pool);
    tdm_encoder_source_close(&run->source);
    tdm_free(run);
}

/* ---- running --------------------------------------------------------------------------------- */

tdm_status tdm_encoder_run_forward(tdm_encoder_run *run)
{
    tdm_backend *backend = run->backend;
    const tdm_backend_type *type = backend->type;
    run->scalars = (tdm_step_scalars){.loss_scale = 1};
    run->scalars.losses[0].weight_sum = (double)run->batch.predictions;
    TDM_TRY(tdm_sequence_batch_put(&run->batch));
    TDM_TRY(type->copy_in(backend, run->device_scalars, &run->scalars, sizeof run->scalars, NULL));
    TDM_TRY(tdm_model_forward(run->model, run->batch.device, run->device_scalars, false, NULL));
    TDM_TRY(type->copy_out(backend, &run->scalars, run->device_scalars, sizeof run->scalars, NULL));
    return type->stream_sync(backend, NULL);
}

static tdm_status copy_output(tdm_encoder_run *run, int64_t rows, tdm_matrix *matrix)
{
    const tdm_backend_type *type = run->backend->type;
    size_t bytes = (size_t)(rows * matrix->stride) * sizeof(float);
    if (bytes > run->output_bytes) {
        if (run->output != NULL)
            type->host_free(run->backend, run->output);
        run->output = NULL;
        run->output_bytes = 0;
        TDM_TRY(type->host_alloc(run->backend, bytes, &run->output));
        run->output_bytes = bytes;
    }
    TDM_TRY(type->copy_out(run->backend, run->output, matrix->data, bytes, NULL));
    matrix->data = run->output;
    return type->stream_sync(run->backend, NULL);
}

tdm_status tdm_encoder_run_output(tdm_encoder_run *run, const char *name, int64_t rows,
                                  tdm_matrix *out)
{
    TDM_TRY(tdm_model_output(run->model, name, out));
    out->rows = rows;
    return run->batch.device == run->batch.host ? TDM_OK : copy_output(run, rows, out);
}
