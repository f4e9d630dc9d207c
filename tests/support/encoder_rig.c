#include "tests/support/encoder_rig.h"

#include "core/rng.h"
#include "tests/support/check_main.h"

#include <string.h>

enum { CLS = 2, MASK = 4, FIRST_WORD = 5 }; /* ids */

/* ---- the model ------------------------------------------------------------------------------- */

static tdm_shape vector(int64_t size)
{
    return (tdm_shape){1, {size}};
}

static int64_t mask_parts(const tdm_encoder_rig_options *options)
{
    return (options->predictions + TDM_MASKED_PART - 1) / TDM_MASKED_PART;
}

static void add_labels(const tdm_encoder_rig_options *options, tdm_batch_layout *layout)
{
    const int64_t classes = options->inputs.classes;
    switch (options->inputs.head) {
    case TDM_HEAD_MASKED:
        tdm_batch_layout_add(layout, "mask_labels", TDM_U32, vector(options->predictions));
        tdm_batch_layout_add(layout, "mask_parts", TDM_I64, vector(mask_parts(options)));
        break;
    case TDM_HEAD_CLASSES:
        tdm_batch_layout_add(layout, "labels", TDM_U32, vector(options->sequences));
        break;
    case TDM_HEAD_LABELS:
        tdm_batch_layout_add(layout, "labels", TDM_F32,
                             (tdm_shape){2, {options->sequences, classes}});
        break;
    case TDM_HEAD_REGRESSION:
        tdm_batch_layout_add(layout, "labels", TDM_F32, vector(options->sequences));
        break;
    case TDM_HEAD_TOKEN_CLASSES:
        tdm_batch_layout_add(layout, "labels", TDM_U32, vector(options->tokens));
        break;
    case TDM_HEAD_NONE:
    case TDM_HEAD_FILL:
        break;
    }
    if (options->pairs)
        tdm_batch_layout_add(layout, "pair_labels", TDM_U32, vector(options->sequences));
}

tdm_batch_layout tdm_encoder_rig_layout(const tdm_encoder_rig_options *options)
{
    tdm_batch_layout layout;
    const tdm_text_head head = options->inputs.head;
    tdm_batch_layout_init(&layout, options->sequences);
    layout.max_tokens = options->tokens;
    tdm_batch_layout_add(&layout, "ids", TDM_U32, vector(options->tokens));
    tdm_batch_layout_add(&layout, "types", TDM_U32, vector(options->tokens));
    tdm_batch_layout_add(&layout, "positions", TDM_U32, vector(options->tokens));
    tdm_batch_layout_add(&layout, "token_rows", TDM_U32, vector(options->tokens));
    tdm_batch_layout_add(&layout, "token_count", TDM_I64, vector(1));
    if (options->padded) {
        tdm_batch_layout_add(&layout, "lengths", TDM_I32, vector(options->sequences));
        tdm_batch_layout_add(&layout, "first_tokens", TDM_U32, vector(options->sequences));
    } else {
        tdm_batch_layout_add(&layout, "cu_seqlens", TDM_I32, vector(options->sequences + 1));
    }
    if (head == TDM_HEAD_MASKED || head == TDM_HEAD_FILL) {
        tdm_batch_layout_add(&layout, "mask_positions", TDM_U32, vector(options->predictions));
        tdm_batch_layout_add(&layout, "mask_count", TDM_I64, vector(1));
    }
    if (!options->inference)
        add_labels(options, &layout);
    return layout;
}

void tdm_encoder_rig_init(tdm_encoder_rig *rig, const tdm_encoder_rig_options *options)
{
    memset(rig, 0, sizeof *rig);
    rig->options = *options;
    rig->step = 1;
    tdm_rig *base = &rig->rig;
    base->layout = tdm_encoder_rig_layout(options);
    ck_assert_ok(tdm_pool_create(options->threads == 0 ? 1 : options->threads, &base->pool));
    if (options->deferred)
        ck_assert_ok(tdm_cpu_create_deferred(base->pool, &base->backend));
    else
        ck_assert_ok(tdm_cpu_create(base->pool, &base->backend));
    ck_assert_ok(tdm_model_create(&tdm_bert, &rig->options.model, &rig->options.inputs,
                                  &base->layout, base->backend, &options->setup, &base->model));
    ck_assert_ok(tdm_model_allocate(base->model, !options->inference));
    ck_assert_ok(tdm_model_init(base->model));
    const tdm_backend_type *device = base->backend->type;
    const tdm_model_memory memory = tdm_model_memory_get(base->model);
    const size_t slab = (size_t)memory.dense_elements * sizeof(float);
    base->host_batch = calloc(base->layout.bytes, 1);
    ck_assert_ptr_nonnull(base->host_batch);
    ck_assert_ok(device->alloc(base->backend, base->layout.bytes, &base->batch));
    ck_assert_ok(device->alloc(base->backend, sizeof *base->device_scalars, &base->device_scalars));
    for (int i = 0; i < 2; i++)
        ck_assert_ok(device->alloc(base->backend, slab, &base->moments[i]));
}

