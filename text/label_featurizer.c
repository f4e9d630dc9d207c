#include "text/label_featurizer.h"

#include "core/memory.h"
#include "core/number.h"
#include "core/ops.h"
#include "text/label_block.h"
#include "text/label_cells.h"
#include "text/token_featurizer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define COLUMN_LABELS TDM_COLUMN_COMMON

/* A thread's: the labels of its list of tokens, or the label of a record. */
typedef struct label_scratch {
    uint32_t *labels;
    size_t capacity;
} label_scratch;

typedef struct label_featurizer {
    tdm_token_featurizer tokens;
    const tdm_label_spec *spec;
    int64_t label_words;    /* of 32 bits, in the head of a record */
    int labels;             /* tensor; -1: none */
    label_scratch *scratch; /* [threads] */
} label_featurizer;

static bool has_token_labels(const label_featurizer *featurizer)
{
    return featurizer->spec->type == TDM_LABEL_TOKENS;
}

/* ---- labels of records ----------------------------------------------------------------------- */

static bool find_class(const tdm_label_spec *spec, tdm_slice label, uint32_t *number,
                       tdm_label_reason *reason)
{
    int64_t found = tdm_vocabulary_find(&spec->classes, label.text, label.bytes);
    *number = (uint32_t)found;
    if (found < 0)
        tdm_refuse_label(spec, label, reason);
    return found >= 0;
}

static void read_classes(const tdm_label_spec *spec, tdm_slice cell, uint32_t *bits,
                         tdm_label_reason *reason)
{
    tdm_item_list items = tdm_items_of(cell, spec->separator);
    tdm_slice item;
    uint32_t number;
    while (tdm_next_item(&items, &item)) {
        if (item.bytes == 0)
            continue;
        if (!find_class(spec, item, &number, reason))
            return;
        bits[number / 32] |= (uint32_t)1 << number % 32;
    }
}

static void read_number(tdm_slice cell, uint32_t *bits, tdm_label_reason *reason)
{
    double number = 0;
    bool good = tdm_parse_number(cell.text, cell.bytes, &number) && isfinite((float)number);
    float value = good ? (float)number : 0;
    memcpy(bits, &value, sizeof value);
    if (!good)
        snprintf(reason->text, sizeof reason->text,
                 cell.bytes == 0 ? "the label is missing" : "the label is not a finite number");
}

/* The label of a whole record as words of 32 bits. */
static void read_label(const label_featurizer *featurizer, tdm_slice cell, uint32_t *words,
                       tdm_label_reason *reason)
{
    const tdm_label_spec *spec = featurizer->spec;
    memset(words, 0, (size_t)featurizer->label_words * sizeof *words);
    if (spec->type == TDM_LABEL_CLASSES)
        (void)find_class(spec, tdm_trimmed(cell), words, reason);
    else if (spec->type == TDM_LABEL_MULTIPLE)
        read_classes(spec, cell, words, reason);
    else
        read_number(tdm_trimmed(cell), words, reason);
}

/* ---- extract --------------------------------------------------------------------------------- */

/* A record being extracted, and what is wrong with it. */
typedef struct extraction {
    const label_featurizer *featurizer;
    const tdm_records *records;
    int64_t record;
    tdm_token_list *list;
    tdm_word_ids *words;
    label_scratch *scratch;
    tdm_label_reason reason;
    int32_t column;
} extraction;

static void refuse(extraction *run, int32_t column, const char *reason)
{
    run->column = column;
    if (reason != NULL)
        snprintf(run->reason.text, sizeof run->reason.text, "%s", reason);
}

#define NO_WORD "there is no word in it"

