/* The optimizer on a DeepFM: each rule against a loop in double over gradients of real batches. */
#include "tests/support/check_main.h"

#include "core/memory.h"
#include "tests/support/ctr_rig.h"
#include "trainer/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BATCH      32
#define PARAMETERS 32

typedef struct trial {
    tdm_rig rig;
    tdm_optimizer_options options;
    tdm_optimizer *optimizer;
    tdm_rig_rows rows;
    double clip_norm, loss_scale;
} trial;

static int64_t mlp_units[] = {9, 5};
static const tdm_deepfm_options deepfm = {.mlp = {.units = {mlp_units, 2}}, .embedding_init = 0.1};
static const tdm_model_field fields[] = {{"C1", 40, 4}, {"C2", 9, 4}, {"C3", 1000, 4}};
#define FIELDS 3

static tdm_rig_options rig_options(int threads, bool deferred)
{
    return (tdm_rig_options){
        .type = &tdm_deepfm,
        .options = &deepfm,
        .inputs = {.field_count = FIELDS, .fields = fields, .dense_count = 3},
        .batch_size = BATCH,
        .seed = 5,
        .threads = threads,
        .deferred = deferred,
    };
}

static tdm_update_options update(tdm_update_type type, double learning_rate)
{
    return (tdm_update_options){
        .type = (int)type,
        .learning_rate = learning_rate,
        .beta1 = 0.9,
        .beta2 = 0.99,
        .initial_accumulator = 0.1,
    };
}

static void start(trial *run, tdm_update_options dense, tdm_update_options sparse, int threads,
                  bool deferred)
{
    memset(run, 0, sizeof *run);
    run->options = (tdm_optimizer_options){.dense = dense, .sparse = sparse};
    run->loss_scale = 1.0;
    ck_assert_ok(tdm_optimizer_resolve(NULL, &run->options));
    tdm_rig_options options = rig_options(threads, deferred);
    tdm_rig_init(&run->rig, &options);
    ck_assert_ok(
        tdm_optimizer_create(&run->options, run->rig.model, run->rig.backend, &run->optimizer));
}

static void stop(trial *run)
{
    tdm_optimizer_destroy(run->optimizer);
    tdm_rig_deinit(&run->rig);
}

/* Gradients of step `step`, and the scalars that its update needs. */
static void make_gradients(trial *run, int64_t step)
{
    tdm_rig *rig = &run->rig;
    run->rows = tdm_rig_random_rows(&rig->options, BATCH - 3, (uint64_t)step);
    tdm_rig_load(rig, &run->rows);
    tdm_rig_run(rig, step, 0, true);
    tdm_step_scalars *scalars = &rig->scalars;
    tdm_optimizer_learning_rates(&run->options, step, 0.0, scalars);
    scalars->clip_norm = run->clip_norm;
    scalars->loss_scale = run->loss_scale;
    scalars->gradient_sum_squares = 0.0;
    ck_assert_ok(rig->backend->type->copy_in(rig->backend, rig->device_scalars, scalars,
                                             sizeof *scalars, NULL));
}

static void step_optimizer(trial *run)
{
    tdm_rig *rig = &run->rig;
    ck_assert_ok(tdm_optimizer_step(run->optimizer, rig->batch, rig->device_scalars, NULL));
    tdm_rig_copy_out(rig, &rig->scalars, rig->device_scalars, sizeof rig->scalars);
}

static void train_step(trial *run, int64_t step)
{
    make_gradients(run, step);
    step_optimizer(run);
    tdm_rig_rows_free(&run->rows);
}

/* ---- the state, read back -------------------------------------------------------------------- */

typedef struct parameter_state {
    const tdm_parameter *parameter;
    int64_t elements;
    double *values, *gradients;
    double *moments[2]; /* NULL: the optimizer has none */
    bool *touched;      /* elements that the batch uses */
} parameter_state;

typedef struct model_state {
    parameter_state parameters[PARAMETERS];
    int count;
} model_state;