void tdm_encoder_rig_deinit(tdm_encoder_rig *rig)
{
    tdm_rig_deinit(&rig->rig);
}

void tdm_encoder_rig_set(tdm_encoder_rig *rig, const tdm_parameter *parameter, const float *values)
{
    tdm_backend *backend = rig->rig.backend;
    const size_t bytes = (size_t)tdm_shape_elements(&parameter->shape) * sizeof(float);
    ck_assert_ok(
        backend->type->copy_in(backend, tdm_rig_values(&rig->rig, parameter), values, bytes, NULL));
    ck_assert_ok(backend->type->stream_sync(backend, NULL));
}

/* ---- batches --------------------------------------------------------------------------------- */

void *tdm_encoder_rig_tensor(const tdm_encoder_rig *rig, const char *name)
{
    int index = tdm_batch_layout_find(&rig->rig.layout, name);
    ck_assert_msg(index >= 0, "the batch has no %s", name);
    return rig->rig.host_batch + rig->rig.layout.tensors[index].offset;
}

static bool has_tensor(const tdm_encoder_rig *rig, const char *name)
{
    return tdm_batch_layout_find(&rig->rig.layout, name) >= 0;
}

static void put_predictions(tdm_encoder_rig *rig, const tdm_rig_sequence *sequence, int64_t begin)
{
    uint32_t *positions = tdm_encoder_rig_tensor(rig, "mask_positions");
    int64_t *count = tdm_encoder_rig_tensor(rig, "mask_count");
    for (int64_t i = 0; i < sequence->length; i++) {
        if (sequence->labels[i] == TDM_NO_LABEL)
            continue;
        ck_assert_int_lt(*count, rig->options.predictions);
        positions[*count] = (uint32_t)(begin + i);
        if (has_tensor(rig, "mask_labels"))
            ((uint32_t *)tdm_encoder_rig_tensor(rig, "mask_labels"))[*count] = sequence->labels[i];
        ++*count;
    }
}

/* How many predictions each part of them has. */
static void put_parts(tdm_encoder_rig *rig)
{
    const int64_t count = *(int64_t *)tdm_encoder_rig_tensor(rig, "mask_count");
    int64_t *parts = tdm_encoder_rig_tensor(rig, "mask_parts");
    for (int64_t i = 0; i < mask_parts(&rig->options); i++) {
        const int64_t left = count - i * TDM_MASKED_PART;
        parts[i] = left < 0 ? 0 : left < TDM_MASKED_PART ? left : TDM_MASKED_PART;
    }
}

static void put_labels(tdm_encoder_rig *rig, const tdm_rig_sequence *sequence, int64_t row,
                       int64_t begin)
{
    void *labels = tdm_encoder_rig_tensor(rig, "labels");
    const size_t classes = (size_t)rig->options.inputs.classes;
    switch (rig->options.inputs.head) {
    case TDM_HEAD_CLASSES:
        ((uint32_t *)labels)[row] = sequence->label;
        break;
    case TDM_HEAD_LABELS:
        memcpy((float *)labels + row * (int64_t)classes, sequence->numbers,
               classes * sizeof(float));
        break;
    case TDM_HEAD_REGRESSION:
        ((float *)labels)[row] = sequence->numbers[0];
        break;
    case TDM_HEAD_TOKEN_CLASSES:
        memcpy((uint32_t *)labels + begin, sequence->labels,
               (size_t)sequence->length * sizeof(uint32_t));
        break;
    case TDM_HEAD_NONE:
    case TDM_HEAD_MASKED:
    case TDM_HEAD_FILL:
        break;
    }
}

