#include "text/word_counts.h"

#include "core/log.h"
#include "core/memory.h"
#include "data/text_pieces.h"
#include "text/tokenizer.h"
#include "text/word_runs.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define SETTINGS_BYTES 192

typedef struct count_job count_job;

/* What one of the threads that count has of its own. */
typedef struct count_thread {
    count_job *job;
    tdm_word_map map;
    tdm_word_splitter *splitter;
    tdm_text_piece piece;
    int64_t text_bytes, words, invalid_bytes;
} count_thread;

struct count_job {
    const tdm_word_count_options *options;
    tdm_normalizer *normalizer;
    tdm_text_pieces *pieces; /* NULL: no text is read */
    tdm_word_runs *runs;
    count_thread *per_thread; /* [threads] */
    int threads;
    pthread_mutex_t lock;
    tdm_error error;
    atomic_bool failed;
    _Atomic int64_t text_bytes, words;
};

/* ---- one thread ------------------------------------------------------------------------------ */

static int64_t count_invalid_bytes(const char *text, size_t bytes)
{
    int64_t invalid = 0;
    for (size_t at = 0; at < bytes;) {
        uint64_t eight;
        if (at + sizeof eight <= bytes) {
            memcpy(&eight, text + at, sizeof eight);
            if ((eight & 0x8080808080808080u) == 0) {
                at += sizeof eight;
                continue;
            }
        }
        uint32_t code_point;
        bool valid;
        at += (size_t)tdm_utf8_read(text, bytes, at, &code_point, &valid);
        invalid += !valid;
    }
    return invalid;
}

static tdm_status count_piece(count_thread *thread)
{
    const tdm_text_piece *piece = &thread->piece;
    thread->invalid_bytes += count_invalid_bytes(piece->text, piece->bytes);
    tdm_word_splitter_start(thread->splitter, piece->text, piece->bytes);
    for (;;) {
        tdm_words words;
        TDM_TRY(tdm_word_splitter_next(thread->splitter, &words));
        if (words.count == 0)
            return TDM_OK;
        thread->words += words.count;
        for (int64_t next = 0; next < words.count;) {
            TDM_TRY(tdm_word_map_count(&thread->map, &words, &next));
            if (next < words.count)
                TDM_TRY(tdm_word_runs_spill(thread->job->runs, &thread->map));
        }
    }
}

static void tell_progress(count_job *job)
{
    const tdm_word_count_options *options = job->options;
    if (options->progress == NULL || tdm_pool_thread_index() != 0)
        return;
    int64_t done, total;
    tdm_text_pieces_progress(job->pieces, &done, &total);
    options->progress(options->progress_context, atomic_load(&job->text_bytes),
                      atomic_load(&job->words),
                      total > 0 ? (double)done / (double)total : (double)NAN);
}

static tdm_status count_pieces(count_thread *thread)
{
    count_job *job = thread->job;
    const atomic_bool *cancel = job->options->cancel;
    while (!atomic_load(&job->failed)) {
        TDM_FAIL_IF(cancel != NULL && atomic_load(cancel), TDM_E_CANCELLED,
                    "stopped; nothing was written");
        TDM_TRY(tdm_text_pieces_next(job->pieces, &thread->piece));
        if (thread->piece.bytes == 0)
            return TDM_OK;
        int64_t words = thread->words;
        TDM_TRY(count_piece(thread));
        thread->text_bytes += (int64_t)thread->piece.bytes;
        atomic_fetch_add(&job->text_bytes, (int64_t)thread->piece.bytes);
        atomic_fetch_add(&job->words, thread->words - words);
        tell_progress(job);
    }
    return TDM_OK;
}

static void note_failure(count_job *job, tdm_status status)
{
    if (status == TDM_OK)
        return;
    pthread_mutex_lock(&job->lock);
    tdm_error_keep(&job->error, status);
    pthread_mutex_unlock(&job->lock);
    atomic_store(&job->failed, true);
}

static void run_counter(void *context, int64_t index)
{
    count_job *job = context;
    note_failure(job, count_pieces(&job->per_thread[index]));
}

static void sort_counter(void *context, int64_t index)
{
    count_job *job = context;
    note_failure(job, tdm_word_runs_add_map(job->runs, &job->per_thread[index].map));
}

/* ---- all threads ----------------------------------------------------------------------------- */

