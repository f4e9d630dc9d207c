/* What holds of every encoder: it learns, its gradients are those of its loss, a sequence is read
 * alone, and its numbers repeat. */
#include "tests/support/check_main.h"
#include "tests/support/encoder_rig.h"

#include <math.h>
#include <string.h>

enum { SEQUENCES = 32, LENGTH = 16, VOCABULARY = 61, CLASSES = 3, HIDDEN = 32 };

typedef enum encoder_shape {
    POST,
    PRE,
    MODERN,
} encoder_shape;

static tdm_bert_options shape_options(encoder_shape shape)
{
    tdm_bert_options options = {
        .layers = 2,
        .hidden = HIDDEN,
        .heads = 4,
        .intermediate = 56,
        .attention_dropout = -1,
        .norm = shape == POST ? TDM_NORM_POST : TDM_NORM_PRE,
        .norm_eps = 1e-12,
        .max_positions = LENGTH + 3,
        .types = true,
        .bias = true,
        .pooler = true,
        .initializer = 0.2,
    };
    if (shape != MODERN)
        return options;
    options.layers = 3;
    options.embedding_norm = true;
    options.positions = TDM_POSITION_ROTARY;
    options.rotary_theta = 10000;
    options.local_rotary_theta = 100;
    options.activation = TDM_ENCODER_GELU_TANH;
    options.gated = true;
    options.types = options.bias = options.pooler = false;
    options.local_window = 2;
    options.global_every = 2;
    return options;
}

static const struct {
    const char *name;
    encoder_shape shape;
    tdm_text_head head;
    bool pairs;
} variants[] = {
    {"post", POST, TDM_HEAD_MASKED, true},
    {"pre", PRE, TDM_HEAD_MASKED, true},
    {"modern", MODERN, TDM_HEAD_MASKED, false},
    {"classes", POST, TDM_HEAD_CLASSES, false},
    {"labels", MODERN, TDM_HEAD_LABELS, false},
    {"regression", PRE, TDM_HEAD_REGRESSION, false},
    {"tokens", MODERN, TDM_HEAD_TOKEN_CLASSES, false},
};
#define VARIANTS ((int)(sizeof variants / sizeof variants[0]))

static tdm_encoder_rig_options variant(int index, double dropout)
{
    tdm_encoder_rig_options options = {
        .model = shape_options(variants[index].shape),
        .inputs = {.vocabulary = VOCABULARY,
                   .max_length = LENGTH,
                   .head = variants[index].head,
                   .classes = CLASSES},
        .setup = {.seed = 7, .compute = TDM_F32},
        .sequences = SEQUENCES,
        .tokens = SEQUENCES * LENGTH,
        .predictions = SEQUENCES * LENGTH,
        .pairs = variants[index].pairs,
        .threads = 2,
    };
    options.model.dropout = dropout;
    if (options.inputs.head == TDM_HEAD_REGRESSION)
        options.inputs.classes = 1;
    return options;
}

/* With a batch of random sequences. Their first tokens differ, so that none is like another. */
static void start(tdm_encoder_rig *rig, const tdm_encoder_rig_options *options, int64_t count)
{
    tdm_rig_sequence sequences[SEQUENCES];
    tdm_encoder_rig_init(rig, options);
    tdm_encoder_rig_sequences(options, 5, 0, count, sequences);
    for (int64_t r = 0; r < count; r++)
        sequences[r].ids[0] = (uint32_t)(VOCABULARY - 1 - r);
    tdm_encoder_rig_load(rig, sequences, count);
}

/* ---- learning -------------------------------------------------------------------------------- */

START_TEST(every_encoder_learns_32_sequences_by_heart)
{
    for (int v = 0; v < VARIANTS; v++) {
        tdm_encoder_rig rig;
        tdm_encoder_rig_options options = variant(v, 0);
        start(&rig, &options, SEQUENCES);
        rig.learning_rate = 5e-3;
        double loss = 1;
        for (int step = 0; step < 200 && loss >= 0.05; step++) {
            loss = tdm_encoder_rig_run(&rig, false);
            tdm_encoder_rig_update(&rig, 0);
        }
        ck_assert_msg(loss < 0.05, "%s: loss %g", variants[v].name, loss);
        tdm_encoder_rig_deinit(&rig);
    }
}
END_TEST

