/* Combinations that cannot be, each with the place in the recipe. */
#include "trainer/recipe_internal.h"

#include <string.h>

const tdm_config_node *tdm_recipe_node(const tdm_recipe *recipe, const char *section,
                                       const char *key)
{
    return tdm_config_get(tdm_config_get(tdm_config_root(recipe->config), section), key);
}

static bool names_stdin(const tdm_strings *paths)
{
    for (int64_t i = 0; i < paths->count; i++) {
        if (strcmp(paths->items[i], "-") == 0)
            return true;
    }
    return false;
}

bool tdm_recipe_reads_stdin(const tdm_recipe *recipe)
{
    return names_stdin(&recipe->corpora.files);
}

/* TDM_E_CONFIG at "section.key", whether the recipe has it or not. */
static tdm_status refuse(const tdm_recipe *recipe, const char *section, const char *key,
                         const char *message)
{
    const tdm_config_node *node = tdm_recipe_node(recipe, section, key);
    if (node != NULL)
        return tdm_config_fail(node, "%s", message);
    return tdm_fail(TDM_E_CONFIG, "%s: %s.%s: %s", recipe->path, section, key, message);
}

tdm_status tdm_recipe_check(const tdm_recipe *recipe)
{
    const tdm_train_options *train = &recipe->train;
    if (train->batch_size % recipe->data.lanes != 0) {
        char message[160];
        long long lanes = recipe->data.lanes;
        long long up = (train->batch_size + lanes - 1) / lanes * lanes;
        snprintf(message, sizeof message,
                 "%lld is not a multiple of data.lanes, %lld: %lld would be",
                 (long long)train->batch_size, lanes, up);
        return refuse(recipe, "train", "batch_size", message);
    }
    if (train->precision == TDM_PRECISION_BF16) {
        (void)refuse(recipe, "train", "precision",
                     "bf16 is not in this version of tandem; take fp32");
        return TDM_E_UNSUPPORTED;
    }
    return TDM_OK;
}

static tdm_status check_stdin(const tdm_recipe *recipe)
{
    const tdm_train_options *train = &recipe->train;
    if (train->epochs != 1 && recipe->data.cache == TDM_CACHE_OFF)
        return refuse(recipe, "train", "epochs",
                      "standard input can be read once only: set data.cache: auto, or epochs: 1");
    if (recipe->optimizer.schedule.type != TDM_SCHEDULE_CONSTANT && train->max_steps == 0)
        return refuse(recipe, "optimizer", "schedule",
                      "with standard input, whose length is not known, a decay needs "
                      "train.max_steps");
    if (recipe->eval.hold_out > 0)
        return refuse(recipe, "data", "eval",
                      "hold_out reads the training data again, which standard input does not "
                      "allow: name files for evaluation");
    return TDM_OK;
}

tdm_status tdm_recipe_check_training(const tdm_recipe *recipe)
{
    if (recipe->corpora.files.count == 0)
        return refuse(recipe, "data", "train",
                      "there is nothing to train on: name files here or on the command line");
    if (names_stdin(&recipe->eval.files))
        return refuse(recipe, "data", "eval",
                      "evaluations read their data again, which standard input does not allow");
    return tdm_recipe_reads_stdin(recipe) ? check_stdin(recipe) : TDM_OK;
}
