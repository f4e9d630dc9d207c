#include "data/extract.h"

#include "core/memory.h"
#include "data/csv_cell.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* What one thread needs to parse a chunk of records. */
typedef struct parse_scratch {
    tdm_span *cells;
    tdm_span record_spans[TDM_PARSE_RECORDS];
    uint32_t record_lines[TDM_PARSE_RECORDS];
    uint32_t record_numbers[TDM_PARSE_RECORDS]; /* within the block, bad ones counted */
    bool refused[TDM_PARSE_RECORDS];
    uint32_t row_records[TDM_PARSE_RECORDS];
    uint32_t separators[TDM_PARSE_SCRATCH];
    tdm_scratch_text text;
} parse_scratch;

struct tdm_extractor {
    const tdm_featurizer *featurizer;
    tdm_input *input;
    tdm_selection selection;
    uint64_t hold_out_below;
    int threads;
    parse_scratch **scratch; /* [threads] */
    int32_t *kept_columns;
    int kept_count;
    bool keeps_text; /* of the one column, not as CSV */
};

/* One call of tdm_extract_block. */
typedef struct extraction {
    const tdm_extractor *extractor;
    const tdm_block_text *text;
    parse_scratch *scratch;
    tdm_extract *out;
    int32_t file;
    tdm_parse parse;
    size_t chunk_bad; /* bad records before this chunk */
    tdm_status status;
} extraction;

tdm_status tdm_extractor_create(const tdm_featurizer *featurizer, tdm_input *input, tdm_pool *pool,
                                tdm_selection selection, double hold_out, tdm_extractor **out)
{
    *out = NULL;
    tdm_extractor *extractor;
    TDM_TRY(tdm_alloc(1, sizeof *extractor, &extractor));
    extractor->featurizer = featurizer;
    extractor->input = input;
    extractor->selection = hold_out > 0 ? selection : TDM_SELECT_ALL;
    extractor->hold_out_below = (uint64_t)(hold_out * 0x1p64);
    extractor->threads = tdm_pool_threads(pool);
    size_t cells = (size_t)TDM_PARSE_RECORDS * (size_t)tdm_input_format(input)->column_count;
    tdm_status status;
    TDM_TRY_GOTO(
        tdm_alloc((size_t)extractor->threads, sizeof *extractor->scratch, &extractor->scratch),
        fail);
    for (int i = 0; i < extractor->threads; i++) {
        TDM_TRY_GOTO(tdm_alloc(1, sizeof **extractor->scratch, &extractor->scratch[i]), fail);
        TDM_TRY_GOTO(tdm_alloc(cells, sizeof(tdm_span), &extractor->scratch[i]->cells), fail);
    }
    *out = extractor;
    return TDM_OK;
fail:
    tdm_extractor_destroy(extractor);
    return status;
}

void tdm_extractor_destroy(tdm_extractor *extractor)
{
    if (extractor == NULL)
        return;
    for (int i = 0; extractor->scratch != NULL && i < extractor->threads; i++) {
        if (extractor->scratch[i] != NULL) {
            tdm_free(extractor->scratch[i]->cells);
            tdm_free(extractor->scratch[i]->text.bytes);
        }
        tdm_free(extractor->scratch[i]);
    }
    tdm_free(extractor->scratch);
    tdm_free(extractor->kept_columns);
    tdm_free(extractor);
}

tdm_status tdm_extractor_keep(tdm_extractor *extractor, const int32_t *columns, int count)
{
    TDM_TRY(tdm_alloc((size_t)count, sizeof *columns, &extractor->kept_columns));
    memcpy(extractor->kept_columns, columns, (size_t)count * sizeof *columns);
    extractor->kept_count = count;
    return TDM_OK;
}

tdm_status tdm_extractor_keep_text(tdm_extractor *extractor, int32_t column)
{
    extractor->keeps_text = true;
    return tdm_extractor_keep(extractor, &column, 1);
}

const tdm_featurizer *tdm_extractor_featurizer(const tdm_extractor *extractor)
{
    return extractor->featurizer;
}

uint64_t tdm_extractor_selection_hash(const tdm_extractor *extractor)
{
    uint64_t words[2] = {(uint64_t)extractor->selection, extractor->hold_out_below};
    return XXH3_64bits(words, sizeof words);
}

tdm_input *tdm_extractor_input(const tdm_extractor *extractor)
{
    return extractor->input;
}

/* Adds `record` with the reason and the text of the span. */
static tdm_status add_bad(extraction *run, tdm_bad_record record, tdm_span span, const char *reason)
{
    tdm_extract *out = run->out;
    TDM_TRY(tdm_grow(&out->bad, &out->bad_capacity, out->bad_count + 1, sizeof *out->bad));
    size_t bytes = span.end - span.begin;
    if (bytes > TDM_BAD_RECORD_BYTES)
        bytes = TDM_BAD_RECORD_BYTES;
    tdm_bad_record *bad = &out->bad[out->bad_count];
    *bad = record;
    bad->file = run->file;
    bad->text_bytes = bytes;
    TDM_TRY(tdm_strdup(reason, &bad->reason));
    tdm_status status = tdm_strndup(run->text->text + span.begin, bytes, &bad->text);
    if (status != TDM_OK)
        tdm_free(bad->reason);
    else
        out->bad_count++;
    return status;
}

