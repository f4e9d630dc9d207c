#include "tests/op/op_world.h"

#include "core/memory.h"
#include "tests/support/check_main.h"

#include <math.h>
#include <string.h>

#define TOLERANCE 1e-5

void op_world_create(tdm_backend *backend, size_t capacity, op_world *world)
{
    *world = (op_world){.backend = backend, .capacity = capacity};
    ck_assert_ok(backend->type->alloc(backend, capacity, &world->device));
    ck_assert_ok(tdm_alloc(capacity, 1, &world->host));
    ck_assert_ok(tdm_alloc(capacity, 1, &world->initial));
    ck_assert_ok(tdm_alloc(capacity / sizeof(float), sizeof(double), &world->values));
    ck_assert_ok(tdm_alloc(capacity / sizeof(float), sizeof(double), &world->magnitudes));
    op_world_reset(world, 0);
}

void op_world_destroy(op_world *world)
{
    world->backend->type->free(world->backend, world->device);
    tdm_free(world->host);
    tdm_free(world->initial);
    tdm_free(world->values);
    tdm_free(world->magnitudes);
}

void op_world_reset(op_world *world, uint64_t seed)
{
    world->used = 0;
    world->region_count = 0;
    world->draws = seed;
    memset(world->fields, 0, sizeof world->fields);
    world->scalars = op_bytes(world, sizeof *world->scalars);
    tdm_step_scalars *scalars = op_host(world, world->scalars);
    *scalars = (tdm_step_scalars){.step = 3,
                                  .epoch = 2,
                                  .dense_learning_rate = 0.5,
                                  .sparse_learning_rate = 0.25,
                                  .loss_scale = 8.0,
                                  .losses = {{37.5, 1.25, 2.5}, {11.5, 3.75, 0.5}},
                                  .gradient_sum_squares = 2.5,
                                  .gradient_scale = 0.125};
}

void *op_bytes(op_world *world, size_t bytes)
{
    size_t at = world->used;
    world->used += (bytes + 63) / 64 * 64;
    ck_assert_msg(world->used <= world->capacity, "the world of %zu bytes is too small",
                  world->capacity);
    memset(world->host + at, 0, world->used - at);
    return world->device + at;
}

/* splitmix64 (Steele et al., 2014). */
static uint32_t draw_word(op_world *world)
{
    uint64_t z = world->draws += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)(z >> 32);
}

int64_t op_draw(op_world *world, int64_t below)
{
    return draw_word(world) % below;
}

static float draw_poison(op_world *world)
{
    uint32_t bits = 0x7fc00000u | (draw_word(world) & 0x3fffffu);
    float poison;
    memcpy(&poison, &bits, sizeof poison);
    return poison;
}

static float draw_float(op_world *world, op_fill fill)
{
    float uniform = tdm_uniform(draw_word(world));
    switch (fill) {
    case OP_RANDOM:
    case OP_TOTAL:
        return 2.0f * uniform - 1.0f;
    case OP_POSITIVE:
        return 0.1f + uniform;
    case OP_NAN:
        break;
    }
    return draw_poison(world);
}

float *op_floats(op_world *world, const char *name, int64_t count, op_fill fill)
{
    float *device = op_bytes(world, (size_t)count * sizeof(float));
    float *host = op_host(world, device);
    for (int64_t i = 0; i < count; i++)
        host[i] = draw_float(world, fill);
    ck_assert_int_lt(world->region_count, OP_MAX_REGIONS);
    world->regions[world->region_count++] = (op_region){
        name, ((unsigned char *)device - world->device) / (int64_t)sizeof(float), count};
    return device;
}

tdm_matrix op_matrix(op_world *world, const char *name, int64_t rows, int64_t columns,
                     int64_t valid, int64_t gap, op_fill fill)
{
    tdm_matrix matrix = {.rows = rows, .columns = columns, .stride = columns + gap};
    matrix.data = op_floats(world, name, rows * matrix.stride, fill);
    float *host = op_host(world, matrix.data);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < matrix.stride; c++) {
            if (fill != OP_TOTAL && (c >= columns || (valid >= 0 && r >= valid)))
                host[r * matrix.stride + c] = draw_poison(world);
        }
    }
    return matrix;
}

const int64_t *op_rows(op_world *world, int64_t valid)
{
    if (valid < 0)
        return NULL;
    int64_t *rows = op_bytes(world, sizeof *rows);
    *(int64_t *)op_host(world, rows) = valid;
    return rows;
}

void *op_host(const op_world *world, const void *device)
{
    return world->host + ((const unsigned char *)device - world->device);
}

static int64_t place(const op_world *world, const float *device)
{
    return ((const unsigned char *)device - world->device) / (int64_t)sizeof(float);
}

double *op_value(const op_world *world, const float *device)
{
    return world->values + place(world, device);
}