static double *read_moment(trial *run, const tdm_parameter *parameter, int moment)
{
    char name[128];
    snprintf(name, sizeof name, "%s.moment%d", parameter->name, moment);
    for (int i = 0; i < tdm_optimizer_tensor_count(run->optimizer); i++) {
        const tdm_optimizer_tensor *tensor = tdm_optimizer_tensor_get(run->optimizer, i);
        if (strcmp(tensor->name, name) != 0)
            continue;
        ck_assert_int_eq(tensor->dtype, TDM_F32);
        ck_assert_int_eq(memcmp(&tensor->shape, &parameter->shape, sizeof tensor->shape), 0);
        size_t count = (size_t)tdm_shape_elements(&tensor->shape);
        float *host = calloc(count, sizeof *host);
        double *out = calloc(count, sizeof *out);
        tdm_rig_copy_out(&run->rig, host, tensor->data, count * sizeof *host);
        for (size_t e = 0; e < count; e++)
            out[e] = (double)host[e];
        free(host);
        return out;
    }
    return NULL;
}

/* Tables come field by field, once for the first order and once for the embeddings. */
static bool *find_touched(const trial *run, const tdm_parameter *parameter, int table)
{
    int64_t elements = tdm_shape_elements(&parameter->shape);
    bool *touched = calloc((size_t)elements, sizeof *touched);
    if (!parameter->sparse) {
        memset(touched, 1, (size_t)elements);
        return touched;
    }
    const uint32_t *ids = run->rows.ids + table % FIELDS * BATCH;
    int64_t dim = parameter->shape.sizes[1];
    for (int64_t r = 0; r < run->rows.rows; r++) {
        for (int64_t d = 0; d < dim && ids[r] != 0; d++)
            touched[ids[r] * dim + d] = true;
    }
    return touched;
}

static model_state read_state(trial *run)
{
    model_state state = {.count = tdm_model_parameter_count(run->rig.model)};
    int tables = 0;
    ck_assert_int_le(state.count, PARAMETERS);
    for (int i = 0; i < state.count; i++) {
        parameter_state *entry = &state.parameters[i];
        entry->parameter = tdm_model_parameter(run->rig.model, i);
        entry->elements = tdm_shape_elements(&entry->parameter->shape);
        entry->values = tdm_rig_read_values(&run->rig, entry->parameter);
        entry->gradients = tdm_rig_read_gradients(&run->rig, entry->parameter);
        for (int m = 0; m < 2; m++)
            entry->moments[m] = read_moment(run, entry->parameter, m + 1);
        entry->touched = find_touched(run, entry->parameter, tables);
        tables += entry->parameter->sparse;
    }
    return state;
}

static void free_state(model_state *state)
{
    for (int i = 0; i < state->count; i++) {
        parameter_state *entry = &state->parameters[i];
        free(entry->values);
        free(entry->gradients);
        free(entry->moments[0]);
        free(entry->moments[1]);
        free(entry->touched);
    }
}

/* Values and moments, bit for bit. */
static void assert_same(const model_state *a, const model_state *b)
{
    for (int i = 0; i < a->count; i++) {
        const parameter_state *x = &a->parameters[i], *y = &b->parameters[i];
        size_t bytes = (size_t)x->elements * sizeof(double);
        ck_assert_msg(memcmp(x->values, y->values, bytes) == 0, "%s", x->parameter->name);
        for (int m = 0; m < 2; m++) {
            ck_assert_int_eq(x->moments[m] == NULL, y->moments[m] == NULL);
            if (x->moments[m] != NULL)
                ck_assert_msg(memcmp(x->moments[m], y->moments[m], bytes) == 0, "%s.moment%d",
                              x->parameter->name, m + 1);
        }
    }
}

/* ---- the rules in double --------------------------------------------------------------------- */

static double global_norm(const trial *run, const model_state *state)
{
    double sum = 0.0;
    for (int i = 0; i < state->count; i++) {
        const parameter_state *entry = &state->parameters[i];
        for (int64_t e = 0; e < entry->elements; e++)
            sum += entry->gradients[e] * entry->gradients[e];
    }
    return sqrt(sum) / run->loss_scale;
}

static double rounded(double value)
{
    return (double)(float)value;
}

typedef struct element {
    double value, moments[2];
} element;

