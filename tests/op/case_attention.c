#include "tests/op/op_cases.h"
#include "tests/op/reference_ops.h"

#include <math.h>

#define MOST_SEQUENCES 8

typedef struct attention_case {
    int64_t lengths[MOST_SEQUENCES]; /* ended by -1 */
    int64_t invalid;                 /* of them, at the end; -1: no count of rows */
    int64_t padded;                  /* tokens from one sequence to the next; 0: unpadded */
    int64_t heads, dim, window;
    float rate;
    int64_t max_length;
    int64_t gap;
} attention_case;

static const attention_case attention_cases[] = {
    {{1, -1}, -1, 0, 1, 1, -1, 0.0f, 1, 0},
    {{5, 3, -1}, 0, 0, 1, 5, -1, 0.0f, 5, 3},
    {{2, 1, 0, 7, -1}, 0, 0, 3, 5, 1, 0.2f, 7, 1},
    {{0, 1, 2, 17, 0, -1}, 1, 0, 4, 32, -1, 0.2f, 17, 0},
    {{128, 127, 128, -1}, 1, 0, 4, 64, -1, 0.0f, 128, 0},
    {{128, 127, 31, -1}, 0, 0, 4, 64, -1, 0.2f, 128, 0},
    {{127, 2, 66, -1}, 0, 0, 3, 32, 0, 0.2f, 127, 2},
    {{127, 65, -1}, -1, 0, 1, 64, 1, 0.0f, 130, 0},
    {{128, 1, 90, -1}, 0, 0, 3, 64, 64, 0.2f, 129, 5},
    {{300, 0, 127, -1}, 0, 0, 3, 64, -1, 0.2f, 301, 0},
    {{300, 257, -1}, 0, 0, 1, 32, 64, 0.2f, 303, 0},
    {{256, 300, -1}, 0, 0, 4, 5, 0, 0.0f, 300, 0},
    {{600, 513, -1}, 0, 0, 1, 5, -1, 0.2f, 602, 4},
    {{600, 40, -1}, 1, 0, 1, 64, 64, 0.0f, 600, 0},
    {{800, -1}, -1, 0, 1, 1, 1, 0.5f, 800, 0},
    {{1100, 30, -1}, 0, 0, 1, 5, -1, 0.2f, 1101, 0},
    {{1300, -1}, 0, 0, 2, 5, 64, 0.2f, 1300, 1},
    {{48, 80, 112, -1}, 0, 0, 1, 80, -1, 0.2f, 112, 0},
    {{3, 0, 5, -1}, -1, 7, 3, 1, -1, 0.2f, 7, 2},
    {{128, 1, 0, 127, -1}, 1, 128, 4, 32, -1, 0.2f, 128, 0},
    {{90, 0, 128, 17, -1}, 2, 130, 3, 64, 1, 0.0f, 130, 3},
    {{300, 2, 127, -1}, 0, 300, 1, 64, 64, 0.2f, 300, 0},
    {{5, 6, -1}, 2, 0, 3, 5, -1, 0.2f, 6, 0},
    {{0, 0, -1}, 0, 0, 2, 4, -1, 0.2f, 0, 0},
};
#define CASES ((int)(sizeof attention_cases / sizeof attention_cases[0]))

#define TAIL 3 /* tokens of no sequence */

static tdm_sequence_spans make_spans(op_world *world, const attention_case *c, int64_t *tokens)
{
    int64_t count = 0, total = 0;
    for (; c->lengths[count] >= 0; count++)
        total += c->lengths[count];
    tdm_sequence_spans spans = {.stride = c->padded, .batch = count, .max_length = c->max_length};
    spans.rows = op_rows(world, c->invalid < 0 ? -1 : count - c->invalid);
    int32_t *numbers = op_bytes(world, (size_t)(count + 1) * sizeof *numbers);
    int32_t *host = op_host(world, numbers);
    for (int64_t i = 0; i < count; i++) {
        if (c->padded > 0)
            host[i] = (int32_t)c->lengths[i];
        else
            host[i + 1] = host[i] + (int32_t)c->lengths[i];
    }
    if (c->padded > 0)
        spans.lengths = numbers;
    else
        spans.cu_seqlens = numbers;
    *tokens = c->padded > 0 ? count * c->padded : total + TAIL;
    return spans;
}