/* From the format, in any order; number_records tells which record it is. */
static void reject_line(void *context, uint32_t line, tdm_span span, int32_t column,
                        const char *reason, tdm_bad_kind kind)
{
    extraction *run = context;
    const tdm_bad_record bad = {.line = line, .record = -1, .column = column, .kind = kind};
    if (run->status == TDM_OK)
        run->status = add_bad(run, bad, span, reason);
}

/* From the featurizer: only the first refusal of a record counts. */
static void reject_record(void *context, int64_t record, int32_t column, const char *reason)
{
    extraction *run = context;
    parse_scratch *scratch = run->scratch;
    if (run->status != TDM_OK || scratch->refused[record])
        return;
    scratch->refused[record] = true;
    const tdm_bad_record bad = {.line = scratch->record_lines[record],
                                .record = scratch->record_numbers[record],
                                .column = column};
    run->status = add_bad(run, bad, scratch->record_spans[record], reason);
}

static int by_line(const void *a, const void *b)
{
    int64_t left = ((const tdm_bad_record *)a)->line;
    int64_t right = ((const tdm_bad_record *)b)->line;
    return (left > right) - (left < right);
}

static int by_record(const void *a, const void *b)
{
    int64_t left = ((const tdm_bad_record *)a)->record;
    int64_t right = ((const tdm_bad_record *)b)->record;
    return (left > right) - (left < right);
}

/* Numbers the chunk's good records and those that the format refused, by their lines. */
static void number_records(extraction *run)
{
    parse_scratch *scratch = run->scratch;
    size_t bad_count = run->out->bad_count - run->chunk_bad;
    tdm_bad_record *bad = bad_count == 0 ? NULL : run->out->bad + run->chunk_bad;
    int64_t number = run->out->records;
    size_t refused = 0;
    if (bad_count > 1)
        qsort(bad, bad_count, sizeof *bad, by_line);
    for (int64_t i = 0; i < run->parse.count; i++) {
        while (refused < bad_count && bad[refused].line < scratch->record_lines[i])
            bad[refused++].record = number++;
        scratch->record_numbers[i] = (uint32_t)number++;
    }
    while (refused < bad_count)
        bad[refused++].record = number++;
}

static bool is_selected(const tdm_extractor *extractor, const char *text, tdm_span span)
{
    size_t bytes = span.end - span.begin;
    if (bytes > 0 && text[span.end - 1] == '\r')
        bytes--;
    bool held_out = XXH3_64bits(text + span.begin, bytes) < extractor->hold_out_below;
    return held_out == (extractor->selection == TDM_SELECT_HELD_OUT);
}

/* Keeps the records that are wanted, moved to the front. */
static void select_records(extraction *run)
{
    const tdm_extractor *extractor = run->extractor;
    if (extractor->selection == TDM_SELECT_ALL)
        return;
    parse_scratch *scratch = run->scratch;
    size_t columns = (size_t)tdm_input_format(extractor->input)->column_count;
    int64_t kept = 0;
    for (int64_t i = 0; i < run->parse.count; i++) {
        if (!is_selected(extractor, run->text->text, scratch->record_spans[i]))
            continue;
        if (kept != i) {
            memcpy(scratch->cells + (size_t)kept * columns, scratch->cells + (size_t)i * columns,
                   columns * sizeof *scratch->cells);
            scratch->record_spans[kept] = scratch->record_spans[i];
            scratch->record_lines[kept] = scratch->record_lines[i];
            scratch->record_numbers[kept] = scratch->record_numbers[i];
        }
        kept++;
    }
    run->parse.count = kept;
}

/* Behind the keys of the records before. */
static tdm_status keep_record(extraction *run, size_t record)
{
    const tdm_extractor *extractor = run->extractor;
    tdm_extract *out = run->out;
    size_t columns = (size_t)tdm_input_format(extractor->input)->column_count;
    const tdm_span *cells = run->scratch->cells + record * columns;
    uint64_t end = out->key_count == 0 ? 0 : out->key_ends[out->key_count - 1];
    size_t room = 0;
    for (int k = 0; k < extractor->kept_count; k++) {
        tdm_span cell = cells[extractor->kept_columns[k]];
        room += tdm_csv_cell_most(cell.end - cell.begin) + 1;
    }
    TDM_TRY(tdm_grow(&out->keys, &out->keys_capacity, end + room, 1));
    TDM_TRY(tdm_grow(&out->key_ends, &out->key_ends_capacity, (size_t)out->key_count + 1,
                     sizeof *out->key_ends));
    char *to = out->keys + end;
    for (int k = 0; k < extractor->kept_count; k++) {
        tdm_span cell = cells[extractor->kept_columns[k]];
        const char *text = run->parse.cell_text + cell.begin;
        size_t bytes = cell.end - cell.begin;
        if (k > 0)
            *to++ = ',';
        to = extractor->keeps_text ? mempcpy(to, text, bytes) : tdm_csv_cell_write(to, text, bytes);
    }
    out->key_ends[out->key_count++] = (uint64_t)(to - out->keys);
    return TDM_OK;
}