static element expected_update(const tdm_update_options *options, double rate, int64_t step,
                               bool decay, double gradient, element before)
{
    element after = before;
    double w = before.value, m = before.moments[0], v = before.moments[1];
    double beta1 = rounded(options->beta1), beta2 = rounded(options->beta2);
    double g = gradient + (decay ? options->l2 : 0.0) * w;
    switch ((tdm_update_type)options->type) {
    case TDM_UPDATE_SGD:
        after.moments[0] = options->momentum * m + g;
        after.value = w - rate * (options->momentum > 0.0 ? after.moments[0] : g);
        break;
    case TDM_UPDATE_ADAGRAD:
        after.moments[0] = m + g * g;
        after.value = w - rate * g / (sqrt(after.moments[0]) + options->eps);
        break;
    case TDM_UPDATE_ADAM:
    case TDM_UPDATE_ADAMW:
    case TDM_UPDATE_LAMB:
        after.moments[0] = beta1 * m + (1.0 - beta1) * g;
        after.moments[1] = beta2 * v + (1.0 - beta2) * g * g;
        after.value =
            w - rate * (decay ? options->weight_decay : 0.0) * w -
            rate * after.moments[0] / (1.0 - pow(beta1, (double)step)) /
                (sqrt(after.moments[1] / (1.0 - pow(beta2, (double)step))) + options->eps);
        break;
    }
    return after;
}

/* ‖w‖ / ‖u‖ of the tensor. */
static double lamb_ratio(const tdm_update_options *options, const parameter_state *before,
                         int64_t step, double scale)
{
    double values = 0.0, directions = 0.0;
    for (int64_t e = 0; e < before->elements; e++) {
        element from = {before->values[e], {before->moments[0][e], before->moments[1][e]}};
        element to = expected_update(options, 1.0, step, true, before->gradients[e] * scale, from);
        values += from.value * from.value;
        directions += (from.value - to.value) * (from.value - to.value);
    }
    return sqrt(values / directions);
}

static void assert_near(double got, double expected, double before, double scale, const char *name)
{
    double tolerance = 3e-7 * scale + 1e-5 * fabs(expected - before) + 1e-15;
    ck_assert_msg(fabs(got - expected) <= tolerance, "%s: %.9g instead of %.9g, before %.9g", name,
                  got, expected, before);
}

static void assert_parameter(const trial *run, const parameter_state *before,
                             const parameter_state *after, int64_t step, double scale)
{
    const tdm_parameter *parameter = before->parameter;
    const tdm_update_options *options =
        parameter->sparse ? &run->options.sparse : &run->options.dense;
    double rate = options->learning_rate;
    if (options->type == TDM_UPDATE_LAMB && parameter->decay)
        rate *= lamb_ratio(options, before, step, scale);
    for (int64_t e = 0; e < before->elements; e++) {
        element from = {.value = before->values[e]};
        for (int m = 0; m < 2; m++)
            from.moments[m] = before->moments[m] == NULL ? 0.0 : before->moments[m][e];
        element to = from;
        if (before->touched[e])
            to = expected_update(options, rate, step, parameter->decay,
                                 before->gradients[e] * scale, from);
        else
            ck_assert_double_eq(after->values[e], from.value);
        assert_near(after->values[e], to.value, from.value, fabs(from.value), parameter->name);
        for (int m = 0; m < 2 && before->moments[m] != NULL; m++) {
            if (!before->touched[e])
                ck_assert_double_eq(after->moments[m][e], from.moments[m]);
            assert_near(after->moments[m][e], to.moments[m], from.moments[m], fabs(from.moments[m]),
                        parameter->name);
        }
    }
}

