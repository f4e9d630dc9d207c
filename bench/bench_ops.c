/* bench_ops: milliseconds of every op of the CPU: those of CTR models on a batch of 4096 rows, 39
 * fields of dimension 16, and embeddings at dimension 1 too, where logistic regression lives; those
 * of encoders on 4096 tokens, with the memory that they move. The best of many rounds. */
#include "core/memory.h"
#include "core/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BATCH      4096
#define FIELDS     39
#define DIM        16
#define WIDTH      (FIELDS * DIM)
#define UNITS      400
#define TABLE_ROWS 100000
#define SLAB       (624 * 400 + 2 * 400 * 400 + 3 * 400 + 401)
#define ROUNDS     30

typedef struct world {
    tdm_backend *backend;
    int dim;
    tdm_embedding_field fields[FIELDS];
    uint32_t *ids;
    tdm_distinct_ids distinct;
    int64_t distinct_count;
    float *tables, *moment1, *moment2, *sparse_gradients;
    tdm_matrix wide[4], hidden[3], column[3];
    uint64_t *samples;
    float *slab[4], *weights, *labels;
    tdm_step_scalars scalars;
} world;

static void need(tdm_status status)
{
    if (status == TDM_OK)
        return;
    fprintf(stderr, "bench_ops: %s\n", tdm_error_message());
    exit(1);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static float *make_floats(int64_t count)
{
    float *values;
    need(tdm_alloc((size_t)count, sizeof(float), &values));
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)(i * 7919 % 1000 + 1) / 1000.0f;
    return values;
}

static tdm_matrix make_matrix(int64_t columns)
{
    return (tdm_matrix){
        .data = make_floats(BATCH * columns), .rows = BATCH, .columns = columns, .stride = columns};
}

/* A few ids are frequent and most are rare, as in click logs. */
static uint32_t draw_id(int64_t value)
{
    float u = tdm_uniform(tdm_random((tdm_philox_key){{1, 2}}, (uint64_t)value, 0, 0));
    return 4 + (uint32_t)((float)(TABLE_ROWS - 4) * u * u * u * u);
}

static int32_t make_field(world *w, int f, uint32_t *distinct, int32_t *starts, int32_t *positions)
{
    static int32_t seen[TABLE_ROWS], fill[BATCH + 1];
    for (int64_t id = 0; id < TABLE_ROWS; id++)
        seen[id] = -1;
    const uint32_t *ids = w->ids + w->fields[f].values;
    int32_t count = 0;
    starts[0] = 0;
    for (int32_t r = 0; r < BATCH; r++) {
        if (seen[ids[r]] < 0) {
            seen[ids[r]] = count;
            distinct[count++] = ids[r];
            starts[count] = 0;
        }
        starts[seen[ids[r]] + 1]++;
    }
    for (int32_t u = 0; u < count; u++) {
        starts[u + 1] += starts[u];
        fill[u] = starts[u];
    }
    for (int32_t r = 0; r < BATCH; r++)
        positions[fill[seen[ids[r]]]++] = r;
    return count;
}

