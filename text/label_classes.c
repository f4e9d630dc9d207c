#include "text/label_classes.h"

#include "core/log.h"
#include "core/memory.h"
#include "core/number.h"
#include "data/bad_records.h"
#include "data/block_stream.h"
#include "text/label_cells.h"

#include <stdlib.h>
#include <string.h>

/* More than people tell apart, where nearly each comes once. */
#define MANY_CLASSES 50

/* ---- a featurizer that notes labels and makes no rows ---------------------------------------- */

/* What a thread saw. */
typedef struct seen_labels {
    tdm_vocabulary names;
    int64_t count;
} seen_labels;

typedef struct class_finder {
    tdm_featurizer base;
    const tdm_label_spec *spec;
    bool has_header;
    seen_labels *seen; /* [threads] */
    int threads;
    int64_t bad_records;
} class_finder;

static tdm_status note_name(const class_finder *finder, tdm_vocabulary *seen, tdm_slice label)
{
    const char *name = finder->spec->label_name;
    if (tdm_vocabulary_find(seen, label.text, label.bytes) >= 0)
        return TDM_OK;
    bool is_name = label.bytes == strlen(name) && memcmp(label.text, name, label.bytes) == 0;
    TDM_FAIL_IF(
        is_name && !finder->has_header, TDM_E_DATA,
        "labels.column: a record has the label %s, the name of its column: where files begin "
        "with a header, say data.header: true",
        name);
    TDM_FAIL_IF(memchr(label.text, 0, label.bytes) != NULL ||
                    !tdm_utf8_valid(label.text, label.bytes),
                TDM_E_DATA, "labels.column: a label in %s is not text in UTF-8", name);
    TDM_FAIL_IF(seen->size == TDM_MAX_CLASSES, TDM_E_DATA,
                "labels.column: %s has more than %d different labels: is it the right column? "
                "Numbers are learnt with labels.type: regression",
                name, TDM_MAX_CLASSES);
    return tdm_vocabulary_add(seen, (uint32_t)seen->size, label.text, label.bytes, NULL);
}

static tdm_status note_label(const class_finder *finder, seen_labels *seen, tdm_slice label)
{
    if (label.bytes == 0)
        return TDM_OK;
    seen->count++;
    return note_name(finder, &seen->names, label);
}

static tdm_status note_words(const class_finder *finder, seen_labels *seen,
                             const tdm_records *records, int64_t record)
{
    tdm_labelled_words words = tdm_words_of(finder->spec, records, record);
    tdm_slice word, label;
    tdm_label_reason reason;
    while (tdm_next_word(&words, &word, &label, &reason))
        TDM_TRY(note_label(finder, seen, label));
    return TDM_OK;
}

static tdm_status note_record(const class_finder *finder, seen_labels *seen,
                              const tdm_records *records, int64_t record)
{
    const tdm_label_spec *spec = finder->spec;
    if (spec->type == TDM_LABEL_TOKENS)
        return note_words(finder, seen, records, record);
    tdm_slice cell = tdm_cell_of(records, record, spec->label), item;
    if (spec->type == TDM_LABEL_CLASSES)
        return note_label(finder, seen, tdm_trimmed(cell));
    tdm_item_list items = tdm_items_of(cell, spec->separator);
    while (tdm_next_item(&items, &item))
        TDM_TRY(note_label(finder, seen, item));
    return TDM_OK;
}

static tdm_status extract(const tdm_featurizer *base, const tdm_records *records, tdm_extract *out,
                          uint32_t *row_records, int64_t *rows,
                          void (*reject)(void *context, int64_t record, int32_t column,
                                         const char *reason),
                          void *context)
{
    (void)out;
    (void)row_records;
    (void)reject;
    (void)context;
    const class_finder *finder = (const class_finder *)base;
    *rows = 0;
    for (int64_t i = 0; i < records->count; i++)
        TDM_TRY(note_record(finder, &finder->seen[tdm_pool_thread_index()], records, i));
    return TDM_OK;
}

static const tdm_featurizer_type finder_type = {.name = "classes", .extract = extract};

static tdm_status add_bad_records(class_finder *finder, tdm_input *input, const tdm_extract *block,
                                  tdm_bad_record_log *log)
{
    const tdm_bad_report report = tdm_bad_report_of(block);
    finder->bad_records += (int64_t)block->bad_count;
    return log == NULL ? TDM_OK : tdm_bad_record_log_add(log, input, &report);
}

