#include "core/safetensors.h"

#include "core/file.h"
#include "core/file_reader.h"
#include "core/memory.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_BYTES 8
#define METADATA_KEY "__metadata__"

struct tdm_safetensors {
    tdm_file_reader reader;
    json_t *header; /* owns the names */
    const json_t *metadata;
    tdm_safetensors_tensor *tensors;
    int count;
    int64_t data_start; /* of all tensors, in the file */
    int64_t data_bytes;
};

static tdm_status damaged(const tdm_safetensors *file, const char *format, ...) TDM_PRINTF(2, 3);

static tdm_status damaged(const tdm_safetensors *file, const char *format, ...)
{
    char text[TDM_ERROR_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return tdm_fail(TDM_E_FORMAT, "%s: damaged, or not a safetensors file: %s", file->reader.path,
                    text);
}

/* ---- the file -------------------------------------------------------------------------------- */

static tdm_status check_header_bytes(const tdm_safetensors *file, uint64_t header_bytes)
{
    int64_t file_bytes = file->reader.bytes;
    if (header_bytes > (uint64_t)TDM_SAFETENSORS_MAX_HEADER)
        return damaged(file, "the header claims %llu bytes, more than the %lld allowed",
                       (unsigned long long)header_bytes, (long long)TDM_SAFETENSORS_MAX_HEADER);
    if ((int64_t)header_bytes > file_bytes - LENGTH_BYTES)
        return damaged(file, "the header claims %llu bytes, and the file has %lld in all",
                       (unsigned long long)header_bytes, (long long)file_bytes);
    return TDM_OK;
}

static tdm_status parse_json(tdm_safetensors *file, const char *text, size_t bytes)
{
    json_error_t error;
    /* The format wants the brace first; JSON would allow blanks before it. */
    if (bytes == 0 || text[0] != '{')
        return damaged(file, "the header does not begin with {");
    file->header = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (file->header == NULL && json_error_code(&error) == json_error_out_of_memory)
        return tdm_fail(TDM_E_NOMEM, "%s: out of memory for its header", file->reader.path);
    if (file->header == NULL)
        return damaged(file, "byte %d of the header: %s", error.position, error.text);
    return TDM_OK;
}

static tdm_status read_header(tdm_safetensors *file)
{
    if (file->reader.bytes < LENGTH_BYTES)
        return damaged(file, "it has %lld bytes", (long long)file->reader.bytes);
    unsigned char length[LENGTH_BYTES];
    TDM_TRY(tdm_file_reader_read(&file->reader, 0, length, sizeof length));
    uint64_t header_bytes = 0;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--)
        header_bytes = header_bytes << 8 | length[i];
    TDM_TRY(check_header_bytes(file, header_bytes));
    file->data_start = LENGTH_BYTES + (int64_t)header_bytes;
    file->data_bytes = file->reader.bytes - file->data_start;

    char *text;
    TDM_TRY(tdm_alloc((size_t)header_bytes, 1, &text));
    tdm_status status =
        tdm_file_reader_read(&file->reader, LENGTH_BYTES, text, (size_t)header_bytes);
    if (status == TDM_OK)
        status = parse_json(file, text, (size_t)header_bytes);
    tdm_free(text);
    return status;
}

/* ---- the header ------------------------------------------------------------------------------ */

static tdm_status parse_metadata(tdm_safetensors *file, json_t *metadata)
{
    if (!json_is_object(metadata))
        return damaged(file, METADATA_KEY " is not an object");
    const char *key;
    json_t *value;
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return damaged(file, METADATA_KEY ": \"%s\" is not a string", key);
    }
    file->metadata = metadata;
    return TDM_OK;
}

static tdm_status parse_dtype(const tdm_safetensors *file, const json_t *value,
                              tdm_safetensors_tensor *tensor)
{
    static const char *const others[] = {"BOOL", "I8", "I16", "F8_E4M3", "F8_E5M2"};
    const char *name = json_string_value(value);
    if (name == NULL)
        return damaged(file, "tensor \"%s\" has no dtype", tensor->name);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        TDM_FAIL_IF(strcmp(name, others[i]) == 0, TDM_E_UNSUPPORTED,
                    "%s: tensor \"%s\": element type %s is not supported", file->reader.path,
                    tensor->name, name);
    }
    if (tdm_dtype_from_name(name, &tensor->dtype) != TDM_OK)
        return damaged(file, "tensor \"%s\": unknown element type \"%s\"", tensor->name, name);
    return TDM_OK;
}