static void make_embeddings(world *w, int dim)
{
    int32_t *counts, *starts, *positions;
    uint32_t *distinct;
    w->dim = dim;
    need(tdm_alloc(FIELDS * BATCH, sizeof(uint32_t), &w->ids));
    need(tdm_alloc(FIELDS, sizeof *counts, &counts));
    need(tdm_alloc(FIELDS * BATCH, sizeof *distinct, &distinct));
    need(tdm_alloc(FIELDS * (BATCH + 1), sizeof *starts, &starts));
    need(tdm_alloc(FIELDS * BATCH, sizeof *positions, &positions));
    for (int f = 0; f < FIELDS; f++) {
        int64_t values = (int64_t)f * BATCH;
        w->fields[f] = (tdm_embedding_field){.table = (int64_t)f * TABLE_ROWS * dim,
                                             .table_rows = TABLE_ROWS,
                                             .values = values,
                                             .gradients = values * dim,
                                             .offsets = -1,
                                             .dim = dim,
                                             .column = dim == 1 ? 0 : f * dim,
                                             .index = f};
        for (int64_t r = 0; r < BATCH; r++)
            w->ids[values + r] = draw_id(values + r);
        counts[f] = make_field(w, f, distinct + values, starts + values + f, positions + values);
        w->distinct_count += counts[f];
    }
    w->distinct = (tdm_distinct_ids){counts, distinct, starts, positions};
    w->tables = make_floats((int64_t)FIELDS * TABLE_ROWS * dim);
    w->moment1 = make_floats((int64_t)FIELDS * TABLE_ROWS * dim);
    w->moment2 = make_floats((int64_t)FIELDS * TABLE_ROWS * dim);
    w->sparse_gradients = make_floats((int64_t)FIELDS * BATCH * dim);
}

static void make_dense(world *w)
{
    for (int i = 0; i < 4; i++) {
        w->wide[i] = make_matrix(WIDTH);
        w->slab[i] = make_floats(SLAB);
    }
    for (int i = 0; i < 3; i++) {
        w->hidden[i] = make_matrix(UNITS);
        w->column[i] = make_matrix(1);
    }
    need(tdm_alloc(BATCH, sizeof(uint64_t), &w->samples));
    for (int64_t r = 0; r < BATCH; r++)
        w->samples[r] = (uint64_t)r;
    w->weights = make_floats(BATCH);
    w->labels = make_floats(BATCH);
    w->scalars = (tdm_step_scalars){.step = 10,
                                    .dense_learning_rate = 1e-6,
                                    .sparse_learning_rate = 1e-6,
                                    .loss_scale = 1.0,
                                    .losses[0].weight_sum = BATCH,
                                    .gradient_scale = 1.0};
}

/* The best time of `op`, in seconds, to `best`. */
#define MEASURE(best, backend_, op, ...)                                                           \
    do {                                                                                           \
        tdm_##op##_args args_ = {__VA_ARGS__};                                                     \
        (best) = 1e9;                                                                              \
        for (int round_ = 0; round_ < ROUNDS; round_++) {                                          \
            double start_ = seconds();                                                             \
            need((backend_)->ops->op((backend_), &args_, NULL));                                   \
            double time_ = seconds() - start_;                                                     \
            (best) = time_ < (best) ? time_ : (best);                                              \
        }                                                                                          \
    } while (0)

#define TIME(w, label, op, ...)                                                                    \
    do {                                                                                           \
        double seconds_;                                                                           \
        MEASURE(seconds_, (w)->backend, op, __VA_ARGS__);                                          \
        printf("  %-34s %8.3f\n", (label), 1e3 * seconds_);                                        \
    } while (0)

static void time_embeddings(world *w)
{
    char dim[16];
    tdm_update_rule adagrad = {.type = TDM_UPDATE_ADAGRAD, .eps = 1e-8f};
    tdm_update_rule adam = {.type = TDM_UPDATE_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f};
    tdm_matrix out = w->dim == 1 ? w->column[0] : w->wide[0];
    snprintf(dim, sizeof dim, "dim %d", w->dim);
    printf(" %s, %lld distinct rows of %d values\n", dim, (long long)w->distinct_count,
           FIELDS * BATCH);
    TIME(w, "embedding_fwd", embedding_fwd, .fields = w->fields, .field_count = FIELDS,
         .sum_fields = w->dim == 1, .tables = w->tables, .ids = w->ids, .out = out);
    TIME(w, "embedding_bwd", embedding_bwd, .fields = w->fields, .field_count = FIELDS,
         .distinct = w->distinct, .dout = out, .gradients = w->sparse_gradients);
    TIME(w, "sparse_norm", sparse_norm, .fields = w->fields, .field_count = FIELDS,
         .distinct = w->distinct, .gradients = w->sparse_gradients, .scalars = &w->scalars);
    TIME(w, "sparse_update adagrad", sparse_update, .rule = adagrad, .scalars = &w->scalars,
         .fields = w->fields, .field_count = FIELDS, .distinct = w->distinct, .tables = w->tables,
         .moment1 = w->moment1, .gradients = w->sparse_gradients);
    TIME(w, "sparse_update adam", sparse_update, .rule = adam, .scalars = &w->scalars,
         .fields = w->fields, .field_count = FIELDS, .distinct = w->distinct, .tables = w->tables,
         .moment1 = w->moment1, .moment2 = w->moment2, .gradients = w->sparse_gradients);
}