/* The label in front of a record's tokens. */
static tdm_status append_head(extraction *run)
{
    const label_featurizer *featurizer = run->featurizer;
    tdm_token_list *list = run->list;
    size_t words = (size_t)featurizer->label_words;
    size_t rows = (size_t)featurizer->tokens.sequences.head;
    int32_t column = featurizer->spec->label;
    TDM_TRY(tdm_grow(&run->scratch->labels, &run->scratch->capacity, words,
                     sizeof *run->scratch->labels));
    uint32_t *label = run->scratch->labels;
    read_label(featurizer, tdm_cell_of(run->records, run->record, column), label, &run->reason);
    refuse(run, column, NULL);
    TDM_TRY(
        tdm_grow(&list->ids, &list->ids_capacity, (size_t)list->count + rows, sizeof *list->ids));
    TDM_TRY(tdm_grow(&list->marks, &list->marks_capacity, (size_t)list->count + rows, 1));
    memset(list->marks + list->count, 0, rows);
    for (size_t r = 0; r < rows; r++) {
        uint32_t part = rows == words ? label[r] : label[r / 2] >> 16 * (r % 2) & UINT16_MAX;
        list->ids[list->count++] = part;
    }
    return TDM_OK;
}

static tdm_status append_text(extraction *run, int32_t column, uint8_t mark)
{
    tdm_token_list *list = run->list;
    int64_t first = list->count;
    tdm_slice cell = tdm_cell_of(run->records, run->record, column);
    TDM_TRY(tdm_word_ids_append(run->words, cell.text, cell.bytes, list));
    if (list->count == first)
        refuse(run, column, NO_WORD);
    else
        list->marks[first] |= mark;
    return TDM_OK;
}

static tdm_status append_texts(extraction *run)
{
    const tdm_label_spec *spec = run->featurizer->spec;
    int64_t first = run->list->count;
    if (run->featurizer->label_words > 0)
        TDM_TRY(append_head(run));
    if (run->reason.text[0] == '\0')
        TDM_TRY(append_text(run, spec->text, 0));
    if (run->reason.text[0] == '\0' && spec->pair >= 0)
        TDM_TRY(append_text(run, spec->pair, TDM_MARK_SECOND));
    if (run->reason.text[0] == '\0')
        run->list->marks[first] |= TDM_MARK_DOCUMENT;
    return TDM_OK;
}

/* The first piece of a word carries its label. */
static tdm_status append_word(extraction *run, tdm_slice word, uint32_t label)
{
    tdm_token_list *list = run->list;
    label_scratch *scratch = run->scratch;
    int64_t first = list->count;
    TDM_TRY(tdm_word_ids_append(run->words, word.text, word.bytes, list));
    TDM_TRY(tdm_grow(&scratch->labels, &scratch->capacity, (size_t)list->count,
                     sizeof *scratch->labels));
    for (int64_t t = first; t < list->count; t++)
        scratch->labels[t] = t == first ? label : TDM_NO_LABEL;
    return TDM_OK;
}

static tdm_status append_words(extraction *run)
{
    const tdm_label_spec *spec = run->featurizer->spec;
    tdm_labelled_words words = tdm_words_of(spec, run->records, run->record);
    tdm_slice word, label;
    int64_t first = run->list->count, count = 0;
    refuse(run, spec->lines ? -1 : spec->label, NULL);
    while (tdm_next_word(&words, &word, &label, &run->reason)) {
        uint32_t number = (uint32_t)count++;
        if (spec->use == TDM_LABEL_TRAINING && !find_class(spec, label, &number, &run->reason)) {
            tdm_refuse_word_label(&words, label, &run->reason);
            return TDM_OK;
        }
        TDM_TRY(append_word(run, word, number));
    }
    /* Lines that hold no word are what marks documents. */
    if (run->list->count > first)
        run->list->marks[first] |= TDM_MARK_DOCUMENT;
    else if (run->reason.text[0] == '\0' && (count > 0 || !spec->lines))
        refuse(run, spec->lines ? -1 : spec->text, NO_WORD);
    return TDM_OK;
}

static tdm_status move_tokens(const extraction *run, tdm_extract *out, int64_t *rows)
{
    const label_featurizer *featurizer = run->featurizer;
    int64_t at = out->rows + *rows, count = run->list->count;
    TDM_TRY(tdm_move_tokens(&featurizer->tokens, run->list, out, rows));
    if (has_token_labels(featurizer) && count > 0)
        memcpy((uint32_t *)out->columns[COLUMN_LABELS] + at, run->scratch->labels,
               (size_t)count * sizeof *run->scratch->labels);
    return TDM_OK;
}