static tdm_status parse_shape(const tdm_safetensors *file, const json_t *value,
                              tdm_safetensors_tensor *tensor)
{
    if (!json_is_array(value))
        return damaged(file, "tensor \"%s\" has no shape", tensor->name);
    TDM_FAIL_IF(json_array_size(value) > TDM_MAX_RANK, TDM_E_UNSUPPORTED,
                "%s: tensor \"%s\" has %zu dimensions, more than the %d supported",
                file->reader.path, tensor->name, json_array_size(value), TDM_MAX_RANK);
    tensor->shape.rank = (int)json_array_size(value);
    for (int i = 0; i < tensor->shape.rank; i++) {
        const json_t *size = json_array_get(value, (size_t)i);
        if (!json_is_integer(size) || json_integer_value(size) < 0)
            return damaged(file, "tensor \"%s\": dimension %d is not a size", tensor->name, i);
        tensor->shape.sizes[i] = json_integer_value(size);
    }
    return TDM_OK;
}

/* Bytes of a tensor; false where a size is negative or they do not fit an int64_t. */
static bool tensor_bytes(tdm_dtype dtype, const tdm_shape *shape, int64_t *bytes)
{
    *bytes = (int64_t)tdm_dtype_size(dtype);
    for (int i = 0; i < shape->rank; i++) {
        if (shape->sizes[i] < 0 || __builtin_mul_overflow(*bytes, shape->sizes[i], bytes))
            return false;
    }
    return true;
}

static tdm_status parse_offsets(const tdm_safetensors *file, const json_t *value,
                                tdm_safetensors_tensor *tensor)
{
    const json_t *first = json_array_get(value, 0), *last = json_array_get(value, 1);
    if (json_array_size(value) != 2 || !json_is_integer(first) || !json_is_integer(last))
        return damaged(file, "tensor \"%s\" has no data_offsets", tensor->name);
    int64_t begin = json_integer_value(first), end = json_integer_value(last);
    if (begin < 0 || end < begin || end > file->data_bytes)
        return damaged(file,
                       "tensor \"%s\": data_offsets [%lld, %lld] lie outside of the %lld "
                       "bytes of data",
                       tensor->name, (long long)begin, (long long)end, (long long)file->data_bytes);
    int64_t bytes;
    if (!tensor_bytes(tensor->dtype, &tensor->shape, &bytes) || bytes != end - begin)
        return damaged(file, "tensor \"%s\": its shape does not fit its %lld bytes of data",
                       tensor->name, (long long)(end - begin));
    tensor->offset = begin;
    tensor->bytes = bytes;
    return TDM_OK;
}

static tdm_status parse_tensor(const tdm_safetensors *file, const char *name, const json_t *value,
                               tdm_safetensors_tensor *tensor)
{
    tensor->name = name;
    if (!json_is_object(value) || json_object_size(value) != 3)
        return damaged(file, "tensor \"%s\" is not described by dtype, shape and data_offsets",
                       name);
    TDM_TRY(parse_dtype(file, json_object_get(value, "dtype"), tensor));
    TDM_TRY(parse_shape(file, json_object_get(value, "shape"), tensor));
    return parse_offsets(file, json_object_get(value, "data_offsets"), tensor);
}

