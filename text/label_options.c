#include "text/label_options.h"

#include "core/memory.h"
#include "text/vocabulary.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char *const types[] = {"classes", "multiple", "regression", "tokens", NULL};

#define AT(member) offsetof(tdm_label_options, member)

static const tdm_config_key keys[] = {
    {.name = "type",
     .type = TDM_CONFIG_CHOICE,
     .offset = AT(type),
     .fallback = "classes",
     .choices = types,
     .help = "one class of a text, any number of them, a number, or a class of each word"},
    {.name = "column",
     .type = TDM_CONFIG_STRING,
     .offset = AT(column),
     .fallback = "label",
     .help = "the column, or field, that holds the label"},
    {.name = "text",
     .type = TDM_CONFIG_STRING,
     .offset = AT(text),
     .fallback = "text",
     .help = "the column, or field, that holds the text"},
    {.name = "text_pair",
     .type = TDM_CONFIG_STRING,
     .offset = AT(text_pair),
     .fallback = "~",
     .help = "the column, or field, that holds a second text; ~: there is none"},
    {.name = "classes",
     .type = TDM_CONFIG_STRINGS,
     .offset = AT(classes),
     .fallback = "auto",
     .help = "their names; auto: those in data.train, sorted, which takes one pass over it"},
    {.name = "separator",
     .type = TDM_CONFIG_STRING,
     .offset = AT(separator),
     .fallback = "~",
     .help = "multiple, tokens: between the labels of a cell, as data.separator; ~: comma, and "
             "white space between those of tokens"},
};

const tdm_config_schema tdm_label_schema = {
    .size = sizeof(tdm_label_options), .keys = keys, .count = sizeof keys / sizeof keys[0]};

bool tdm_label_classes_are_auto(const tdm_label_options *options)
{
    return options->type != TDM_LABEL_REGRESSION && options->classes.count == 1 &&
           strcmp(options->classes.items[0], "auto") == 0;
}

char tdm_label_separator(const tdm_label_options *options)
{
    char separator = options->type == TDM_LABEL_MULTIPLE ? ',' : '\0';
    if (options->separator != NULL)
        (void)tdm_separator_parse(options->separator, &separator);
    return separator;
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* At the key, where the recipe has it. */
static tdm_status refuse(const tdm_config_node *section, const char *key, const char *message)
{
    const tdm_config_node *node = tdm_config_get(section, key);
    if (node != NULL)
        return tdm_config_fail(node, "%s", message);
    return tdm_fail(TDM_E_CONFIG, "labels.%s: %s", key, message);
}

static tdm_status check_separator(const tdm_label_options *options, const tdm_data_options *data,
                                  const tdm_config_node *section)
{
    bool many = options->type == TDM_LABEL_MULTIPLE || options->type == TDM_LABEL_TOKENS;
    char own = tdm_label_separator(options), between = '\0';
    if (options->separator != NULL && !many)
        return refuse(section, "separator", "goes with type: multiple and tokens");
    if (options->separator != NULL && !tdm_separator_parse(options->separator, &own))
        return refuse(section, "separator",
                      "expected one ASCII character, or tab, comma, semicolon, space or pipe");
    const tdm_record_format_type *format = tdm_record_formats[data->format];
    between = format->separator;
    if (data->separator != NULL)
        (void)tdm_separator_parse(data->separator, &between);
    if (many && own != '\0' && own == between && format != &tdm_format_text)
        return refuse(section, "separator",
                      "is what separates columns (data.separator): name another one");
    return TDM_OK;
}

static const char blanks[] = " \t\n\v\f\r";

/* So that no cell can say the class. */
static bool holds_separator(const tdm_label_options *options, const char *name)
{
    char separator = tdm_label_separator(options);
    if (options->type != TDM_LABEL_MULTIPLE && options->type != TDM_LABEL_TOKENS)
        return false;
    return separator == '\0' ? strpbrk(name, blanks) != NULL : strchr(name, separator) != NULL;
}

/* `in_lists`: labels may stand in lists, where nothing separates them. */
static tdm_status check_class(const tdm_label_options *options, int64_t index, bool in_lists,
                              const tdm_config_node *section, tdm_vocabulary *seen)
{
    const char *name = options->classes.items[index];
    size_t bytes = strlen(name);
    char message[256];
    int64_t before;
    if (bytes == 0 || strchr(blanks, name[0]) != NULL || strchr(blanks, name[bytes - 1]) != NULL)
        return refuse(section, "classes", "a name is empty, or begins or ends with a blank");
    TDM_TRY(tdm_vocabulary_add(seen, (uint32_t)index, name, bytes, &before));
    if (before >= 0) {
        snprintf(message, sizeof message, "names %.200s twice", name);
        return refuse(section, "classes", message);
    }
    if (!in_lists && holds_separator(options, name)) {
        snprintf(message, sizeof message, "%.200s holds what separates labels (labels.separator)",
                 name);
        return refuse(section, "classes", message);
    }
    return TDM_OK;
}

static tdm_status check_classes(const tdm_label_options *options, const tdm_data_options *data,
                                const tdm_config_node *section)
{
    bool in_lists = tdm_record_formats[data->format] == &tdm_format_jsonl;
    int64_t count = options->classes.count;
    if (options->type == TDM_LABEL_REGRESSION) {
        bool named = count != 1 || strcmp(options->classes.items[0], "auto") != 0;
        return named ? refuse(section, "classes", "regression has none: take them out") : TDM_OK;
    }
    if (tdm_label_classes_are_auto(options))
        return TDM_OK;
    if (count == 0 || (count == 1 && options->type != TDM_LABEL_MULTIPLE))
        return refuse(section, "classes", "expected two at least, or auto");
    if (count > TDM_MAX_CLASSES)
        return refuse(section, "classes", "there are more than 65536");
    tdm_vocabulary seen = {0};
    tdm_status status = TDM_OK;
    for (int64_t i = 0; i < count && status == TDM_OK; i++)
        status = check_class(options, i, in_lists, section, &seen);
    tdm_vocabulary_deinit(&seen);
    return status;
}

static tdm_status check_columns(const tdm_label_options *options, const tdm_config_node *section)
{
    const char *pair = options->text_pair;
    if (strcmp(options->text, options->column) == 0)
        return refuse(section, "text", "is the column of the label");
    if (pair == NULL)
        return TDM_OK;
    if (options->type == TDM_LABEL_TOKENS)
        return refuse(section, "text_pair", "goes with labels of whole texts, not with tokens");
    if (strcmp(pair, options->text) == 0 || strcmp(pair, options->column) == 0)
        return refuse(section, "text_pair", "is the column of the text, or of the label");
    return TDM_OK;
}

tdm_status tdm_label_options_check(const tdm_label_options *options, const tdm_data_options *data,
                                   const tdm_config_node *section)
{
    TDM_TRY(check_columns(options, section));
    TDM_TRY(check_separator(options, data, section));
    return check_classes(options, data, section);
}
