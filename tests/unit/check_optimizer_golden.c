/* Twenty steps of adamw and lamb, norm and clipping included, against float64 loops in PyTorch: see
 * tests/golden/make_optimizer_golden.py. */
#include "tests/support/check_main.h"

#include "core/memory.h"
#include "cpu/backend_cpu.h"
#include "tests/support/golden.h"

#include <stdio.h>
#include <string.h>

#define STEPS     20
#define TENSORS   4
#define CAPACITY  1024 /* floats of a slab */
#define TOLERANCE 1e-5

static const char *const names[TENSORS] = {"dense.weight", "dense.bias", "logit.weight",
                                           "zero.weight"};

enum { LEARNING_RATE, BETA1, BETA2, EPS, WEIGHT_DECAY, CLIP_NORM, OPTIONS };

typedef struct rule_run {
    tdm_golden *golden;
    tdm_pool *pool;
    tdm_backend *backend;
    const double *options;
    int64_t offsets[TENSORS], counts[TENSORS], end;
    float values[CAPACITY], gradients[CAPACITY], moments[2][CAPACITY];
    tdm_step_scalars scalars;
} rule_run;

static const void *get(const rule_run *run, const char *prefix, int tensor, const char *suffix,
                       tdm_dtype dtype, int64_t *elements)
{
    char name[96];
    snprintf(name, sizeof name, "%s.%s%s", prefix, names[tensor], suffix);
    return tdm_golden_get(run->golden, name, dtype, elements);
}

static void start(rule_run *run, const char *kernels)
{
    int64_t elements;
    memset(run, 0, sizeof *run);
    run->golden = tdm_golden_open("optimizer/updates.safetensors");
    ck_assert_ok(tdm_pool_create(2, &run->pool));
    ck_assert_ok(tdm_cpu_create(run->pool, &run->backend));
    ck_assert_ok(tdm_cpu_use_kernels(run->backend, kernels));
    run->options = tdm_golden_get(run->golden, "options", TDM_F64, &elements);
    ck_assert_int_eq(elements, OPTIONS);
    for (int t = 0; t < TENSORS; t++) {
        const float *init = get(run, "init", t, "", TDM_F32, &run->counts[t]);
        run->offsets[t] = run->end;
        run->end += (run->counts[t] + 15) / 16 * 16;
        ck_assert_int_le(run->end, CAPACITY);
        memcpy(run->values + run->offsets[t], init, (size_t)run->counts[t] * sizeof *init);
    }
}

static void stop(rule_run *run)
{
    tdm_backend_destroy(run->backend);
    tdm_pool_destroy(run->pool);
    tdm_golden_close(run->golden);
}

static void update_tensor(rule_run *run, tdm_update_type type, int tensor)
{
    const double *options = run->options;
    int64_t at = run->offsets[tensor];
    bool decays = strstr(names[tensor], ".weight") != NULL;
    const tdm_dense_update_args args = {
        .rule = {.type = type,
                 .beta1 = (float)options[BETA1],
                 .beta2 = (float)options[BETA2],
                 .eps = (float)options[EPS],
                 .l2 = decays ? (float)options[WEIGHT_DECAY] : 0.0f},
        .scalars = &run->scalars,
        .values = run->values + at,
        .gradients = run->gradients + at,
        .moment1 = run->moments[0] + at,
        .moment2 = run->moments[1] + at,
        .count = run->counts[tensor],
    };
    ck_assert_ok(run->backend->ops->dense_update(run->backend, &args, NULL));
}

static void step_once(rule_run *run, tdm_update_type type, int64_t step)
{
    int64_t elements;
    const double *norms = tdm_golden_get(run->golden, "norms", TDM_F64, &elements);
    run->scalars = (tdm_step_scalars){.step = step + 1,
                                      .dense_learning_rate = run->options[LEARNING_RATE],
                                      .clip_norm = run->options[CLIP_NORM],
                                      .loss_scale = 1.0};
    for (int t = 0; t < TENSORS; t++) {
        const float *all = get(run, "gradients", t, "", TDM_F32, &elements);
        ck_assert_int_eq(elements, STEPS * run->counts[t]);
        memcpy(run->gradients + run->offsets[t], all + step * run->counts[t],
               (size_t)run->counts[t] * sizeof *all);
    }
    const tdm_dense_norm_args norm = {
        .x = run->gradients, .count = run->end, .scalars = &run->scalars};
    const tdm_prepare_update_args prepare = {.scalars = &run->scalars};
    ck_assert_ok(run->backend->ops->dense_norm(run->backend, &norm, NULL));
    ck_assert_ok(run->backend->ops->prepare_update(run->backend, &prepare, NULL));
    ck_assert_double_eq_tol(run->scalars.gradient_norm, norms[step], 1e-9 * norms[step]);
    for (int t = 0; t < TENSORS; t++)
        update_tensor(run, type, t);
}

static void compare(const rule_run *run, const char *rule, int tensor, const char *suffix,
                    const float *slab)
{
    double got[CAPACITY];
    char name[96];
    int64_t count;
    const double *reference = get(run, rule, tensor, suffix, TDM_F64, &count);
    ck_assert_int_eq(count, run->counts[tensor]);
    for (int64_t i = 0; i < count; i++)
        got[i] = (double)slab[run->offsets[tensor] + i];
    snprintf(name, sizeof name, "%s.%s%s", rule, names[tensor], suffix);
    tdm_golden_close_to(name, got, reference, count, TOLERANCE);
}

static void check_rule(const char *rule, tdm_update_type type)
{
    const char *const kernels[] = {"baseline", "avx2", "avx512"};
    for (int k = 0; k < 3; k++) {
        if (tdm_kernels_named(kernels[k]) == NULL)
            continue;
        rule_run run;
        start(&run, kernels[k]);
        for (int64_t step = 0; step < STEPS; step++)
            step_once(&run, type, step);
        for (int t = 0; t < TENSORS; t++) {
            compare(&run, rule, t, ".value", run.values);
            compare(&run, rule, t, ".moment1", run.moments[0]);
            compare(&run, rule, t, ".moment2", run.moments[1]);
        }
        stop(&run);
    }
}

START_TEST(adamw)
{
    check_rule("adamw", TDM_UPDATE_ADAMW);
}
END_TEST

START_TEST(lamb)
{
    check_rule("lamb", TDM_UPDATE_LAMB);
}
END_TEST

TDM_CHECK_MAIN(adamw, lamb)
