#include "tests/op/op_cases.h"

#define MOST_DIM     40 /* of a field below */
#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* ---- embeddings ------------------------------------------------------------------------------ */

typedef struct embedding_shape {
    int64_t batch, valid; /* valid -1: no count of rows */
    int32_t dims[OP_MAX_FIELDS];
    int64_t table_rows;
    bool sum_fields;
    bool bags;    /* every other field is a bag of 0 to 4 values, every other bag a mean */
    bool weights; /* values have weights */
} embedding_shape;

static const embedding_shape embedding_shapes[] = {
    {1, -1, {16}, 5, .sum_fields = false},
    {7, 5, {16, 16, 16}, 9, .sum_fields = false},
    {300, 260, {16, 8, 1, 5, 32, 24, 17, 16}, 40, .sum_fields = false},
    {300, -1, {1, 1, 1}, 1000, .sum_fields = true},
    {70, 69, {16, 16}, 20, .sum_fields = true},
    {130, -1, {16, 8, 1, 5}, 12, .bags = true},
    {131, 129, {16, 3, 1, 40}, 30, .bags = true, .weights = true},
    {33, -1, {8, 8, 8}, 7, .sum_fields = true, .bags = true, .weights = true},
    {20, -1, {16, 1}, 11, .weights = true},
    {1000, 999, {16, 1, 2}, 3, .sum_fields = false},
    {1500, -1, {16, 1}, 5000, .sum_fields = false},
    {9, 0, {16, 1}, 4, .bags = true},
};

typedef struct embedding_case {
    embedding_shape shape;
    int field_count;
    int64_t values;   /* of all fields */
    int64_t columns;  /* of the output */
    int64_t elements; /* of all tables */
    const uint32_t *ids;
    const int32_t *offsets;
    const float *weights;
    tdm_distinct_ids distinct;
} embedding_case;

static int32_t bag_size(op_world *world)
{
    return (int32_t)op_draw(world, 5);
}

/* Offsets of a bag field; rows behind the valid ones are empty. Answers the number of values. */
static int32_t fill_offsets(op_world *world, const embedding_case *made, int32_t *offsets)
{
    int64_t valid = made->shape.valid < 0 ? made->shape.batch : made->shape.valid;
    offsets[0] = 0;
    for (int64_t r = 0; r < made->shape.batch; r++)
        offsets[r + 1] = offsets[r] + (r < valid ? bag_size(world) : 0);
    return offsets[made->shape.batch];
}

/* Half of the ids are drawn from all rows of the table, half from the first four: 0 is among them.
 */
static uint32_t draw_id(op_world *world, int64_t table_rows)
{
    bool any = op_draw(world, 2) == 0;
    return (uint32_t)op_draw(world, any || table_rows < 4 ? table_rows : 4);
}

static void fill_fields(op_world *world, embedding_case *made, int32_t *offsets, uint32_t *ids)
{
    int64_t valid = made->shape.valid < 0 ? made->shape.batch : made->shape.valid;
    int64_t offsets_used = 0, gradients = 0;
    for (int f = 0; f < made->field_count; f++) {
        tdm_embedding_field *field = &world->fields[f];
        *field = (tdm_embedding_field){.table = made->elements,
                                       .table_rows = made->shape.table_rows,
                                       .values = made->values,
                                       .gradients = gradients,
                                       .offsets = -1,
                                       .dim = made->shape.dims[f],
                                       .column = (int32_t)made->columns,
                                       .index = f};
        int64_t room = made->shape.batch, used = valid;
        if (made->shape.bags && f % 2 == 0) {
            field->offsets = offsets_used;
            field->mean = f % 4 == 0;
            used = fill_offsets(world, made, offsets + offsets_used);
            room = used + 3;
            offsets_used += made->shape.batch + 1;
        }
        for (int64_t v = 0; v < room; v++)
            ids[made->values + v] = v < used ? draw_id(world, made->shape.table_rows) : UINT32_MAX;
        made->values += room;
        made->elements += field->dim * made->shape.table_rows;
        gradients += field->dim * room;
        if (!made->shape.sum_fields)
            made->columns += field->dim;
    }
}