static double loss_with(tdm_encoder_rig *rig, float *device, double value)
{
    const float number = (float)value;
    tdm_backend *backend = rig->rig.backend;
    ck_assert_ok(backend->type->copy_in(backend, device, &number, sizeof number, NULL));
    return tdm_encoder_rig_run(rig, false);
}

/* The element whose gradient is largest. */
static void check_largest_gradient(tdm_encoder_rig *rig, const char *variant_name,
                                   const tdm_parameter *parameter)
{
    const double h = 1e-2;
    int64_t largest = 0;
    tdm_encoder_rig_run(rig, false);
    double *gradients = tdm_rig_read_gradients(&rig->rig, parameter);
    double *values = tdm_rig_read_values(&rig->rig, parameter);
    for (int64_t i = 1; i < tdm_shape_elements(&parameter->shape); i++) {
        if (fabs(gradients[i]) > fabs(gradients[largest]))
            largest = i;
    }
    float *device = tdm_rig_values(&rig->rig, parameter) + largest;
    double found = gradients[largest];
    double above = loss_with(rig, device, values[largest] + h);
    double below = loss_with(rig, device, values[largest] - h);
    double expected = (above - below) / (2 * h);
    loss_with(rig, device, values[largest]);
    ck_assert_msg(found != 0, "%s, %s: no gradient", variant_name, parameter->name);
    ck_assert_msg(fabs(found - expected) <= 2e-2 * fabs(found) + 1e-4,
                  "%s, %s: gradient %.6g, differences %.6g", variant_name, parameter->name, found,
                  expected);
    free(gradients);
    free(values);
}

START_TEST(gradients_are_those_of_the_loss_under_dropout)
{
    for (int v = 0; v < VARIANTS; v++) {
        tdm_encoder_rig rig;
        tdm_encoder_rig_options options = variant(v, 0.2);
        start(&rig, &options, 6);
        for (int i = 0; i < tdm_model_parameter_count(rig.rig.model); i++)
            check_largest_gradient(&rig, variants[v].name, tdm_model_parameter(rig.rig.model, i));
        tdm_encoder_rig_deinit(&rig);
    }
}
END_TEST

/* ---- a sequence alone ------------------------------------------------------------------------ */

/* Fails unless ‖a - b‖ ≤ tolerance ‖b‖, but for what rounding leaves of sums that cancel. */
static void check_close(const char *name, const char *what, const double *a, const double *b,
                        int64_t count, double tolerance)
{
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        difference += (a[i] - b[i]) * (a[i] - b[i]);
        norm += b[i] * b[i];
    }
    ck_assert_msg(sqrt(difference) <= tolerance * sqrt(norm) + 1e-8, "%s, %s: %.3g apart, of %.3g",
                  name, what, sqrt(difference), sqrt(norm));
}

/* The output's rows of sequence `row` of the loaded batch. */
static double *output_of(tdm_encoder_rig *rig, const char *name, int64_t row, int64_t length,
                         int64_t *columns)
{
    const tdm_encoder_rig_options *options = &rig->options;
    int64_t begin = row * (options->tokens / options->sequences);
    if (!options->padded)
        begin = ((int32_t *)tdm_encoder_rig_tensor(rig, "cu_seqlens"))[row];
    double *all = tdm_encoder_rig_output(rig, name, begin + length, columns);
    memmove(all, all + begin * *columns, (size_t)(length * *columns) * sizeof *all);
    return all;
}

/* An encoder of this shape that answers its hidden states. */
static tdm_encoder_rig_options hidden_options(int index)
{
    tdm_encoder_rig_options options = variant(index, 0);
    options.inputs.head = TDM_HEAD_NONE;
    options.pairs = false;
    options.inference = true;
    return options;
}