/* Steps 1 to 4, each against the rule from the state before it. */
static void assert_follows_rule(trial *run, int dense_moments, int sparse_moments)
{
    for (int64_t step = 1; step <= 4; step++) {
        make_gradients(run, step);
        model_state before = read_state(run);
        step_optimizer(run);
        model_state after = read_state(run);
        double norm = global_norm(run, &before);
        double scale = 1.0 / run->loss_scale;
        if (run->clip_norm > 0.0 && norm > run->clip_norm)
            scale *= run->clip_norm / norm;
        ck_assert_double_eq_tol(run->rig.scalars.gradient_norm, norm, 1e-9 * norm);
        ck_assert_double_eq_tol(run->rig.scalars.gradient_scale, scale, 1e-9 * scale);
        for (int i = 0; i < before.count; i++) {
            parameter_state *entry = &before.parameters[i];
            int moments = entry->parameter->sparse ? sparse_moments : dense_moments;
            ck_assert_int_eq((entry->moments[0] != NULL) + (entry->moments[1] != NULL), moments);
            assert_parameter(run, entry, &after.parameters[i], step, scale);
        }
        free_state(&before);
        free_state(&after);
        tdm_rig_rows_free(&run->rows);
    }
}

/* ---- rules ----------------------------------------------------------------------------------- */

/* One update option each for the dense and the sparse side, the same. */
static void check_rule(tdm_update_options options, int moments)
{
    trial run;
    start(&run, options, options, 2, false);
    assert_follows_rule(&run, moments, moments);
    stop(&run);
}

START_TEST(sgd)
{
    tdm_update_options options = update(TDM_UPDATE_SGD, 0.5);
    check_rule(options, 0);
    options.l2 = 0.0625;
    check_rule(options, 0);
    options.momentum = 0.75;
    check_rule(options, 1);
}
END_TEST

START_TEST(adagrad)
{
    tdm_update_options options = update(TDM_UPDATE_ADAGRAD, 0.5);
    check_rule(options, 1);
    options.l2 = 0.0625;
    options.initial_accumulator = 0.0;
    options.eps = 1e-6;
    check_rule(options, 1);
}
END_TEST

START_TEST(adam)
{
    tdm_update_options options = update(TDM_UPDATE_ADAM, 0.01);
    check_rule(options, 2);
    options.l2 = 0.0625;
    options.eps = 1e-3;
    check_rule(options, 2);
}
END_TEST

START_TEST(adamw)
{
    tdm_update_options options = update(TDM_UPDATE_ADAMW, 0.01);
    options.weight_decay = 0.25;
    check_rule(options, 2);
}
END_TEST

static tdm_update_options lamb_options(double learning_rate)
{
    tdm_update_options options = update(TDM_UPDATE_LAMB, learning_rate);
    options.weight_decay = 0.25;
    return options;
}

/* Decayed tensors whose neighbour behind them in the slab is decayed too. */
static int decayed_neighbours(const tdm_model *model)
{
    int neighbours = 0;
    for (int i = 0; i < tdm_model_parameter_count(model); i++) {
        const tdm_parameter *parameter = tdm_model_parameter(model, i), *next = NULL;
        for (int j = 0; j < tdm_model_parameter_count(model); j++) {
            const tdm_parameter *other = tdm_model_parameter(model, j);
            if (!other->sparse && other->offset > parameter->offset &&
                (next == NULL || other->offset < next->offset))
                next = other;
        }
        neighbours += !parameter->sparse && parameter->decay && next != NULL && next->decay;
    }
    return neighbours;
}

/* Tensors have a norm each, also where one decayed tensor lies beside another. */
START_TEST(lamb)
{
    trial run;
    start(&run, lamb_options(0.01), update(TDM_UPDATE_ADAGRAD, 0.03), 2, false);
    ck_assert_int_gt(decayed_neighbours(run.rig.model), 0);
    run.clip_norm = 0.05;
    assert_follows_rule(&run, 2, 1);
    stop(&run);
}
END_TEST

START_TEST(a_rule_for_each_side)
{
    trial run;
    tdm_update_options dense = update(TDM_UPDATE_ADAMW, 0.01);
    dense.weight_decay = 0.125;
    start(&run, dense, update(TDM_UPDATE_SGD, 0.25), 2, false);
    assert_follows_rule(&run, 2, 0);
    stop(&run);
    start(&run, update(TDM_UPDATE_SGD, 0.25), update(TDM_UPDATE_ADAGRAD, 0.03), 2, false);
    assert_follows_rule(&run, 0, 1);
    stop(&run);
}
END_TEST

/* Weights of 1 without a gradient become `decayed`, and biases stay. The model has both kinds of
 * dense parameters, so that the tests above tell whether regions end where they should. */