/* The distinct ids of a field as the CPU makes them with a batch. */
static void fill_distinct(const embedding_case *made, const uint32_t *ids, int64_t room,
                          int32_t *count, uint32_t *distinct, int32_t *starts, int32_t *positions)
{
    *count = 0;
    starts[0] = 0;
    for (int64_t v = 0; v < room; v++) {
        uint32_t id = ids[v];
        bool seen = id == 0 || id >= (uint64_t)made->shape.table_rows;
        for (int32_t u = 0; u < *count && !seen; u++)
            seen = distinct[u] == id;
        if (seen)
            continue;
        int32_t end = starts[*count];
        for (int64_t w = v; w < room; w++) {
            if (ids[w] == id)
                positions[end++] = (int32_t)w;
        }
        distinct[*count] = id;
        starts[++*count] = end;
    }
}

static void make_distinct(op_world *world, embedding_case *made)
{
    size_t values = (size_t)made->values, fields = (size_t)made->field_count;
    int32_t *counts = op_bytes(world, fields * sizeof(int32_t));
    uint32_t *ids = op_bytes(world, values * sizeof(uint32_t));
    int32_t *starts = op_bytes(world, (values + fields) * sizeof(int32_t));
    int32_t *positions = op_bytes(world, values * sizeof(int32_t));
    made->distinct = (tdm_distinct_ids){counts, ids, starts, positions};
    for (int f = 0; f < made->field_count; f++) {
        const tdm_embedding_field *field = &world->fields[f];
        int64_t end = f + 1 < made->field_count ? world->fields[f + 1].values : made->values;
        fill_distinct(made, (const uint32_t *)op_host(world, made->ids) + field->values,
                      end - field->values, (int32_t *)op_host(world, counts) + f,
                      (uint32_t *)op_host(world, ids) + field->values,
                      (int32_t *)op_host(world, starts) + field->values + f,
                      (int32_t *)op_host(world, positions) + field->values);
    }
}

static bool make_embedding(op_world *world, int n, embedding_case *made)
{
    if (n >= COUNT(embedding_shapes))
        return false;
    *made = (embedding_case){.shape = embedding_shapes[n]};
    while (made->field_count < OP_MAX_FIELDS && made->shape.dims[made->field_count] > 0)
        made->field_count++;
    size_t most = (size_t)(made->shape.batch * 5 * made->field_count + 64);
    int32_t *offsets = op_bytes(world, most * sizeof *offsets);
    uint32_t *ids = op_bytes(world, most * sizeof *ids);
    fill_fields(world, made, op_host(world, offsets), op_host(world, ids));
    made->ids = ids;
    made->offsets = made->shape.bags ? offsets : NULL;
    if (made->shape.weights)
        made->weights = op_floats(world, "weights", made->values, OP_POSITIVE);
    if (made->shape.sum_fields)
        made->columns = made->shape.dims[0];
    return true;
}

static void set_forward(op_world *world, int n, const embedding_case *made,
                        tdm_embedding_fwd_args *args)
{
    *args =
        (tdm_embedding_fwd_args){.fields = world->fields,
                                 .field_count = made->field_count,
                                 .sum_fields = made->shape.sum_fields,
                                 .tables = op_floats(world, "tables", made->elements, OP_RANDOM),
                                 .ids = made->ids,
                                 .offsets = made->offsets,
                                 .value_weights = made->weights,
                                 .rows = op_rows(world, made->shape.valid)};
    args->out = op_matrix(world, "out", made->shape.batch, made->columns, made->shape.valid,
                          n % 3 * 4, OP_NAN);
}

