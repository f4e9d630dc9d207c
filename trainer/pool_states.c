/* The vectors of sequences. */
#include "trainer/embedder.h"

#include <string.h>

#define TILE_SEQUENCES 8

static void add_state(float *sum, const float *state, int64_t columns)
{
    for (int64_t c = 0; c < columns; c++)
        sum[c] += state[c];
}

static void make_vector(const tdm_pooling_args *args, int64_t sequence)
{
    int64_t begin = sequence * args->row_tokens, end;
    if (args->begins != NULL) {
        begin = args->begins[sequence];
        end = args->begins[sequence + 1];
    } else {
        end = begin + args->lengths[sequence];
    }
    float *vector = args->vectors + sequence * args->columns;
    memcpy(vector, args->hidden + begin * args->stride, (size_t)args->columns * sizeof *vector);
    if (args->pooling == TDM_POOLING_CLS)
        return;
    for (int64_t t = begin + 1; t < end; t++)
        add_state(vector, args->hidden + t * args->stride, args->columns);
    float share = 1 / (float)(end - begin);
    for (int64_t c = 0; c < args->columns; c++)
        vector[c] *= share;
}

static void make_vectors(void *context, int64_t tile)
{
    const tdm_pooling_args *args = context;
    int64_t end = (tile + 1) * TILE_SEQUENCES;
    end = end < args->sequences ? end : args->sequences;
    for (int64_t s = tile * TILE_SEQUENCES; s < end; s++)
        make_vector(args, s);
}

void tdm_pool_states(tdm_pool *pool, const tdm_pooling_args *args)
{
    tdm_pooling_args copy = *args;
    tdm_pool_for(pool, (args->sequences + TILE_SEQUENCES - 1) / TILE_SEQUENCES, make_vectors,
                 &copy);
}
