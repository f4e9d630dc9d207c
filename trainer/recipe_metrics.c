/* What a recipe's results are measured by, and which of them is the best. */
#include "trainer/recipe_internal.h"

#include <string.h>

#define AUTO "auto"
#define NONE "none"

/* The class of words that are of none, as CoNLL's files have it; -1: there is none. */
static int64_t find_none(const tdm_strings *classes)
{
    for (int64_t i = 0; i < classes->count; i++) {
        if (strcmp(classes->items[i], "O") == 0)
            return i;
    }
    return -1;
}

static tdm_metrics_spec metrics_of_labels(const tdm_label_options *labels)
{
    tdm_metrics_spec spec = {.classes = {.count = labels->classes.count, .none = -1}};
    switch ((tdm_label_type)labels->type) {
    case TDM_LABEL_CLASSES:
        spec.type = spec.classes.count == 2 ? &tdm_binary_metrics_type : &tdm_class_metrics_type;
        break;
    case TDM_LABEL_MULTIPLE:
        spec.type = &tdm_multiple_metrics_type;
        break;
    case TDM_LABEL_REGRESSION:
        spec.type = &tdm_regression_metrics_type;
        break;
    case TDM_LABEL_TOKENS:
        spec.type = &tdm_token_metrics_type;
        spec.classes.none = find_none(&labels->classes);
        break;
    }
    return spec;
}

tdm_metrics_spec tdm_recipe_metrics(const tdm_recipe *recipe)
{
    switch ((tdm_task_kind)recipe->task) {
    case TDM_TASK_MLM:
        return (tdm_metrics_spec){.type = &tdm_text_metrics_type};
    case TDM_TASK_CLASSIFY:
        return metrics_of_labels(&recipe->labels);
    case TDM_TASK_CTR:
        break;
    }
    return (tdm_metrics_spec){.type = &tdm_click_metrics_type};
}

/* "f1" is also "macro_f1" and "micro_f1": a kind has one of them at most. */
static bool means(const char *name, const char *metric)
{
    size_t length = strlen(metric);
    return strcmp(name, metric) == 0 ||
           (strcmp(name, "f1") == 0 && length > 3 && strcmp(metric + length - 3, "_f1") == 0);
}

static const tdm_metric *find(const tdm_metrics_type *type, const char *name)
{
    for (int i = 0; i < type->metric_count; i++) {
        if (type->metrics[i].goal != TDM_GOAL_NONE && means(name, type->metrics[i].name))
            return &type->metrics[i];
    }
    return NULL;
}

static void choose_default(tdm_recipe *recipe, const tdm_metrics_type *type)
{
    const char *const *names = tdm_keep_best_names(recipe->task);
    int *choice = &recipe->checkpoint.keep_best;
    if (strcmp(names[*choice], AUTO) != 0)
        return;
    for (*choice = 0; !means(names[*choice], type->best);)
        ++*choice;
}

tdm_status tdm_recipe_best_metric(tdm_recipe *recipe, const tdm_metrics_type *type,
                                  const tdm_metric **out)
{
    *out = NULL;
    choose_default(recipe, type);
    const char *const *names = tdm_keep_best_names(recipe->task);
    const char *name = names[recipe->checkpoint.keep_best];
    if (strcmp(name, NONE) == 0)
        return TDM_OK;
    *out = find(type, name);
    if (*out != NULL)
        return TDM_OK;
    tdm_text known = {0};
    tdm_status status = TDM_OK;
    for (int i = 0; names[i] != NULL && status == TDM_OK; i++) {
        if (find(type, names[i]) != NULL)
            status = tdm_text_printf(&known, "%s, ", names[i]);
    }
    const tdm_config_node *node = tdm_recipe_node(recipe, "checkpoint", "keep_best");
    if (status == TDM_OK)
        status = tdm_config_fail(node, "%s is no metric of %s: take %sor " NONE, name, type->name,
                                 known.bytes);
    tdm_text_free(&known);
    return status;
}
