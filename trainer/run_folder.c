#include "trainer/run_folder.h"

#include "core/append_file.h"
#include "core/config.h"
#include "core/file.h"
#include "core/log.h"
#include "core/memory.h"
#include "trainer/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static const char *const file_names[] = {TDM_RUN_RECIPE, TDM_RUN_FEATURES, TDM_RUN_METRICS,
                                         TDM_RUN_QUARANTINE, TDM_RUN_LOCK};
#define FILES ((int)(sizeof file_names / sizeof file_names[0]))

struct tdm_run_folder {
    char *path;
    char *files[FILES];
    int lock; /* descriptor; -1: none */
    tdm_append_file *metrics;
};

/* ---- opening --------------------------------------------------------------------------------- */

static tdm_status lock_folder(tdm_run_folder *folder)
{
    const char *path = tdm_run_folder_file(folder, TDM_RUN_LOCK);
    folder->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, (mode_t)0666);
    TDM_FAIL_IF(folder->lock < 0, TDM_E_IO, "%s: cannot open: %s", path, tdm_io_error_text(errno));
    if (flock(folder->lock, LOCK_EX | LOCK_NB) == 0)
        return TDM_OK;
    TDM_FAIL_IF(errno == EWOULDBLOCK, TDM_E_STATE,
                "%s: another process trains into this folder: wait for it, stop it, or choose "
                "another output.dir",
                folder->path);
    TDM_FAIL_IF(errno != ENOLCK && errno != ENOSYS && errno != EOPNOTSUPP, TDM_E_IO,
                "%s: cannot lock: %s", path, tdm_io_error_text(errno));
    tdm_warn("%s: the file system has no locks: see to it that no other process trains into this "
             "folder",
             folder->path);
    return TDM_OK;
}

static tdm_status refuse_a_run(const tdm_run_folder *folder)
{
    TDM_FAIL_IF(tdm_file_exists(tdm_run_folder_file(folder, TDM_RUN_RECIPE)), TDM_E_STATE,
                "%s: holds a run already: go on with it (--resume), train into another folder "
                "(output.dir=FOLDER), or remove it",
                folder->path);
    return TDM_OK;
}

static tdm_status open_folder(tdm_run_folder *folder, const char *path, bool resume)
{
    TDM_TRY(tdm_strdup(path, &folder->path));
    for (int i = 0; i < FILES; i++)
        TDM_TRY(tdm_path_join(path, file_names[i], &folder->files[i]));
    if (!resume)
        TDM_TRY(refuse_a_run(folder));
    TDM_TRY(tdm_folder_create(path));
    TDM_TRY(lock_folder(folder));
    /* Another process may have made a run of it before it was locked. */
    if (!resume)
        TDM_TRY(refuse_a_run(folder));
    if (tdm_file_exists(tdm_run_folder_file(folder, TDM_RUN_RECIPE)))
        TDM_TRY(tdm_run_folder_check(path));
    return tdm_append_file_open(tdm_run_folder_file(folder, TDM_RUN_METRICS), &folder->metrics);
}

tdm_status tdm_run_folder_open(const char *path, bool resume, tdm_run_folder **out)
{
    *out = NULL;
    tdm_run_folder *folder;
    TDM_TRY(tdm_alloc(1, sizeof *folder, &folder));
    folder->lock = -1;
    tdm_status status = open_folder(folder, path, resume);
    if (status == TDM_OK)
        *out = folder;
    else
        tdm_run_folder_close(folder);
    return status;
}

void tdm_run_folder_close(tdm_run_folder *folder)
{
    if (folder == NULL)
        return;
    tdm_append_file_close(folder->metrics);
    if (folder->lock >= 0)
        close(folder->lock);
    for (int i = 0; i < FILES; i++)
        tdm_free(folder->files[i]);
    tdm_free(folder->path);
    tdm_free(folder);
}

const char *tdm_run_folder_path(const tdm_run_folder *folder)
{
    return folder->path;
}

const char *tdm_run_folder_file(const tdm_run_folder *folder, const char *name)
{
    for (int i = 0; i < FILES; i++) {
        if (strcmp(file_names[i], name) == 0)
            return folder->files[i];
    }
    return NULL;
}

/* ---- metrics.jsonl --------------------------------------------------------------------------- */

tdm_status tdm_run_folder_log(tdm_run_folder *folder, const char *line)
{
    char *whole;
    TDM_TRY(tdm_format(&whole, "%s\n", line));
    tdm_status status = tdm_append_file_write(folder->metrics, whole, strlen(whole));
    tdm_free(whole);
    return status;
}