static void assert_decays_weights_only(tdm_update_options dense, float decayed)
{
    trial run;
    start(&run, dense, update(TDM_UPDATE_SGD, 0.5), 1, false);
    int kinds[2] = {0, 0};
    make_gradients(&run, 1);
    const tdm_model *model = run.rig.model;
    const tdm_model_memory memory = tdm_model_memory_get(model);
    memset(tdm_model_dense_gradients(model), 0, (size_t)memory.dense_elements * sizeof(float));
    float *values = tdm_model_dense_values(model);
    for (int i = 0; i < tdm_model_parameter_count(model); i++) {
        const tdm_parameter *parameter = tdm_model_parameter(model, i);
        for (int64_t e = 0; e < tdm_shape_elements(&parameter->shape) && !parameter->sparse; e++)
            values[parameter->offset + e] = 1.0f;
    }
    step_optimizer(&run);
    for (int i = 0; i < tdm_model_parameter_count(model); i++) {
        const tdm_parameter *parameter = tdm_model_parameter(model, i);
        if (parameter->sparse)
            continue;
        kinds[parameter->decay]++;
        for (int64_t e = 0; e < tdm_shape_elements(&parameter->shape); e++)
            ck_assert_msg(
                fabsf(values[parameter->offset + e] - (parameter->decay ? decayed : 1.0f)) <= 1e-7f,
                "%s", parameter->name);
    }
    ck_assert_int_gt(kinds[0], 1);
    ck_assert_int_gt(kinds[1], 1);
    tdm_rig_rows_free(&run.rows);
    stop(&run);
}

START_TEST(decay_stays_off_biases)
{
    tdm_update_options options = update(TDM_UPDATE_SGD, 0.5);
    options.l2 = 0.5;
    assert_decays_weights_only(options, 0.75f);
    options = update(TDM_UPDATE_ADAMW, 0.5);
    options.weight_decay = 0.5;
    assert_decays_weights_only(options, 0.75f);
    options = update(TDM_UPDATE_LAMB, 0.25);
    options.weight_decay = 0.5;
    assert_decays_weights_only(options, 0.75f); /* u is w / 2, so r is 2 */
}
END_TEST

START_TEST(clipping_and_loss_scale)
{
    const double clips[] = {0.0, 0.01, 1e6};
    for (int i = 0; i < 6; i++) {
        trial run;
        start(&run, update(TDM_UPDATE_SGD, 0.5), update(TDM_UPDATE_ADAGRAD, 0.5), 2, false);
        run.clip_norm = clips[i % 3];
        run.loss_scale = i < 3 ? 1.0 : 1024.0;
        if (i >= 3)
            run.clip_norm /= 1024.0;
        assert_follows_rule(&run, 0, 1);
        if (i % 3 == 1)
            ck_assert_double_lt(run.rig.scalars.gradient_scale, 1.0 / run.loss_scale);
        stop(&run);
    }
}
END_TEST

START_TEST(found_inf_changes_nothing)
{
    const float values[] = {INFINITY, -INFINITY, NAN};
    for (int i = 0; i < 6; i++) {
        trial run;
        start(&run, update(TDM_UPDATE_ADAM, 0.01), update(TDM_UPDATE_ADAGRAD, 0.01), 2, false);
        run.clip_norm = i % 2 ? 1.0 : 0.0;
        train_step(&run, 1);
        make_gradients(&run, 2);
        tdm_sparse_gradient sparse = tdm_model_sparse_gradient(run.rig.model, 1, run.rig.batch);
        float *poisoned = i < 3 ? tdm_model_dense_gradients(run.rig.model) + 3
                                : (float *)sparse.gradients + sparse.fields[1].gradients;
        *poisoned = values[i % 3];
        model_state before = read_state(&run);
        step_optimizer(&run);
        model_state after = read_state(&run);
        ck_assert_int_eq(run.rig.scalars.found_inf, 1);
        assert_same(&before, &after);
        free_state(&before);
        free_state(&after);
        tdm_rig_rows_free(&run.rows);

        /* And the next step goes on. */
        train_step(&run, 2);
        ck_assert_int_eq(run.rig.scalars.found_inf, 0);
        stop(&run);
    }
}
END_TEST