/* The sequence's tokens from `begin` to `end`; behind its own come [PAD]s. */
static void put_tokens(tdm_encoder_rig *rig, const tdm_rig_sequence *sequence, int64_t row,
                       int64_t begin, int64_t end)
{
    uint32_t *ids = tdm_encoder_rig_tensor(rig, "ids");
    uint32_t *types = tdm_encoder_rig_tensor(rig, "types");
    uint32_t *positions = tdm_encoder_rig_tensor(rig, "positions");
    uint32_t *token_rows = tdm_encoder_rig_tensor(rig, "token_rows");
    for (int64_t t = begin; t < end; t++) {
        const int64_t i = t - begin;
        ids[t] = i < sequence->length ? sequence->ids[i] : 0;
        types[t] = i < sequence->length ? sequence->types[i] : 0;
        positions[t] = (uint32_t)i;
        token_rows[t] = (uint32_t)row;
    }
}

/* One sequence, whose tokens begin at `begin`; answers where the next one's do. */
static int64_t put_sequence(tdm_encoder_rig *rig, const tdm_rig_sequence *sequence, int64_t row,
                            int64_t begin)
{
    const tdm_encoder_rig_options *options = &rig->options;
    const int64_t stride = options->tokens / options->sequences;
    const int64_t end = begin + (options->padded ? stride : sequence->length);
    ck_assert_int_le(sequence->length, options->padded ? stride : options->inputs.max_length);
    ck_assert_int_le(end, options->tokens);
    ((float *)tdm_encoder_rig_tensor(rig, "weight"))[row] = sequence->weight;
    ((uint64_t *)tdm_encoder_rig_tensor(rig, "sample"))[row] = sequence->sample;
    ((uint32_t *)tdm_encoder_rig_tensor(rig, "occurrence"))[row] = sequence->occurrence;
    if (options->padded) {
        ((int32_t *)tdm_encoder_rig_tensor(rig, "lengths"))[row] = (int32_t)sequence->length;
        ((uint32_t *)tdm_encoder_rig_tensor(rig, "first_tokens"))[row] = (uint32_t)begin;
    } else {
        int32_t *cu_seqlens = tdm_encoder_rig_tensor(rig, "cu_seqlens");
        cu_seqlens[row] = (int32_t)begin;
        cu_seqlens[row + 1] = (int32_t)end;
    }
    put_tokens(rig, sequence, row, begin, end);
    if (has_tensor(rig, "mask_positions"))
        put_predictions(rig, sequence, begin);
    if (has_tensor(rig, "labels"))
        put_labels(rig, sequence, row, begin);
    if (has_tensor(rig, "pair_labels"))
        ((uint32_t *)tdm_encoder_rig_tensor(rig, "pair_labels"))[row] = sequence->pair_label;
    return end;
}

void tdm_encoder_rig_load(tdm_encoder_rig *rig, const tdm_rig_sequence *sequences, int64_t count)
{
    const size_t rows = (size_t)rig->options.sequences;
    ck_assert_int_le(count, rig->options.sequences);
    memset(rig->rig.host_batch, 0xff, rig->rig.layout.bytes);
    memset(tdm_encoder_rig_tensor(rig, "weight"), 0, rows * sizeof(float));
    *(int64_t *)tdm_encoder_rig_tensor(rig, "rows") = count;
    if (has_tensor(rig, "mask_count"))
        *(int64_t *)tdm_encoder_rig_tensor(rig, "mask_count") = 0;
    int64_t begin = 0;
    for (int64_t r = 0; r < count; r++)
        begin = put_sequence(rig, &sequences[r], r, begin);
    *(int64_t *)tdm_encoder_rig_tensor(rig, "token_count") = begin;
    if (has_tensor(rig, "mask_parts"))
        put_parts(rig);
    tdm_encoder_rig_put(rig);
}

