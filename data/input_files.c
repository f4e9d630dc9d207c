/* What is asked of every file of an input before it is read: its kind, identity and first line. */
#include "core/memory.h"
#include "data/input_internal.h"
#include "data/utf8.h"

#include <pthread.h>
#include <string.h>

#define FIRST_LINE_BYTES ((size_t)1 << 20)

/* Reads until a line end, the end of the file or FIRST_LINE_BYTES. */
static tdm_status read_head(tdm_source *source, char **head, size_t *bytes)
{
    size_t capacity = 0;
    while (*bytes < FIRST_LINE_BYTES) {
        size_t wanted = *bytes == 0 ? 4096 : *bytes;
        if (wanted > FIRST_LINE_BYTES - *bytes)
            wanted = FIRST_LINE_BYTES - *bytes;
        size_t got;
        TDM_TRY(tdm_grow(head, &capacity, *bytes + wanted, 1));
        TDM_TRY(tdm_source_read(source, *head + *bytes, wanted, &got));
        *bytes += got;
        if (got == 0 || memchr(*head + *bytes - got, '\n', got) != NULL)
            break;
    }
    return TDM_OK;
}

static tdm_status use_head(tdm_input *input, tdm_input_file *file, const tdm_input_options *options,
                           const char *head, size_t bytes)
{
    size_t mark = tdm_byte_order_mark(head, bytes);
    file->mark_bytes = (int64_t)mark;
    const char *line = head + mark;
    const char *end = memchr(line, '\n', bytes - mark);
    size_t length = end == NULL ? bytes - mark : (size_t)(end - line);
    if (length > 0 && line[length - 1] == '\r')
        length--;
    if (bytes == 0)
        return tdm_file_layout_identity(1, 0, &file->layout);
    size_t longest = (size_t)input->max_record_bytes;
    if (longest >= FIRST_LINE_BYTES)
        longest = FIRST_LINE_BYTES - 1;
    if (input->format == NULL) {
        TDM_TRY(
            tdm_record_format_create(options->format, file->path, line, length, &input->format));
        input->owns_format = true;
    }
    TDM_TRY(input->format->type->open_file(input->format, file->path, line, length, &file->layout));
    TDM_FAIL_IF(file->layout.header && length > longest, TDM_E_DATA,
                "%s:1: the header is longer than %zu bytes", file->path, longest);
    return TDM_OK;
}

/* Opens a file once: its kind, identity and first line. */
static tdm_status look_at_file(tdm_input *input, int32_t index, const tdm_input_options *options)
{
    tdm_input_file *file = &input->files[index];
    tdm_source *source = NULL;
    char *head = NULL;
    size_t bytes = 0;
    tdm_status status;
    TDM_TRY(tdm_source_open(file->path, input->cancel, &source));
    if (input->eager)
        tdm_source_set_eager(source);
    TDM_TRY_GOTO(read_head(source, &head, &bytes), out);
    TDM_TRY_GOTO(use_head(input, file, options, head, bytes), out);
    if (!tdm_source_identity(source, &file->bytes, &file->modified_ns)) {
        input->once[index] = (tdm_once){source, head, bytes};
        return TDM_OK;
    }
    file->seekable = tdm_source_compression(source) == TDM_COMPRESSION_NONE;
out:
    tdm_source_close(source);
    tdm_free(head);
    return status;
}

/* ---- many files side by side ----------------------------------------------------------------- */

#define TILE_FILES 64

typedef struct looking {
    tdm_input *input;
    const tdm_input_options *options;
    int32_t first; /* of the first tile */
    pthread_mutex_t lock;
    int32_t failed; /* the first file that failed */
    tdm_error error;
} looking;

static void look_at_tile(void *context, int64_t tile)
{
    looking *look = context;
    int32_t begin = look->first + (int32_t)tile * TILE_FILES;
    for (int32_t i = begin; i < look->input->file_count && i < begin + TILE_FILES; i++) {
        tdm_status status = look_at_file(look->input, i, look->options);
        if (status == TDM_OK)
            continue;
        pthread_mutex_lock(&look->lock);
        if (i < look->failed) {
            look->failed = i;
            look->error.status = TDM_OK;
            tdm_error_keep(&look->error, status);
        }
        pthread_mutex_unlock(&look->lock);
        return;
    }
}

tdm_status tdm_input_look_at_files(tdm_input *input, const tdm_input_options *options)
{
    int32_t first = 0;
    /* The first file with a line tells the format, which the others need. */
    while (first < input->file_count &&
           (first == 0 || input->format == NULL || options->pool == NULL))
        TDM_TRY(look_at_file(input, first++, options));
    int64_t tiles = (input->file_count - first + TILE_FILES - 1) / TILE_FILES;
    looking look = {.input = input,
                    .options = options,
                    .first = first,
                    .lock = PTHREAD_MUTEX_INITIALIZER,
                    .failed = input->file_count};
    if (tiles > 0)
        tdm_pool_for(options->pool, tiles, look_at_tile, &look);
    pthread_mutex_destroy(&look.lock);
    return tdm_error_raise(&look.error);
}
