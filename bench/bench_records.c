/* bench_records THREADS FORMAT FILE...: seconds to open the files, and to read and parse all of
 * their blocks, features aside. FORMAT is text, with a document a line, or another name of
 * data.format. */
#include "core/clock.h"
#include "core/memory.h"
#include "data/block_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void need(tdm_status status)
{
    if (status == TDM_OK)
        return;
    fprintf(stderr, "%s\n", tdm_error_message());
    exit(1);
}

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

static const tdm_featurizer_type row_type = {.name = "rows", .extract = make_rows};
static const tdm_featurizer row_featurizer = {.type = &row_type};

static tdm_input *open_files(const char *format, char **files, int count, tdm_pool *pool)
{
    tdm_format_options options = {.documents = TDM_DOCUMENTS_LINE};
    while (tdm_record_format_names[options.type] != NULL &&
           strcmp(tdm_record_format_names[options.type], format) != 0)
        options.type++;
    if (tdm_record_format_names[options.type] == NULL) {
        fprintf(stderr, "%s: no format\n", format);
        exit(2);
    }
    const tdm_strings paths = {.items = files, .count = count};
    const tdm_input_options input_options = {.paths = &paths,
                                             .format = &options,
                                             .lanes = 16,
                                             .max_record_bytes = 64 << 20,
                                             .pool = pool};
    tdm_input *input;
    need(tdm_input_open(&input_options, &input));
    return input;
}

int main(int count, char **arguments)
{
    if (count < 4) {
        fprintf(stderr, "bench_records THREADS FORMAT FILE...\n");
        return 2;
    }
    tdm_pool *pool;
    tdm_extractor *extractor;
    tdm_block_stream *stream;
    tdm_extract *block;
    need(tdm_pool_create(atoi(arguments[1]), &pool));
    double start = tdm_clock_seconds();
    tdm_input *input = open_files(arguments[2], arguments + 3, count - 3, pool);
    double opened = tdm_clock_seconds();
    need(tdm_extractor_create(&row_featurizer, input, pool, TDM_SELECT_ALL, 0, &extractor));
    need(tdm_block_stream_open(extractor, pool, &stream));
    int64_t blocks = 0, rows = 0, bytes = 0;
    for (;; blocks++) {
        need(tdm_block_stream_next(stream, &block));
        if (block == NULL)
            break;
        rows += block->rows;
        bytes += block->stored_bytes;
    }
    double read = tdm_clock_seconds();
    printf("%d files, %lld blocks, %lld rows: opened in %.3f s, read in %.3f s, %.0f MB/s\n",
           tdm_input_file_count(input), (long long)blocks, (long long)rows, opened - start,
           read - opened, (double)bytes / 1e6 / (read - opened));
    tdm_block_stream_close(stream);
    tdm_extractor_destroy(extractor);
    tdm_input_close(input);
    tdm_pool_destroy(pool);
    return 0;
}
