#include "data/input_sample.h"

#include "core/memory.h"
#include "data/pipeline_internal.h"

/* Text that stands for the whole input. */
#define SAMPLE_BYTES ((int64_t)4 << 20)

typedef struct sampling {
    tdm_extractor *extractor;
    int lanes;
    tdm_input_stream *stream;
    tdm_block_text text;
    tdm_window window;
    tdm_extract **blocks; /* [wanted]: of the window */
    int wanted;
    int64_t text_bytes, stored_bytes;
    int64_t rows, tokens, extracted; /* of windows that are counted */
    size_t order_bytes;
    double parts;
} sampling;

/* Counts the window's rows and empties it. */
static tdm_status count_window(sampling *run)
{
    const tdm_featurizer *featurizer = tdm_extractor_featurizer(run->extractor);
    tdm_window *window = &run->window;
    if (window->block_count == 0)
        return TDM_OK;
    TDM_TRY(featurizer->type->open_window(featurizer, 0, true, window));
    for (int b = 0; b < window->block_count; b++)
        run->extracted += window->blocks[b]->rows;
    run->rows += window->rows;
    if (window->token_ends != NULL && window->rows > 0)
        run->tokens += window->token_ends[window->rows - 1];
    run->order_bytes += window->order_capacity * sizeof *window->order +
                        window->details_capacity * sizeof *window->details +
                        window->token_ends_capacity * sizeof *window->token_ends;
    run->parts += tdm_window_parts(&featurizer->batch, run->lanes, window);
    window->block_count = 0;
    window->number++;
    return TDM_OK;
}

static tdm_status add_block(sampling *run)
{
    tdm_extract **block = &run->blocks[run->window.block_count];
    if (*block == NULL)
        TDM_TRY(tdm_alloc(1, sizeof **block, block));
    TDM_TRY(tdm_extract_block(run->extractor, &run->text, *block));
    run->text_bytes += run->text.size;
    run->stored_bytes += run->text.stored_bytes;
    return ++run->window.block_count < run->wanted ? TDM_OK : count_window(run);
}

static tdm_status read_blocks(sampling *run)
{
    TDM_TRY(tdm_alloc((size_t)run->wanted, sizeof(tdm_extract *), &run->blocks));
    run->window.blocks = run->blocks;
    TDM_TRY(tdm_input_stream_open(tdm_extractor_input(run->extractor), &run->stream));
    while (run->text_bytes < SAMPLE_BYTES) {
        bool ended;
        TDM_TRY(tdm_input_stream_next(run->stream, &run->text, &ended));
        if (ended)
            break;
        TDM_TRY(add_block(run));
    }
    return count_window(run);
}

static tdm_input_sample describe(const sampling *run)
{
    const tdm_featurizer *featurizer = tdm_extractor_featurizer(run->extractor);
    double text = (double)run->text_bytes;
    double row_bytes = (double)tdm_extract_row_bytes(&featurizer->columns);
    return (tdm_input_sample){
        .text = text / (double)run->stored_bytes,
        .rows = (double)run->rows / text,
        .tokens = (double)run->tokens / text,
        .extract_bytes = (double)run->extracted * row_bytes / text,
        .window_bytes = (double)run->order_bytes / text,
        .parts = run->parts / text,
    };
}

static void free_sampling(sampling *run)
{
    for (int b = 0; run->blocks != NULL && b < run->wanted; b++)
        tdm_extract_free(run->blocks[b]);
    tdm_free(run->blocks);
    tdm_window_deinit(&run->window);
    tdm_input_stream_close(run->stream);
    tdm_block_text_deinit(&run->text);
}

tdm_status tdm_input_sample_take(tdm_extractor *extractor, int blocks, int lanes,
                                 tdm_input_sample *out)
{
    sampling run = {.extractor = extractor, .wanted = blocks, .lanes = lanes};
    *out = (tdm_input_sample){0};
    if (tdm_input_is_stdin(tdm_extractor_input(extractor)))
        return TDM_OK;
    tdm_status status = read_blocks(&run);
    if (status == TDM_OK && run.text_bytes > 0 && run.stored_bytes > 0)
        *out = describe(&run);
    free_sampling(&run);
    return status;
}
