#include "cli/options.h"

#include "core/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OPTIONS 32

/* ---- finding options ------------------------------------------------------------------------- */

static int option_count(const tdm_verb *verb)
{
    int count = 0;
    while (verb->options != NULL && verb->options[count].name != NULL)
        count++;
    return count;
}

/* The first `bytes` of `name` count: "--rows=5" is looked up by "rows". */
static const tdm_option *find_option(const tdm_verb *verb, const char *name, size_t bytes)
{
    for (int i = 0; i < option_count(verb); i++) {
        const char *candidate = verb->options[i].name;
        if (strlen(candidate) == bytes && memcmp(candidate, name, bytes) == 0)
            return &verb->options[i];
    }
    return NULL;
}

static const tdm_option *find_letter(const tdm_verb *verb, char letter)
{
    for (int i = 0; i < option_count(verb); i++) {
        if (verb->options[i].letter == letter)
            return &verb->options[i];
    }
    return NULL;
}

static tdm_status unknown_option(const tdm_verb *verb, const char *word)
{
    const char *names[MAX_OPTIONS + 1] = {"help"};
    int count = 1;
    for (int i = 0; i < option_count(verb) && count <= MAX_OPTIONS; i++)
        names[count++] = verb->options[i].name;
    char name[64];
    snprintf(name, sizeof name, "%s", word + strspn(word, "-"));
    name[strcspn(name, "=")] = '\0';
    const char *near = tdm_nearest(name, names, count);
    return tdm_fail(TDM_E_ARG, "unknown option %s%s%s%s", word,
                    near != NULL ? "; did you mean --" : "", near != NULL ? near : "",
                    near != NULL ? "?" : "");
}

/* ---- values ---------------------------------------------------------------------------------- */

static tdm_status add_text(tdm_strings *texts, const char *value)
{
    size_t capacity = (size_t)texts->count;
    TDM_TRY(tdm_grow(&texts->items, &capacity, (size_t)texts->count + 1, sizeof *texts->items));
    /* Borrowed from argv: nobody writes through it. */
    texts->items[texts->count++] = (char *)(uintptr_t)value;
    return TDM_OK;
}

static tdm_status set_int(const tdm_option *option, const char *value, int64_t *out)
{
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    bool digits = value[0] == '-' || (value[0] >= '0' && value[0] <= '9');
    TDM_FAIL_IF(!digits || *end != '\0' || errno != 0 || number < option->min ||
                    number > option->max,
                TDM_E_ARG, "--%s takes a whole number from %lld to %lld, not \"%s\"", option->name,
                (long long)option->min, (long long)option->max, value);
    *out = number;
    return TDM_OK;
}

static tdm_status set_value(const tdm_option *option, const char *value, void *values)
{
    void *place = (char *)values + option->offset;
    switch (option->type) {
    case TDM_OPTION_FLAG:
        *(bool *)place = true;
        return TDM_OK;
    case TDM_OPTION_TEXT:
        *(const char **)place = value;
        return TDM_OK;
    case TDM_OPTION_TEXTS:
        return add_text(place, value);
    case TDM_OPTION_INT:
        return set_int(option, value, place);
    }
    return TDM_OK;
}

static void set_fallbacks(tdm_command *command)
{
    for (int i = 0; i < option_count(command->verb); i++) {
        const tdm_option *option = &command->verb->options[i];
        if (option->type == TDM_OPTION_INT)
            *(int64_t *)(void *)((char *)command->values + option->offset) = option->fallback;
    }
}

/* ---- parsing --------------------------------------------------------------------------------- */

typedef struct word_list {
    int count;
    const char *const *words;
    int next;
} word_list;

/* "--name VALUE", "--name=VALUE", "-o VALUE" or a flag. */
static tdm_status parse_option(tdm_command *command, word_list *list, const char *word)
{
    bool is_long = word[1] == '-';
    const char *name = word + 2;
    size_t bytes = strcspn(name, "=");
    const tdm_option *option = NULL;
    if (is_long)
        option = find_option(command->verb, name, bytes);
    else if (word[2] == '\0')
        option = find_letter(command->verb, word[1]);
    if (option == NULL)
        return unknown_option(command->verb, word);
    const char *value = is_long && name[bytes] == '=' ? name + bytes + 1 : NULL;
    TDM_FAIL_IF(option->type == TDM_OPTION_FLAG && value != NULL, TDM_E_ARG, "--%s takes no value",
                option->name);
    if (option->type != TDM_OPTION_FLAG && value == NULL) {
        TDM_FAIL_IF(list->next >= list->count, TDM_E_ARG, "%s needs a value: %s %s", word, word,
                    option->value);
        value = list->words[list->next++];
    }
    return set_value(option, value, command->values);
}

