#include "trainer/checkpoint.h"

#include "core/file.h"
#include "core/log.h"
#include "core/memory.h"
#include "trainer/checkpoint_folder.h"
#include "trainer/checkpoint_manifest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BEST_LINK "best"

/* ---- writing --------------------------------------------------------------------------------- */

struct tdm_checkpoint_writer {
    char *temporary, *replaced, *final; /* the step's folder in its states */
    bool committed;
    tdm_manifest manifest;
};

/* A former checkpoint of a step goes back to its place, or away where the new one has got there. */
static tdm_status settle_replaced(const char *run_folder, int64_t step, const char *replaced)
{
    char *final;
    TDM_TRY(tdm_checkpoint_folder(run_folder, step, TDM_CHECKPOINT_FINAL, &final));
    tdm_status status =
        tdm_file_exists(final) ? tdm_checkpoint_delete(replaced) : tdm_file_rename(replaced, final);
    tdm_free(final);
    return status;
}

static tdm_status clear_leftover(const char *run_folder, const tdm_checkpoint_entry *entry)
{
    if (entry->state == TDM_CHECKPOINT_FINAL)
        return TDM_OK;
    char *path;
    TDM_TRY(tdm_checkpoint_folder(run_folder, entry->step, entry->state, &path));
    tdm_status status = entry->state == TDM_CHECKPOINT_TEMPORARY
                            ? tdm_folder_remove(path)
                            : settle_replaced(run_folder, entry->step, path);
    tdm_free(path);
    return status;
}

static tdm_status clear_leftovers(const char *run_folder)
{
    tdm_checkpoint_entry *entries;
    size_t count;
    TDM_TRY(tdm_checkpoint_scan(run_folder, &entries, &count));
    tdm_status status = TDM_OK;
    for (size_t i = 0; i < count && status == TDM_OK; i++)
        status = clear_leftover(run_folder, &entries[i]);
    tdm_free(entries);
    return status;
}

static tdm_status writer_init(tdm_checkpoint_writer *writer, const char *run_folder, int64_t step)
{
    TDM_TRY(tdm_checkpoint_folder(run_folder, step, TDM_CHECKPOINT_TEMPORARY, &writer->temporary));
    TDM_TRY(tdm_checkpoint_folder(run_folder, step, TDM_CHECKPOINT_REPLACED, &writer->replaced));
    TDM_TRY(tdm_checkpoint_folder(run_folder, step, TDM_CHECKPOINT_FINAL, &writer->final));
    TDM_TRY(clear_leftovers(run_folder));
    return tdm_folder_create(writer->temporary);
}

tdm_status tdm_checkpoint_writer_begin(const char *run_folder, int64_t step,
                                       tdm_checkpoint_writer **out)
{
    *out = NULL;
    TDM_FAIL_IF(step < 0, TDM_E_ARG, "a checkpoint of step %lld", (long long)step);
    tdm_checkpoint_writer *writer;
    TDM_TRY(tdm_alloc(1, sizeof *writer, &writer));
    tdm_status status = writer_init(writer, run_folder, step);
    if (status == TDM_OK)
        *out = writer;
    else
        tdm_checkpoint_writer_close(writer);
    return status;
}

tdm_status tdm_checkpoint_writer_path(const tdm_checkpoint_writer *writer, const char *name,
                                      char **out)
{
    return tdm_path_join(writer->temporary, name, out);
}

tdm_status tdm_checkpoint_writer_add(tdm_checkpoint_writer *writer, const char *name, uint64_t hash,
                                     int64_t bytes)
{
    return tdm_manifest_add(&writer->manifest, name, hash, bytes);
}

tdm_status tdm_checkpoint_writer_put(tdm_checkpoint_writer *writer, const char *name,
                                     const void *data, size_t bytes)
{
    char *path;
    uint64_t hash = 0;
    TDM_TRY(tdm_checkpoint_writer_path(writer, name, &path));
    tdm_status status = tdm_file_put(path, data, bytes, &hash);
    tdm_free(path);
    TDM_TRY(status);
    return tdm_checkpoint_writer_add(writer, name, hash, (int64_t)bytes);
}

tdm_status tdm_checkpoint_writer_commit(tdm_checkpoint_writer *writer)
{
    TDM_FAIL_IF(writer->committed, TDM_E_STATE, "%s: already committed", writer->final);
    TDM_TRY(tdm_manifest_write(&writer->manifest, writer->temporary));
    bool replaces = tdm_file_exists(writer->final);
    if (replaces)
        TDM_TRY(tdm_file_rename(writer->final, writer->replaced));
    TDM_TRY(tdm_file_rename(writer->temporary, writer->final));
    writer->committed = true;
    /* What is left of the former one does no harm, and the next save clears it away. */
    if (replaces && tdm_checkpoint_delete(writer->replaced) != TDM_OK)
        tdm_warn("%s", tdm_error_message());
    return TDM_OK;
}

