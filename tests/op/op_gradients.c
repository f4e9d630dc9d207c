#include "tests/op/op_gradients.h"

#include "tests/support/check_main.h"

#include <math.h>

void op_small_world_create(op_world *world)
{
    tdm_pool *pool;
    tdm_backend *backend;
    ck_assert_ok(tdm_pool_create(1, &pool));
    ck_assert_ok(tdm_cpu_create(pool, &backend));
    op_world_create(backend, (size_t)4 << 20, world);
}

void op_small_world_destroy(op_world *world)
{
    tdm_backend *backend = world->backend;
    tdm_pool *pool = backend->pool;
    op_world_destroy(world);
    tdm_backend_destroy(backend);
    tdm_pool_destroy(pool);
}

tdm_matrix op_random_matrix(op_world *world, const char *name, int64_t rows, int64_t columns)
{
    return op_matrix(world, name, rows, columns, -1, 0, OP_RANDOM);
}

double op_weighted_sum(const op_world *world, const tdm_matrix *dy, const tdm_matrix *y)
{
    double sum = 0.0;
    for (int64_t r = 0; r < y->rows; r++) {
        for (int64_t c = 0; c < y->columns; c++)
            sum += *op_at(world, dy, r, c) * *op_at(world, y, r, c);
    }
    return sum;
}

void op_check_gradient(const char *name, double *x, const double *gradient, int64_t count,
                       double (*loss)(const void *args), const void *args)
{
    const double step = 1e-4;
    double error = 0.0, size = 0.0;
    for (int64_t i = 0; i < count; i++) {
        double kept = x[i];
        x[i] = kept + step;
        double above = loss(args);
        x[i] = kept - step;
        double below = loss(args);
        x[i] = kept;
        double difference = (above - below) / (2.0 * step) - gradient[i];
        error += difference * difference;
        size += gradient[i] * gradient[i];
    }
    ck_assert_msg(size > 0.0, "%s: no gradient", name);
    ck_assert_msg(sqrt(error) <= 1e-6 * sqrt(size), "%s: off by %g of %g", name, sqrt(error),
                  sqrt(size));
}

void op_check_matrix(const op_world *world, const char *name, const tdm_matrix *x,
                     const tdm_matrix *gradient, double (*loss)(const void *args), const void *args)
{
    op_check_gradient(name, op_at(world, x, 0, 0), op_at(world, gradient, 0, 0),
                      x->rows * x->columns, loss, args);
}
