#include "core/file_reader.h"

#include "core/file.h"
#include "core/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static tdm_status open_file(tdm_file_reader *reader)
{
    struct stat info;
    /* Without O_NONBLOCK a pipe would be waited for, only to be refused. */
    reader->descriptor = open(reader->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    TDM_FAIL_IF(reader->descriptor < 0 || fstat(reader->descriptor, &info) != 0, TDM_E_IO,
                "%s: cannot open: %s", reader->path, tdm_io_error_text(errno));
    TDM_FAIL_IF(!S_ISREG(info.st_mode), TDM_E_IO, "%s: not a file", reader->path);
    reader->bytes = info.st_size;
    return TDM_OK;
}

tdm_status tdm_file_reader_open(const char *path, tdm_file_reader *out)
{
    *out = (tdm_file_reader){.descriptor = -1};
    TDM_TRY(tdm_strdup(path, &out->path));
    tdm_status status = open_file(out);
    if (status != TDM_OK)
        tdm_file_reader_close(out);
    return status;
}

void tdm_file_reader_close(tdm_file_reader *reader)
{
    if (reader->path != NULL && reader->descriptor >= 0)
        close(reader->descriptor);
    tdm_free(reader->path);
    *reader = (tdm_file_reader){0};
}

tdm_status tdm_file_reader_read(const tdm_file_reader *reader, int64_t offset, void *buffer,
                                size_t bytes)
{
    char *next = buffer;
    while (bytes > 0) {
        ssize_t got = pread(reader->descriptor, next, bytes, offset);
        if (got < 0 && errno == EINTR)
            continue;
        TDM_FAIL_IF(got < 0, TDM_E_IO, "%s: cannot read: %s", reader->path,
                    tdm_io_error_text(errno));
        TDM_FAIL_IF(got == 0, TDM_E_FORMAT, "%s: has become shorter while it was read",
                    reader->path);
        next += got;
        offset += got;
        bytes -= (size_t)got;
    }
    return TDM_OK;
}