static tdm_status open_counting(count_job *job, const tdm_word_count_options *options)
{
    *job = (count_job){.options = options};
    pthread_mutex_init(&job->lock, NULL);
    job->threads = tdm_pool_threads(options->pool);
    tdm_tokenizer_settings settings = *options->settings;
    if (settings.strip_accents < 0)
        settings.strip_accents = settings.lowercase;
    TDM_TRY(tdm_normalizer_create(&settings, &job->normalizer));
    TDM_TRY(tdm_word_runs_create(&job->runs));
    TDM_TRY(tdm_alloc((size_t)job->threads, sizeof *job->per_thread, &job->per_thread));
    for (int i = 0; i < job->threads; i++) {
        count_thread *thread = &job->per_thread[i];
        thread->job = job;
        tdm_word_map_init(&thread->map, options->map_bytes / (size_t)job->threads,
                          settings.max_word_chars);
        TDM_TRY(tdm_word_splitter_create(job->normalizer, &thread->splitter));
    }
    if (options->names->count > 0)
        TDM_TRY(tdm_text_pieces_open(options->names, job->threads, options->cancel, &job->pieces));
    return TDM_OK;
}

static void close_counting(count_job *job)
{
    for (int i = 0; i < job->threads && job->per_thread != NULL; i++) {
        count_thread *thread = &job->per_thread[i];
        tdm_word_map_deinit(&thread->map);
        tdm_word_splitter_destroy(thread->splitter);
        tdm_text_piece_deinit(&thread->piece);
    }
    tdm_free(job->per_thread);
    tdm_text_pieces_close(job->pieces);
    tdm_word_runs_destroy(job->runs);
    tdm_normalizer_destroy(job->normalizer);
    pthread_mutex_destroy(&job->lock);
}

static tdm_status count_texts(count_job *job, tdm_word_count_report *report)
{
    tdm_pool *pool = job->options->pool;
    if (job->pieces == NULL)
        return TDM_OK;
    tdm_pool_for(pool, job->threads, run_counter, job);
    if (!atomic_load(&job->failed))
        tdm_pool_for(pool, job->threads, sort_counter, job);
    TDM_TRY(tdm_error_raise(&job->error));
    report->files = tdm_text_pieces_file_count(job->pieces);
    report->spilled = tdm_word_runs_spilled(job->runs);
    for (int i = 0; i < job->threads; i++) {
        const count_thread *thread = &job->per_thread[i];
        report->text_bytes += thread->text_bytes;
        report->words += thread->words - thread->map.too_long;
        report->too_long += thread->map.too_long;
        report->invalid_bytes += thread->invalid_bytes;
    }
    return TDM_OK;
}

/* ---- the result ------------------------------------------------------------------------------ */

/* Where the merged words go. */
typedef struct collection {
    tdm_word_list *list;
    tdm_word_count_report *report;
    size_t list_bytes, limit;
    tdm_word_writer *writer; /* NULL: none */
} collection;

static size_t word_bytes(const tdm_word_list *list, int64_t word)
{
    return (size_t)(list->begins[word + 1] - list->begins[word]);
}

/* Leaves out the words with counts below the report's. */
static void drop_rare_words(collection *found)
{
    tdm_word_list *list = found->list;
    tdm_word_count_report *report = found->report;
    int64_t kept = 0;
    uint64_t end = 0;
    for (int64_t i = 0; i < list->count; i++) {
        size_t bytes = word_bytes(list, i);
        if (list->counts[i] < report->pruned_below) {
            report->pruned++;
            report->pruned_total += list->counts[i];
            found->list_bytes -= TDM_TRAINING_BYTES(bytes);
            list->total -= list->counts[i];
            continue;
        }
        memmove(list->text + end, list->text + list->begins[i], bytes);
        list->counts[kept] = list->counts[i];
        list->begins[kept++] = end;
        end += bytes;
        /* begins[i + 1] is still to be read: kept <= i. */
    }
    list->count = kept;
    if (kept > 0)
        list->begins[kept] = end;
}

static int64_t least_count(const tdm_word_list *list)
{
    int64_t least = INT64_MAX;
    for (int64_t i = 0; i < list->count; i++)
        least = list->counts[i] < least ? list->counts[i] : least;
    return least;
}