/* `log` may be NULL. */
static tdm_status read_all(class_finder *finder, tdm_input *input, tdm_pool *pool,
                           tdm_bad_record_log *log)
{
    tdm_extractor *extractor;
    tdm_block_stream *stream = NULL;
    TDM_TRY(tdm_extractor_create(&finder->base, input, pool, TDM_SELECT_ALL, 0, &extractor));
    tdm_status status = tdm_block_stream_open(extractor, pool, &stream);
    while (status == TDM_OK) {
        tdm_extract *block = NULL;
        if (tdm_input_cancelled(input))
            status = tdm_fail(TDM_E_CANCELLED, "stopped while looking for classes");
        else
            status = tdm_block_stream_next(stream, &block);
        if (status != TDM_OK || block == NULL)
            break;
        status = add_bad_records(finder, input, block, log);
    }
    tdm_block_stream_close(stream);
    tdm_extractor_destroy(extractor);
    return status;
}

/* ---- the list -------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    const char *left = *(char *const *)a, *right = *(char *const *)b;
    double x, y;
    bool is_x = tdm_parse_number(left, strlen(left), &x);
    bool is_y = tdm_parse_number(right, strlen(right), &y);
    if (is_x != is_y)
        return is_x ? -1 : 1;
    if (is_x && x != y)
        return x < y ? -1 : 1;
    return strcmp(left, right);
}

/* What the first thread saw grows by what the others did. */
static tdm_status merge(const class_finder *finder)
{
    seen_labels *all = &finder->seen[0];
    for (int t = 1; t < finder->threads; t++) {
        const tdm_vocabulary *seen = &finder->seen[t].names;
        all->count += finder->seen[t].count;
        for (int64_t i = 0; i < seen->size; i++) {
            const tdm_slice label = {seen->text + seen->begins[i], seen->bytes[i]};
            TDM_TRY(note_name(finder, &all->names, label));
        }
    }
    return TDM_OK;
}

static tdm_status list_names(const class_finder *finder, tdm_strings *out)
{
    const tdm_vocabulary *all = &finder->seen[0].names;
    const char *column = finder->spec->label_name;
    TDM_FAIL_IF(all->size == 1 && finder->spec->type != TDM_LABEL_MULTIPLE, TDM_E_DATA,
                "labels.column: every record has the same label in %s, %.*s: there is nothing to "
                "learn",
                column, (int)all->bytes[0], all->text);
    if (all->size > MANY_CLASSES && 2 * all->size > finder->seen[0].count)
        tdm_warn(
            "labels.column: %s has %lld different labels, and has %lld in all: is it the right "
            "column?",
            column, (long long)all->size, (long long)finder->seen[0].count);
    TDM_TRY(tdm_alloc((size_t)all->size, sizeof *out->items, &out->items));
    for (; out->count < all->size; out->count++)
        TDM_TRY(tdm_strndup(all->text + all->begins[out->count], all->bytes[out->count],
                            &out->items[out->count]));
    qsort(out->items, (size_t)out->count, sizeof *out->items, compare_names);
    return TDM_OK;
}

/* Where records were bad, which training would tell, the first of them is why there is no label. */
static tdm_status fail_without_labels(class_finder *finder, tdm_input *input, tdm_pool *pool)
{
    const char *column = finder->spec->label_name;
    if (finder->bad_records > 0) {
        const tdm_share any = {.value = 1, .is_share = true};
        tdm_bad_record_log *log;
        TDM_TRY(tdm_bad_record_log_create(TDM_BAD_RECORD_FAIL, any, NULL, &log));
        tdm_status status = read_all(finder, input, pool, log);
        tdm_bad_record_log_destroy(log);
        TDM_TRY(status);
    }
    return tdm_fail(TDM_E_DATA, "labels.column: no record has a label in %s", column);
}

static tdm_status find(class_finder *finder, tdm_input *input, tdm_pool *pool, tdm_strings *out)
{
    TDM_TRY(tdm_alloc((size_t)finder->threads, sizeof *finder->seen, &finder->seen));
    TDM_TRY(read_all(finder, input, pool, NULL));
    TDM_TRY(merge(finder));
    if (finder->seen[0].names.size == 0)
        return fail_without_labels(finder, input, pool);
    return list_names(finder, out);
}

tdm_status tdm_label_classes_find(const tdm_label_spec *spec, tdm_input *input, tdm_pool *pool,
                                  tdm_strings *out)
{
    const tdm_record_format *format = tdm_input_format(input);
    class_finder finder = {.base = {.type = &finder_type, .columns.rows_are_pieces = true},
                           .spec = spec,
                           .has_header = format->header == TDM_HEADER_YES || spec->lines,
                           .threads = tdm_pool_threads(pool)};
    *out = (tdm_strings){0};
    TDM_FAIL_IF(tdm_input_is_stdin(input), TDM_E_CONFIG,
                "labels.classes: finding them takes a pass of its own, and standard input can be "
                "read only once: name them");
    tdm_status status = find(&finder, input, pool, out);
    if (status != TDM_OK)
        tdm_strings_free(out);
    for (int i = 0; finder.seen != NULL && i < finder.threads; i++)
        tdm_vocabulary_deinit(&finder.seen[i].names);
    tdm_free(finder.seen);
    return status;
}
