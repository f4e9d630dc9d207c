#include "data/paths.h"

#include "core/memory.h"

#include <errno.h>
#include <glob.h>
#include <string.h>
#include <sys/stat.h>

typedef struct path_list {
    tdm_strings *paths;
    int64_t *origins; /* [paths->count] */
    size_t paths_capacity, origins_capacity;
} path_list;

static tdm_status add_path(path_list *list, const char *path, int64_t origin)
{
    tdm_strings *paths = list->paths;
    size_t count = (size_t)paths->count + 1;
    TDM_TRY(tdm_grow(&paths->items, &list->paths_capacity, count, sizeof *paths->items));
    TDM_TRY(tdm_grow(&list->origins, &list->origins_capacity, count, sizeof *list->origins));
    TDM_TRY(tdm_strdup(path, &paths->items[paths->count]));
    list->origins[paths->count++] = origin;
    return TDM_OK;
}

static tdm_status add_name(path_list *list, const char *name, int64_t origin)
{
    struct stat info;
    if (strpbrk(name, "*?[") == NULL || stat(name, &info) == 0)
        return add_path(list, name, origin);
    glob_t matches;
    int code = glob(name, GLOB_ERR, NULL, &matches);
    TDM_FAIL_IF(code == GLOB_NOSPACE, TDM_E_NOMEM, "%s: out of memory", name);
    TDM_FAIL_IF(code == GLOB_ABORTED && errno != ENOENT, TDM_E_IO,
                "%s: a folder cannot be read: %s", name, strerror(errno));
    TDM_FAIL_IF(code != 0, TDM_E_IO, "%s: no file matches", name);
    tdm_status status = TDM_OK;
    for (size_t i = 0; i < matches.gl_pathc && status == TDM_OK; i++)
        status = add_path(list, matches.gl_pathv[i], origin);
    globfree(&matches);
    return status;
}

static tdm_status add_names(path_list *list, const tdm_strings *names)
{
    int stdin_count = 0;
    for (int64_t i = 0; i < names->count; i++) {
        stdin_count += strcmp(names->items[i], "-") == 0;
        TDM_TRY(add_name(list, names->items[i], i));
    }
    TDM_FAIL_IF(list->paths->count == 0, TDM_E_CONFIG, "no input file is named");
    TDM_FAIL_IF(stdin_count > 1, TDM_E_CONFIG, "standard input (-) is named twice");
    return TDM_OK;
}

tdm_status tdm_paths_expand(const tdm_strings *names, tdm_strings *out, int64_t **origins)
{
    *out = (tdm_strings){0};
    path_list list = {.paths = out};
    tdm_status status = add_names(&list, names);
    if (status != TDM_OK)
        tdm_strings_free(out);
    if (status != TDM_OK || origins == NULL) {
        tdm_free(list.origins);
        list.origins = NULL;
    }
    if (origins != NULL)
        *origins = list.origins;
    return status;
}