static void time_dense(world *w)
{
    tdm_update_rule adam = {.type = TDM_UPDATE_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f};
    tdm_matrix *wide = w->wide, *hidden = w->hidden, *column = w->column;
    tdm_matrix sums = {.data = hidden[0].data, .rows = BATCH, .columns = DIM, .stride = DIM};
    printf(" dense\n");
    TIME(w, "add 4096 x 400", add, .x = hidden[0], .y = hidden[1], .accumulate = true);
    TIME(w, "column_sum 4096 x 400", column_sum, .x = hidden[0], .sums = w->slab[0]);
    TIME(w, "relu_bwd 4096 x 400 with bias", relu_bwd, .y = hidden[0], .dy = hidden[1],
         .dx = hidden[1], .scale = 1, .bias_gradient = w->slab[0]);
    TIME(w, "dropout 4096 x 400", dropout, .x = hidden[0], .y = hidden[1],
         .draws = {.rate = 0.2f, .samples = w->samples, .scalars = &w->scalars});
    TIME(w, "fm_fwd", fm_fwd, .embeddings = wide[0], .fields = FIELDS, .out = column[0],
         .sums = sums);
    TIME(w, "fm_bwd", fm_bwd, .embeddings = wide[0], .sums = sums, .dout = column[0],
         .d_embeddings = wide[1], .fields = FIELDS, .accumulate = true);
    TIME(w, "cross_fwd", cross_fwd, .x0 = wide[0], .x = wide[1], .u = wide[2], .y = wide[3]);
    TIME(w, "cross_bwd", cross_bwd, .x0 = wide[0], .u = wide[1], .dy = wide[2], .du = wide[3],
         .dx0 = wide[1], .dx = wide[2], .accumulate_dx0 = true, .accumulate_dx = true);
    TIME(w, "weight_sum", weight_sum, .weights = w->weights, .batch = BATCH,
         .scalars = &w->scalars);
    TIME(w, "bce", bce, .logits = column[0], .labels = w->labels, .weights = w->weights,
         .probabilities = column[1], .dlogits = column[2], .scalars = &w->scalars);
    TIME(w, "dense_norm of 571 thousand", dense_norm, .x = w->slab[0], .count = SLAB,
         .scalars = &w->scalars);
    TIME(w, "prepare_update", prepare_update, .scalars = &w->scalars);
    TIME(w, "dense_update adam of 571 thousand", dense_update, .rule = adam, .scalars = &w->scalars,
         .values = w->slab[0], .gradients = w->slab[1], .moment1 = w->slab[2],
         .moment2 = w->slab[3], .count = SLAB);
}

/* ---- encoders -------------------------------------------------------------------------------- */

#define VOCABULARY  30522
#define PREDICTIONS 256

typedef struct encoder {
    tdm_backend *backend;
    int64_t hidden;
    tdm_matrix table, types, tokens[4], wide[3], logits[2];
    uint32_t *ids, *token_types, *positions, *labels;
    float *parameters[4], *means, *rstds;
    tdm_dropout_draws draws;
    tdm_step_scalars scalars;
} encoder;

static tdm_matrix make_rows(int64_t rows, int64_t columns)
{
    return (tdm_matrix){
        .data = make_floats(rows * columns), .rows = rows, .columns = columns, .stride = columns};
}

