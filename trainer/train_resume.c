#include "trainer/training.h"

#include "core/log.h"

#include <string.h>

/* What may differ. Behind a name that ends with a dot, all keys. */
static const char *const free_keys[] = {
    "train.epochs",
    "train.max_steps",
    "train.threads",
    "train.device",
    "train.log_every_steps",
    "train.log_every_seconds",
    "checkpoint.",
    "data.eval",
    "output.dir",
};

typedef struct recipe_comparison {
    const tdm_recipe *recipe;
    tdm_text refused;
} recipe_comparison;

static bool is_free(const char *key)
{
    for (size_t i = 0; i < sizeof free_keys / sizeof free_keys[0]; i++) {
        size_t length = strlen(free_keys[i]);
        bool is_prefix = free_keys[i][length - 1] == '.';
        if (is_prefix ? strncmp(key, free_keys[i], length) == 0 : strcmp(key, free_keys[i]) == 0)
            return true;
    }
    return false;
}

static void give_notice(const tdm_recipe *recipe, const char *key, const char *before,
                        const char *now)
{
    bool is_length = strcmp(key, "train.epochs") == 0 || strcmp(key, "train.max_steps") == 0;
    bool follows = tdm_schedule_needs_progress(&recipe->optimizer.schedule);
    if (is_length)
        tdm_info("%s: %s before, %s now%s", key, before, now,
                 follows ? ": the learning rates follow the new length from here on" : "");
    else if (strcmp(key, "train.device") == 0)
        tdm_info("%s: %s before, %s now: results may differ in their last bits", key, before, now);
    else if (strcmp(key, "data.eval") == 0)
        tdm_info("%s: %s before, %s now: scores from here on are of other data", key, before, now);
    else if (strcmp(key, "checkpoint.keep_best") == 0)
        tdm_info("%s: %s before, %s now: only evaluations from here on decide which is the best",
                 key, before, now);
}

static tdm_status note_difference(void *context, const char *key, const char *before,
                                  const char *now)
{
    recipe_comparison *comparison = context;
    before = before == NULL ? "~" : before;
    now = now == NULL ? "~" : now;
    if (!is_free(key))
        return tdm_text_printf(&comparison->refused, "%s%s: %s before, %s now",
                               comparison->refused.length > 0 ? "; " : "", key, before, now);
    give_notice(comparison->recipe, key, before, now);
    return TDM_OK;
}

/* The recipe as a tree, every key with its value. */
static tdm_status make_tree(const tdm_recipe *recipe, tdm_config **out)
{
    tdm_text text = {0};
    *out = NULL;
    tdm_status status = tdm_recipe_emit(recipe, &text);
    if (status == TDM_OK)
        status = tdm_config_parse(text.bytes, text.length, recipe->path, NULL, 0, out);
    tdm_text_free(&text);
    return status;
}

tdm_status tdm_recipe_check_resume(const tdm_recipe *saved, const tdm_recipe *recipe)
{
    recipe_comparison comparison = {.recipe = recipe};
    tdm_config *before = NULL, *now = NULL;
    tdm_status status;
    TDM_TRY_GOTO(make_tree(saved, &before), done);
    TDM_TRY_GOTO(make_tree(recipe, &now), done);
    TDM_TRY_GOTO(tdm_config_diff(tdm_config_root(before), tdm_config_root(now), note_difference,
                                 &comparison),
                 done);
    if (comparison.refused.length > 0)
        status = tdm_fail(TDM_E_CONFIG,
                          "%s: not the recipe of the run that is resumed: %s; change it back, or "
                          "train into another folder (output.dir)",
                          recipe->path, comparison.refused.bytes);
done:
    tdm_text_free(&comparison.refused);
    tdm_config_free(before);
    tdm_config_free(now);
    return status;
}
