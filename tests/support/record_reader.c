#include "tests/support/record_reader.h"

#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"

#include <string.h>

static tdm_status make_rows(const tdm_featurizer *featurizer, const tdm_records *records,
                            tdm_extract *out, uint32_t *row_records, int64_t *rows,
                            void (*reject)(void *context, int64_t record, int32_t column,
                                           const char *reason),
                            void *context)
{
    (void)featurizer;
    (void)out;
    (void)reject;
    (void)context;
    for (int64_t i = 0; i < records->count; i++)
        row_records[i] = (uint32_t)i;
    *rows = records->count;
    return TDM_OK;
}

static const tdm_featurizer_type row_featurizer_type = {.name = "rows", .extract = make_rows};
const tdm_featurizer tdm_row_featurizer = {.type = &row_featurizer_type};

/* ---- what was read --------------------------------------------------------------------------- */

static void add_bytes(tdm_text *text, const char *bytes, size_t size)
{
    ck_assert_ok(tdm_grow(&text->bytes, &text->capacity, text->length + size + 1, 1));
    if (size > 0)
        memcpy(text->bytes + text->length, bytes, size);
    text->length += size;
    text->bytes[text->length] = '\0';
}

static void add_bad(tdm_input *input, const tdm_extract *extract, const tdm_bad_record *bad,
                    tdm_text *text)
{
    static const char *const kinds[] = {"", "dropped ", "fatal "};
    int64_t line = bad->line + 1;
    if (bad->file == extract->file) {
        int64_t before = extract->first_line;
        if (before < 0)
            ck_assert_ok(tdm_input_lines_before(input, extract->block, &before));
        line += before;
    }
    const char *path = tdm_input_file_get(input, bad->file)->path;
    const char *slash = strrchr(path, '/');
    ck_assert_ok(tdm_text_printf(
        text, "%s%s:%lld: %s%s%s\n", kinds[bad->kind], slash == NULL ? path : slash + 1,
        (long long)line, bad->column < 0 ? "" : tdm_input_format(input)->columns[bad->column],
        bad->column < 0 ? "" : ": ", bad->reason));
}

static void add_extract(tdm_input *input, const tdm_extract *extract, tdm_records_read *out)
{
    uint64_t begin = 0;
    int64_t last = -1;
    for (int64_t r = 0; r < extract->rows; r++) {
        add_bytes(&out->records, "<", 1);
        add_bytes(&out->records, extract->keys + begin, extract->key_ends[r] - begin);
        add_bytes(&out->records, ">", 1);
        begin = extract->key_ends[r];
    }
    for (size_t i = 0; i < extract->bad_count; i++) {
        ck_assert_int_gt(extract->bad[i].record, last);
        last = extract->bad[i].record;
        add_bad(input, extract, &extract->bad[i], &out->bad);
    }
    out->rows += extract->rows;
    out->bad_count += (int64_t)extract->bad_count;
    out->encoding_errors += extract->encoding_errors;
    out->blocks++;
}

/* ---- reading --------------------------------------------------------------------------------- */

static tdm_status read_blocks(tdm_extractor *extractor, bool in_order, tdm_records_read *out)
{
    tdm_input *input = tdm_extractor_input(extractor);
    tdm_input_stream *stream = NULL;
    tdm_block_text text = {0};
    tdm_extract extract = {0};
    tdm_status status = TDM_OK;
    if (in_order || !tdm_input_seekable(input))
        TDM_TRY(tdm_input_stream_open(input, &stream));
    for (int64_t b = 0;; b++) {
        bool ended = stream == NULL && b == tdm_input_block_count(input);
        if (!ended && stream == NULL)
            TDM_TRY_GOTO(tdm_input_read_block(input, b, &text), done);
        else if (stream != NULL)
            TDM_TRY_GOTO(tdm_input_stream_next(stream, &text, &ended), done);
        if (ended)
            break;
        ck_assert_int_eq(text.block, b);
        TDM_TRY_GOTO(tdm_extract_block(extractor, &text, &extract), done);
        add_extract(input, &extract, out);
    }
done:
    tdm_input_stream_close(stream);
    tdm_block_text_deinit(&text);
    tdm_extract_deinit(&extract);
    return status;
}

static tdm_status read_input(const tdm_reading_options *options, tdm_input *input, tdm_pool *pool,
                             tdm_records_read *out)
{
    static const int32_t columns[] = {0, 1, 2, 3, 4, 5, 6, 7};
    int count = options->all_columns ? tdm_input_format(input)->column_count : 1;
    tdm_extractor *extractor;
    ck_assert_int_le(count, 8);
    TDM_TRY(tdm_extractor_create(&tdm_row_featurizer, input, pool, options->selection,
                                 options->hold_out, &extractor));
    tdm_status status = count == 1 ? tdm_extractor_keep_text(extractor, columns[0])
                                   : tdm_extractor_keep(extractor, columns, count);
    if (status == TDM_OK)
        status = read_blocks(extractor, options->in_order, out);
    tdm_extractor_destroy(extractor);
    return status;
}

tdm_status tdm_records_try_read(const tdm_reading_options *options, tdm_records_read *out)
{
    const tdm_strings paths = {.items = (char **)(uintptr_t)options->files,
                               .count = options->file_count};
    const tdm_input_options input_options = {
        .paths = &paths,
        .format = &options->format,
        .block_bytes = options->block_bytes == 0 ? 1 << 20 : options->block_bytes,
        .lanes = 1,
        .max_record_bytes = options->max_record_bytes == 0 ? 1 << 20 : options->max_record_bytes};
    tdm_pool *pool;
    tdm_input *input = NULL;
    *out = (tdm_records_read){0};
    add_bytes(&out->records, "", 0);
    add_bytes(&out->bad, "", 0);
    TDM_TRY(tdm_pool_create(1, &pool));
    tdm_status status = tdm_input_open(&input_options, &input);
    if (status == TDM_OK)
        status = read_input(options, input, pool, out);
    tdm_input_close(input);
    tdm_pool_destroy(pool);
    return status;
}

void tdm_records_read_all(const tdm_reading_options *options, tdm_records_read *out)
{
    ck_assert_ok(tdm_records_try_read(options, out));
}

void tdm_records_free(tdm_records_read *read)
{
    tdm_text_free(&read->records);
    tdm_text_free(&read->bad);
}

void tdm_records_of_bytes(const tdm_reading_options *options, const char *folder, const char *name,
                          const void *bytes, size_t size, tdm_records_read *out)
{
    char *path = tdm_data_rig_put(folder, name, bytes, size);
    tdm_reading_options of_file = *options;
    of_file.files = (const char *const *)&path;
    of_file.file_count = 1;
    tdm_records_read_all(&of_file, out);
    tdm_free(path);
}