double *op_magnitude(const op_world *world, const float *device)
{
    return world->magnitudes + place(world, device);
}

double *op_at(const op_world *world, const tdm_matrix *matrix, int64_t row, int64_t column)
{
    return op_value(world, matrix->data) + row * matrix->stride + column;
}

int64_t op_valid(const op_world *world, const int64_t *rows, int64_t all)
{
    return rows == NULL ? all : *(const int64_t *)op_host(world, rows);
}

void op_world_upload(op_world *world)
{
    memcpy(world->initial, world->host, world->used);
    const float *floats = (const float *)(const void *)world->host;
    size_t places = world->used / sizeof(float);
    memset(world->values, 0, places * sizeof(double));
    memset(world->magnitudes, 0, places * sizeof(double));
    for (int i = 0; i < world->region_count; i++) {
        const op_region *region = &world->regions[i];
        for (int64_t j = region->first; j < region->first + region->count; j++)
            world->values[j] = (double)floats[j];
    }
    memcpy(&world->expected, op_host(world, world->scalars), sizeof world->expected);
    op_world_restart(world, world->backend);
}

void op_world_restart(op_world *world, tdm_backend *backend)
{
    world->backend = backend;
    ck_assert_ok(backend->type->copy_in(backend, world->device, world->initial, world->used, NULL));
    ck_assert_ok(backend->type->stream_sync(backend, NULL));
}

void op_world_download(op_world *world)
{
    const tdm_backend_type *type = world->backend->type;
    ck_assert_ok(type->copy_out(world->backend, world->host, world->device, world->used, NULL));
    ck_assert_ok(type->stream_sync(world->backend, NULL));
}

bool op_world_untouched(const op_world *world)
{
    return memcmp(world->device, world->initial, world->used) == 0;
}

/* ck_assert talks to the parent process even where all is well: too slow for every element. */
#define FAIL_UNLESS(condition, ...)                                                                \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg(__VA_ARGS__);                                                             \
    } while (0)

static void compare_region(const op_world *world, const op_region *region, const char *label)
{
    const float *floats = (const float *)(const void *)world->host;
    const float *initial = (const float *)(const void *)world->initial;
    double error = 0.0, size = 0.0;
    for (int64_t i = region->first; i < region->first + region->count; i++) {
        double got = (double)floats[i], was = (double)initial[i], want = world->values[i];
        if (isnan(want) || want == was) {
            FAIL_UNLESS(isnan(want) ? memcmp(&floats[i], &initial[i], sizeof(float)) == 0
                                    : got == was,
                        "%s: %s[%lld] should be left as it was, %g, and is %g", label, region->name,
                        (long long)(i - region->first), was, got);
            continue;
        }
        FAIL_UNLESS(isfinite(got), "%s: %s[%lld] is %g instead of %g", label, region->name,
                    (long long)(i - region->first), got, want);
        double magnitude = world->magnitudes[i] > 0.0 ? world->magnitudes[i] : fabs(want);
        error += (got - want) * (got - want);
        size += magnitude * magnitude;
    }
    FAIL_UNLESS(sqrt(error) <= TOLERANCE * sqrt(size), "%s: %s is off by %g of %g", label,
                region->name, sqrt(error), sqrt(size));
}

static void compare_scalar(const char *label, const char *name, double got, double want)
{
    ck_assert_msg(got == want || fabs(got - want) <= 1e-6 * fabs(want) ||
                      (isnan(got) && isnan(want)),
                  "%s: scalar %s is %.9g instead of %.9g", label, name, got, want);
}

void op_world_compare(const op_world *world, const char *label)
{
    for (int i = 0; i < world->region_count; i++)
        compare_region(world, &world->regions[i], label);
    const tdm_step_scalars *got = op_host(world, world->scalars), *want = &world->expected;
    ck_assert_int_eq(got->step, want->step);
    ck_assert_int_eq(got->epoch, want->epoch);
    ck_assert_int_eq(got->found_inf, want->found_inf);
    compare_scalar(label, "loss_scale", got->loss_scale, want->loss_scale);
    compare_scalar(label, "clip_norm", got->clip_norm, want->clip_norm);
    for (int i = 0; i < TDM_LOSSES; i++) {
        const tdm_loss_scalars *loss = &got->losses[i], *expected = &want->losses[i];
        compare_scalar(label, "weight_sum", loss->weight_sum, expected->weight_sum);
        compare_scalar(label, "loss_sum", loss->loss_sum, expected->loss_sum);
        compare_scalar(label, "correct_sum", loss->correct_sum, expected->correct_sum);
    }
    compare_scalar(label, "sum_squares", got->gradient_sum_squares, want->gradient_sum_squares);
    compare_scalar(label, "gradient_norm", got->gradient_norm, want->gradient_norm);
    compare_scalar(label, "gradient_scale", got->gradient_scale, want->gradient_scale);
}
