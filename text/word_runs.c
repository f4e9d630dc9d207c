#include "text/word_runs.h"

#include "core/config.h"
#include "core/file.h"
#include "core/log.h"
#include "core/memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Files that are read at the same time; where there are more, some are merged into one first. */
#define FAN_IN 64

/* One place that words come from, with the word that it is at. */
typedef struct word_run {
    const tdm_word_map *map; /* NULL: a file */
    uint32_t *order;
    size_t next;
    tdm_word_reader *reader;
    tdm_word_entry entry;
    uint64_t prefix;
    bool ended;
} word_run;

struct tdm_word_runs {
    pthread_mutex_t lock;
    char *folder;      /* NULL: nothing was put aside yet */
    tdm_strings files; /* in it; those before first_file were merged into later ones */
    size_t file_capacity;
    int64_t first_file, spilled;
    word_run *runs;
    size_t run_count, run_capacity;
};

tdm_status tdm_word_runs_create(tdm_word_runs **out)
{
    TDM_TRY(tdm_alloc(1, sizeof **out, out));
    pthread_mutex_init(&(*out)->lock, NULL);
    return TDM_OK;
}

static void close_runs(word_run *runs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tdm_free(runs[i].order);
        tdm_word_reader_close(runs[i].reader);
    }
}

void tdm_word_runs_destroy(tdm_word_runs *runs)
{
    if (runs == NULL)
        return;
    close_runs(runs->runs, runs->run_count);
    if (runs->folder != NULL && tdm_folder_remove(runs->folder) != TDM_OK)
        tdm_warn("%s is left: %s", runs->folder, tdm_error_message());
    pthread_mutex_destroy(&runs->lock);
    tdm_strings_free(&runs->files);
    tdm_free(runs->folder);
    tdm_free(runs->runs);
    tdm_free(runs);
}

/* ---- putting words aside --------------------------------------------------------------------- */

static tdm_status make_folder(tdm_word_runs *runs)
{
    if (runs->folder != NULL)
        return TDM_OK;
    const char *parent = getenv("TMPDIR");
    char *folder;
    TDM_TRY(tdm_format(&folder, "%s/tandem-words-XXXXXX",
                       parent != NULL && parent[0] != '\0' ? parent : "/tmp"));
    if (mkdtemp(folder) == NULL) {
        tdm_status status = tdm_fail(TDM_E_IO,
                                     "%s: cannot create: %s (TMPDIR says where words go "
                                     "that memory does not hold)",
                                     folder, tdm_io_error_text(errno));
        tdm_free(folder);
        return status;
    }
    runs->folder = folder;
    return TDM_OK;
}

/* A name for the next file; it is borrowed. */
static tdm_status add_file(tdm_word_runs *runs, const char **path)
{
    pthread_mutex_lock(&runs->lock);
    tdm_status status = make_folder(runs);
    tdm_strings *files = &runs->files;
    if (status == TDM_OK)
        status = tdm_grow(&files->items, &runs->file_capacity, (size_t)files->count + 1,
                          sizeof *files->items);
    if (status == TDM_OK)
        status = tdm_format(&files->items[files->count], "%s/%lld", runs->folder,
                            (long long)files->count);
    if (status == TDM_OK)
        *path = files->items[files->count++];
    pthread_mutex_unlock(&runs->lock);
    return status;
}

typedef struct run_file {
    const char *path;
    FILE *stream;
    tdm_word_writer writer;
} run_file;

static tdm_status write_bytes(void *context, const void *data, size_t bytes)
{
    run_file *file = context;
    TDM_FAIL_IF(fwrite(data, 1, bytes, file->stream) != bytes, TDM_E_IO, "%s: cannot write: %s",
                file->path, tdm_io_error_text(errno));
    return TDM_OK;
}

static tdm_status write_entry(void *context, const tdm_word_entry *entry)
{
    return tdm_word_writer_add(&((run_file *)context)->writer, entry);
}