tdm_status tdm_run_folder_sync(tdm_run_folder *folder, int64_t *bytes)
{
    *bytes = tdm_append_file_length(folder->metrics);
    return tdm_append_file_sync(folder->metrics);
}

tdm_status tdm_run_folder_cut(tdm_run_folder *folder, int64_t bytes)
{
    return tdm_append_file_cut(folder->metrics, bytes);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The first line of recipe.yaml is a comment that tells the format of the folder. */
static tdm_status check_format(const char *recipe)
{
    FILE *file = fopen(recipe, "re");
    TDM_FAIL_IF(file == NULL, TDM_E_IO, "%s: cannot open: %s", recipe, tdm_io_error_text(errno));
    int version = 0;
    char line[256];
    if (fgets(line, sizeof line, file) == NULL ||
        sscanf(line, "# tandem run folder, format %d", &version) != 1)
        version = 0;
    fclose(file);
    TDM_FAIL_IF(version > TDM_RUN_FORMAT, TDM_E_VERSION,
                "%s: the run folder has format %d, this tandem (%s) knows up to %d: use a newer "
                "tandem",
                recipe, version, TDM_VERSION, TDM_RUN_FORMAT);
    return TDM_OK;
}

tdm_status tdm_run_folder_check(const char *path)
{
    TDM_FAIL_IF(!tdm_file_exists(path), TDM_E_STATE, "%s: no such run folder", path);
    char *recipe;
    TDM_TRY(tdm_path_join(path, TDM_RUN_RECIPE, &recipe));
    tdm_status status = TDM_OK;
    if (tdm_file_exists(recipe))
        status = check_format(recipe);
    else
        status = tdm_fail(TDM_E_STATE, "%s: is no run folder: it has no %s", path, TDM_RUN_RECIPE);
    tdm_free(recipe);
    return status;
}

static tdm_status choose_best(const char *path, bool needed, int64_t *step, bool *found)
{
    TDM_TRY(tdm_checkpoint_best(path, step, found));
    TDM_FAIL_IF(needed && !*found, TDM_E_STATE,
                "%s: no checkpoint is the best: the run made no evaluation, or kept none "
                "(checkpoint.keep_best); choose last or a step",
                path);
    if (!*found)
        return TDM_OK;
    tdm_status status = tdm_checkpoint_verify(path, *step);
    if (status == TDM_OK || needed)
        return status;
    tdm_warn("%s: the best checkpoint cannot be used, the newest is: %s", path,
             tdm_error_message());
    *found = false;
    return TDM_OK;
}

static tdm_status choose_last(const char *path, int64_t *step)
{
    bool found;
    TDM_TRY(tdm_checkpoint_newest_good(path, step, &found));
    TDM_FAIL_IF(!found, TDM_E_STATE, "%s: has no checkpoint yet", path);
    return TDM_OK;
}

static tdm_status choose_step(const char *path, const char *choice, int64_t *step)
{
    char *end;
    errno = 0;
    *step = strtoll(choice, &end, 10);
    TDM_FAIL_IF(errno != 0 || end == choice || *end != '\0' || *step < 0, TDM_E_ARG,
                "checkpoint \"%s\": expected best, last or a step", choice);
    tdm_checkpoint_list list;
    TDM_TRY(tdm_checkpoint_list_read(path, &list));
    bool found = false;
    for (int64_t i = 0; i < list.count; i++)
        found = found || list.steps[i] == *step;
    tdm_text known = {0};
    tdm_status status = TDM_OK;
    for (int64_t i = 0; i < list.count && !found && status == TDM_OK; i++)
        status = tdm_text_printf(&known, "%s%lld", i > 0 ? ", " : "", (long long)list.steps[i]);
    if (status == TDM_OK && !found)
        status = tdm_fail(TDM_E_STATE, "%s: has no checkpoint of step %lld; there are: %s", path,
                          (long long)*step, list.count > 0 ? known.bytes : "none");
    tdm_text_free(&known);
    tdm_checkpoint_list_free(&list);
    return status == TDM_OK ? tdm_checkpoint_verify(path, *step) : status;
}

tdm_status tdm_run_folder_choose(const char *path, const char *choice, int64_t *step)
{
    bool found;
    TDM_TRY(tdm_run_folder_check(path));
    if (choice != NULL && strcmp(choice, "last") == 0)
        return choose_last(path, step);
    if (choice != NULL && strcmp(choice, "best") != 0)
        return choose_step(path, choice, step);
    TDM_TRY(choose_best(path, choice != NULL, step, &found));
    return found ? TDM_OK : choose_last(path, step);
}