/* Sequences of 128 tokens, of which some are frequent. */
static void make_encoder(encoder *e, const world *w, int64_t hidden)
{
    *e = (encoder){.hidden = hidden, .scalars = w->scalars};
    e->table = make_rows(VOCABULARY, hidden);
    e->types = make_rows(2, hidden);
    for (int i = 0; i < 4; i++) {
        e->tokens[i] = make_rows(BATCH, hidden);
        e->parameters[i] = make_floats(8 * hidden);
    }
    for (int i = 0; i < 3; i++)
        e->wide[i] = make_rows(BATCH, 4 * hidden);
    e->logits[0] = make_rows(PREDICTIONS, VOCABULARY);
    e->logits[1] = make_rows(PREDICTIONS, VOCABULARY);
    e->means = make_floats(BATCH);
    e->rstds = make_floats(BATCH);
    need(tdm_alloc(4 * BATCH, sizeof(uint32_t), &e->ids));
    e->token_types = e->ids + BATCH;
    e->positions = e->ids + 2 * BATCH;
    e->labels = e->ids + 3 * BATCH;
    for (int64_t t = 0; t < BATCH; t++) {
        e->ids[t] = e->labels[t] = draw_id(t) % VOCABULARY;
        e->token_types[t] = t % 128 < 64 ? 0 : 1;
        e->positions[t] = (uint32_t)(t % 128);
    }
    e->draws = (tdm_dropout_draws){.rate = 0.1f, .samples = w->samples};
}

/* Milliseconds, memory that is read and written, and what an element takes. */
#define MOVES(e, label, elements, streams, op, ...)                                                \
    do {                                                                                           \
        double seconds_, elements_ = (double)(elements);                                           \
        MEASURE(seconds_, (e)->backend, op, __VA_ARGS__);                                          \
        printf("  %-34s %8.3f %7.1f GB/s %7.3f ns\n", (label), 1e3 * seconds_,                     \
               4e-9 * (streams)*elements_ / seconds_, 1e9 * seconds_ / elements_);                 \
    } while (0)

static void time_tokens(encoder *e)
{
    tdm_matrix *x = e->tokens, none = {0};
    float **p = e->parameters;
    tdm_dropout_draws draws = e->draws;
    draws.scalars = &e->scalars;
    int64_t count = BATCH * e->hidden;
    MOVES(e, "dropout", count, 2, dropout, .x = x[0], .y = x[1], .draws = draws);
    MOVES(e, "lookup_fwd of 30522", count, 2, lookup_fwd, .table = e->table, .ids = e->ids,
          .out = x[0]);
    MOVES(e, "lookup_fwd of 2, added", count, 2, lookup_fwd, .table = e->types,
          .ids = e->token_types, .out = x[0], .accumulate = true);
    MOVES(e, "lookup_bwd of 30522", count, 3, lookup_bwd, .dout = x[0], .ids = e->ids,
          .table_gradient = e->table);
    MOVES(e, "lookup_bwd of 2", count, 1, lookup_bwd, .dout = x[0], .ids = e->token_types,
          .table_gradient = e->types);
    MOVES(e, "layer_norm_fwd", count, 2, layer_norm_fwd, .x = x[0], .gamma = p[0], .beta = p[1],
          .eps = 1e-12f, .y = x[1], .means = e->means, .rstds = e->rstds);
    MOVES(e, "layer_norm_fwd residual", count, 4, layer_norm_fwd, .x = x[0], .residual = x[1],
          .sum = x[2], .gamma = p[0], .beta = p[1], .eps = 1e-12f, .y = x[3], .means = e->means,
          .rstds = e->rstds);
    MOVES(e, "layer_norm_fwd residual, dropout", count, 4, layer_norm_fwd, .x = x[0],
          .residual = x[1], .dropout = draws, .sum = x[2], .gamma = p[0], .beta = p[1],
          .eps = 1e-12f, .y = x[3], .means = e->means, .rstds = e->rstds);
    MOVES(e, "layer_norm_bwd", count, 3, layer_norm_bwd, .sum = x[0], .gamma = p[0],
          .means = e->means, .rstds = e->rstds, .dy = x[1], .dx = x[2], .gamma_gradient = p[2],
          .beta_gradient = p[3]);
    MOVES(e, "layer_norm_bwd residual, dropout", count, 4, layer_norm_bwd, .sum = x[0],
          .gamma = p[0], .means = e->means, .rstds = e->rstds, .dy = x[1], .dsum = none,
          .dropout = draws, .dx = x[2], .d_residual = x[3], .gamma_gradient = p[2],
          .beta_gradient = p[3]);
}