static tdm_status open_run_file(tdm_word_runs *runs, run_file *file)
{
    *file = (run_file){0};
    TDM_TRY(add_file(runs, &file->path));
    file->stream = fopen(file->path, "wb");
    TDM_FAIL_IF(file->stream == NULL, TDM_E_IO, "%s: cannot create: %s", file->path,
                tdm_io_error_text(errno));
    return tdm_word_writer_open(write_bytes, file, NULL, &file->writer);
}

/* Ends the file where `status` is OK, and closes it in any case. */
static tdm_status close_run_file(run_file *file, tdm_status status)
{
    if (status == TDM_OK)
        status = tdm_word_writer_end(&file->writer, false);
    tdm_word_writer_deinit(&file->writer);
    if (file->stream != NULL && fclose(file->stream) != 0 && status == TDM_OK)
        status = tdm_fail(TDM_E_IO, "%s: cannot write: %s", file->path, tdm_io_error_text(errno));
    return status;
}

tdm_status tdm_word_runs_spill(tdm_word_runs *runs, tdm_word_map *map)
{
    uint32_t *order = NULL;
    run_file file;
    tdm_status status = open_run_file(runs, &file);
    if (status == TDM_OK)
        status = tdm_word_map_sort(map, &order);
    for (size_t i = 0; i < map->used && status == TDM_OK; i++) {
        tdm_word_entry entry = {.count = map->slots[order[i]].count};
        entry.word = tdm_word_map_word(map, order[i], &entry.bytes);
        status = write_entry(&file, &entry);
    }
    tdm_free(order);
    status = close_run_file(&file, status);
    if (status != TDM_OK)
        return status;
    tdm_word_map_clear(map);
    pthread_mutex_lock(&runs->lock);
    runs->spilled++;
    pthread_mutex_unlock(&runs->lock);
    return TDM_OK;
}

int64_t tdm_word_runs_spilled(const tdm_word_runs *runs)
{
    return runs->spilled;
}

/* ---- places ---------------------------------------------------------------------------------- */

static tdm_status add_run(tdm_word_runs *runs, const word_run *run)
{
    pthread_mutex_lock(&runs->lock);
    tdm_status status =
        tdm_grow(&runs->runs, &runs->run_capacity, runs->run_count + 1, sizeof *runs->runs);
    if (status == TDM_OK)
        runs->runs[runs->run_count++] = *run;
    pthread_mutex_unlock(&runs->lock);
    return status;
}

tdm_status tdm_word_runs_add_map(tdm_word_runs *runs, const tdm_word_map *map)
{
    word_run run = {.map = map};
    TDM_TRY(tdm_word_map_sort(map, &run.order));
    tdm_status status = add_run(runs, &run);
    if (status != TDM_OK)
        tdm_free(run.order);
    return status;
}

tdm_status tdm_word_runs_take_reader(tdm_word_runs *runs, tdm_word_reader *reader)
{
    const word_run run = {.reader = reader};
    tdm_status status = add_run(runs, &run);
    if (status != TDM_OK)
        tdm_word_reader_close(reader);
    return status;
}

static tdm_status open_file_run(const char *path, word_run *run)
{
    *run = (word_run){0};
    return tdm_word_reader_open(path, NULL, &run->reader);
}

/* ---- merging --------------------------------------------------------------------------------- */

static tdm_status advance(word_run *run)
{
    if (run->reader != NULL) {
        TDM_TRY(tdm_word_reader_next(run->reader, &run->entry, &run->ended));
    } else if (run->next < run->map->used) {
        uint32_t slot = run->order[run->next++];
        run->entry.count = run->map->slots[slot].count;
        run->entry.word = tdm_word_map_word(run->map, slot, &run->entry.bytes);
    } else {
        run->ended = true;
    }
    if (!run->ended)
        run->prefix = tdm_word_prefix(run->entry.word, run->entry.bytes);
    return TDM_OK;
}

