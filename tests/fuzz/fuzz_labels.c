/* Any bytes as labelled records: the first byte says of which format and type, and whether they are
 * for predictions. Whatever is no bad record becomes a row with words and a label that there is,
 * and rows become batches. */
#include "core/memory.h"
#include "core/ops.h"
#include "data/extract.h"
#include "data/input_memory.h"
#include "text/label_block.h"
#include "text/label_featurizer.h"
#include "text/masked_batch.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_LENGTH 16

static void require(bool condition)
{
    if (!condition)
        abort();
}

static const char *const recipes[] = {
    "data: {format: tsv, header: false, columns: [label, text]}\n"
    "labels: {classes: [neg, pos]}\n",
    "data: {format: tsv, header: false, columns: [label, text, b]}\n"
    "labels: {text_pair: b, type: regression}\n",
    "data: {format: csv, header: false, columns: [text, label]}\n"
    "labels: {type: multiple, classes: [neg, pos, c], separator: space}\n",
    "data: {format: jsonl, columns: [label, text]}\n"
    "labels: {type: multiple, classes: [neg, pos]}\n",
    "data: {format: jsonl, columns: [label, text]}\n"
    "labels: {type: tokens, classes: [O, B]}\n",
    "data: {format: text}\n"
    "labels: {type: tokens, classes: [O, B]}\n",
    "data: {format: text, separator: tab, columns: [id, text, label]}\n"
    "labels: {type: tokens, classes: [O, B]}\n",
    "data: {format: tsv, header: false, columns: [label, text]}\n"
    "labels: {type: tokens, classes: [O, B]}\n",
};
#define RECIPES 8

typedef struct reader {
    tdm_record_format *format;
    tdm_label_spec *spec;
    tdm_featurizer *featurizer;
    int64_t head_rows;
} reader;

static tdm_pool *pool;
static tdm_tokenizer *tokenizer;