static tdm_status collect_word(void *context, const tdm_word_entry *entry)
{
    collection *found = context;
    tdm_word_count_report *report = found->report;
    bool keep = entry->count >= report->pruned_below;
    if (keep)
        TDM_TRY(tdm_word_list_add(found->list, entry->word, entry->bytes, entry->count));
    if (found->writer != NULL)
        TDM_TRY(tdm_word_writer_add(found->writer, entry));
    report->distinct++;
    report->total += entry->count;
    if (!keep) {
        report->pruned++;
        report->pruned_total += entry->count;
        return TDM_OK;
    }
    found->list_bytes += TDM_TRAINING_BYTES(entry->bytes);
    if (found->list_bytes <= found->limit)
        return TDM_OK;
    while (found->list_bytes > found->limit / 4 * 3) {
        report->pruned_below = least_count(found->list) + 1;
        drop_rare_words(found);
    }
    return TDM_OK;
}

static tdm_status write_counts(void *context, const void *data, size_t bytes)
{
    return tdm_file_writer_write(context, data, bytes);
}

static void describe_settings(const tdm_tokenizer_settings *settings, char text[SETTINGS_BYTES])
{
    snprintf(text, SETTINGS_BYTES,
             "unicode=%s form=%s clean_text=%d handle_chinese_chars=%d lowercase=%d "
             "strip_accents=%d max_word_chars=%d",
             tdm_unicode_mode_names[settings->unicode], tdm_unicode_form_names[settings->form],
             settings->clean_text, settings->handle_chinese_chars, settings->lowercase,
             settings->strip_accents < 0 ? settings->lowercase : settings->strip_accents,
             settings->max_word_chars);
}

/* Merges all words into the list and, where a writer is given, into the file of word counts. */
static tdm_status collect_words(count_job *job, tdm_file_writer *file, collection *found)
{
    char settings[SETTINGS_BYTES];
    const tdm_word_count_options *options = job->options;
    if (file == NULL)
        return tdm_word_runs_merge(job->runs, collect_word, found);
    describe_settings(options->settings, settings);
    if (tdm_file_exists(options->counts_path)) {
        tdm_word_reader *reader;
        TDM_TRY(tdm_word_reader_open(options->counts_path, settings, &reader));
        TDM_TRY(tdm_word_runs_take_reader(job->runs, reader));
    }
    tdm_word_writer writer;
    tdm_status status = tdm_word_writer_open(write_counts, file, settings, &writer);
    found->writer = &writer;
    if (status == TDM_OK)
        status = tdm_word_runs_merge(job->runs, collect_word, found);
    if (status == TDM_OK)
        status = tdm_word_writer_end(&writer, true);
    tdm_word_writer_deinit(&writer);
    return status;
}

static void warn_of_pruned(const tdm_word_count_report *report)
{
    if (report->pruned > 0)
        tdm_warn("memory for training does not hold all %lld distinct words: the %lld that came "
                 "less than %lld times, %.3g %% of the text's words, are left out",
                 (long long)report->distinct, (long long)report->pruned,
                 (long long)report->pruned_below,
                 100 * (double)report->pruned_total / (double)report->total);
}

static tdm_status check_options(const tdm_word_count_options *options)
{
    int chars = options->settings->max_word_chars;
    TDM_FAIL_IF(chars < 1 || chars > TDM_WORD_BYTES_MAX / 4, TDM_E_ARG,
                "words of at most %d characters: from 1 to %d can be counted", chars,
                TDM_WORD_BYTES_MAX / 4);
    const char *end = options->counts_path == NULL ? NULL : strrchr(options->counts_path, '.');
    TDM_FAIL_IF(end != NULL && (strcmp(end, ".gz") == 0 || strcmp(end, ".zst") == 0), TDM_E_ARG,
                "%s: word counts are written as plain text: leave out the %s", options->counts_path,
                end);
    return TDM_OK;
}

tdm_status tdm_word_counts(const tdm_word_count_options *options, tdm_file_writer **counts,
                           tdm_word_list *list, tdm_word_count_report *report)
{
    *counts = NULL;
    *list = (tdm_word_list){0};
    *report = (tdm_word_count_report){.pruned_below = 1};
    collection found = {.list = list, .report = report, .limit = options->list_bytes};
    count_job job;
    TDM_TRY(check_options(options));
    tdm_status status = open_counting(&job, options);
    /* Before the work: a file that cannot be written is told at once. */
    if (status == TDM_OK && options->counts_path != NULL)
        status = tdm_file_writer_open(options->counts_path, counts);
    if (status == TDM_OK)
        status = count_texts(&job, report);
    if (status == TDM_OK)
        status = collect_words(&job, *counts, &found);
    close_counting(&job);
    if (status == TDM_OK) {
        warn_of_pruned(report);
        return TDM_OK;
    }
    tdm_file_writer_close(*counts);
    *counts = NULL;
    tdm_word_list_deinit(list);
    return status;
}