/* The weights of the labels of loss 0; in TDM_HEAD_MASKED every prediction counts once. */
static double sum_weights(const tdm_encoder_rig *rig)
{
    const tdm_encoder_rig_options *options = &rig->options;
    const tdm_text_head head = options->inputs.head;
    const int64_t rows = *(int64_t *)tdm_encoder_rig_tensor(rig, "rows");
    const int64_t tokens = *(int64_t *)tdm_encoder_rig_tensor(rig, "token_count");
    const float *weights = tdm_encoder_rig_tensor(rig, "weight");
    if (head == TDM_HEAD_MASKED)
        return (double)*(int64_t *)tdm_encoder_rig_tensor(rig, "mask_count");
    const uint32_t *labels = tdm_encoder_rig_tensor(rig, "labels");
    double sum = 0;
    if (head == TDM_HEAD_TOKEN_CLASSES) {
        for (int64_t t = 0; t < tokens; t++)
            sum += labels[t] != TDM_NO_LABEL;
        return sum;
    }
    for (int64_t r = 0; r < rows; r++) {
        if (head != TDM_HEAD_CLASSES || labels[r] != TDM_NO_LABEL)
            sum += (double)weights[r];
    }
    return head == TDM_HEAD_LABELS ? sum * (double)options->inputs.classes : sum;
}