/* ---- state ----------------------------------------------------------------------------------- */

static model_state state_after(int steps, tdm_update_options dense, int threads, bool deferred)
{
    trial run;
    start(&run, dense, update(TDM_UPDATE_ADAGRAD, 0.05), threads, deferred);
    run.clip_norm = 0.1;
    for (int step = 1; step < steps; step++)
        train_step(&run, step);
    make_gradients(&run, steps);
    step_optimizer(&run);
    model_state state = read_state(&run);
    tdm_rig_rows_free(&run.rows);
    stop(&run);
    /* Parameters went with the model. */
    for (int i = 0; i < state.count; i++)
        state.parameters[i].parameter = NULL;
    return state;
}

static void assert_same_values(const model_state *a, const model_state *b)
{
    for (int i = 0; i < a->count; i++) {
        const parameter_state *x = &a->parameters[i], *y = &b->parameters[i];
        size_t bytes = (size_t)x->elements * sizeof(double);
        ck_assert_int_eq(memcmp(x->values, y->values, bytes), 0);
        for (int m = 0; m < 2 && x->moments[m] != NULL; m++)
            ck_assert_int_eq(memcmp(x->moments[m], y->moments[m], bytes), 0);
    }
}

START_TEST(same_bits_on_any_threads_and_deferred)
{
    tdm_update_options options[] = {update(TDM_UPDATE_ADAM, 0.01), lamb_options(0.01)};
    options[0].l2 = 0.01;
    for (int rule = 0; rule < 2; rule++) {
        model_state one = state_after(3, options[rule], 1, false);
        const int threads[] = {2, 5, 1, 2};
        for (int i = 0; i < 4; i++) {
            model_state other = state_after(3, options[rule], threads[i], i >= 2);
            assert_same_values(&one, &other);
            free_state(&other);
        }
        free_state(&one);
    }
}
END_TEST

/* Copies slabs and tensors into a second optimizer, as resuming does, and goes on with both. */
START_TEST(state_is_complete)
{
    tdm_update_options options[] = {update(TDM_UPDATE_SGD, 0.02), update(TDM_UPDATE_ADAGRAD, 0.02),
                                    update(TDM_UPDATE_ADAM, 0.02), update(TDM_UPDATE_ADAMW, 0.02),
                                    lamb_options(0.02)};
    options[0].momentum = 0.5;
    for (int i = 0; i < 5; i++) {
        trial first, second;
        tdm_update_options sparse = options[i < 4 ? i : 2];
        start(&first, options[i], sparse, 1, false);
        start(&second, options[i], sparse, 1, false);
        train_step(&first, 1);
        train_step(&first, 2);
        const tdm_model *from = first.rig.model, *to = second.rig.model;
        tdm_model_memory memory = tdm_model_memory_get(from);
        memcpy(tdm_model_dense_values(to), tdm_model_dense_values(from),
               (size_t)memory.dense_elements * sizeof(float));
        memcpy(tdm_model_sparse_values(to), tdm_model_sparse_values(from),
               (size_t)memory.sparse_elements * sizeof(float));
        for (int t = 0; t < tdm_optimizer_tensor_count(first.optimizer); t++) {
            const tdm_optimizer_tensor *source = tdm_optimizer_tensor_get(first.optimizer, t);
            const tdm_optimizer_tensor *target = tdm_optimizer_tensor_get(second.optimizer, t);
            ck_assert_str_eq(source->name, target->name);
            memcpy(target->data, source->data,
                   (size_t)tdm_shape_elements(&source->shape) * sizeof(float));
        }
        make_gradients(&first, 3);
        make_gradients(&second, 3);
        step_optimizer(&first);
        step_optimizer(&second);
        model_state a = read_state(&first), b = read_state(&second);
        assert_same(&a, &b);
        free_state(&a);
        free_state(&b);
        tdm_rig_rows_free(&first.rows);
        tdm_rig_rows_free(&second.rows);
        stop(&first);
        stop(&second);
    }
}
END_TEST