static int compare_places(const void *a, const void *b)
{
    const tdm_safetensors_tensor *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int compare_names(const void *a, const void *b)
{
    const tdm_safetensors_tensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* The tensors, one behind the other, must be all of the data. Makes offsets those of the file. */
static tdm_status place_tensors(tdm_safetensors *file)
{
    qsort(file->tensors, (size_t)file->count, sizeof *file->tensors, compare_places);
    int64_t end = 0;
    for (int i = 0; i < file->count; i++) {
        tdm_safetensors_tensor *tensor = &file->tensors[i];
        if (tensor->offset != end)
            return damaged(file,
                           "tensor \"%s\" begins at byte %lld of the data, not at %lld where "
                           "the one before it ends",
                           tensor->name, (long long)tensor->offset, (long long)end);
        end += tensor->bytes;
        tensor->offset += file->data_start;
    }
    if (end != file->data_bytes)
        return damaged(file, "its tensors have %lld bytes, its data %lld", (long long)end,
                       (long long)file->data_bytes);
    qsort(file->tensors, (size_t)file->count, sizeof *file->tensors, compare_names);
    return TDM_OK;
}

static tdm_status parse_header(tdm_safetensors *file)
{
    const char *key;
    json_t *value;
    TDM_TRY(tdm_alloc(json_object_size(file->header) + 1, sizeof *file->tensors, &file->tensors));
    json_object_foreach(file->header, key, value)
    {
        if (strcmp(key, METADATA_KEY) == 0)
            TDM_TRY(parse_metadata(file, value));
        else
            TDM_TRY(parse_tensor(file, key, value, &file->tensors[file->count++]));
    }
    return place_tensors(file);
}

/* ---- reading --------------------------------------------------------------------------------- */

tdm_status tdm_safetensors_open(const char *path, tdm_safetensors **out)
{
    *out = NULL;
    tdm_safetensors *file;
    TDM_TRY(tdm_alloc(1, sizeof *file, &file));
    tdm_status status;
    TDM_TRY_GOTO(tdm_file_reader_open(path, &file->reader), fail);
    TDM_TRY_GOTO(read_header(file), fail);
    TDM_TRY_GOTO(parse_header(file), fail);
    *out = file;
    return TDM_OK;
fail:
    tdm_safetensors_close(file);
    return status;
}

void tdm_safetensors_close(tdm_safetensors *file)
{
    if (file == NULL)
        return;
    json_decref(file->header);
    tdm_free(file->tensors);
    tdm_file_reader_close(&file->reader);
    tdm_free(file);
}

int tdm_safetensors_count(const tdm_safetensors *file)
{
    return file->count;
}

const tdm_safetensors_tensor *tdm_safetensors_get(const tdm_safetensors *file, int index)
{
    return &file->tensors[index];
}

int tdm_safetensors_find(const tdm_safetensors *file, const char *name)
{
    const tdm_safetensors_tensor key = {.name = name};
    const tdm_safetensors_tensor *found =
        bsearch(&key, file->tensors, (size_t)file->count, sizeof *file->tensors, compare_names);
    return found == NULL ? -1 : (int)(found - file->tensors);
}

const char *tdm_safetensors_metadata(const tdm_safetensors *file, const char *key)
{
    return json_string_value(json_object_get(file->metadata, key));
}

tdm_status tdm_safetensors_read(const tdm_safetensors *file, int index, int64_t offset,
                                void *buffer, size_t bytes)
{
    const tdm_safetensors_tensor *tensor = &file->tensors[index];
    TDM_FAIL_IF(offset < 0 || offset > tensor->bytes || bytes > (size_t)(tensor->bytes - offset),
                TDM_E_ARG, "%s: tensor \"%s\" has %lld bytes: %zu bytes from %lld on are asked for",
                file->reader.path, tensor->name, (long long)tensor->bytes, bytes,
                (long long)offset);
    return tdm_file_reader_read(&file->reader, tensor->offset + offset, buffer, bytes);
}

/* ---- writing --------------------------------------------------------------------------------- */

static int compare_sources(const void *a, const void *b)
{
    const tdm_safetensors_source *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static tdm_status sort_sources(const char *path, const tdm_safetensors_source *sources, int count,
                               const tdm_safetensors_source ***out)
{
    TDM_TRY(tdm_alloc((size_t)count + 1, sizeof **out, out));
    const tdm_safetensors_source **sorted = *out;
    for (int i = 0; i < count; i++)
        sorted[i] = &sources[i];
    qsort(sorted, (size_t)count, sizeof *sorted, compare_sources);
    for (int i = 0; i < count; i++) {
        TDM_FAIL_IF(strcmp(sorted[i]->name, METADATA_KEY) == 0, TDM_E_ARG,
                    "%s: a tensor cannot be called " METADATA_KEY, path);
        TDM_FAIL_IF(i > 0 && strcmp(sorted[i - 1]->name, sorted[i]->name) == 0, TDM_E_ARG,
                    "%s: two tensors are called \"%s\"", path, sorted[i]->name);
    }
    return TDM_OK;
}

/* jansson answers NULL and -1 for texts that are no UTF-8 as for want of memory. */
static tdm_status json_refused(const char *path, const char *name)
{
    return tdm_fail(TDM_E_ARG, "%s: \"%s\": out of memory, or text that is not UTF-8", path, name);
}

static tdm_status add_metadata(const char *path, const tdm_safetensors_text *metadata, int count,
                               json_t *header)
{
    if (count == 0)
        return TDM_OK;
    json_t *texts = json_object();
    if (json_object_set_new(header, METADATA_KEY, texts) != 0)
        return json_refused(path, METADATA_KEY);
    for (int i = 0; i < count; i++) {
        if (json_object_set_new(texts, metadata[i].key, json_string(metadata[i].value)) != 0)
            return json_refused(path, metadata[i].key);
    }
    return TDM_OK;
}

/* Appends the description of a tensor whose data begins at *offset, and moves that behind it. */
static tdm_status add_tensor(const char *path, const tdm_safetensors_source *source, json_t *header,
                             int64_t *offset)
{
    int64_t bytes, end;
    TDM_FAIL_IF(!tensor_bytes(source->dtype, &source->shape, &bytes) ||
                    __builtin_add_overflow(*offset, bytes, &end),
                TDM_E_ARG, "%s: tensor \"%s\": not a shape that fits a file", path, source->name);
    json_t *shape = json_array();
    int failed = 0;
    for (int i = 0; i < source->shape.rank; i++)
        failed |= json_array_append_new(shape, json_integer(source->shape.sizes[i]));
    json_t *tensor =
        json_pack("{s:s, s:o, s:[I, I]}", "dtype", tdm_dtype_name(source->dtype), "shape", shape,
                  "data_offsets", (json_int_t)*offset, (json_int_t)end);
    if (failed != 0 || json_object_set_new(header, source->name, tensor) != 0) {
        if (failed != 0)
            json_decref(tensor);
        return json_refused(path, source->name);
    }
    *offset = end;
    return TDM_OK;
}

/* Length and JSON, with blanks behind it so that the data is aligned. */
static tdm_status write_header(tdm_file_writer *writer, const char *path, const json_t *header)
{
    size_t json_bytes = json_dumpb(header, NULL, 0, JSON_COMPACT);
    TDM_FAIL_IF(json_bytes == 0, TDM_E_NOMEM, "%s: out of memory for its header", path);
    size_t padded = (LENGTH_BYTES + json_bytes + TDM_ALIGNMENT - 1) / TDM_ALIGNMENT * TDM_ALIGNMENT;
    size_t header_bytes = padded - LENGTH_BYTES;
    TDM_FAIL_IF(header_bytes > (size_t)TDM_SAFETENSORS_MAX_HEADER, TDM_E_ARG,
                "%s: its header needs %zu bytes, more than the format allows", path, header_bytes);
    char *text;
    TDM_TRY(tdm_alloc(padded, 1, &text));
    for (int i = 0; i < LENGTH_BYTES; i++)
        text[i] = (char)(header_bytes >> (8 * i) & 0xff);
    memset(text + LENGTH_BYTES, ' ', header_bytes);
    json_dumpb(header, text + LENGTH_BYTES, json_bytes, JSON_COMPACT);
    tdm_status status = tdm_file_writer_write(writer, text, padded);
    tdm_free(text);
    return status;
}

static tdm_status write_tensor(tdm_file_writer *writer, const char *path,
                               const tdm_safetensors_source *source)
{
    int64_t bytes;
    tensor_bytes(source->dtype, &source->shape, &bytes);
    if (source->data != NULL)
        return tdm_file_writer_write(writer, source->data, (size_t)bytes);
    TDM_FAIL_IF(source->next == NULL && bytes > 0, TDM_E_ARG, "%s: tensor \"%s\" has no data", path,
                source->name);
    for (int64_t offset = 0, part; offset < bytes; offset += part) {
        const void *piece = NULL;
        part = 0;
        tdm_status status = source->next(source->context, offset, &piece, &part);
        if (status != TDM_OK)
            return tdm_fail_context(status, "%s: tensor \"%s\"", path, source->name);
        TDM_FAIL_IF(part <= 0 || part > bytes - offset, TDM_E_ARG,
                    "%s: tensor \"%s\": a piece of %lld bytes where %lld are left", path,
                    source->name, (long long)part, (long long)(bytes - offset));
        TDM_TRY(tdm_file_writer_write(writer, piece, (size_t)part));
    }
    return TDM_OK;
}

static tdm_status write_file(tdm_file_writer *writer, const char *path,
                             const tdm_safetensors_source *const *sorted, int count,
                             const tdm_safetensors_text *metadata, int metadata_count)
{
    json_t *header = json_object();
    int64_t offset = 0;
    tdm_status status;
    TDM_TRY_GOTO(add_metadata(path, metadata, metadata_count, header), done);
    for (int i = 0; i < count; i++)
        TDM_TRY_GOTO(add_tensor(path, sorted[i], header, &offset), done);
    TDM_TRY_GOTO(write_header(writer, path, header), done);
    for (int i = 0; i < count; i++)
        TDM_TRY_GOTO(write_tensor(writer, path, sorted[i]), done);
done:
    json_decref(header);
    return status;
}

tdm_status tdm_safetensors_write(const char *path, const tdm_safetensors_source *sources, int count,
                                 const tdm_safetensors_text *metadata, int metadata_count,
                                 uint64_t *hash, int64_t *bytes)
{
    const tdm_safetensors_source **sorted = NULL;
    tdm_file_writer *writer = NULL;
    tdm_status status;
    TDM_TRY_GOTO(sort_sources(path, sources, count, &sorted), done);
    TDM_TRY_GOTO(tdm_file_writer_open(path, &writer), done);
    TDM_TRY_GOTO(write_file(writer, path, sorted, count, metadata, metadata_count), done);
    TDM_TRY_GOTO(tdm_file_writer_commit(writer, hash, bytes), done);
done:
    tdm_file_writer_close(writer);
    tdm_free(sorted);
    return status;
}
