/* tandem help: the verbs, one verb, or the keys of a recipe. */
#include "cli/console.h"
#include "cli/verbs.h"
#include "trainer/recipe.h"

static tdm_status describe(const tdm_command *command, tdm_text *text)
{
    if (command->plain_count == 0)
        return tdm_verbs_describe(text);
    if (command->plain_count == 1)
        TDM_TRY(tdm_verb_group_describe(command->plain[0], text));
    if (text->length > 0)
        return TDM_OK;
    const tdm_verb *verb;
    int used;
    TDM_TRY(tdm_verb_find(command->plain_count, command->plain, &verb, &used));
    return tdm_verb_describe(verb, text);
}

static tdm_status run_help(const tdm_command *command)
{
    tdm_text text = {0};
    return tdm_console_text(describe(command, &text), &text);
}

static tdm_status run_help_recipe(const tdm_command *command)
{
    (void)command;
    tdm_text text = {0};
    return tdm_console_text(tdm_recipe_describe(&text), &text);
}

const tdm_verb tdm_verb_help = {
    .name = "help",
    .arguments = "[VERB]",
    .summary = "explain a verb by examples",
    .text = "The same as tandem VERB --help.\n"
            "\n"
            "  tandem help train\n"
            "  tandem help recipe",
    .max_plain = 2,
    .run = run_help,
};

const tdm_verb tdm_verb_help_recipe = {
    .name = "help recipe",
    .arguments = "",
    .summary = "every key of a recipe, with its default",
    .text = "A line for each key: its path, its default, what it is for, and what it may be.\n"
            "\n"
            "  tandem help recipe\n"
            "  tandem help recipe | grep learning_rate",
    .run = run_help_recipe,
};