START_TEST(first_moments)
{
    trial run;
    start(&run, update(TDM_UPDATE_ADAM, 0.01), update(TDM_UPDATE_ADAGRAD, 0.01), 1, false);
    int parameters = tdm_model_parameter_count(run.rig.model), dense = 0, next = 0;
    for (int i = 0; i < parameters; i++)
        dense += !tdm_model_parameter(run.rig.model, i)->sparse;
    ck_assert_int_eq(tdm_optimizer_tensor_count(run.optimizer), parameters + dense);
    for (int i = 0; i < parameters; i++) {
        const tdm_parameter *parameter = tdm_model_parameter(run.rig.model, i);
        for (int m = 1; m <= (parameter->sparse ? 1 : 2); m++) {
            const tdm_optimizer_tensor *tensor = tdm_optimizer_tensor_get(run.optimizer, next++);
            char name[128];
            snprintf(name, sizeof name, "%s.moment%d", parameter->name, m);
            ck_assert_str_eq(tensor->name, name);
            const float *data = tensor->data;
            for (int64_t e = 0; e < tdm_shape_elements(&tensor->shape); e++)
                ck_assert_float_eq(data[e], parameter->sparse ? 0.1f : 0.0f);
        }
    }
    stop(&run);
}
END_TEST

/* A table of more elements than one piece of the fill. */
START_TEST(large_first_moments)
{
    static const tdm_model_field large[] = {{"C1", 70001, 9}};
    tdm_rig rig;
    tdm_rig_options options = rig_options(1, false);
    options.inputs.fields = large;
    options.inputs.field_count = 1;
    tdm_rig_init(&rig, &options);
    tdm_optimizer_options update_options = {.dense = update(TDM_UPDATE_SGD, 1),
                                            .sparse = update(TDM_UPDATE_ADAGRAD, 1)};
    update_options.sparse.initial_accumulator = 0.375;
    tdm_optimizer *optimizer;
    ck_assert_ok(tdm_optimizer_create(&update_options, rig.model, rig.backend, &optimizer));
    ck_assert_int_eq(tdm_optimizer_tensor_count(optimizer), 2);
    for (int t = 0; t < 2; t++) {
        const tdm_optimizer_tensor *tensor = tdm_optimizer_tensor_get(optimizer, t);
        const float *data = tensor->data;
        for (int64_t e = 0; e < tdm_shape_elements(&tensor->shape); e++)
            ck_assert_float_eq(data[e], 0.375f);
    }
    tdm_optimizer_destroy(optimizer);
    tdm_rig_deinit(&rig);
}
END_TEST

START_TEST(memory_figures)
{
    trial run;
    start(&run, update(TDM_UPDATE_SGD, 1), update(TDM_UPDATE_SGD, 1), 1, false);
    tdm_model_memory memory = tdm_model_memory_get(run.rig.model);
    tdm_optimizer_options options = run.options;
    tdm_optimizer_memory none = tdm_optimizer_memory_get(&options, run.rig.model);
    ck_assert_int_eq(none.dense_bytes, 0);
    ck_assert_int_eq(none.sparse_bytes, 0);
    options.dense.momentum = 0.5;
    options.sparse.type = TDM_UPDATE_ADAGRAD;
    tdm_optimizer_memory one = tdm_optimizer_memory_get(&options, run.rig.model);
    ck_assert_int_eq(one.dense_bytes, 4 * memory.dense_elements);
    ck_assert_int_eq(one.sparse_bytes, 4 * memory.sparse_elements);
    options.dense.type = TDM_UPDATE_ADAMW;
    options.sparse.type = TDM_UPDATE_ADAM;
    tdm_optimizer_memory two = tdm_optimizer_memory_get(&options, run.rig.model);
    ck_assert_int_eq(two.dense_bytes, 8 * memory.dense_elements);
    ck_assert_int_eq(two.sparse_bytes, 8 * memory.sparse_elements);
    stop(&run);
}
END_TEST

