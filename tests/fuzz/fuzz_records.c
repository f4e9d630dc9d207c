/* Any bytes as records: the first byte says in which format, the second how large blocks are. Rows
 * and bad records are the same as with another size of blocks; where a record has several lines, so
 * that blocks may cut it, all that is not white space is the same. */
#include "core/memory.h"
#include "data/extract.h"
#include "features/ctr_featurizer.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST_RECORD_BYTES 300

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* What all inputs of one format share. */
typedef struct reader {
    tdm_record_format *format;
    tdm_config *config;     /* CTR */
    tdm_feature_spec *spec; /* CTR */
    const tdm_featurizer *featurizer;
} reader;

typedef struct output {
    unsigned char *bytes;
    size_t size, capacity;
} output;

static void add(output *out, const void *bytes, size_t size)
{
    require(tdm_grow(&out->bytes, &out->capacity, out->size + size + 1, 1) == TDM_OK);
    if (size > 0)
        memcpy(out->bytes + out->size, bytes, size);
    out->size += size;
}

/* ---- text ------------------------------------------------------------------------------------ */

static output *text_output; /* of the records */
static bool keeps_records;  /* apart, with their white space */

static tdm_status take_text(const tdm_featurizer *featurizer, const tdm_records *records,
                            tdm_extract *out, uint32_t *row_records, int64_t *rows,
                            void (*reject)(void *context, int64_t record, int32_t column,
                                           const char *reason),
                            void *context)
{
    (void)featurizer;
    (void)out;
    (void)reject;
    (void)context;
    for (int64_t i = 0; i < records->count; i++) {
        const char *text = records->text + records->cells[i].begin;
        size_t bytes = records->cells[i].end - records->cells[i].begin;
        require(!tdm_text_is_blank(text, bytes));
        for (size_t b = 0; b < bytes; b++) {
            if (keeps_records || !tdm_text_is_blank(text + b, 1))
                add(text_output, text + b, 1);
        }
        if (keeps_records)
            add(text_output, "", 1);
        row_records[i] = (uint32_t)i;
    }
    *rows = records->count;
    return TDM_OK;
}

static const tdm_featurizer_type text_type = {.name = "text", .extract = take_text};
static const tdm_featurizer text_featurizer = {.type = &text_type};

static void make_text_reader(int format, tdm_documents documents, tdm_encoding_errors errors,
                             reader *out)
{
    const tdm_format_options options = {
        .type = format, .documents = (int)documents, .encoding_errors = (int)errors};
    require(tdm_record_format_create(&options, "f", "", 0, &out->format) == TDM_OK);
    out->featurizer = &text_featurizer;
}

/* ---- CTR ------------------------------------------------------------------------------------- */

static tdm_pool *pool;

static void make_reader(int format, tdm_header_mode header, reader *out)
{
    static char *names[] = {"label", "a", "b", "n"};
    static const char csv[] =
        "features: {fields: [{column: a}, {column: b, encoding: identity, buckets: 9}, "
        "{column: n, transform: ln_squared}], dense: [{column: n, transform: signed_log}]}";
    static const char criteo[] = "features: {fields: [{column: I1..I13, transform: ln_squared}, "
                                 "{column: C1..C26}], dense: [{column: I1..I13}]}";
    const char *recipe = format == 0 ? criteo : csv;
    tdm_format_options options = {.type = format, .header = (int)header, .columns = {names, 4}};
    tdm_feature_options features;
    require(tdm_record_format_create(&options, "f", "", 0, &out->format) == TDM_OK);
    require(tdm_config_parse(recipe, strlen(recipe), "r", NULL, 0, &out->config) == TDM_OK);
    const tdm_config_node *section = tdm_config_get(tdm_config_root(out->config), "features");
    require(tdm_config_bind(section, &tdm_feature_schema, &features) == TDM_OK);
    require(tdm_feature_spec_create(&features, section, out->format, &out->spec) == TDM_OK);
    tdm_config_unbind(&tdm_feature_schema, &features);
    tdm_featurizer *featurizer;
    require(tdm_ctr_featurizer_create(out->spec, out->format, pool, 16, TDM_CTR_TRAINING,
                                      &featurizer) == TDM_OK);
    out->featurizer = featurizer;
}

/* ---- reading --------------------------------------------------------------------------------- */