START_TEST(padded_sequences_have_the_same_hidden_states)
{
    for (int v = 0; v <= MODERN; v++) {
        tdm_encoder_rig packed, padded;
        tdm_rig_sequence sequences[SEQUENCES];
        tdm_encoder_rig_options options = hidden_options(v);
        start(&packed, &options, SEQUENCES - 2);
        options.padded = true;
        start(&padded, &options, SEQUENCES - 2);
        tdm_encoder_rig_sequences(&options, 5, 0, SEQUENCES - 2, sequences);
        tdm_encoder_rig_forward(&packed, false);
        tdm_encoder_rig_forward(&padded, false);
        for (int64_t r = 0; r < SEQUENCES - 2; r++) {
            int64_t columns, length = sequences[r].length;
            double *a = output_of(&packed, "hidden", r, length, &columns);
            double *b = output_of(&padded, "hidden", r, length, &columns);
            ck_assert_int_eq(columns, HIDDEN);
            check_close(variants[v].name, "hidden", a, b, length * columns, 1e-6);
            free(a);
            free(b);
        }
        tdm_encoder_rig_deinit(&packed);
        tdm_encoder_rig_deinit(&padded);
    }
}
END_TEST

static void check_same_gradients(const char *name, tdm_encoder_rig *a, tdm_encoder_rig *b)
{
    for (int i = 0; i < tdm_model_parameter_count(a->rig.model); i++) {
        const tdm_parameter *parameter = tdm_model_parameter(a->rig.model, i);
        double *left = tdm_rig_read_gradients(&a->rig, parameter);
        double *right = tdm_rig_read_gradients(&b->rig, parameter);
        check_close(name, parameter->name, left, right, tdm_shape_elements(&parameter->shape),
                    1e-5);
        free(left);
        free(right);
    }
}

START_TEST(padded_sequences_have_the_same_loss_and_gradients)
{
    for (int v = 0; v < VARIANTS; v++) {
        tdm_encoder_rig packed, padded;
        tdm_encoder_rig_options options = variant(v, 0.1);
        start(&packed, &options, SEQUENCES - 2);
        options.padded = true;
        start(&padded, &options, SEQUENCES - 2);
        double loss = tdm_encoder_rig_run(&packed, false);
        ck_assert_double_eq_tol(tdm_encoder_rig_run(&padded, false), loss, 1e-6 * loss);
        check_same_gradients(variants[v].name, &padded, &packed);
        tdm_encoder_rig_deinit(&packed);
        tdm_encoder_rig_deinit(&padded);
    }
}
END_TEST

/* Logits of the sequence's tokens in training, under dropout, in row `row` of `count` sequences. */
static double *training_logits(tdm_encoder_rig *rig, const tdm_rig_sequence *sequences,
                               int64_t count, int64_t row, int64_t *size)
{
    int64_t columns;
    tdm_encoder_rig_load(rig, sequences, count);
    tdm_encoder_rig_forward(rig, true);
    double *logits = output_of(rig, "logits", row, sequences[row].length, &columns);
    *size = sequences[row].length * columns;
    return logits;
}

static bool differ(const double *a, const double *b, int64_t count)
{
    double difference = 0;
    for (int64_t i = 0; i < count; i++)
        difference += fabs(a[i] - b[i]);
    return difference > 1e-2 * (double)count;
}

START_TEST(neither_neighbours_nor_place_change_a_sequence_or_its_dropout)
{
    for (int shape = POST; shape <= MODERN; shape++) {
        tdm_encoder_rig rig;
        tdm_rig_sequence sequences[SEQUENCES], alone;
        tdm_encoder_rig_options options = variant(VARIANTS - 1, 0.2);
        options.model = shape_options((encoder_shape)shape);
        options.model.dropout = 0.2;
        int64_t size;
        tdm_encoder_rig_init(&rig, &options);
        tdm_encoder_rig_sequences(&options, 9, 0, SEQUENCES, sequences);
        for (int64_t r = 0; r < SEQUENCES; r += 5) {
            alone = sequences[r];
            double *among = training_logits(&rig, sequences, SEQUENCES, r, &size);
            double *single = training_logits(&rig, &alone, 1, 0, &size);
            check_close(variants[shape].name, "logits", single, among, size, 1e-6);
            alone.sample++;
            double *other = training_logits(&rig, &alone, 1, 0, &size);
            ck_assert(differ(other, single, size));
            free(among);
            free(single);
            free(other);
        }
        tdm_encoder_rig_deinit(&rig);
    }
}
END_TEST