void tdm_encoder_rig_put(tdm_encoder_rig *rig)
{
    tdm_rig *base = &rig->rig;
    const int64_t rows = *(int64_t *)tdm_encoder_rig_tensor(rig, "rows");
    const float *weights = tdm_encoder_rig_tensor(rig, "weight");
    memset(rig->weight_sums, 0, sizeof rig->weight_sums);
    if (has_tensor(rig, "labels") || has_tensor(rig, "mask_labels"))
        rig->weight_sums[0] = sum_weights(rig);
    for (int64_t r = 0; r < rows && has_tensor(rig, "pair_labels"); r++)
        rig->weight_sums[1] += (double)weights[r];
    ck_assert_ok(base->backend->type->copy_in(base->backend, base->batch, base->host_batch,
                                              base->layout.bytes, NULL));
    ck_assert_ok(base->backend->type->stream_sync(base->backend, NULL));
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void put_scalars(tdm_encoder_rig *rig, bool accumulate)
{
    tdm_rig *base = &rig->rig;
    const tdm_step_scalars before = base->scalars;
    base->scalars = (tdm_step_scalars){
        .step = rig->step,
        .epoch = rig->epoch,
        .dense_learning_rate = rig->learning_rate,
        .clip_norm = rig->clip_norm,
        .loss_scale = 1,
        .gradient_scale = 1,
    };
    for (int i = 0; i < TDM_LOSSES; i++) {
        if (accumulate)
            base->scalars.losses[i] = before.losses[i];
        base->scalars.losses[i].weight_sum = rig->weight_sums[i];
    }
    ck_assert_ok(base->backend->type->copy_in(base->backend, base->device_scalars, &base->scalars,
                                              sizeof base->scalars, NULL));
}

static double read_loss(tdm_encoder_rig *rig)
{
    tdm_rig *base = &rig->rig;
    double loss = 0;
    tdm_rig_copy_out(base, &base->scalars, base->device_scalars, sizeof base->scalars);
    for (int i = 0; i < TDM_LOSSES; i++) {
        if (base->scalars.losses[i].weight_sum > 0)
            loss += base->scalars.losses[i].loss_sum / base->scalars.losses[i].weight_sum;
    }
    return loss;
}

double tdm_encoder_rig_forward(tdm_encoder_rig *rig, bool training)
{
    tdm_rig *base = &rig->rig;
    put_scalars(rig, false);
    ck_assert_ok(tdm_model_forward(base->model, base->batch, base->device_scalars, training, NULL));
    return read_loss(rig);
}

double tdm_encoder_rig_run(tdm_encoder_rig *rig, bool accumulate)
{
    tdm_rig *base = &rig->rig;
    put_scalars(rig, accumulate);
    ck_assert_ok(tdm_model_forward(base->model, base->batch, base->device_scalars, true, NULL));
    ck_assert_ok(
        tdm_model_backward(base->model, base->batch, base->device_scalars, accumulate, NULL));
    return read_loss(rig);
}

void tdm_encoder_rig_update(tdm_encoder_rig *rig, double decay)
{
    tdm_rig *base = &rig->rig;
    tdm_backend *backend = base->backend;
    float *gradients = tdm_model_dense_gradients(base->model);
    const tdm_dense_norm_args norm = {
        .x = gradients,
        .count = tdm_model_memory_get(base->model).dense_elements,
        .scalars = base->device_scalars,
    };
    const tdm_prepare_update_args prepare = {.scalars = base->device_scalars};
    ck_assert_ok(backend->ops->dense_norm(backend, &norm, NULL));
    ck_assert_ok(backend->ops->prepare_update(backend, &prepare, NULL));
    for (int i = 0; i < tdm_model_parameter_count(base->model); i++) {
        const tdm_parameter *parameter = tdm_model_parameter(base->model, i);
        const tdm_dense_update_args update = {
            .rule = {.type = TDM_UPDATE_ADAMW,
                     .beta1 = 0.9f,
                     .beta2 = 0.999f,
                     .eps = 1e-6f,
                     .l2 = parameter->decay ? (float)decay : 0},
            .scalars = base->device_scalars,
            .values = tdm_model_dense_values(base->model) + parameter->offset,
            .gradients = gradients + parameter->offset,
            .moment1 = base->moments[0] + parameter->offset,
            .moment2 = base->moments[1] + parameter->offset,
            .count = tdm_shape_elements(&parameter->shape),
        };
        ck_assert_ok(backend->ops->dense_update(backend, &update, NULL));
    }
    ck_assert_ok(backend->type->stream_sync(backend, NULL));
    rig->step++;
}

double *tdm_encoder_rig_output(tdm_encoder_rig *rig, const char *name, int64_t rows,
                               int64_t *columns)
{
    tdm_matrix matrix;
    ck_assert_ok(tdm_model_output(rig->rig.model, name, &matrix));
    ck_assert_int_le(rows, matrix.rows);
    *columns = matrix.columns;
    double *out = calloc((size_t)(rows * matrix.columns), sizeof *out);
    float *row = calloc((size_t)matrix.columns, sizeof *row);
    ck_assert(out != NULL && row != NULL);
    for (int64_t r = 0; r < rows; r++) {
        tdm_rig_copy_out(&rig->rig, row, (float *)matrix.data + r * matrix.stride,
                         (size_t)matrix.columns * sizeof *row);
        for (int64_t c = 0; c < matrix.columns; c++)
            out[r * matrix.columns + c] = (double)row[c];
    }
    free(row);
    return out;
}

/* ---- random sequences ------------------------------------------------------------------------ */

static void draw_token(const tdm_encoder_rig_options *options, tdm_random_stream *random, int64_t i,
                       tdm_rig_sequence *out)
{
    const uint32_t words = (uint32_t)options->inputs.vocabulary - FIRST_WORD;
    const bool labelled = i == 1 || tdm_random_below(tdm_random_next(random), 6) == 0;
    const uint32_t word = FIRST_WORD + tdm_random_below(tdm_random_next(random), words);
    const uint32_t class =
        tdm_random_below(tdm_random_next(random), (uint32_t)options->inputs.classes);
    out->ids[i] = i == 0 ? CLS : word;
    out->types[i] = 2 * i > out->length;
    out->labels[i] = TDM_NO_LABEL;
    if (options->inputs.head == TDM_HEAD_TOKEN_CLASSES) {
        out->labels[i] = labelled ? TDM_NO_LABEL : class;
    } else if (labelled && i > 0) {
        out->labels[i] = word;
        out->ids[i] = MASK;
    }
}

void tdm_encoder_rig_sequences(const tdm_encoder_rig_options *options, uint64_t seed, int64_t first,
                               int64_t count, tdm_rig_sequence *out)
{
    const tdm_model_inputs *inputs = &options->inputs;
    ck_assert_int_le(inputs->max_length, TDM_RIG_MAX_LENGTH);
    ck_assert_int_le(inputs->classes, TDM_RIG_MAX_CLASSES);
    for (int64_t s = 0; s < count; s++) {
        tdm_random_stream random = {
            .key = tdm_philox_make_key(seed, TDM_PURPOSE_SYNTH, 0),
            .sample = (uint64_t)(first + s),
        };
        tdm_rig_sequence *sequence = &out[s];
        *sequence = (tdm_rig_sequence){
            .sample = ((uint64_t)3 << 32) + (uint64_t)(first + s),
            .weight = 1,
            .length = 1 + tdm_random_below(tdm_random_next(&random), (uint32_t)inputs->max_length),
            .label = tdm_random_below(tdm_random_next(&random), (uint32_t)inputs->classes),
            .pair_label = tdm_random_below(tdm_random_next(&random), 2),
        };
        for (int64_t c = 0; c < inputs->classes; c++)
            sequence->numbers[c] = (float)tdm_random_below(tdm_random_next(&random), 2);
        for (int64_t i = 0; i < sequence->length; i++)
            draw_token(options, &random, i, sequence);
    }
}