/* "train.epochs=2": lower-case words joined by dots before a '='. */
static bool is_override(const char *word)
{
    size_t bytes = strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_.");
    return bytes > 0 && word[bytes] == '=' && word[0] >= 'a' && word[0] <= 'z';
}

static tdm_status parse_words(tdm_command *command, word_list *list)
{
    bool plain_only = false;
    while (list->next < list->count) {
        const char *word = list->words[list->next++];
        if (plain_only || word[0] != '-' || word[1] == '\0') {
            if (!plain_only && command->verb->takes_overrides && is_override(word))
                command->overrides[command->override_count++] = word;
            else
                command->plain[command->plain_count++] = word;
        } else if (strcmp(word, "--") == 0) {
            plain_only = true;
        } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            command->help = true;
        } else {
            TDM_TRY(parse_option(command, list, word));
        }
    }
    return TDM_OK;
}

static tdm_status check_count(const tdm_command *command)
{
    const tdm_verb *verb = command->verb;
    TDM_FAIL_IF(command->plain_count < verb->min_plain, TDM_E_ARG,
                "too few arguments: tandem %s %s", verb->name, verb->arguments);
    TDM_FAIL_IF(verb->max_plain >= 0 && command->plain_count > verb->max_plain, TDM_E_ARG,
                "\"%s\" is one argument too many: tandem %s %s", command->plain[verb->max_plain],
                verb->name, verb->arguments);
    return TDM_OK;
}

tdm_status tdm_command_parse(const tdm_verb *verb, int count, const char *const *words,
                             tdm_command *out)
{
    *out = (tdm_command){.verb = verb};
    word_list list = {.count = count, .words = words};
    tdm_status status;
    TDM_TRY_GOTO(tdm_alloc((size_t)count + 1, sizeof *out->plain, &out->plain), fail);
    TDM_TRY_GOTO(tdm_alloc((size_t)count + 1, sizeof *out->overrides, &out->overrides), fail);
    TDM_TRY_GOTO(tdm_alloc(1, verb->values_bytes, &out->values), fail);
    set_fallbacks(out);
    TDM_TRY_GOTO(parse_words(out, &list), fail);
    if (!out->help)
        TDM_TRY_GOTO(check_count(out), fail);
    return TDM_OK;
fail:
    tdm_command_deinit(out);
    return status;
}

void tdm_command_deinit(tdm_command *command)
{
    for (int i = 0; command->values != NULL && i < option_count(command->verb); i++) {
        const tdm_option *option = &command->verb->options[i];
        if (option->type == TDM_OPTION_TEXTS)
            tdm_free(((tdm_strings *)(void *)((char *)command->values + option->offset))->items);
    }
    tdm_free(command->plain);
    tdm_free(command->overrides);
    tdm_free(command->values);
    *command = (tdm_command){0};
}

tdm_strings tdm_command_files(const tdm_command *command, int first)
{
    static const char *const only_stdin[] = {"-"};
    bool named = command->plain_count > first;
    return (tdm_strings){.items = (char **)(uintptr_t)(named ? command->plain + first : only_stdin),
                         .count = named ? command->plain_count - first : 1};
}

/* ---- help ------------------------------------------------------------------------------------ */

#define HELP_COLUMN 24

static tdm_status describe_option(const tdm_option *option, tdm_text *text)
{
    char left[64];
    char letter[8] = "";
    if (option->letter != 0)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    snprintf(left, sizeof left, "%s--%s%s%s", letter, option->name,
             option->value != NULL ? " " : "", option->value != NULL ? option->value : "");
    return tdm_text_printf(text, "  %-*s%s%s\n", HELP_COLUMN, left,
                           strlen(left) < HELP_COLUMN ? "" : "  ", option->help);
}

tdm_status tdm_verb_describe(const tdm_verb *verb, tdm_text *text)
{
    int count = option_count(verb);
    TDM_TRY(tdm_text_printf(text, "Usage: tandem %s%s%s%s\n\n%s\n", verb->name,
                            verb->arguments[0] != '\0' ? " " : "", verb->arguments,
                            count > 0 ? " [options]" : "", verb->text));
    if (count > 0)
        TDM_TRY(tdm_text_printf(text, "\nOptions:\n"));
    for (int i = 0; i < count; i++)
        TDM_TRY(describe_option(&verb->options[i], text));
    return TDM_OK;
}