START_TEST(every_epoch_and_every_occurrence_drops_others)
{
    tdm_encoder_rig rig;
    tdm_rig_sequence sequence;
    tdm_encoder_rig_options options = variant(VARIANTS - 1, 0.2);
    int64_t size;
    tdm_encoder_rig_init(&rig, &options);
    tdm_encoder_rig_sequences(&options, 9, 0, 1, &sequence);
    double *first = training_logits(&rig, &sequence, 1, 0, &size);
    rig.epoch = 1;
    double *second = training_logits(&rig, &sequence, 1, 0, &size);
    ck_assert(differ(first, second, size));
    sequence.occurrence = 1;
    double *third = training_logits(&rig, &sequence, 1, 0, &size);
    ck_assert(differ(first, third, size));
    ck_assert(differ(second, third, size));
    free(first);
    free(second);
    free(third);
    tdm_encoder_rig_deinit(&rig);
}
END_TEST

/* Tokens that are all alike, of a model that knows no positions but for those of its attention. */
START_TEST(every_token_is_dropped_on_its_own)
{
    tdm_encoder_rig rig;
    tdm_rig_sequence sequence;
    tdm_encoder_rig_options options = variant(VARIANTS - 1, 0.2);
    options.model.attention_dropout = 0;
    int64_t size;
    tdm_encoder_rig_init(&rig, &options);
    tdm_encoder_rig_sequences(&options, 9, 0, 1, &sequence);
    sequence.length = LENGTH;
    for (int64_t i = 0; i < LENGTH; i++) {
        sequence.ids[i] = VOCABULARY - 1;
        sequence.labels[i] = 0;
    }
    double *logits = training_logits(&rig, &sequence, 1, 0, &size);
    for (int64_t i = 1; i < LENGTH; i++)
        ck_assert(differ(logits, logits + i * CLASSES, CLASSES));
    free(logits);
    tdm_encoder_rig_deinit(&rig);
}
END_TEST

START_TEST(inference_is_training_without_dropout)
{
    for (int shape = POST; shape <= MODERN; shape++) {
        tdm_encoder_rig rigs[3];
        double *logits[3];
        int64_t columns;
        tdm_encoder_rig_options options = variant(VARIANTS - 1, 0);
        options.model = shape_options((encoder_shape)shape);
        for (int i = 0; i < 3; i++) {
            options.model.dropout = i == 0 ? 0 : 0.3;
            options.inference = i == 2;
            start(&rigs[i], &options, SEQUENCES - 1);
            tdm_encoder_rig_forward(&rigs[i], i == 0);
            const int64_t tokens = *(int64_t *)tdm_encoder_rig_tensor(&rigs[i], "token_count");
            logits[i] = tdm_encoder_rig_output(&rigs[i], "logits", tokens, &columns);
            check_close(variants[shape].name, "logits", logits[i], logits[0], tokens * columns,
                        1e-6);
        }
        for (int i = 0; i < 3; i++) {
            free(logits[i]);
            tdm_encoder_rig_deinit(&rigs[i]);
        }
    }
}
END_TEST

/* ---- the same numbers ------------------------------------------------------------------------ */

static float *gradient_bits(tdm_encoder_rig *rig, size_t *bytes)
{
    *bytes = (size_t)tdm_model_memory_get(rig->rig.model).dense_elements * sizeof(float);
    float *bits = malloc(*bytes);
    ck_assert_ptr_nonnull(bits);
    tdm_rig_copy_out(&rig->rig, bits, tdm_model_dense_gradients(rig->rig.model), *bytes);
    return bits;
}

/* Losses and gradients of two encoders after the same run under dropout. */
static void check_same_bits(const char *name, const tdm_encoder_rig_options *one,
                            const tdm_encoder_rig_options *other)
{
    const tdm_encoder_rig_options *options[] = {one, other};
    tdm_encoder_rig rigs[2];
    float *bits[2];
    size_t bytes;
    for (int i = 0; i < 2; i++) {
        start(&rigs[i], options[i], SEQUENCES - 1);
        tdm_encoder_rig_run(&rigs[i], false);
        bits[i] = gradient_bits(&rigs[i], &bytes);
    }
    for (int i = 0; i < TDM_LOSSES; i++) {
        const tdm_loss_scalars *a = &rigs[0].rig.scalars.losses[i];
        const tdm_loss_scalars *b = &rigs[1].rig.scalars.losses[i];
        ck_assert_msg(a->loss_sum == b->loss_sum && a->correct_sum == b->correct_sum,
                      "%s: loss %d is %.17g and %.17g", name, i, a->loss_sum, b->loss_sum);
    }
    ck_assert_msg(memcmp(bits[0], bits[1], bytes) == 0, "%s: other gradients", name);
    for (int i = 0; i < 2; i++) {
        free(bits[i]);
        tdm_encoder_rig_deinit(&rigs[i]);
    }
}