static void set_backward(op_world *world, int n, embedding_case *made, tdm_embedding_bwd_args *args)
{
    make_distinct(world, made);
    *args = (tdm_embedding_bwd_args){
        .fields = world->fields,
        .field_count = made->field_count,
        .distinct = made->distinct,
        .offsets = made->offsets,
        .value_weights = made->weights,
        .gradients = op_floats(world, "gradients", made->values * MOST_DIM, OP_NAN)};
    args->dout = op_matrix(world, "dout", made->shape.batch, made->columns, made->shape.valid,
                           n % 3 * 4, OP_RANDOM);
}

bool case_embedding_fwd(op_world *world, int n, tdm_embedding_fwd_args *args)
{
    embedding_case made;
    if (!make_embedding(world, n, &made))
        return false;
    set_forward(world, n, &made, args);
    return true;
}

bool case_embedding_bwd(op_world *world, int n, tdm_embedding_bwd_args *args)
{
    embedding_case made;
    if (!make_embedding(world, n, &made))
        return false;
    set_backward(world, n, &made, args);
    return true;
}

bool op_embedding_pair(op_world *world, int n, tdm_embedding_fwd_args *forward,
                       tdm_embedding_bwd_args *backward)
{
    embedding_case made;
    if (!make_embedding(world, n, &made))
        return false;
    set_forward(world, n, &made, forward);
    set_backward(world, n, &made, backward);
    return true;
}

/* Gradients of the distinct rows; all behind them is poison. */
static const float *make_gradients(op_world *world, const embedding_case *made)
{
    float *gradients = op_floats(world, "gradients", made->values * MOST_DIM, OP_NAN);
    const int32_t *counts = op_host(world, made->distinct.counts);
    for (int f = 0; f < made->field_count; f++) {
        const tdm_embedding_field *field = &world->fields[f];
        float *own = (float *)op_host(world, gradients) + field->gradients;
        for (int64_t i = 0; i < counts[f] * field->dim; i++)
            own[i] = (float)op_draw(world, 2001) / 1000.0f - 1.0f;
    }
    return gradients;
}

bool case_sparse_norm(op_world *world, int n, tdm_sparse_norm_args *args)
{
    embedding_case made;
    if (!make_embedding(world, n, &made))
        return false;
    make_distinct(world, &made);
    *args = (tdm_sparse_norm_args){.fields = world->fields,
                                   .field_count = made.field_count,
                                   .distinct = made.distinct,
                                   .gradients = make_gradients(world, &made),
                                   .scalars = world->scalars};
    return true;
}

bool case_sparse_update(op_world *world, int n, tdm_sparse_update_args *args)
{
    embedding_case made;
    if (!make_embedding(world, n / OP_RULES, &made))
        return false;
    make_distinct(world, &made);
    *args = (tdm_sparse_update_args){.rule = op_rule(n % OP_RULES),
                                     .scalars = world->scalars,
                                     .fields = world->fields,
                                     .field_count = made.field_count,
                                     .distinct = made.distinct,
                                     .gradients = make_gradients(world, &made)};
    args->tables = op_floats(world, "tables", made.elements, OP_RANDOM);
    op_moments(world, &args->rule, made.elements, &args->moment1, &args->moment2);
    op_set_found_inf(world, n % OP_RULES == OP_RULES - 1);
    return true;
}

/* ---- interactions ---------------------------------------------------------------------------- */

typedef struct interaction_shape {
    int64_t batch, valid, fields, dim, gap;
} interaction_shape;

static const interaction_shape interaction_shapes[] = {
    {1, -1, 1, 1, 0}, {3, 2, 2, 16, 0},      {67, 60, 7, 16, 4}, {5, -1, 13, 8, 3},
    {9, 9, 3, 5, 0},  {130, 129, 39, 16, 0}, {40, -1, 4, 40, 8}, {6, 0, 4, 24, 0},
};

