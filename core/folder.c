#include "core/file.h"
#include "core/file_calls.h"
#include "core/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- paths ----------------------------------------------------------------------------------- */

tdm_status tdm_path_join(const char *folder, const char *name, char **out)
{
    size_t length = strlen(folder);
    const char *separator = length == 0 || folder[length - 1] == '/' ? "" : "/";
    return tdm_format(out, "%s%s%s", folder, separator, name);
}

/* The folder that holds `path`. */
static tdm_status parent_folder(const char *path, char **out)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    while (length > 0 && path[length - 1] != '/')
        length--;
    if (length == 0)
        return tdm_strdup(".", out);
    while (length > 1 && path[length - 1] == '/')
        length--;
    return tdm_strndup(path, length, out);
}

bool tdm_file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

tdm_status tdm_file_remove(const char *path)
{
    if ((!tdm_io_allowed("unlink", path) || unlink(path) != 0) && errno != ENOENT)
        return tdm_io_fail("remove", path);
    return TDM_OK;
}

tdm_status tdm_parent_sync(const char *path)
{
    char *folder;
    TDM_TRY(parent_folder(path, &folder));
    tdm_status status = tdm_folder_sync(folder);
    tdm_free(folder);
    return status;
}

tdm_status tdm_file_rename(const char *from, const char *to)
{
    if (!tdm_io_allowed("rename", to) || rename(from, to) != 0)
        return tdm_fail(TDM_E_IO, "%s: cannot rename to %s: %s", from, to,
                        tdm_io_error_text(errno));
    return tdm_parent_sync(to);
}

static tdm_status link_create(const char *target, const char *path)
{
    TDM_TRY(tdm_file_remove(path));
    if (!tdm_io_allowed("symlink", path) || symlink(target, path) != 0)
        return tdm_io_fail("make a link", path);
    return TDM_OK;
}

tdm_status tdm_link_replace(const char *target, const char *path)
{
    char *temporary;
    TDM_TRY(tdm_format(&temporary, "%s.tmp", path));
    tdm_status status = link_create(target, temporary);
    if (status == TDM_OK)
        status = tdm_file_rename(temporary, path);
    tdm_free(temporary);
    return status;
}

/* ---- folders --------------------------------------------------------------------------------- */

tdm_status tdm_folder_sync(const char *path)
{
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0)
        return tdm_io_fail("open the folder", path);
    tdm_status status = tdm_descriptor_sync(descriptor, path);
    close(descriptor);
    return status;
}

static tdm_status folder_create_one(const char *path)
{
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return TDM_OK;
    if (!tdm_io_allowed("mkdir", path) || mkdir(path, 0777) != 0) {
        int error = errno;
        /* Another process may have been faster. */
        if (error == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
            return TDM_OK;
        errno = error;
        return tdm_io_fail("create the folder", path);
    }
    return tdm_parent_sync(path);
}

tdm_status tdm_folder_create(const char *path)
{
    char *prefix;
    TDM_TRY(tdm_strdup(path, &prefix));
    tdm_status status = TDM_OK;
    for (char *end = prefix; status == TDM_OK && *end != '\0';) {
        end += strspn(end, "/");
        end += strcspn(end, "/");
        char kept = *end;
        *end = '\0';
        status = folder_create_one(prefix);
        *end = kept;
    }
    tdm_free(prefix);
    return status;
}

static tdm_status remove_entry(const char *path)
{
    struct stat info;
    if (lstat(path, &info) != 0)
        return errno == ENOENT ? TDM_OK : tdm_io_fail("look at", path);
    return S_ISDIR(info.st_mode) ? tdm_folder_remove(path) : tdm_file_remove(path);
}

/* Removes all that is in the folder. */
static tdm_status folder_empty(DIR *folder, const char *path)
{
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(folder);
        if (entry == NULL)
            return errno == 0 ? TDM_OK : tdm_io_fail("read the folder", path);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        char *child;
        TDM_TRY(tdm_path_join(path, entry->d_name, &child));
        tdm_status status = remove_entry(child);
        tdm_free(child);
        TDM_TRY(status);
    }
}

tdm_status tdm_folder_remove(const char *path)
{
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0)
        return errno == ENOENT ? TDM_OK : tdm_io_fail("open the folder", path);
    DIR *folder = fdopendir(descriptor);
    if (folder == NULL) {
        close(descriptor);
        return tdm_fail(TDM_E_NOMEM, "%s: out of memory to read the folder", path);
    }
    tdm_status status = folder_empty(folder, path);
    closedir(folder);
    TDM_TRY(status);
    if (!tdm_io_allowed("unlink", path) || rmdir(path) != 0)
        return tdm_io_fail("remove the folder", path);
    return TDM_OK;
}
