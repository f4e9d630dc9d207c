#include "core/append_file.h"

#include "core/file.h"
#include "core/file_calls.h"
#include "core/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

struct tdm_append_file {
    char *path;
    int descriptor;
    int64_t length;
    bool is_new; /* its folder has not been synced since it was created */
};

tdm_status tdm_append_file_open(const char *path, tdm_append_file **out)
{
    *out = NULL;
    tdm_append_file *file;
    TDM_TRY(tdm_alloc(1, sizeof *file, &file));
    file->descriptor = -1;
    tdm_status status;
    TDM_TRY_GOTO(tdm_strdup(path, &file->path), fail);
    file->descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, (mode_t)0666);
    struct stat info;
    if (file->descriptor < 0 || fstat(file->descriptor, &info) != 0) {
        status = tdm_io_fail("open", path);
        goto fail;
    }
    file->length = info.st_size;
    file->is_new = info.st_size == 0;
    *out = file;
    return TDM_OK;
fail:
    tdm_append_file_close(file);
    return status;
}

void tdm_append_file_close(tdm_append_file *file)
{
    if (file == NULL)
        return;
    if (file->descriptor >= 0)
        close(file->descriptor);
    tdm_free(file->path);
    tdm_free(file);
}

tdm_status tdm_append_file_write(tdm_append_file *file, const void *data, size_t bytes)
{
    return tdm_descriptor_write(file->descriptor, file->path, data, bytes, &file->length);
}

tdm_status tdm_append_file_sync(tdm_append_file *file)
{
    TDM_TRY(tdm_descriptor_sync(file->descriptor, file->path));
    if (file->is_new)
        TDM_TRY(tdm_parent_sync(file->path));
    file->is_new = false;
    return TDM_OK;
}

int64_t tdm_append_file_length(const tdm_append_file *file)
{
    return file->length;
}

tdm_status tdm_append_file_cut(tdm_append_file *file, int64_t bytes)
{
    TDM_FAIL_IF(bytes > file->length, TDM_E_FORMAT,
                "%s: has %lld bytes, but a checkpoint says it had %lld: it was changed since",
                file->path, (long long)file->length, (long long)bytes);
    if (ftruncate(file->descriptor, bytes) != 0)
        return tdm_io_fail("cut", file->path);
    file->length = bytes;
    return TDM_OK;
}
