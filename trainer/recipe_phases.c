/* Phases: stretches of a training of text that differ in the length of sequences and the size of
 * steps. The recipe in force is that of one phase; the values that it replaces are kept, and
 * emitted. */
#include "trainer/recipe_internal.h"

#include <stdio.h>

static const tdm_phase *phases_of(const tdm_recipe *recipe)
{
    return recipe->train.phases.items;
}

int64_t tdm_recipe_phase_count(const tdm_recipe *recipe)
{
    return recipe->train.phases.count > 0 ? recipe->train.phases.count : 1;
}

int64_t tdm_recipe_phase_begin(const tdm_recipe *recipe, int64_t phase)
{
    int64_t begin = 0;
    for (int64_t i = 0; i < phase && i < recipe->train.phases.count; i++)
        begin += phases_of(recipe)[i].steps;
    return begin;
}

int64_t tdm_recipe_phase_of(const tdm_recipe *recipe, int64_t step)
{
    int64_t phase = 0;
    while (phase + 1 < tdm_recipe_phase_count(recipe) &&
           step >= tdm_recipe_phase_begin(recipe, phase + 1))
        phase++;
    return phase;
}

tdm_phase tdm_recipe_phase_get(const tdm_recipe *recipe, int64_t phase)
{
    tdm_phase values = recipe->base_phase;
    if (phase >= recipe->train.phases.count)
        return values;
    const tdm_phase *own = &phases_of(recipe)[phase];
    values.steps = own->steps;
    if (own->max_length > 0)
        values.max_length = own->max_length;
    if (own->batch_tokens > 0)
        values.batch_tokens = own->batch_tokens;
    if (own->micro_batch_tokens > 0)
        values.micro_batch_tokens = own->micro_batch_tokens;
    return values;
}

static void apply(tdm_recipe *recipe, const tdm_phase *values)
{
    recipe->text.max_length = values->max_length;
    recipe->train.batch_tokens = values->batch_tokens;
    recipe->train.micro_batch_tokens = values->micro_batch_tokens;
}

void tdm_recipe_set_phase(tdm_recipe *recipe, int64_t phase)
{
    tdm_phase values = tdm_recipe_phase_get(recipe, phase);
    if (recipe->task != TDM_TASK_CTR)
        apply(recipe, &values);
}

tdm_recipe tdm_recipe_without_phase(const tdm_recipe *recipe)
{
    tdm_recipe plain = *recipe;
    apply(&plain, &recipe->base_phase);
    return plain;
}

/* The longest sequence of all. */
static int64_t longest(const tdm_recipe *recipe)
{
    int64_t most = 0;
    for (int64_t i = 0; i < tdm_recipe_phase_count(recipe); i++) {
        tdm_phase phase = tdm_recipe_phase_get(recipe, i);
        most = phase.max_length > most ? phase.max_length : most;
    }
    return most;
}

tdm_status tdm_recipe_complete_phases(tdm_recipe *recipe)
{
    tdm_bert_options *model = recipe->model_options;
    int64_t steps = 0;
    recipe->base_phase = (tdm_phase){.max_length = recipe->text.max_length,
                                     .batch_tokens = recipe->train.batch_tokens,
                                     .micro_batch_tokens = recipe->train.micro_batch_tokens};
    for (int64_t i = 0; i < recipe->train.phases.count; i++)
        steps += phases_of(recipe)[i].steps;
    if (steps > 0 && recipe->train.max_steps > 0 && recipe->train.max_steps != steps)
        return tdm_config_fail(tdm_recipe_node(recipe, "train", "phases"),
                               "they have %lld steps together, and train.max_steps is %lld: leave "
                               "that out",
                               (long long)steps, (long long)recipe->train.max_steps);
    if (steps > 0)
        recipe->train.max_steps = steps;
    if (model->max_positions == 0)
        model->max_positions = longest(recipe);
    tdm_recipe_set_phase(recipe, 0);
    return TDM_OK;
}