void tdm_checkpoint_writer_close(tdm_checkpoint_writer *writer)
{
    if (writer == NULL)
        return;
    if (!writer->committed && writer->temporary != NULL &&
        tdm_folder_remove(writer->temporary) != TDM_OK)
        tdm_warn("%s", tdm_error_message());
    tdm_manifest_free(&writer->manifest);
    tdm_free(writer->temporary);
    tdm_free(writer->replaced);
    tdm_free(writer->final);
    tdm_free(writer);
}

/* ---- finding --------------------------------------------------------------------------------- */

static int compare_newest_first(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x < *y) - (*x > *y);
}

tdm_status tdm_checkpoint_list_read(const char *run_folder, tdm_checkpoint_list *out)
{
    *out = (tdm_checkpoint_list){0};
    tdm_checkpoint_entry *entries;
    size_t count, steps = 0;
    TDM_TRY(tdm_checkpoint_scan(run_folder, &entries, &count));
    tdm_status status = tdm_alloc(count, sizeof *out->steps, &out->steps);
    for (size_t i = 0; i < count && status == TDM_OK; i++) {
        if (entries[i].state != TDM_CHECKPOINT_TEMPORARY)
            out->steps[steps++] = entries[i].step;
    }
    tdm_free(entries);
    TDM_TRY(status);
    if (steps > 1)
        qsort(out->steps, steps, sizeof *out->steps, compare_newest_first);
    for (size_t i = 0; i < steps; i++) {
        if (i == 0 || out->steps[i] != out->steps[i - 1])
            out->steps[out->count++] = out->steps[i];
    }
    return TDM_OK;
}

void tdm_checkpoint_list_free(tdm_checkpoint_list *list)
{
    tdm_free(list->steps);
    *list = (tdm_checkpoint_list){0};
}

static tdm_status verify_file(const char *folder, const tdm_manifest_file *file)
{
    char *path;
    uint64_t hash = 0;
    int64_t bytes = 0;
    TDM_TRY(tdm_path_join(folder, file->name, &path));
    tdm_status status = tdm_file_hash(path, &hash, &bytes);
    if (status == TDM_OK && bytes != file->bytes)
        status = tdm_fail(TDM_E_FORMAT, "%s: damaged: %lld bytes, where %lld were written", path,
                          (long long)bytes, (long long)file->bytes);
    else if (status == TDM_OK && hash != file->hash)
        status =
            tdm_fail(TDM_E_FORMAT, "%s: damaged: its bytes are not those that were written", path);
    tdm_free(path);
    return status;
}

tdm_status tdm_checkpoint_verify(const char *run_folder, int64_t step)
{
    char *folder;
    tdm_manifest manifest;
    TDM_TRY(tdm_checkpoint_folder_find(run_folder, step, &folder));
    tdm_status status = tdm_manifest_read(folder, &manifest);
    for (size_t i = 0; i < manifest.count && status == TDM_OK; i++)
        status = verify_file(folder, &manifest.files[i]);
    tdm_manifest_free(&manifest);
    tdm_free(folder);
    return status;
}

static tdm_status find_good(const char *run_folder, const tdm_checkpoint_list *list, int64_t *step)
{
    tdm_error newest = {.status = TDM_OK};
    for (int64_t i = 0; i < list->count; i++) {
        tdm_status status = tdm_checkpoint_verify(run_folder, list->steps[i]);
        if (status == TDM_OK) {
            *step = list->steps[i];
            return TDM_OK;
        }
        if (status == TDM_E_NOMEM)
            return status;
        tdm_error_keep(&newest, status);
        tdm_warn("the checkpoint of step %lld cannot be used: %s", (long long)list->steps[i],
                 tdm_error_message());
    }
    return tdm_fail_context(tdm_error_raise(&newest),
                            "%s: none of its %lld checkpoints is good; the newest", run_folder,
                            (long long)list->count);
}

tdm_status tdm_checkpoint_newest_good(const char *run_folder, int64_t *step, bool *found)
{
    *found = false;
    tdm_checkpoint_list list;
    TDM_TRY(tdm_checkpoint_list_read(run_folder, &list));
    tdm_status status = TDM_OK;
    if (list.count > 0) {
        status = find_good(run_folder, &list, step);
        *found = status == TDM_OK;
    }
    tdm_checkpoint_list_free(&list);
    return status;
}