static tdm_status extract(const tdm_featurizer *base, const tdm_records *records, tdm_extract *out,
                          uint32_t *row_records, int64_t *rows,
                          void (*reject)(void *context, int64_t record, int32_t column,
                                         const char *reason),
                          void *context)
{
    (void)row_records;
    const label_featurizer *featurizer = (const label_featurizer *)base;
    tdm_token_scratch *scratch;
    TDM_TRY(tdm_token_scratch_get(&featurizer->tokens, &scratch));
    extraction run = {.featurizer = featurizer,
                      .records = records,
                      .list = &scratch->list,
                      .words = scratch->words,
                      .scratch = &featurizer->scratch[tdm_pool_thread_index()]};
    scratch->list.count = 0;
    *rows = 0;
    for (; run.record < records->count; run.record++) {
        int64_t first = scratch->list.count;
        run.reason.text[0] = '\0';
        TDM_TRY(has_token_labels(featurizer) ? append_words(&run) : append_texts(&run));
        if (run.reason.text[0] != '\0') {
            scratch->list.count = first;
            reject(context, run.record, run.column, run.reason.text);
        }
        if (run.record + 1 == records->count || scratch->list.count >= TDM_MOVED_TOKENS)
            TDM_TRY(move_tokens(&run, out, rows));
    }
    return TDM_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void put_token_labels(const label_featurizer *featurizer, const tdm_extract *block,
                             const tdm_segment *segment, uint32_t *labels)
{
    const tdm_token_featurizer *tokens = &featurizer->tokens;
    const uint32_t *from = (const uint32_t *)block->columns[COLUMN_LABELS] + segment->first;
    int64_t end = 2 + (int64_t)segment->count;
    labels[0] = labels[end - 1] = TDM_NO_LABEL;
    memcpy(labels + 1, from, segment->count * sizeof *labels);
    if (tokens->padded)
        tokens->loops->fill(labels + end, tokens->sequences.max_length - end, TDM_NO_LABEL);
}

/* Those of row `row`, whose tokens begin at `begin`. */
static void put_labels(const label_featurizer *featurizer, const tdm_window *window,
                       const tdm_sequence *sequence, const tdm_batch *batch, int64_t row,
                       int64_t begin)
{
    const tdm_token_featurizer *tokens = &featurizer->tokens;
    const tdm_columns_layout *columns = &tokens->base.columns;
    const tdm_segment *segment = &sequence->segments[0];
    const tdm_extract *block = window->blocks[segment->block];
    int64_t head = segment->first - tokens->sequences.head;
    if (featurizer->labels < 0)
        return;
    void *labels = tdm_batch_data(batch, featurizer->labels);
    if (has_token_labels(featurizer)) {
        put_token_labels(featurizer, block, segment, (uint32_t *)labels + begin);
    } else if (featurizer->spec->type == TDM_LABEL_MULTIPLE) {
        int64_t classes = featurizer->spec->classes.size;
        float *flags = (float *)labels + row * classes;
        uint32_t word = 0;
        for (int64_t c = 0; c < classes; c++) {
            word = c % 32 == 0 ? tdm_label_word(columns, block, head, c / 32) : word >> 1;
            flags[c] = (float)(word & 1);
        }
    } else {
        uint32_t word = tdm_label_word(columns, block, head, 0);
        memcpy((uint32_t *)labels + row, &word, sizeof word);
    }
}

static void assemble(const tdm_featurizer *base, const tdm_window *window, int64_t first,
                     int64_t count, tdm_batch *batch, int64_t at, int64_t token)
{
    const label_featurizer *featurizer = (const label_featurizer *)base;
    const tdm_token_featurizer *tokens = &featurizer->tokens;
    for (int64_t i = 0; i < count; i++) {
        tdm_sequence sequence = tdm_sequence_get(window, first + i);
        tdm_fetch_row(tokens, false, window, first + i + 1);
        int64_t begin = tdm_write_row(tokens, window, first + i, &sequence, batch, at + i, token);
        tdm_token_place place = tdm_token_place_at(tokens, batch, begin);
        int64_t second =
            sequence.segment_count == 2 ? sequence.segments[0].count + 2 : sequence.tokens;
        tdm_write_ids(tokens, window, &sequence, place.ids, NULL);
        tdm_write_places(tokens, &place, second, sequence.tokens);
        put_labels(featurizer, window, &sequence, batch, at + i, begin);
        token += sequence.tokens;
    }
}

static void finish(const tdm_featurizer *base, tdm_batch *batch, int part)
{
    (void)part;
    tdm_close_sequences((const tdm_token_featurizer *)base, batch);
}

/* ---- creation -------------------------------------------------------------------------------- */

static void destroy(tdm_featurizer *base)
{
    label_featurizer *featurizer = (label_featurizer *)base;
    for (int i = 0; featurizer->scratch != NULL && i < featurizer->tokens.threads; i++)
        tdm_free(featurizer->scratch[i].labels);
    tdm_free(featurizer->scratch);
    tdm_token_featurizer_deinit(&featurizer->tokens);
    tdm_free(featurizer);
}

static const tdm_featurizer_type label_type = {
    .name = "labels",
    .extract = extract,
    .open_window = tdm_open_sequences,
    .assemble = assemble,
    .finish = finish,
    .destroy = destroy,
};

static void add_labels(label_featurizer *featurizer)
{
    tdm_token_featurizer *tokens = &featurizer->tokens;
    const tdm_label_spec *spec = featurizer->spec;
    tdm_batch_layout *batch = &tokens->base.batch;
    int64_t rows = tokens->batch_rows;
    bool training = spec->use == TDM_LABEL_TRAINING;
    featurizer->labels = -1;
    if (spec->type == TDM_LABEL_TOKENS)
        featurizer->labels = tdm_add_token_tensor(tokens, training ? "labels" : "words");
    else if (training && spec->type == TDM_LABEL_MULTIPLE)
        featurizer->labels = tdm_batch_layout_add(batch, "labels", TDM_F32,
                                                  (tdm_shape){2, {rows, spec->classes.size}});
    else if (training)
        featurizer->labels = tdm_add_vector(
            batch, "labels", spec->type == TDM_LABEL_REGRESSION ? TDM_F32 : TDM_U32, rows);
}

static tdm_status fill(label_featurizer *featurizer, const tdm_record_format *format,
                       const tdm_text_options *options, const tdm_tokenizer *tokenizer,
                       tdm_pool *pool, int64_t batch_tokens, int lanes)
{
    tdm_token_featurizer *tokens = &featurizer->tokens;
    const tdm_label_spec *spec = featurizer->spec;
    const tdm_sequence_options sequences = {.mode = TDM_RECORD_TEXTS,
                                            .max_length = options->max_length,
                                            .head = tdm_label_head_rows(spec, tokenizer)};
    TDM_FAIL_IF(spec->use == TDM_LABEL_TRAINING && spec->type != TDM_LABEL_REGRESSION &&
                    spec->classes.size == 0,
                TDM_E_ARG, "the classes have not been found");
    TDM_TRY(tdm_token_featurizer_init(tokens, options, &sequences, tokenizer, pool, batch_tokens,
                                      lanes));
    TDM_TRY(tdm_alloc((size_t)tokens->threads, sizeof *featurizer->scratch, &featurizer->scratch));
    featurizer->label_words = tdm_label_head_words(spec);
    if (spec->type == TDM_LABEL_TOKENS)
        tokens->base.columns.columns[tokens->base.columns.count++] =
            (tdm_column){"labels", TDM_U32, 1};
    tdm_token_tensors_add(tokens);
    add_labels(featurizer);
    tokens->base.spec_hash ^= tdm_label_spec_hash(spec, format);
    return TDM_OK;
}

tdm_status tdm_label_featurizer_create(const tdm_label_spec *spec, const tdm_record_format *format,
                                       const tdm_text_options *options,
                                       const tdm_tokenizer *tokenizer, tdm_pool *pool,
                                       int64_t batch_tokens, int lanes, tdm_featurizer **out)
{
    *out = NULL;
    label_featurizer *featurizer;
    TDM_TRY(tdm_alloc(1, sizeof *featurizer, &featurizer));
    featurizer->tokens.base.type = &label_type;
    featurizer->spec = spec;
    tdm_status status = fill(featurizer, format, options, tokenizer, pool, batch_tokens, lanes);
    if (status == TDM_OK)
        *out = &featurizer->tokens.base;
    else
        destroy(&featurizer->tokens.base);
    return status;
}