START_TEST(recomputing_gives_the_same_bits_in_less_memory)
{
    for (int v = 0; v < VARIANTS; v++) {
        tdm_encoder_rig rig;
        tdm_encoder_rig_options options = variant(v, 0.1), recomputing = variant(v, 0.1);
        recomputing.setup.recompute = true;
        check_same_bits(variants[v].name, &options, &recomputing);
        tdm_encoder_rig_init(&rig, &options);
        int64_t bytes = tdm_model_memory_get(rig.rig.model).arena_bytes;
        tdm_encoder_rig_deinit(&rig);
        tdm_encoder_rig_init(&rig, &recomputing);
        ck_assert_int_lt(tdm_model_memory_get(rig.rig.model).arena_bytes, bytes);
        tdm_encoder_rig_deinit(&rig);
    }
}
END_TEST

START_TEST(threads_and_deferred_ops_give_the_same_bits)
{
    static const int threads[] = {2, 3, 7};
    for (int v = 0; v < VARIANTS; v++) {
        tdm_encoder_rig_options options = variant(v, 0.1), other = variant(v, 0.1);
        options.threads = 1;
        for (int i = 0; i < 3; i++) {
            other.threads = threads[i];
            other.deferred = i == 2;
            check_same_bits(variants[v].name, &options, &other);
        }
    }
}
END_TEST

/* All tokens are predicted, so that the predictions have several parts. */
START_TEST(micro_batches_add_up_to_the_whole)
{
    enum { MANY = 160, PARTS = 4 };
    static tdm_rig_sequence sequences[MANY];
    for (int v = 0; v <= MODERN; v++) {
        tdm_encoder_rig whole, parts;
        tdm_encoder_rig_options options = variant(v, 0.1);
        options.sequences = MANY;
        options.tokens = options.predictions = MANY * LENGTH;
        tdm_encoder_rig_init(&whole, &options);
        options.sequences /= PARTS;
        options.tokens = options.predictions = MANY / PARTS * LENGTH;
        tdm_encoder_rig_init(&parts, &options);
        tdm_encoder_rig_sequences(&options, 3, 0, MANY, sequences);
        for (int64_t r = 0; r < MANY; r++)
            memcpy(sequences[r].labels, sequences[r].ids, sizeof sequences[r].labels);
        tdm_encoder_rig_load(&whole, sequences, MANY);
        ck_assert_int_gt(*(int64_t *)tdm_encoder_rig_tensor(&whole, "mask_count"), TDM_MASKED_PART);
        double loss = tdm_encoder_rig_run(&whole, false), sum = 0;
        for (int64_t i = 0; i < PARTS; i++) {
            tdm_encoder_rig_load(&parts, sequences + i * MANY / PARTS, MANY / PARTS);
            memcpy(parts.weight_sums, whole.weight_sums, sizeof parts.weight_sums);
            sum = tdm_encoder_rig_run(&parts, i > 0);
        }
        ck_assert_double_eq_tol(sum, loss, 1e-6 * loss);
        for (int i = 0; i < TDM_LOSSES; i++)
            ck_assert(parts.rig.scalars.losses[i].correct_sum ==
                      whole.rig.scalars.losses[i].correct_sum);
        check_same_gradients(variants[v].name, &parts, &whole);
        tdm_encoder_rig_deinit(&whole);
        tdm_encoder_rig_deinit(&parts);
    }
}
END_TEST

TDM_CHECK_MAIN(every_encoder_learns_32_sequences_by_heart,
               gradients_are_those_of_the_loss_under_dropout,
               padded_sequences_have_the_same_hidden_states,
               padded_sequences_have_the_same_loss_and_gradients,
               neither_neighbours_nor_place_change_a_sequence_or_its_dropout,
               every_epoch_and_every_occurrence_drops_others, every_token_is_dropped_on_its_own,
               inference_is_training_without_dropout,
               recomputing_gives_the_same_bits_in_less_memory,
               threads_and_deferred_ops_give_the_same_bits, micro_batches_add_up_to_the_whole)
