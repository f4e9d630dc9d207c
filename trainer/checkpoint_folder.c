#include "trainer/checkpoint_folder.h"

#include "core/file.h"
#include "core/memory.h"
#include "trainer/checkpoint_manifest.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATES 3

static const char *const endings[STATES] = {
    [TDM_CHECKPOINT_FINAL] = "",
    [TDM_CHECKPOINT_TEMPORARY] = ".tmp",
    [TDM_CHECKPOINT_REPLACED] = ".replaced",
};

void tdm_checkpoint_name(int64_t step, tdm_checkpoint_state state,
                         char name[TDM_CHECKPOINT_NAME_BYTES])
{
    snprintf(name, TDM_CHECKPOINT_NAME_BYTES, "step-%08lld%s", (long long)step, endings[state]);
}

bool tdm_checkpoint_parse_name(const char *name, int64_t *step, tdm_checkpoint_state *state)
{
    static const char prefix[] = "step-";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return false;
    *step = strtoll(name + sizeof prefix - 1, NULL, 10);
    if (*step < 0)
        return false;
    /* Only a name as this module writes it is one. */
    for (int i = 0; i < STATES; i++) {
        char expected[TDM_CHECKPOINT_NAME_BYTES];
        *state = (tdm_checkpoint_state)i;
        tdm_checkpoint_name(*step, *state, expected);
        if (strcmp(name, expected) == 0)
            return true;
    }
    return false;
}

tdm_status tdm_checkpoints_path(const char *run_folder, const char *name, char **out)
{
    char *checkpoints;
    TDM_TRY(tdm_path_join(run_folder, "checkpoints", &checkpoints));
    tdm_status status = tdm_path_join(checkpoints, name, out);
    tdm_free(checkpoints);
    return status;
}

tdm_status tdm_checkpoint_folder(const char *run_folder, int64_t step, tdm_checkpoint_state state,
                                 char **out)
{
    char name[TDM_CHECKPOINT_NAME_BYTES];
    tdm_checkpoint_name(step, state, name);
    return tdm_checkpoints_path(run_folder, name, out);
}

tdm_status tdm_checkpoint_folder_find(const char *run_folder, int64_t step, char **out)
{
    char *replaced = NULL;
    tdm_status status;
    TDM_TRY(tdm_checkpoint_folder(run_folder, step, TDM_CHECKPOINT_FINAL, out));
    if (tdm_file_exists(*out))
        return TDM_OK;
    TDM_TRY_GOTO(tdm_checkpoint_folder(run_folder, step, TDM_CHECKPOINT_REPLACED, &replaced), fail);
    if (!tdm_file_exists(replaced)) {
        tdm_free(replaced);
        return TDM_OK;
    }
    tdm_free(*out);
    *out = replaced;
    return TDM_OK;
fail:
    tdm_free(*out);
    *out = NULL;
    return status;
}

static tdm_status scan_folder(DIR *folder, const char *path, tdm_checkpoint_entry **entries,
                              size_t *count)
{
    size_t capacity = 0;
    for (;;) {
        errno = 0;
        const struct dirent *found = readdir(folder);
        if (found == NULL && errno != 0)
            return tdm_fail(TDM_E_IO, "%s: cannot read: %s", path, tdm_io_error_text(errno));
        if (found == NULL)
            return TDM_OK;
        tdm_checkpoint_entry entry;
        if (!tdm_checkpoint_parse_name(found->d_name, &entry.step, &entry.state))
            continue;
        TDM_TRY(tdm_grow(entries, &capacity, *count + 1, sizeof **entries));
        (*entries)[(*count)++] = entry;
    }
}

tdm_status tdm_checkpoint_scan(const char *run_folder, tdm_checkpoint_entry **entries,
                               size_t *count)
{
    *entries = NULL;
    *count = 0;
    char *path;
    TDM_TRY(tdm_checkpoints_path(run_folder, "", &path));
    tdm_status status = TDM_OK;
    DIR *folder = opendir(path);
    if (folder != NULL) {
        status = scan_folder(folder, path, entries, count);
        closedir(folder);
    } else if (errno != ENOENT) {
        status = tdm_fail(TDM_E_IO, "%s: cannot open: %s", path, tdm_io_error_text(errno));
    }
    if (status != TDM_OK) {
        tdm_free(*entries);
        *entries = NULL;
    }
    tdm_free(path);
    return status;
}

tdm_status tdm_checkpoint_delete(const char *folder)
{
    char *manifest;
    TDM_TRY(tdm_path_join(folder, TDM_MANIFEST_NAME, &manifest));
    tdm_status status = tdm_file_remove(manifest);
    tdm_free(manifest);
    TDM_TRY(status);
    TDM_TRY(tdm_folder_sync(folder));
    return tdm_folder_remove(folder);
}
