#include "tests/support/golden.h"

#include "tests/support/check_main.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct tdm_golden {
    unsigned char *bytes;
    const unsigned char *data; /* behind the header */
    json_t *header;
};

static unsigned char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s cannot be opened", path);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*size);
    ck_assert_ptr_nonnull(bytes);
    ck_assert_uint_eq(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

tdm_golden *tdm_golden_open(const char *path)
{
    char full[512];
    size_t size;
    uint64_t header_bytes;
    json_error_t error;
    snprintf(full, sizeof full, "%s/tests/golden/%s", TDM_SOURCE_DIR, path);
    tdm_golden *golden = calloc(1, sizeof *golden);
    ck_assert_ptr_nonnull(golden);
    golden->bytes = read_file(full, &size);
    memcpy(&header_bytes, golden->bytes, sizeof header_bytes);
    ck_assert_uint_le(sizeof header_bytes + header_bytes, size);
    golden->header =
        json_loadb((const char *)golden->bytes + sizeof header_bytes, header_bytes, 0, &error);
    ck_assert_msg(golden->header != NULL, "%s: %s", full, error.text);
    golden->data = golden->bytes + sizeof header_bytes + header_bytes;
    return golden;
}

void tdm_golden_close(tdm_golden *golden)
{
    json_decref(golden->header);
    free(golden->bytes);
    free(golden);
}

const void *tdm_golden_get(const tdm_golden *golden, const char *name, tdm_dtype dtype,
                           int64_t *elements)
{
    const json_t *tensor = json_object_get(golden->header, name);
    ck_assert_msg(tensor != NULL, "no tensor %s", name);
    ck_assert_str_eq(json_string_value(json_object_get(tensor, "dtype")), tdm_dtype_name(dtype));
    const json_t *offsets = json_object_get(tensor, "data_offsets");
    json_int_t begin = json_integer_value(json_array_get(offsets, 0));
    json_int_t end = json_integer_value(json_array_get(offsets, 1));
    *elements = (end - begin) / (json_int_t)tdm_dtype_size(dtype);
    return golden->data + begin;
}

bool tdm_golden_has(const tdm_golden *golden, const char *name)
{
    return json_object_get(golden->header, name) != NULL;
}

int tdm_golden_count(const tdm_golden *golden, const char *prefix)
{
    int count = 0;
    const char *name;
    json_t *tensor;
    json_object_foreach(golden->header, name, tensor) count +=
        strncmp(name, prefix, strlen(prefix)) == 0;
    return count;
}

const char *tdm_golden_text(const tdm_golden *golden, const char *key)
{
    const json_t *metadata = json_object_get(golden->header, "__metadata__");
    const char *text = json_string_value(json_object_get(metadata, key));
    ck_assert_msg(text != NULL, "no text %s", key);
    return text;
}

void tdm_golden_close_to(const char *name, const double *values, const double *reference,
                         int64_t count, double tolerance)
{
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        difference += (values[i] - reference[i]) * (values[i] - reference[i]);
        norm += reference[i] * reference[i];
    }
    difference = sqrt(difference);
    norm = sqrt(norm);
    ck_assert_msg(difference <= tolerance * norm, "%s: differs by %.3g of a norm of %.3g", name,
                  difference, norm);
}