static const reader *reader_of(unsigned choice)
{
    static reader readers[8];
    if (pool == NULL) {
        require(tdm_pool_create(1, &pool) == TDM_OK);
        make_reader(0, TDM_HEADER_NO, &readers[0]);
        make_reader(1, TDM_HEADER_NO, &readers[1]);
        make_reader(1, TDM_HEADER_YES, &readers[2]);
        make_reader(2, TDM_HEADER_NO, &readers[3]);
        make_text_reader(3, TDM_DOCUMENTS_BLANK_LINE, TDM_ENCODING_REPLACE, &readers[4]);
        make_text_reader(3, TDM_DOCUMENTS_FILE, TDM_ENCODING_REPLACE, &readers[5]);
        make_text_reader(3, TDM_DOCUMENTS_LINE, TDM_ENCODING_FAIL, &readers[6]);
        make_text_reader(4, TDM_DOCUMENTS_LINE, TDM_ENCODING_REPLACE, &readers[7]);
    }
    return &readers[choice & 7];
}

static void add_block(tdm_input *input, const reader *from, const tdm_extract *extract,
                      output *rows, output *bad)
{
    for (int64_t r = 0; r < extract->rows; r++) {
        for (int c = 0; c < from->featurizer->columns.count; c++) {
            const tdm_column *column = &from->featurizer->columns.columns[c];
            size_t width = (size_t)column->width * tdm_dtype_size(column->dtype);
            add(rows, (char *)extract->columns[c] + (size_t)r * width, width);
        }
    }
    require(extract->rows + (int64_t)extract->bad_count == extract->records);
    int64_t lines;
    require(tdm_input_lines_before(input, extract->block, &lines) == TDM_OK);
    for (size_t i = 0; i < extract->bad_count; i++) {
        const tdm_bad_record *record = &extract->bad[i];
        int64_t line = lines + record->line;
        require(i == 0 || record->record > extract->bad[i - 1].record);
        add(bad, &line, sizeof line);
        add(bad, &record->column, sizeof record->column);
        add(bad, record->reason, strlen(record->reason));
        /* Of a record that is too long as much is kept as was read. */
        size_t bytes = record->text_bytes;
        add(bad, record->text, bytes < MOST_RECORD_BYTES ? bytes : MOST_RECORD_BYTES);
    }
}

static tdm_status read_all(const char *path, const reader *from, int64_t block_bytes, output *rows,
                           output *bad)
{
    tdm_strings paths = {.items = (char **)(uintptr_t)&path, .count = 1};
    tdm_input_options options = {.paths = &paths,
                                 .saved_format = from->format,
                                 .block_bytes = block_bytes,
                                 .lanes = 1,
                                 .max_record_bytes = MOST_RECORD_BYTES};
    tdm_input *input;
    tdm_extractor *extractor;
    TDM_TRY(tdm_input_open(&options, &input));
    tdm_block_text text = {0};
    tdm_extract extract = {0};
    text_output = rows;
    keeps_records = from->format->documents == TDM_DOCUMENTS_LINE;
    require(tdm_extractor_create(from->featurizer, input, pool, TDM_SELECT_ALL, 0, &extractor) ==
            TDM_OK);
    for (int64_t b = 0; b < tdm_input_block_count(input); b++) {
        require(tdm_input_read_block(input, b, &text) == TDM_OK);
        require(tdm_extract_block(extractor, &text, &extract) == TDM_OK);
        add_block(input, from, &extract, rows, bad);
    }
    tdm_extract_deinit(&extract);
    tdm_block_text_deinit(&text);
    tdm_extractor_destroy(extractor);
    tdm_input_close(input);
    return TDM_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int descriptor = -1;
    if (size < 2)
        return 0;
    if (descriptor < 0)
        descriptor = memfd_create("records", 0);
    require(descriptor >= 0 && ftruncate(descriptor, 0) == 0);
    require(pwrite(descriptor, data + 2, size - 2, 0) == (ssize_t)size - 2);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    const reader *from = reader_of(data[0]);
    /* Compressed bytes are those of fuzz_source. */
    if (size >= 4 && (memcmp(data + 2, "\x1f\x8b", 2) == 0 || (data[2] & 0xf0) == 0x50 ||
                      memcmp(data + 2, "\x28\xb5", 2) == 0))
        return 0;
    int64_t live = tdm_memory_stats_get().live_bytes;
    output rows[2] = {{0}}, bad[2] = {{0}};
    tdm_status a = read_all(path, from, 1 + data[1], &rows[0], &bad[0]);
    tdm_status b = read_all(path, from, 1 << 20, &rows[1], &bad[1]);
    require(a == b && (a == TDM_OK || a == TDM_E_DATA));
    require(rows[0].size == rows[1].size && bad[0].size == bad[1].size);
    require(rows[0].size == 0 || memcmp(rows[0].bytes, rows[1].bytes, rows[0].size) == 0);
    require(bad[0].size == 0 || memcmp(bad[0].bytes, bad[1].bytes, bad[0].size) == 0);
    for (int i = 0; i < 2; i++) {
        tdm_free(rows[i].bytes);
        tdm_free(bad[i].bytes);
    }
    require(tdm_memory_stats_get().live_bytes == live);
    return 0;
}