static void open_tokenizer(void)
{
    static const char vocabulary[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\na\n##b\nb\n";
    char path[64];
    int descriptor = memfd_create("vocabulary", 0);
    require(descriptor >= 0 && write(descriptor, vocabulary, sizeof vocabulary - 1) > 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    require(tdm_tokenizer_open(path, NULL, &tokenizer) == TDM_OK);
    require(tdm_pool_create(1, &pool) == TDM_OK);
    close(descriptor);
}

static void make_reader(const char *recipe, tdm_label_use use, reader *out)
{
    tdm_config *config;
    tdm_data_options data;
    tdm_label_options labels;
    tdm_format_options format;
    const tdm_text_options text = {.max_length = MAX_LENGTH};
    require(tdm_config_parse(recipe, strlen(recipe), "r", NULL, 0, &config) == TDM_OK);
    const tdm_config_node *root = tdm_config_root(config);
    require(tdm_config_bind(tdm_config_get(root, "data"), &tdm_data_schema, &data) == TDM_OK);
    require(tdm_config_bind(tdm_config_get(root, "labels"), &tdm_label_schema, &labels) == TDM_OK);
    require(tdm_label_options_check(&labels, &data, NULL) == TDM_OK);
    require(tdm_data_format_options(&data, &format) == TDM_OK);
    require(tdm_record_format_create(&format, "f", "", 0, &out->format) == TDM_OK);
    require(tdm_label_spec_create(&labels, NULL, out->format, &data.columns, use, &out->spec) ==
            TDM_OK);
    require(tdm_label_featurizer_create(out->spec, out->format, &text, tokenizer, pool, 256, 1,
                                        &out->featurizer) == TDM_OK);
    out->head_rows = tdm_label_head_rows(out->spec, tokenizer);
    tdm_config_unbind(&tdm_data_schema, &data);
    tdm_config_unbind(&tdm_label_schema, &labels);
    tdm_config_free(config);
}

static const reader *reader_of(unsigned choice)
{
    static reader readers[2 * RECIPES];
    if (pool == NULL) {
        open_tokenizer();
        for (int i = 0; i < RECIPES; i++) {
            make_reader(recipes[i], TDM_LABEL_TRAINING, &readers[2 * i]);
            make_reader(recipes[i], TDM_LABEL_PREDICTION, &readers[2 * i + 1]);
        }
    }
    return &readers[choice % (2 * RECIPES)];
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void check_record(const reader *from, const tdm_extract *block,
                         const tdm_label_record *record)
{
    const tdm_label_spec *spec = from->spec;
    require(record->head + from->head_rows == record->first && record->first < record->second);
    require(record->second <= record->end && (spec->pair >= 0) == (record->second < record->end));
    require(((const uint8_t *)block->columns[1])[record->head] & TDM_MARK_DOCUMENT);
    if (spec->use == TDM_LABEL_TRAINING && spec->type == TDM_LABEL_CLASSES)
        require(tdm_label_word(&from->featurizer->columns, block, record->head, 0) <
                spec->classes.size);
    for (int64_t t = record->first; spec->type == TDM_LABEL_TOKENS && t < record->end; t++) {
        uint32_t label = ((const uint32_t *)block->columns[2])[t];
        require(t > record->first || label != TDM_NO_LABEL);
        require(label == TDM_NO_LABEL || spec->use == TDM_LABEL_PREDICTION ||
                label < spec->classes.size);
    }
}

static int64_t check_records(const reader *from, const tdm_extract *block)
{
    int64_t records = 0;
    tdm_label_record record;
    for (int64_t row = 0; tdm_label_record_at(block, row, from->head_rows, &record);
         row = record.end) {
        check_record(from, block, &record);
        records++;
    }
    if (from->spec->use == TDM_LABEL_PREDICTION)
        require(records + (int64_t)block->bad_count == block->records);
    return records;
}

/* ---- batches --------------------------------------------------------------------------------- */

static void check_batches(const reader *from, const tdm_window *window, tdm_batch *batch)
{
    const tdm_featurizer *featurizer = from->featurizer;
    for (int64_t row = 0; row < window->rows;) {
        int64_t before = row > 0 ? window->token_ends[row - 1] : 0, count = 0;
        while (row + count < window->rows && count < batch->layout->batch_size &&
               window->token_ends[row + count] - before <= batch->layout->max_tokens)
            count++;
        require(count > 0);
        featurizer->type->assemble(featurizer, window, row, count, batch, 0, 0);
        row += count;
        batch->rows = count;
        batch->tokens = window->token_ends[row - 1] - before;
        featurizer->type->finish(featurizer, batch, 0);
        tdm_masked_batch view = tdm_masked_batch_of(batch);
        require(view.tokens == batch->tokens && view.max_seqlen <= MAX_LENGTH);
        for (int64_t r = 0; r < count; r++) {
            tdm_token_range tokens = tdm_masked_batch_row(&view, r);
            require(tokens.end - tokens.begin >= 3 && view.ids[tokens.begin] == 2);
            require(view.ids[tokens.end - 1] == 3);
        }
    }
}

static void check_block(const reader *from, tdm_extract *block)
{
    const tdm_featurizer *featurizer = from->featurizer;
    tdm_window window = {.block_count = 1, .blocks = &block};
    tdm_batch batch = {.layout = &featurizer->batch};
    int64_t records = check_records(from, block);
    require(featurizer->type->open_window(featurizer, 1, false, &window) == TDM_OK);
    require(window.rows == records);
    require(tdm_alloc(batch.layout->bytes, 1, &batch.data) == TDM_OK);
    check_batches(from, &window, &batch);
    tdm_free(batch.data);
    tdm_window_deinit(&window);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    const reader *from = reader_of(data[0]);
    tdm_memory_input *memory;
    tdm_extractor *extractor;
    tdm_block_text text = {0};
    tdm_extract block = {0};
    require(tdm_memory_input_create(from->format, 300, &memory) == TDM_OK);
    require(tdm_extractor_create(from->featurizer, tdm_memory_input_get(memory), pool,
                                 TDM_SELECT_ALL, 0, &extractor) == TDM_OK);
    require(tdm_memory_input_begin(memory, (const char *)data + 1, size - 1) == TDM_OK);
    for (bool ended = false; !ended;) {
        require(tdm_memory_input_next(memory, &text, &ended) == TDM_OK);
        if (ended)
            break;
        require(tdm_extract_block(extractor, &text, &block) == TDM_OK);
        check_block(from, &block);
    }
    tdm_extract_deinit(&block);
    tdm_block_text_deinit(&text);
    tdm_extractor_destroy(extractor);
    tdm_memory_input_destroy(memory);
    return 0;
}
