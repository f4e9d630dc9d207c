#include "cli/label_lines.h"

#include "core/json.h"
#include "core/memory.h"
#include "data/csv_cell.h"
#include "data/utf8.h"
#include "text/label_block.h"

#include <string.h>

/* ---- classes --------------------------------------------------------------------------------- */

static int64_t likeliest(const float *probabilities, int64_t count)
{
    int64_t best = 0;
    for (int64_t c = 1; c < count; c++) {
        if (probabilities[c] > probabilities[best])
            best = c;
    }
    return best;
}

static tdm_status append_csv(tdm_text *text, const char *cell, size_t bytes)
{
    TDM_TRY(
        tdm_grow(&text->bytes, &text->capacity, text->length + tdm_csv_cell_most(bytes) + 1, 1));
    char *end = tdm_csv_cell_write(text->bytes + text->length, cell, bytes);
    *end = '\0';
    text->length = (size_t)(end - text->bytes);
    return TDM_OK;
}

static tdm_status append_class(const tdm_label_spec *spec, int64_t class, float probability,
                               tdm_text *text)
{
    size_t bytes;
    const char *name = tdm_class_name(spec, class, &bytes);
    TDM_TRY(append_csv(text, name, bytes));
    return tdm_text_printf(text, ",%.8g", (double)probability);
}

static tdm_status append_classes(const tdm_label_spec *spec, const float *probabilities,
                                 int64_t count, tdm_text *text)
{
    int64_t written = 0;
    for (int64_t c = 0; c < count; c++) {
        if (!(probabilities[c] > 0.5f))
            continue;
        if (written++ > 0)
            TDM_TRY(tdm_text_printf(text, ","));
        TDM_TRY(append_class(spec, c, probabilities[c], text));
    }
    return written > 0 ? TDM_OK : tdm_text_printf(text, "-");
}

/* ---- words ----------------------------------------------------------------------------------- */

/* The words of a record beside the answers, which are of some of them. */
typedef struct word_writer {
    const tdm_label_spec *spec;
    const tdm_block_answers *answers;
    int64_t next, end; /* answers */
    uint32_t word;     /* number */
    tdm_text *text;    /* or */
    json_t *list;
    tdm_status status;
} word_writer;

