#include "cli/vector_output.h"

#include "core/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define HEADER_BYTES 128
#define NUMBER_BYTES 24 /* of text, what stands between them included */

struct tdm_vector_output {
    tdm_output *output;
    bool npy, json;
    bool begun; /* the header is written */
    int64_t written;
    /* text being made */
    const float *vectors;
    int64_t columns;
    size_t line_bytes; /* room of a line */
    char *lines;
    size_t lines_capacity;
    size_t *lengths;
    size_t lengths_capacity;
};

/* ---- NumPy ----------------------------------------------------------------------------------- */

static void make_header(int64_t rows, int64_t columns, char header[HEADER_BYTES + 1])
{
    static const char magic[] = "\x93NUMPY\x01\x00";
    const size_t fixed = sizeof magic - 1 + 2;
    memcpy(header, magic, sizeof magic - 1);
    header[sizeof magic - 1] = (char)(HEADER_BYTES - fixed);
    header[sizeof magic] = 0;
    int length = snprintf(header + fixed, HEADER_BYTES - fixed,
                          "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld, %lld), }",
                          (long long)rows, (long long)columns);
    memset(header + fixed + length, ' ', HEADER_BYTES - fixed - (size_t)length);
    header[HEADER_BYTES - 1] = '\n';
}

static tdm_status write_npy(tdm_vector_output *output, const float *vectors, int64_t count,
                            int64_t columns)
{
    if (!output->begun) {
        char header[HEADER_BYTES + 1];
        make_header(0, columns, header);
        TDM_TRY(tdm_output_write(output->output, header, HEADER_BYTES));
        output->begun = true;
    }
    return tdm_output_write(output->output, vectors, (size_t)(count * columns) * sizeof *vectors);
}

static tdm_status complete_npy(tdm_vector_output *output, int64_t columns)
{
    char header[HEADER_BYTES + 1];
    TDM_TRY(write_npy(output, NULL, 0, columns));
    make_header(output->written, columns, header);
    return tdm_output_patch(output->output, 0, header, HEADER_BYTES);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void make_line(void *context, int64_t index)
{
    const tdm_vector_output *output = context;
    const float *vector = output->vectors + index * output->columns;
    char *line = output->lines + (size_t)index * output->line_bytes, *at = line;
    if (isnan(vector[0])) {
        if (output->json)
            at += sprintf(at, "null");
    } else {
        if (output->json)
            *at++ = '[';
        for (int64_t c = 0; c < output->columns; c++) {
            if (c > 0)
                *at++ = output->json ? ',' : '\t';
            at += snprintf(at, NUMBER_BYTES - 1, "%.8g", (double)vector[c]);
        }
        if (output->json)
            *at++ = ']';
    }
    *at++ = '\n';
    output->lengths[index] = (size_t)(at - line);
}

static tdm_status write_text(tdm_vector_output *output, tdm_pool *pool, const float *vectors,
                             int64_t count, int64_t columns)
{
    output->vectors = vectors;
    output->columns = columns;
    output->line_bytes = (size_t)columns * NUMBER_BYTES + NUMBER_BYTES;
    TDM_TRY(
        tdm_grow(&output->lines, &output->lines_capacity, (size_t)count * output->line_bytes, 1));
    TDM_TRY(tdm_grow(&output->lengths, &output->lengths_capacity, (size_t)count,
                     sizeof *output->lengths));
    tdm_pool_for(pool, count, make_line, output);
    for (int64_t i = 0; i < count; i++) {
        const char *line = output->lines + (size_t)i * output->line_bytes;
        TDM_TRY(tdm_output_write(output->output, line, output->lengths[i]));
    }
    return TDM_OK;
}

/* ---- both ------------------------------------------------------------------------------------ */

static bool is_npy(const char *path)
{
    size_t length = path == NULL ? 0 : strlen(path);
    return length > 4 && strcmp(path + length - 4, ".npy") == 0;
}

tdm_status tdm_vector_output_open(const char *path, bool force, bool json, tdm_vector_output **out)
{
    tdm_vector_output *output;
    *out = NULL;
    TDM_FAIL_IF(json && is_npy(path), TDM_E_ARG,
                "%s: is to be a file of NumPy: --json does not go with it", path);
    TDM_TRY(tdm_alloc(1, sizeof *output, &output));
    output->npy = is_npy(path);
    output->json = json;
    tdm_status status = tdm_output_open(path, force, &output->output);
    if (status == TDM_OK && output->npy && !tdm_output_is_file(output->output))
        status =
            tdm_fail(TDM_E_ARG,
                     "%s: is no file: how many vectors a .npy has is known at its end only", path);
    if (status == TDM_OK)
        *out = output;
    else
        tdm_vector_output_close(output);
    return status;
}

tdm_status tdm_vector_output_write(tdm_vector_output *output, tdm_pool *pool, const float *vectors,
                                   int64_t count, int64_t columns)
{
    TDM_TRY(output->npy ? write_npy(output, vectors, count, columns)
                        : write_text(output, pool, vectors, count, columns));
    output->written += count;
    return TDM_OK;
}

tdm_status tdm_vector_output_flush(tdm_vector_output *output)
{
    return tdm_output_flush(output->output);
}

tdm_status tdm_vector_output_commit(tdm_vector_output *output, int64_t columns)
{
    if (output->npy)
        TDM_TRY(complete_npy(output, columns));
    return tdm_output_commit(output->output);
}

bool tdm_vector_output_is_stdout(const tdm_vector_output *output)
{
    return tdm_output_is_stdout(output->output);
}

void tdm_vector_output_close(tdm_vector_output *output)
{
    if (output == NULL)
        return;
    tdm_output_close(output->output);
    tdm_free(output->lines);
    tdm_free(output->lengths);
    tdm_free(output);
}
