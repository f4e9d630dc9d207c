#include "cli/output.h"

#include "core/file.h"
#include "core/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct tdm_output {
    char *name;              /* for errors */
    FILE *stream;            /* standard output, a pipe or a device; or */
    tdm_file_writer *writer; /* a file */
};

static tdm_status open_stream(tdm_output *output, const char *path)
{
    output->stream = fopen(path, "w");
    TDM_FAIL_IF(output->stream == NULL, TDM_E_IO, "%s: cannot open: %s", path,
                tdm_io_error_text(errno));
    return TDM_OK;
}

static tdm_status open_target(tdm_output *output, const char *path, bool force)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return tdm_file_writer_open(path, &output->writer);
    TDM_FAIL_IF(S_ISDIR(info.st_mode), TDM_E_ARG, "%s: is a folder: -o names a file", path);
    if (!S_ISREG(info.st_mode))
        return open_stream(output, path);
    TDM_FAIL_IF(!force, TDM_E_ARG, "%s is there already: --force overwrites it", path);
    return tdm_file_writer_open(path, &output->writer);
}

tdm_status tdm_output_open(const char *path, bool force, tdm_output **out)
{
    *out = NULL;
    bool is_stdout = path == NULL || strcmp(path, "-") == 0;
    tdm_output *output;
    TDM_TRY(tdm_alloc(1, sizeof *output, &output));
    tdm_status status;
    TDM_TRY_GOTO(tdm_strdup(is_stdout ? "standard output" : path, &output->name), fail);
    if (is_stdout)
        output->stream = stdout;
    else
        TDM_TRY_GOTO(open_target(output, path, force), fail);
    *out = output;
    return TDM_OK;
fail:
    tdm_output_close(output);
    return status;
}

bool tdm_output_is_stdout(const tdm_output *output)
{
    return output->stream == stdout;
}

tdm_status tdm_output_write(tdm_output *output, const void *data, size_t bytes)
{
    if (output->writer != NULL)
        return tdm_file_writer_write(output->writer, data, bytes);
    TDM_FAIL_IF(fwrite(data, 1, bytes, output->stream) != bytes, TDM_E_IO, "%s: cannot write: %s",
                output->name, tdm_io_error_text(errno));
    return TDM_OK;
}

bool tdm_output_is_file(const tdm_output *output)
{
    return output->writer != NULL;
}

tdm_status tdm_output_patch(tdm_output *output, int64_t offset, const void *data, size_t bytes)
{
    return tdm_file_writer_patch(output->writer, offset, data, bytes);
}

tdm_status tdm_output_flush(tdm_output *output)
{
    if (output->writer != NULL)
        return TDM_OK;
    TDM_FAIL_IF(fflush(output->stream) != 0, TDM_E_IO, "%s: cannot write: %s", output->name,
                tdm_io_error_text(errno));
    return TDM_OK;
}

tdm_status tdm_output_commit(tdm_output *output)
{
    if (output->writer != NULL)
        return tdm_file_writer_commit(output->writer, NULL, NULL);
    return tdm_output_flush(output);
}

void tdm_output_close(tdm_output *output)
{
    if (output == NULL)
        return;
    if (output->stream != NULL && output->stream != stdout)
        fclose(output->stream);
    tdm_file_writer_close(output->writer);
    tdm_free(output->name);
    tdm_free(output);
}
