/* What the files of recipes share. Not for other files. */
#ifndef TDM_TRAINER_RECIPE_INTERNAL_H
#define TDM_TRAINER_RECIPE_INTERNAL_H

#include "trainer/recipe.h"

/* What `task` says, in the order of tdm_task; ended by NULL. */
extern const char *const tdm_task_names[];

/* The sections of a task's recipe. `model` is a node there: its keys depend on its type. */
const tdm_config_schema *tdm_recipe_schema(int task);
#define TDM_RECIPE_MODEL "model"

/* The models of a task, ended by NULL. */
const tdm_model_type *const *tdm_recipe_models(int task);

/* The keys of a task's `train` section; the last TDM_TEXT_TRAIN_KEYS are of text only. */
#define TDM_TEXT_TRAIN_KEYS 4
const tdm_config_schema *tdm_train_schema(int task);

/* The keys of a task's `checkpoint` section; the last one is checkpoint.keep_best. */
const tdm_config_schema *tdm_checkpoint_schema(int task);

/* The section `model`, bound: a struct that begins with what every model has and goes on with the
 * options of the type, at TDM_MODEL_OPTIONS. */
typedef struct tdm_model_section {
    tdm_config_schema schema;
    tdm_config_key *keys;
    const char **type_names; /* the choices of `type` */
    struct tdm_model_common {
        int type; /* index in the models of the task */
        char *init_from;
    } * values;
} tdm_model_section;

#define TDM_MODEL_OPTIONS ((size_t)64)

/* Composes the schema of the model type, one of `models`, without values. */
TDM_MUST_CHECK tdm_status tdm_model_section_create(const tdm_model_type *const *models,
                                                   const tdm_model_type *type,
                                                   tdm_model_section **out);
TDM_MUST_CHECK tdm_status tdm_model_section_bind(const tdm_model_type *const *models,
                                                 const tdm_config_node *node,
                                                 tdm_model_section **out);
/* NULL is allowed. */
void tdm_model_section_destroy(tdm_model_section *section);

/* Of a task of text: finds max_steps and max_positions where the recipe leaves them to phases, and
 * begins with the first. */
TDM_MUST_CHECK tdm_status tdm_recipe_complete_phases(tdm_recipe *recipe);

/* The recipe with the values that phases replace; it borrows everything. */
tdm_recipe tdm_recipe_without_phase(const tdm_recipe *recipe);

/* Checks that need nothing but the recipe. */
TDM_MUST_CHECK tdm_status tdm_recipe_check(const tdm_recipe *recipe);

/* The value at "section.key" of the recipe's file; NULL where it is not there. */
const tdm_config_node *tdm_recipe_node(const tdm_recipe *recipe, const char *section,
                                       const char *key);

/* True where data.train names standard input. */
bool tdm_recipe_reads_stdin(const tdm_recipe *recipe);

#endif