bool case_fm_fwd(op_world *world, int n, tdm_fm_fwd_args *args)
{
    if (n >= COUNT(interaction_shapes))
        return false;
    interaction_shape s = interaction_shapes[n];
    args->fields = s.fields;
    args->embeddings =
        op_matrix(world, "embeddings", s.batch, s.fields * s.dim, s.valid, s.gap, OP_RANDOM);
    args->out = op_matrix(world, "out", s.batch, 1, s.valid, s.gap, OP_NAN);
    args->sums = op_matrix(world, "sums", s.batch, s.dim, s.valid, s.gap, OP_NAN);
    args->rows = op_rows(world, s.valid);
    return true;
}

bool case_fm_bwd(op_world *world, int n, tdm_fm_bwd_args *args)
{
    if (n / 2 >= COUNT(interaction_shapes))
        return false;
    interaction_shape s = interaction_shapes[n / 2];
    args->fields = s.fields;
    args->accumulate = n % 2 == 1;
    args->embeddings =
        op_matrix(world, "embeddings", s.batch, s.fields * s.dim, s.valid, s.gap, OP_RANDOM);
    args->sums = op_matrix(world, "sums", s.batch, s.dim, s.valid, s.gap, OP_RANDOM);
    args->dout = op_matrix(world, "dout", s.batch, 1, s.valid, s.gap, OP_RANDOM);
    args->d_embeddings = op_matrix(world, "d_embeddings", s.batch, s.fields * s.dim, s.valid, s.gap,
                                   args->accumulate ? OP_TOTAL : OP_NAN);
    args->rows = op_rows(world, s.valid);
    return true;
}

bool case_cross_fwd(op_world *world, int n, tdm_cross_fwd_args *args)
{
    if (n >= COUNT(interaction_shapes))
        return false;
    interaction_shape s = interaction_shapes[n];
    int64_t columns = s.fields * s.dim;
    args->x0 = op_matrix(world, "x0", s.batch, columns, s.valid, s.gap, OP_RANDOM);
    args->x = op_matrix(world, "x", s.batch, columns, s.valid, 0, OP_RANDOM);
    args->u = op_matrix(world, "u", s.batch, columns, s.valid, s.gap, OP_RANDOM);
    args->y = op_matrix(world, "y", s.batch, columns, s.valid, s.gap, OP_NAN);
    args->rows = op_rows(world, s.valid);
    return true;
}

/* Case n % 7: neither accumulates, dx0 does, dx does, both do, there is no dx; dx is dx0, which
 * accumulates or not. */
bool case_cross_bwd(op_world *world, int n, tdm_cross_bwd_args *args)
{
    if (n / 7 >= COUNT(interaction_shapes))
        return false;
    interaction_shape s = interaction_shapes[n / 7];
    int64_t columns = s.fields * s.dim;
    bool same = n % 7 >= 5;
    args->accumulate_dx0 = n % 7 & 1;
    args->accumulate_dx = same || n % 7 & 2;
    args->x0 = op_matrix(world, "x0", s.batch, columns, s.valid, s.gap, OP_RANDOM);
    args->u = op_matrix(world, "u", s.batch, columns, s.valid, s.gap, OP_RANDOM);
    args->dy = op_matrix(world, "dy", s.batch, columns, s.valid, 0, OP_RANDOM);
    args->du = op_matrix(world, "du", s.batch, columns, s.valid, s.gap, OP_NAN);
    args->dx0 = op_matrix(world, "dx0", s.batch, columns, s.valid, s.gap,
                          args->accumulate_dx0 ? OP_TOTAL : OP_NAN);
    if (same)
        args->dx = args->dx0;
    else if (n % 7 < 4)
        args->dx = op_matrix(world, "dx", s.batch, columns, s.valid, s.gap,
                             args->accumulate_dx ? OP_TOTAL : OP_NAN);
    args->rows = op_rows(world, s.valid);
    return true;
}