static void time_wide(encoder *e)
{
    tdm_matrix *x = e->tokens, half = e->wide[1], qk = e->wide[2];
    half.columns = half.stride = 2 * e->hidden;
    qk.columns = 2 * e->hidden;
    qk.stride = 3 * e->hidden;
    int64_t count = BATCH * e->hidden;
    MOVES(e, "activation_bwd gelu, 4 x", 4 * count, 3, activation_bwd,
          .activation = TDM_ACTIVATION_GELU, .x = e->wide[0], .dy = e->wide[1], .dx = e->wide[2],
          .bias_gradient = e->parameters[0]);
    MOVES(e, "activation_bwd gelu_tanh, 4 x", 4 * count, 3, activation_bwd,
          .activation = TDM_ACTIVATION_GELU_TANH, .x = e->wide[0], .dy = e->wide[1],
          .dx = e->wide[2], .bias_gradient = e->parameters[0]);
    MOVES(e, "activation_bwd tanh", count, 3, activation_bwd, .activation = TDM_ACTIVATION_TANH,
          .x = x[0], .dy = x[1], .dx = x[2]);
    MOVES(e, "gated_fwd 4 x to 2 x", 2 * count, 3, gated_fwd, .activation = TDM_ACTIVATION_GELU,
          .x = e->wide[0], .y = half);
    MOVES(e, "gated_bwd 2 x to 4 x", 2 * count, 5, gated_bwd, .activation = TDM_ACTIVATION_GELU,
          .x = e->wide[0], .dy = half, .dx = e->wide[2]);
    MOVES(e, "rotary 2 x", 2 * count, 2, rotary, .x = qk, .dim = 64, .theta = 10000,
          .positions = e->positions, .max_positions = 8192);
    MOVES(e, "softmax_loss 256 x 30522", PREDICTIONS * VOCABULARY, 2, softmax_loss,
          .logits = e->logits[0], .labels = e->labels, .dlogits = e->logits[1],
          .scalars = &e->scalars);
}

/* What it allocates is the process's until it ends. */
int main(void)
{
    static world wide, narrow;
    static encoder encoders[2];
    make_dense(&wide);
    make_embeddings(&wide, DIM);
    narrow = wide;
    narrow.distinct_count = 0;
    make_embeddings(&narrow, 1);
    make_encoder(&encoders[0], &wide, 256);
    make_encoder(&encoders[1], &wide, 768);
    for (int threads = 1; threads <= 2; threads++) {
        tdm_pool *pool;
        need(tdm_pool_create(threads, &pool));
        need(tdm_cpu_create(pool, &wide.backend));
        narrow.backend = wide.backend;
        printf("milliseconds on %d thread%s\n", threads, threads == 1 ? "" : "s");
        time_embeddings(&wide);
        time_embeddings(&narrow);
        time_dense(&wide);
        for (int i = 0; i < 2; i++) {
            printf(" encoder, 4096 tokens of %lld\n", (long long)encoders[i].hidden);
            encoders[i].backend = wide.backend;
            time_tokens(&encoders[i]);
            time_wide(&encoders[i]);
        }
        tdm_backend_destroy(wide.backend);
        tdm_pool_destroy(pool);
    }
    return 0;
}