tdm_status tdm_checkpoint_path(const char *run_folder, int64_t step, const char *name, char **out)
{
    char *folder;
    TDM_TRY(tdm_checkpoint_folder_find(run_folder, step, &folder));
    tdm_status status = tdm_path_join(folder, name, out);
    tdm_free(folder);
    return status;
}

/* ---- keeping --------------------------------------------------------------------------------- */

/* The oldest step that stays because it is one of the newest `keep_last` up to `saved_step`. */
static int64_t oldest_kept(const tdm_checkpoint_list *list, int64_t saved_step, int64_t keep_last)
{
    int64_t kept = 0, oldest = saved_step;
    for (int64_t i = 0; i < list->count && kept < keep_last; i++) {
        if (list->steps[i] > saved_step)
            continue;
        oldest = list->steps[i];
        kept++;
    }
    return oldest;
}

tdm_status tdm_checkpoint_prune(const char *run_folder, int64_t saved_step, int64_t keep_last,
                                int64_t best_step)
{
    TDM_FAIL_IF(keep_last < 1, TDM_E_ARG, "%lld checkpoints to keep: at least 1 must stay",
                (long long)keep_last);
    tdm_checkpoint_list list;
    TDM_TRY(tdm_checkpoint_list_read(run_folder, &list));
    int64_t oldest = oldest_kept(&list, saved_step, keep_last);
    tdm_status status = TDM_OK;
    for (int64_t i = 0; i < list.count && status == TDM_OK; i++) {
        if (list.steps[i] >= oldest || list.steps[i] == best_step)
            continue;
        char *folder;
        TDM_TRY_GOTO(tdm_checkpoint_folder_find(run_folder, list.steps[i], &folder), done);
        status = tdm_checkpoint_delete(folder);
        tdm_free(folder);
    }
done:
    tdm_checkpoint_list_free(&list);
    return status;
}

tdm_status tdm_checkpoint_set_best(const char *run_folder, int64_t step)
{
    char name[TDM_CHECKPOINT_NAME_BYTES];
    char *folder = NULL, *found = NULL, *link = NULL;
    tdm_status status;
    tdm_checkpoint_name(step, TDM_CHECKPOINT_FINAL, name);
    TDM_TRY_GOTO(tdm_checkpoints_path(run_folder, name, &folder), done);
    TDM_TRY_GOTO(tdm_checkpoints_path(run_folder, BEST_LINK, &link), done);
    TDM_TRY_GOTO(tdm_checkpoint_folder_find(run_folder, step, &found), done);
    if (strcmp(found, folder) != 0)
        TDM_TRY_GOTO(settle_replaced(run_folder, step, found), done);
    if (tdm_file_exists(folder))
        status = tdm_link_replace(name, link);
    else
        status = tdm_fail(TDM_E_ARG, "%s: there is no such checkpoint to be the best", folder);
done:
    tdm_free(folder);
    tdm_free(found);
    tdm_free(link);
    return status;
}

/* What the link says; *found is false where there is none. */
static tdm_status read_best(const char *link, int64_t *step, bool *found)
{
    char name[TDM_CHECKPOINT_NAME_BYTES + 1] = {0};
    tdm_checkpoint_state state;
    ssize_t length = readlink(link, name, sizeof name - 1);
    *found = false;
    if (length < 0 && errno == ENOENT)
        return TDM_OK;
    TDM_FAIL_IF(length < 0 && errno != EINVAL, TDM_E_IO, "%s: cannot read: %s", link,
                tdm_io_error_text(errno));
    TDM_FAIL_IF(length < 0 || !tdm_checkpoint_parse_name(name, step, &state) ||
                    state != TDM_CHECKPOINT_FINAL,
                TDM_E_FORMAT, "%s: not a link to a checkpoint: remove it, or name a step", link);
    *found = true;
    return TDM_OK;
}

tdm_status tdm_checkpoint_best(const char *run_folder, int64_t *step, bool *found)
{
    char *link = NULL, *folder = NULL;
    tdm_status status;
    TDM_TRY_GOTO(tdm_checkpoints_path(run_folder, BEST_LINK, &link), done);
    TDM_TRY_GOTO(read_best(link, step, found), done);
    if (!*found)
        goto done;
    TDM_TRY_GOTO(tdm_checkpoint_folder_find(run_folder, *step, &folder), done);
    if (!tdm_file_exists(folder)) {
        *found = false;
        tdm_warn("%s: the checkpoint of step %lld that it points to is gone", link,
                 (long long)*step);
    }
done:
    tdm_free(link);
    tdm_free(folder);
    return status;
}