static int compare_runs(const word_run *a, const word_run *b)
{
    if (a->prefix != b->prefix)
        return a->prefix < b->prefix ? -1 : 1;
    return tdm_word_compare(a->entry.word, a->entry.bytes, b->entry.word, b->entry.bytes);
}

/* Runs that have a word, the smallest one first. */
typedef struct run_heap {
    word_run **items;
    size_t count;
} run_heap;

static void sift_down(run_heap *heap, size_t at)
{
    word_run *run = heap->items[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count && compare_runs(heap->items[child + 1], heap->items[child]) < 0)
            child++;
        if (compare_runs(run, heap->items[child]) <= 0)
            break;
        heap->items[at] = heap->items[child];
        at = child;
    }
    heap->items[at] = run;
}

/* Lets the heap's run at `at` go to its next word; where there is none the run leaves. */
static tdm_status step(run_heap *heap, size_t at)
{
    TDM_TRY(advance(heap->items[at]));
    if (heap->items[at]->ended)
        heap->items[at] = heap->items[--heap->count];
    if (at < heap->count)
        sift_down(heap, at);
    return TDM_OK;
}

static tdm_status merge_heap(run_heap *heap,
                             tdm_status (*take)(void *context, const tdm_word_entry *entry),
                             void *context)
{
    while (heap->count > 0) {
        word_run *first = heap->items[0];
        tdm_word_entry entry = first->entry;
        /* The first run keeps its word where it lies; the same word of others is below it. */
        for (size_t child = 1; child <= 2 && child < heap->count;) {
            word_run *run = heap->items[child];
            if (compare_runs(first, run) != 0) {
                child++;
                continue;
            }
            TDM_FAIL_IF(__builtin_add_overflow(entry.count, run->entry.count, &entry.count),
                        TDM_E_DATA, "more words than can be counted");
            TDM_TRY(step(heap, child));
        }
        TDM_TRY(take(context, &entry));
        TDM_TRY(step(heap, 0));
    }
    return TDM_OK;
}

static tdm_status merge_all(word_run *runs, size_t count,
                            tdm_status (*take)(void *context, const tdm_word_entry *entry),
                            void *context)
{
    run_heap heap = {0};
    tdm_status status;
    TDM_TRY(tdm_alloc(count, sizeof *heap.items, &heap.items));
    for (size_t i = 0; i < count; i++) {
        TDM_TRY_GOTO(advance(&runs[i]), out);
        if (!runs[i].ended)
            heap.items[heap.count++] = &runs[i];
    }
    for (size_t at = heap.count / 2; at-- > 0;)
        sift_down(&heap, at);
    status = merge_heap(&heap, take, context);
out:
    tdm_free(heap.items);
    return status;
}

/* Merges the first FAN_IN files into a new one. */
static tdm_status merge_files(tdm_word_runs *runs)
{
    word_run sources[FAN_IN];
    size_t count = 0;
    run_file file;
    tdm_status status = open_run_file(runs, &file);
    for (; count < FAN_IN && status == TDM_OK; count++)
        status =
            open_file_run(runs->files.items[runs->first_file + (int64_t)count], &sources[count]);
    if (status == TDM_OK)
        status = merge_all(sources, count, write_entry, &file);
    close_runs(sources, count);
    status = close_run_file(&file, status);
    for (size_t i = 0; i < FAN_IN && status == TDM_OK; i++)
        status = tdm_file_remove(runs->files.items[runs->first_file++]);
    return status;
}

tdm_status tdm_word_runs_merge(tdm_word_runs *runs,
                               tdm_status (*take)(void *context, const tdm_word_entry *entry),
                               void *context)
{
    while (runs->files.count - runs->first_file > FAN_IN)
        TDM_TRY(merge_files(runs));
    for (int64_t i = runs->first_file; i < runs->files.count; i++) {
        word_run run;
        TDM_TRY(open_file_run(runs->files.items[i], &run));
        TDM_TRY(tdm_word_runs_take_reader(runs, run.reader));
    }
    return merge_all(runs->runs, runs->run_count, take, context);
}
