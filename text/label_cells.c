#include "text/label_cells.h"

#include <stdio.h>
#include <string.h>

/* ---- items ----------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

tdm_slice tdm_cell_of(const tdm_records *records, int64_t record, int32_t column)
{
    tdm_span cell = records->cells[record * records->columns + column];
    return (tdm_slice){records->text + cell.begin, cell.end - cell.begin};
}

tdm_slice tdm_trimmed(tdm_slice slice)
{
    while (slice.bytes > 0 && is_blank(slice.text[slice.bytes - 1]))
        slice.bytes--;
    while (slice.bytes > 0 && is_blank(slice.text[0])) {
        slice.text++;
        slice.bytes--;
    }
    return slice;
}

tdm_item_list tdm_items_of(tdm_slice cell, char separator)
{
    if (cell.bytes > 0 && cell.text[cell.bytes - 1] == '\n') {
        cell.bytes--;
        separator = '\n';
    } else if (tdm_trimmed(cell).bytes == 0) {
        cell.text = NULL;
    }
    return (tdm_item_list){cell, separator};
}

/* Cuts off the first `bytes` of the rest, and `gap` behind them. */
static tdm_slice cut(tdm_item_list *list, size_t bytes, size_t gap)
{
    tdm_slice item = {list->rest.text, bytes};
    list->rest.text += bytes + gap;
    list->rest.bytes -= bytes + gap;
    return item;
}

static bool next_blank_separated(tdm_item_list *list, tdm_slice *item)
{
    list->rest = tdm_trimmed(list->rest);
    size_t bytes = 0;
    while (bytes < list->rest.bytes && !is_blank(list->rest.text[bytes]))
        bytes++;
    *item = cut(list, bytes, 0);
    return bytes > 0;
}

bool tdm_next_item(tdm_item_list *list, tdm_slice *item)
{
    if (list->rest.text == NULL)
        return false;
    if (list->separator == '\0')
        return next_blank_separated(list, item);
    const char *end = memchr(list->rest.text, list->separator, list->rest.bytes);
    if (end != NULL) {
        *item = cut(list, (size_t)(end - list->rest.text), 1);
    } else {
        *item = list->rest;
        list->rest.text = NULL;
    }
    *item = tdm_trimmed(*item);
    return true;
}

/* ---- reasons --------------------------------------------------------------------------------- */

static void show(tdm_slice slice, char *out, size_t bytes)
{
    char text[96];
    size_t length = slice.bytes < sizeof text ? slice.bytes : sizeof text - 1;
    memcpy(text, slice.text, length);
    text[length] = '\0';
    tdm_printable(text, out, bytes);
}

void tdm_refuse_label(const tdm_label_spec *spec, tdm_slice label, tdm_label_reason *reason)
{
    char shown[64];
    if (label.bytes == 0) {
        snprintf(reason->text, sizeof reason->text, "the label is missing");
        return;
    }
    show(label, shown, sizeof shown);
    int length =
        snprintf(reason->text, sizeof reason->text, "\"%s\" is none of the %lld classes: ", shown,
                 (long long)spec->classes.size);
    for (int64_t i = 0; i < spec->classes.size; i++) {
        size_t room = sizeof reason->text - (size_t)length, bytes;
        const char *name = tdm_class_name(spec, i, &bytes);
        show((tdm_slice){name, bytes}, shown, sizeof shown);
        if (room < sizeof shown + 16) {
            snprintf(reason->text + length, room, ", ...");
            break;
        }
        length += snprintf(reason->text + length, room, "%s%s", i > 0 ? ", " : "", shown);
    }
}

void tdm_refuse_word_label(const tdm_labelled_words *words, tdm_slice label,
                           tdm_label_reason *reason)
{
    tdm_label_reason why;
    tdm_refuse_label(words->spec, label, &why);
    if (words->spec->lines)
        snprintf(reason->text, sizeof reason->text, "its line %lld: %.320s",
                 (long long)words->count, why.text);
    else
        *reason = why;
}

/* ---- words ----------------------------------------------------------------------------------- */

tdm_labelled_words tdm_words_of(const tdm_label_spec *spec, const tdm_records *records,
                                int64_t record)
{
    tdm_labelled_words words = {.spec = spec};
    tdm_slice text = tdm_cell_of(records, record, spec->lines ? 0 : spec->text);
    if (spec->lines) {
        words.words = (tdm_item_list){text, '\n'};
        return words;
    }
    words.words = tdm_items_of(text, '\0');
    if (spec->label >= 0)
        words.labels = tdm_items_of(tdm_cell_of(records, record, spec->label), spec->separator);
    return words;
}

static int64_t count_left(tdm_item_list *list)
{
    tdm_slice item;
    int64_t count = 0;
    while (tdm_next_item(list, &item))
        count++;
    return count;
}

static bool next_of_cells(tdm_labelled_words *words, tdm_slice *word, tdm_slice *label,
                          tdm_label_reason *reason)
{
    bool has_word = tdm_next_item(&words->words, word);
    bool has_label = words->spec->label < 0 ? has_word : tdm_next_item(&words->labels, label);
    if (has_word != has_label) {
        long long count = words->count + has_word + count_left(&words->words);
        long long labels = words->count + has_label + count_left(&words->labels);
        snprintf(reason->text, sizeof reason->text, "%lld words have %lld labels", count, labels);
        return false;
    }
    words->count++;
    return has_word;
}

/* A file of CoNLL tells its own documents by such a line, which is no word. */
static bool begins_document(tdm_slice line)
{
    static const char mark[] = "-DOCSTART-";
    return line.bytes >= sizeof mark - 1 && memcmp(line.text, mark, sizeof mark - 1) == 0;
}

/* The cells of a line that hold the word and its label; returns how many cells there are. */
static int64_t split_line(const tdm_label_spec *spec, tdm_slice line, tdm_slice *word,
                          tdm_slice *label)
{
    tdm_item_list cells = {line, spec->line_separator};
    tdm_slice cell;
    int64_t count = 0;
    for (; tdm_next_item(&cells, &cell); count++) {
        if (count == spec->text || (count == 0 && spec->use == TDM_LABEL_PREDICTION))
            *word = cell;
        if (count == spec->label)
            *label = cell;
    }
    return count;
}

static bool next_line(tdm_labelled_words *words, tdm_slice *line)
{
    const tdm_label_spec *spec = words->spec;
    do {
        if (!tdm_next_item(&words->words, line))
            return false;
        words->count++;
    } while (line->bytes == 0 || (spec->use == TDM_LABEL_TRAINING && begins_document(*line)));
    return true;
}

static bool next_of_lines(tdm_labelled_words *words, tdm_slice *word, tdm_slice *label,
                          tdm_label_reason *reason)
{
    const tdm_label_spec *spec = words->spec;
    tdm_slice line;
    if (!next_line(words, &line))
        return false;
    int64_t count = split_line(spec, line, word, label);
    bool only_word = spec->use == TDM_LABEL_PREDICTION && count == 1;
    if (count == spec->line_columns || only_word)
        return true;
    snprintf(reason->text, sizeof reason->text, "its line %lld has %lld columns, expected %d",
             (long long)words->count, (long long)count, spec->line_columns);
    return false;
}

bool tdm_next_word(tdm_labelled_words *words, tdm_slice *word, tdm_slice *label,
                   tdm_label_reason *reason)
{
    *word = *label = (tdm_slice){0};
    reason->text[0] = '\0';
    return words->spec->lines ? next_of_lines(words, word, label, reason)
                              : next_of_cells(words, word, label, reason);
}
