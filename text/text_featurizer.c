#include "text/text_featurizer.h"

#include "core/memory.h"
#include "text/token_featurizer.h"

#include <string.h>

typedef struct mask_scratch {
    tdm_mask_scratch *masks;
    uint8_t *marks;              /* [max_length] */
    tdm_prediction *predictions; /* [max_length] */
} mask_scratch;

typedef struct text_featurizer {
    tdm_token_featurizer tokens;
    tdm_masker *masker;
    bool wants_marks;                            /* to mask by */
    int mask_positions, mask_labels, mask_count; /* tensors */
    int pair_labels;                             /* -1 without pairs */
    mask_scratch *scratch;                       /* [threads] */
} text_featurizer;

/* ---- extract --------------------------------------------------------------------------------- */

/* Appends the tokens of a document, whose lines are its sentences. */
static tdm_status tokenize(tdm_token_scratch *scratch, const char *text, size_t bytes)
{
    tdm_token_list *list = &scratch->list;
    int64_t first = list->count;
    TDM_TRY(tdm_word_ids_append(scratch->words, text, bytes, list));
    if (list->count > first)
        list->marks[first] |= TDM_MARK_DOCUMENT;
    return TDM_OK;
}

static tdm_status extract(const tdm_featurizer *base, const tdm_records *records, tdm_extract *out,
                          uint32_t *row_records, int64_t *rows,
                          void (*reject)(void *context, int64_t record, int32_t column,
                                         const char *reason),
                          void *context)
{
    (void)row_records;
    (void)reject;
    (void)context;
    const tdm_token_featurizer *tokens = (const tdm_token_featurizer *)base;
    tdm_token_scratch *scratch;
    TDM_TRY(tdm_token_scratch_get(tokens, &scratch));
    scratch->list.count = 0;
    *rows = 0;
    for (int64_t i = 0; i < records->count; i++) {
        tdm_span cell = records->cells[i * records->columns];
        TDM_TRY(tokenize(scratch, records->text + cell.begin, cell.end - cell.begin));
        if (i + 1 == records->count || scratch->list.count >= TDM_MOVED_TOKENS)
            TDM_TRY(tdm_move_tokens(tokens, &scratch->list, out, rows));
    }
    return TDM_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Until the batch is finished a row's predictions wait in its place: positions[0] is their count,
 * positions and labels lie behind positions[0] and types[0], and types[0] is where the second
 * segment of a pair begins. [CLS] and [SEP] are never predicted, so that there is room. */
static void mask_tokens(const text_featurizer *featurizer, const tdm_window *window,
                        uint64_t sample, const tdm_sequence *sequence, const tdm_token_place *place,
                        mask_scratch *scratch)
{
    uint32_t epoch = tdm_extract_counter(window->blocks[0], window->epoch);
    int64_t count =
        tdm_mask_sequence(featurizer->masker, window->seed, sample, epoch, place->ids,
                          scratch->marks, sequence->tokens, scratch->masks, scratch->predictions);
    bool pair = featurizer->tokens.sequences.mode == TDM_SEGMENT_PAIRS;
    place->types[0] = pair ? sequence->segments[0].count + 2 : sequence->tokens;
    place->positions[0] = (uint32_t)count;
    for (int64_t i = 0; i < count; i++) {
        place->positions[1 + i] = scratch->predictions[i].position;
        place->types[1 + i] = scratch->predictions[i].label;
    }
}

static void assemble(const tdm_featurizer *base, const tdm_window *window, int64_t first,
                     int64_t count, tdm_batch *batch, int64_t at, int64_t token)
{
    const text_featurizer *featurizer = (const text_featurizer *)base;
    const tdm_token_featurizer *tokens = &featurizer->tokens;
    mask_scratch *scratch = &featurizer->scratch[tdm_pool_thread_index()];
    uint8_t *marks = featurizer->wants_marks ? scratch->marks : NULL;
    const uint64_t *samples = tdm_batch_data(batch, TDM_BATCH_SAMPLE);
    for (int64_t i = 0; i < count; i++) {
        tdm_sequence sequence = tdm_sequence_get(window, first + i);
        int64_t row = at + i;
        tdm_fetch_row(tokens, featurizer->wants_marks, window, first + i + 1);
        int64_t begin = tdm_write_row(tokens, window, first + i, &sequence, batch, row, token);
        tdm_token_place place = tdm_token_place_at(tokens, batch, begin);
        tdm_write_ids(tokens, window, &sequence, place.ids, marks);
        mask_tokens(featurizer, window, samples[row], &sequence, &place, scratch);
        if (featurizer->pair_labels >= 0)
            ((uint32_t *)tdm_batch_data(batch, featurizer->pair_labels))[row] = sequence.pair_label;
        token += sequence.tokens;
    }
}

/* ---- batches --------------------------------------------------------------------------------- */

/* The predictions of a batch, being collected in the order of the tokens. */
typedef struct collecting {
    int32_t *mask_positions;
    uint32_t *mask_labels;
    int64_t count, most; /* what is beyond that is left out, */
    int64_t lost;        /* and counted */
} collecting;

/* Takes those of a row of `length` tokens from token `begin` on, and puts its positions and types
 * there. */
static void finish_row(const tdm_token_featurizer *tokens, const tdm_token_place *place,
                       int64_t begin, int64_t length, collecting *all)
{
    int64_t count = place->positions[0], second = place->types[0];
    if (count > all->most - all->count) {
        all->lost += count - (all->most - all->count);
        count = all->most - all->count;
    }
    for (int64_t i = 0; i < count; i++)
        all->mask_positions[all->count + i] = (int32_t)(begin + place->positions[1 + i]);
    memcpy(all->mask_labels + all->count, place->types + 1,
           (size_t)count * sizeof *all->mask_labels);
    all->count += count;
    tdm_write_places(tokens, place, second, length);
}

static void finish(const tdm_featurizer *base, tdm_batch *batch, int part)
{
    (void)part;
    text_featurizer *featurizer = (text_featurizer *)(uintptr_t)base;
    tdm_token_featurizer *tokens = &featurizer->tokens;
    const tdm_shape *predictions = &batch->layout->tensors[featurizer->mask_positions].shape;
    collecting all = {.mask_positions = tdm_batch_data(batch, featurizer->mask_positions),
                      .mask_labels = tdm_batch_data(batch, featurizer->mask_labels),
                      .most = predictions->sizes[0]};
    tdm_close_sequences(tokens, batch);
    for (int64_t r = 0; r < batch->rows; r++) {
        int64_t length, begin = tdm_find_row(tokens, batch, r, &length);
        tdm_token_place place = tdm_token_place_at(tokens, batch, begin);
        finish_row(tokens, &place, begin, length, &all);
    }
    if (all.lost > 0)
        atomic_fetch_add(&tokens->lost_count, all.lost);
    *(int64_t *)tdm_batch_data(batch, featurizer->mask_count) = all.count;
}

/* ---- creation -------------------------------------------------------------------------------- */

static void destroy(tdm_featurizer *base)
{
    text_featurizer *featurizer = (text_featurizer *)base;
    for (int i = 0; featurizer->scratch != NULL && i < featurizer->tokens.threads; i++) {
        mask_scratch *scratch = &featurizer->scratch[i];
        tdm_mask_scratch_destroy(scratch->masks);
        tdm_free(scratch->marks);
        tdm_free(scratch->predictions);
    }
    tdm_free(featurizer->scratch);
    tdm_masker_destroy(featurizer->masker);
    tdm_token_featurizer_deinit(&featurizer->tokens);
    tdm_free(featurizer);
}

static const tdm_featurizer_type text_type = {
    .name = "text",
    .extract = extract,
    .open_window = tdm_open_sequences,
    .assemble = assemble,
    .finish = finish,
    .destroy = destroy,
};

static tdm_status make_scratch(text_featurizer *featurizer, int64_t max_length)
{
    size_t length = (size_t)max_length;
    TDM_TRY(tdm_alloc((size_t)featurizer->tokens.threads, sizeof *featurizer->scratch,
                      &featurizer->scratch));
    for (int i = 0; i < featurizer->tokens.threads; i++) {
        mask_scratch *scratch = &featurizer->scratch[i];
        TDM_TRY(tdm_mask_scratch_create(max_length, &scratch->masks));
        TDM_TRY(tdm_alloc(length, sizeof *scratch->marks, &scratch->marks));
        TDM_TRY(tdm_alloc(length, sizeof *scratch->predictions, &scratch->predictions));
    }
    return TDM_OK;
}

static void add_tensors(text_featurizer *featurizer)
{
    tdm_token_featurizer *tokens = &featurizer->tokens;
    tdm_batch_layout *batch = &tokens->base.batch;
    int64_t predictions =
        tdm_masker_most(featurizer->masker, tokens->batch_rows, tokens->batch_tokens);
    tdm_token_tensors_add(tokens);
    featurizer->mask_positions = tdm_add_vector(batch, "mask_positions", TDM_I32, predictions);
    featurizer->mask_labels = tdm_add_vector(batch, "mask_labels", TDM_U32, predictions);
    featurizer->mask_count = tdm_add_vector(batch, "mask_count", TDM_I64, 1);
    featurizer->pair_labels = -1;
    if (tokens->sequences.mode == TDM_SEGMENT_PAIRS)
        featurizer->pair_labels = tdm_add_vector(batch, "pair_labels", TDM_U32, tokens->batch_rows);
}

tdm_status tdm_text_featurizer_create(const tdm_text_options *options,
                                      const tdm_tokenizer *tokenizer, tdm_pool *pool,
                                      int64_t batch_tokens, int lanes, tdm_featurizer **out)
{
    *out = NULL;
    text_featurizer *featurizer;
    TDM_TRY(tdm_alloc(1, sizeof *featurizer, &featurizer));
    featurizer->tokens.base.type = &text_type;
    featurizer->wants_marks = options->masking.unit != TDM_MASK_TOKEN;
    const tdm_sequence_options sequences = tdm_text_sequence_options(options);
    const tdm_masking_options masking = tdm_text_masking_options(options);
    tdm_status status;
    TDM_TRY_GOTO(tdm_token_featurizer_init(&featurizer->tokens, options, &sequences, tokenizer,
                                           pool, batch_tokens, lanes),
                 fail);
    TDM_TRY_GOTO(tdm_masker_create(&masking, tokenizer, options->max_length, &featurizer->masker),
                 fail);
    TDM_TRY_GOTO(make_scratch(featurizer, options->max_length), fail);
    add_tensors(featurizer);
    *out = &featurizer->tokens.base;
    return TDM_OK;
fail:
    destroy(&featurizer->tokens.base);
    return status;
}
