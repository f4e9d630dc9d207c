#include "core/file_calls.h"

#include "core/file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int (*test_hook)(const char *call, const char *path);

void tdm_file_set_test_hook(int (*hook)(const char *call, const char *path))
{
    test_hook = hook;
}

bool tdm_io_allowed(const char *call, const char *path)
{
    errno = test_hook == NULL ? 0 : test_hook(call, path);
    return errno == 0;
}

const char *tdm_io_error_text(int error)
{
    switch (error) {
    case ENOSPC:
        return "disk full: free some space there, or choose a folder on another disk";
    case EDQUOT:
        return "disk quota used up: free some space there, or choose a folder on another disk";
    case EACCES:
    case EPERM:
        return "no permission: check who owns it and its mode (ls -ld)";
    case EROFS:
        return "the file system is read-only: choose a folder on another one";
    case ENOENT:
        return "no such file or folder";
    case ENOTDIR:
        return "a part of the path is a file, not a folder";
    case EISDIR:
        return "is a folder, where a file is wanted";
    case EIO:
        return "the disk reported an error: look into the system log, and choose another disk";
    case EMFILE:
    case ENFILE:
        return "too many open files: raise the limit (ulimit -n)";
    default: {
        const char *text = strerrordesc_np(error);
        return text == NULL ? "unknown error" : text;
    }
    }
}

tdm_status tdm_io_fail(const char *action, const char *path)
{
    return tdm_fail(TDM_E_IO, "%s: cannot %s: %s", path, action, tdm_io_error_text(errno));
}

tdm_status tdm_descriptor_sync(int descriptor, const char *path)
{
    int result;
    do
        result = tdm_io_allowed("fsync", path) ? fsync(descriptor) : -1;
    while (result != 0 && errno == EINTR);
    return result == 0 ? TDM_OK : tdm_io_fail("sync", path);
}

tdm_status tdm_descriptor_write(int descriptor, const char *path, const void *data, size_t bytes,
                                int64_t *length)
{
    const char *at = data;
    while (bytes > 0) {
        ssize_t written = tdm_io_allowed("write", path) ? write(descriptor, at, bytes) : -1;
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return tdm_io_fail("write", path);
        if (length != NULL)
            *length += written;
        at += written;
        bytes -= (size_t)written;
    }
    return TDM_OK;
}