static tdm_status keep_cells(extraction *run, bool row_is_record, int64_t rows)
{
    const parse_scratch *scratch = run->scratch;
    for (int64_t i = 0; row_is_record && i < rows; i++)
        TDM_TRY(keep_record(run, scratch->row_records[i]));
    for (int64_t r = 0; !row_is_record && r < run->parse.count; r++) {
        if (!scratch->refused[r])
            TDM_TRY(keep_record(run, (size_t)r));
    }
    return TDM_OK;
}

static tdm_status extract_chunk(extraction *run)
{
    const tdm_featurizer *featurizer = run->extractor->featurizer;
    parse_scratch *scratch = run->scratch;
    tdm_extract *out = run->out;
    int64_t parsed = run->parse.count + (int64_t)(out->bad_count - run->chunk_bad);
    number_records(run);
    select_records(run);
    tdm_records records = {
        .struct_size = sizeof records,
        .columns = (uint32_t)tdm_input_format(run->extractor->input)->column_count,
        .count = run->parse.count,
        .text = run->parse.cell_text,
        .cells = scratch->cells,
    };
    memset(scratch->refused, 0, sizeof scratch->refused);
    bool row_is_record = !featurizer->columns.rows_are_pieces;
    int64_t rows = 0;
    if (records.count > 0) {
        if (row_is_record)
            TDM_TRY(tdm_extract_reserve(&featurizer->columns, out,
                                        (size_t)(out->rows + records.count)));
        TDM_TRY(featurizer->type->extract(featurizer, &records, out,
                                          row_is_record ? scratch->row_records : NULL, &rows,
                                          reject_record, run));
    }
    TDM_TRY(run->status);
    if (run->extractor->kept_count > 0)
        TDM_TRY(keep_cells(run, row_is_record, rows));
    for (int64_t i = 0; row_is_record && i < rows; i++)
        out->row_records[out->rows + i] = scratch->record_numbers[scratch->row_records[i]];
    out->rows += rows;
    out->records += parsed;
    return TDM_OK;
}

static void skip_header(extraction *run, const tdm_block_part *part)
{
    tdm_parse *parse = &run->parse;
    if (part->first_line != 0 || !parse->layout->header)
        return;
    const char *newline = memchr(parse->text + parse->cursor, '\n', parse->size - parse->cursor);
    parse->cursor = newline == NULL ? parse->size : (uint32_t)(newline - parse->text) + 1;
    parse->line = 1;
}

static tdm_status extract_part(extraction *run, size_t number)
{
    const tdm_extractor *extractor = run->extractor;
    const tdm_record_format *format = tdm_input_format(extractor->input);
    const tdm_block_part *part = &run->text->parts[number];
    parse_scratch *scratch = run->scratch;
    run->file = part->file;
    run->parse = (tdm_parse){
        .text = run->text->text,
        .size = tdm_block_part_end(run->text, number),
        .layout = &tdm_input_file_get(extractor->input, part->file)->layout,
        .max_record_bytes = tdm_input_max_record_bytes(extractor->input),
        .cells = scratch->cells,
        .record_spans = scratch->record_spans,
        .record_lines = scratch->record_lines,
        .capacity = TDM_PARSE_RECORDS,
        .separators = scratch->separators,
        .scratch = &scratch->text,
        .reject = reject_line,
        .context = run,
        .cursor = part->begin,
        .cell_text = run->text->text,
    };
    skip_header(run, part);
    do {
        run->chunk_bad = run->out->bad_count;
        TDM_TRY(format->type->parse(format, &run->parse));
        TDM_TRY(run->status);
        TDM_TRY(extract_chunk(run));
    } while (run->parse.cursor < run->parse.size);
    run->out->lines += run->parse.line;
    run->out->encoding_errors += run->parse.encoding_errors;
    return TDM_OK;
}

tdm_status tdm_extract_block(tdm_extractor *extractor, const tdm_block_text *text, tdm_extract *out)
{
    extraction run = {
        .extractor = extractor,
        .text = text,
        .scratch = extractor->scratch[tdm_pool_thread_index()],
        .out = out,
    };
    tdm_extract_clear(out);
    out->block = text->block;
    out->file = text->parts[0].file;
    out->stored_bytes = text->stored_bytes;
    out->first_line = text->parts[0].first_line;
    for (size_t i = 0; i < text->part_count; i++)
        TDM_TRY(extract_part(&run, i));
    if (out->bad_count > 1)
        qsort(out->bad, out->bad_count, sizeof *out->bad, by_record);
    if (tdm_input_seekable(extractor->input))
        tdm_input_note_lines(extractor->input, text->block, out->lines);
    return TDM_OK;
}