/* Tokens of no valid sequence are poison. */
static void poison(op_world *world, const tdm_sequence_spans *spans, const tdm_matrix *matrix)
{
    int64_t sequences = op_valid(world, spans->rows, spans->batch), next = 0;
    float *host = op_host(world, matrix->data);
    for (int64_t i = 0; i <= sequences; i++) {
        int64_t begin = matrix->rows, end = 0;
        if (i < sequences && spans->cu_seqlens != NULL) {
            const int32_t *cu = op_host(world, spans->cu_seqlens);
            begin = cu[i];
            end = cu[i + 1];
        } else if (i < sequences) {
            const int32_t *lengths = op_host(world, spans->lengths);
            begin = i * spans->stride;
            end = begin + lengths[i];
        }
        for (int64_t at = next * matrix->stride; at < begin * matrix->stride; at++)
            host[at] = NAN;
        next = end;
    }
}

static tdm_matrix token_matrix(op_world *world, const char *name, const tdm_sequence_spans *spans,
                               int64_t tokens, int64_t columns, int64_t gap)
{
    tdm_matrix matrix = op_matrix(world, name, tokens, columns, -1, gap, OP_RANDOM);
    poison(world, spans, &matrix);
    return matrix;
}

bool case_attention_fwd(op_world *world, int n, tdm_attention_fwd_args *args)
{
    if (n >= CASES)
        return false;
    const attention_case *c = &attention_cases[n];
    int64_t tokens;
    args->spans = make_spans(world, c, &tokens);
    args->qkv = token_matrix(world, "qkv", &args->spans, tokens, 3 * c->heads * c->dim, c->gap);
    args->heads = c->heads;
    args->window = c->window;
    args->scale = 4.0f / sqrtf((float)c->dim); /* weights that differ */
    args->dropout.rate = c->rate;
    args->dropout.key = tdm_philox_make_key(0xfedcba987654321u, TDM_PURPOSE_DROPOUT, 7);
    uint64_t *samples = op_bytes(world, MOST_SEQUENCES * sizeof *samples);
    for (uint64_t i = 0; i < MOST_SEQUENCES; i++)
        ((uint64_t *)op_host(world, samples))[i] = 0xabcdef0123456789u * (i + 1);
    uint32_t *occurrences = op_bytes(world, MOST_SEQUENCES * sizeof *occurrences);
    for (uint32_t i = 0; i < MOST_SEQUENCES; i++)
        ((uint32_t *)op_host(world, occurrences))[i] = i % 3;
    args->dropout.samples = samples;
    args->dropout.occurrences = n % 2 == 0 ? NULL : occurrences;
    args->dropout.scalars = world->scalars;
    args->out = op_matrix(world, "out", tokens, c->heads * c->dim, -1, 2 * c->gap, OP_NAN);
    if (n % 4 != 3)
        args->log_sums = op_floats(world, "log_sums", tokens * c->heads, OP_NAN);
    return true;
}

/* What the forward leaves is worked out by its reference. */
bool case_attention_bwd(op_world *world, int n, tdm_attention_bwd_args *args)
{
    tdm_attention_fwd_args forward = {0};
    if (!case_attention_fwd(world, n, &forward))
        return false;
    int64_t tokens = forward.out.rows, columns = forward.out.columns;
    if (forward.log_sums == NULL)
        forward.log_sums = op_floats(world, "log_sums", tokens * forward.heads, OP_NAN);
    op_world_upload(world);
    reference_attention_fwd(world, &forward);
    float *out = op_host(world, forward.out.data), *log_sums = op_host(world, forward.log_sums);
    for (int64_t i = 0; i < tokens * forward.out.stride; i++)
        out[i] = (float)*op_value(world, (float *)forward.out.data + i);
    for (int64_t i = 0; i < tokens * forward.heads; i++)
        log_sums[i] = (float)*op_value(world, forward.log_sums + i);
    poison(world, &forward.spans, &forward.out);
    *args = (tdm_attention_bwd_args){.qkv = forward.qkv,
                                     .out = forward.out,
                                     .heads = forward.heads,
                                     .window = forward.window,
                                     .scale = forward.scale,
                                     .dropout = forward.dropout,
                                     .spans = forward.spans,
                                     .log_sums = forward.log_sums};
    args->dout = token_matrix(world, "dout", &forward.spans, tokens, columns, 1);
    args->dqkv = op_matrix(world, "dqkv", tokens, 3 * columns, -1, 2, OP_NAN);
    return true;
}