static json_t *probabilities_json(const tdm_label_spec *spec, const float *probabilities,
                                  int64_t count)
{
    json_t *object = json_object();
    for (int64_t c = 0; c < count; c++) {
        size_t bytes;
        const char *name = tdm_class_name(spec, c, &bytes);
        if (json_object_setn_new(object, name, bytes, tdm_json_number((double)probabilities[c])) !=
            0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

static json_t *class_json(const tdm_label_spec *spec, int64_t class)
{
    size_t bytes;
    const char *name = tdm_class_name(spec, class, &bytes);
    return json_stringn(name, bytes);
}

/* A word of any bytes: U+FFFD stands for those that are no UTF-8. NULL without memory. */
static json_t *word_json(const char *word, size_t bytes)
{
    char *valid;
    if (tdm_alloc(3 * bytes, 1, &valid) != TDM_OK)
        return NULL;
    json_t *json = json_stringn(valid == NULL ? "" : valid, tdm_utf8_replace(word, bytes, valid));
    tdm_free(valid);
    return json;
}

static tdm_status write_word(word_writer *writer, const char *word, size_t bytes,
                             const float *probabilities)
{
    int64_t columns = writer->answers->columns;
    int64_t class = probabilities == NULL ? -1 : likeliest(probabilities, columns);
    size_t name_bytes = 0;
    if (writer->list == NULL) {
        const char *name = class < 0 ? "" : tdm_class_name(writer->spec, class, &name_bytes);
        return tdm_text_printf(writer->text, "%.*s\t%.*s\n", (int)bytes, word, (int)name_bytes,
                               name);
    }
    json_t *one = json_object();
    bool failed = json_object_set_new(one, "word", word_json(word, bytes)) != 0;
    if (class < 0)
        failed |= json_object_set_new(one, "class", json_null()) != 0;
    else
        failed |=
            json_object_set_new(one, "class", class_json(writer->spec, class)) != 0 ||
            json_object_set_new(one, "probabilities",
                                probabilities_json(writer->spec, probabilities, columns)) != 0;
    failed |= json_array_append_new(writer->list, one) != 0;
    TDM_FAIL_IF(failed, TDM_E_NOMEM, "out of memory for an answer in JSON");
    return TDM_OK;
}

static void take_word(void *context, const char *word, size_t bytes)
{
    word_writer *writer = context;
    const float *probabilities = NULL;
    if (writer->next < writer->end && writer->answers->words[writer->next] == writer->word)
        probabilities = writer->answers->numbers + writer->next++ * writer->answers->columns;
    writer->word++;
    if (writer->status == TDM_OK)
        writer->status = write_word(writer, word, bytes, probabilities);
}

static tdm_status write_words(const tdm_label_spec *spec, const tdm_extract *block,
                              const tdm_block_answers *answers, int64_t record, tdm_text *text,
                              json_t *list)
{
    uint64_t begin = record > 0 ? block->key_ends[record - 1] : 0;
    word_writer writer = {
        .spec = spec,
        .answers = answers,
        .next = record > 0 ? answers->word_ends[record - 1] : 0,
        .end = answers->word_ends[record],
        .text = text,
        .list = list,
    };
    tdm_label_words(spec, block->keys + begin, (size_t)(block->key_ends[record] - begin), take_word,
                    &writer);
    return writer.status;
}

/* ---- records --------------------------------------------------------------------------------- */

static tdm_status append_answer(const tdm_label_spec *spec, const tdm_extract *block,
                                const tdm_block_answers *answers, int64_t record, tdm_text *text)
{
    const float *numbers = answers->numbers + record * answers->columns;
    int64_t class;
    switch (spec->type) {
    case TDM_LABEL_CLASSES:
        class = likeliest(numbers, answers->columns);
        return append_class(spec, class, numbers[class], text);
    case TDM_LABEL_MULTIPLE:
        return append_classes(spec, numbers, answers->columns, text);
    case TDM_LABEL_REGRESSION:
        return tdm_text_printf(text, "%.8g", (double)numbers[0]);
    case TDM_LABEL_TOKENS:
        break;
    }
    return write_words(spec, block, answers, record, text, NULL);
}

static json_t *classes_json(const tdm_label_spec *spec, const float *probabilities, int64_t count)
{
    json_t *list = json_array();
    for (int64_t c = 0; c < count; c++) {
        if (probabilities[c] > 0.5f && json_array_append_new(list, class_json(spec, c)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static tdm_status make_json(const tdm_label_spec *spec, const tdm_extract *block,
                            const tdm_block_answers *answers, int64_t record, json_t **out)
{
    const float *numbers = answers->numbers + record * answers->columns;
    int64_t class;
    json_t *words;
    switch (spec->type) {
    case TDM_LABEL_CLASSES:
        class = likeliest(numbers, answers->columns);
        *out = json_pack("{s:o, s:o, s:o}", "class", class_json(spec, class), "probability",
                         tdm_json_number((double)numbers[class]), "probabilities",
                         probabilities_json(spec, numbers, answers->columns));
        return TDM_OK;
    case TDM_LABEL_MULTIPLE:
        *out = json_pack("{s:o, s:o}", "classes", classes_json(spec, numbers, answers->columns),
                         "probabilities", probabilities_json(spec, numbers, answers->columns));
        return TDM_OK;
    case TDM_LABEL_REGRESSION:
        *out = json_pack("{s:o}", "value", tdm_json_number((double)numbers[0]));
        return TDM_OK;
    case TDM_LABEL_TOKENS:
        break;
    }
    words = json_array();
    *out = json_pack("{s:o}", "words", words);
    return *out == NULL ? TDM_OK : write_words(spec, block, answers, record, NULL, words);
}

static tdm_status append_json(const tdm_label_spec *spec, const tdm_extract *block,
                              const tdm_block_answers *answers, int64_t record, tdm_text *text)
{
    json_t *json = NULL;
    tdm_status status = make_json(spec, block, answers, record, &json);
    char *line = json == NULL ? NULL : json_dumps(json, JSON_REAL_PRECISION(9));
    json_decref(json);
    if (status == TDM_OK && line == NULL)
        status = tdm_fail(TDM_E_NOMEM, "out of memory for an answer in JSON");
    if (status == TDM_OK)
        status = tdm_text_printf(text, "%s", line);
    free(line);
    return status;
}

tdm_status tdm_label_line(const tdm_label_spec *spec, const tdm_extract *block,
                          const tdm_block_answers *answers, int64_t record, bool json,
                          tdm_text *text)
{
    TDM_TRY(json ? append_json(spec, block, answers, record, text)
                 : append_answer(spec, block, answers, record, text));
    return tdm_text_printf(text, "\n");
}