START_TEST(steps_allocate_nothing)
{
    const tdm_update_options options[] = {update(TDM_UPDATE_ADAM, 0.01), lamb_options(0.01)};
    for (int i = 0; i < 2; i++) {
        trial run;
        start(&run, options[i], update(TDM_UPDATE_ADAM, 0.01), 2, false);
        train_step(&run, 1);
        train_step(&run, 2);
        make_gradients(&run, 3);
        int64_t before = tdm_memory_stats_get().allocations;
        step_optimizer(&run);
        ck_assert_int_eq(tdm_memory_stats_get().allocations, before);
        tdm_rig_rows_free(&run.rows);
        stop(&run);
    }
}
END_TEST

/* A model without tables has no sparse slab and no sparse gradients. */
START_TEST(dense_parameters_only)
{
    const tdm_update_options rules[] = {update(TDM_UPDATE_ADAMW, 0.01), lamb_options(0.01)};
    for (int i = 0; i < 2; i++) {
        trial run = {.loss_scale = 1.0, .options = {.dense = rules[i]}};
        ck_assert_ok(tdm_text_optimizer_resolve(NULL, &run.options));
        tdm_rig_options rig = rig_options(2, false);
        rig.type = &tdm_logistic_regression;
        rig.options = NULL;
        rig.inputs.field_count = 0;
        tdm_rig_init(&run.rig, &rig);
        ck_assert_int_eq(tdm_model_memory_get(run.rig.model).sparse_elements, 0);
        ck_assert_int_eq(tdm_optimizer_memory_get(&run.options, run.rig.model).sparse_bytes, 0);
        ck_assert_ok(
            tdm_optimizer_create(&run.options, run.rig.model, run.rig.backend, &run.optimizer));
        ck_assert_int_eq(tdm_optimizer_tensor_count(run.optimizer),
                         2 * tdm_model_parameter_count(run.rig.model));
        assert_follows_rule(&run, 2, 0);
        stop(&run);
    }
}
END_TEST

START_TEST(out_of_memory_anywhere)
{
    trial run;
    start(&run, update(TDM_UPDATE_ADAM, 0.01), update(TDM_UPDATE_ADAGRAD, 0.01), 1, false);
    int64_t live = tdm_memory_stats_get().live_bytes;
    int failures = 0;
    for (;; failures++) {
        tdm_optimizer *optimizer;
        tdm_memory_fail_at(failures + 1, true);
        tdm_status status =
            tdm_optimizer_create(&run.options, run.rig.model, run.rig.backend, &optimizer);
        tdm_memory_fail_at(0, false);
        if (status == TDM_OK) {
            tdm_optimizer_destroy(optimizer);
            break;
        }
        ck_assert_int_eq(status, TDM_E_NOMEM);
        ck_assert_ptr_null(optimizer);
        ck_assert_int_eq(tdm_memory_stats_get().live_bytes, live);
    }
    ck_assert_int_gt(failures, 6);
    tdm_memory_fail_at(2, false);
    tdm_optimizer *optimizer;
    ck_assert_fails(tdm_optimizer_create(&run.options, run.rig.model, run.rig.backend, &optimizer),
                    TDM_E_NOMEM, "optimizer state of the dense parameters");
    stop(&run);
}
END_TEST

START_TEST(a_model_without_gradients)
{
    tdm_rig rig;
    tdm_rig_options options = rig_options(1, false);
    options.inference = true;
    tdm_rig_init(&rig, &options);
    tdm_optimizer_options update_options = {.dense = update(TDM_UPDATE_SGD, 1),
                                            .sparse = update(TDM_UPDATE_SGD, 1)};
    tdm_optimizer *optimizer;
    ck_assert_ok(tdm_optimizer_create(&update_options, rig.model, rig.backend, &optimizer));
    ck_assert_fails(tdm_optimizer_step(optimizer, rig.batch, rig.device_scalars, NULL), TDM_E_STATE,
                    "not allocated for training");
    tdm_optimizer_destroy(optimizer);
    tdm_rig_deinit(&rig);
}
END_TEST

TDM_CHECK_MAIN(sgd, adagrad, adam, adamw, lamb, a_rule_for_each_side, decay_stays_off_biases,
               clipping_and_loss_scale, found_inf_changes_nothing,
               same_bits_on_any_threads_and_deferred, state_is_complete, first_moments,
               large_first_moments, memory_figures, steps_allocate_nothing, dense_parameters_only,
               out_of_memory_anywhere, a_model_without_gradients)
