/* The section `model`: `type` first, then the keys of that type beside those of every model. */
#include "trainer/recipe_internal.h"

#include "core/memory.h"

#include <stddef.h>
#include <string.h>

static const tdm_config_key common_keys[] = {
    {.name = "type",
     .type = TDM_CONFIG_CHOICE,
     .offset = offsetof(struct tdm_model_common, type),
     .help = "which model"},
    {.name = "init_from",
     .type = TDM_CONFIG_STRING,
     .offset = offsetof(struct tdm_model_common, init_from),
     .fallback = "~",
     .help = "where weights start: a run folder, its best checkpoint; for text also a folder of "
             "Hugging Face or google-research/bert"},
};
#define COMMON_KEYS ((int)(sizeof common_keys / sizeof common_keys[0]))

static int count_models(const tdm_model_type *const *models)
{
    int count = 0;
    while (models[count] != NULL)
        count++;
    return count;
}

static tdm_status compose(tdm_model_section *section, const tdm_model_type *const *models,
                          const tdm_model_type *type)
{
    int count = count_models(models);
    int own = type->schema == NULL ? 0 : type->schema->count;
    TDM_TRY(tdm_alloc((size_t)count + 1, sizeof *section->type_names, &section->type_names));
    for (int i = 0; i < count; i++)
        section->type_names[i] = models[i]->name;
    TDM_TRY(tdm_alloc((size_t)(COMMON_KEYS + own), sizeof *section->keys, &section->keys));
    memcpy(section->keys, common_keys, sizeof common_keys);
    section->keys[0].choices = section->type_names;
    for (int i = 0; i < own; i++) {
        section->keys[COMMON_KEYS + i] = type->schema->keys[i];
        section->keys[COMMON_KEYS + i].offset += TDM_MODEL_OPTIONS;
    }
    section->schema = (tdm_config_schema){
        .size = TDM_MODEL_OPTIONS + (own == 0 ? 0 : type->schema->size),
        .keys = section->keys,
        .count = COMMON_KEYS + own,
    };
    return TDM_OK;
}

tdm_status tdm_model_section_create(const tdm_model_type *const *models, const tdm_model_type *type,
                                    tdm_model_section **out)
{
    TDM_TRY(tdm_alloc(1, sizeof **out, out));
    tdm_status status = compose(*out, models, type);
    if (status != TDM_OK) {
        tdm_model_section_destroy(*out);
        *out = NULL;
    }
    return status;
}

/* The type that the node names; NULL where it names none that there is. */
static const tdm_model_type *find_type(const tdm_model_type *const *models,
                                       const tdm_config_node *node)
{
    const char *name = tdm_config_text(tdm_config_get(node, "type"));
    for (int i = 0; name != NULL && models[i] != NULL; i++) {
        if (strcmp(models[i]->name, name) == 0)
            return models[i];
    }
    return NULL;
}

/* Says what is wrong with `type`. */
static tdm_status refuse_type(const tdm_config_node *node, tdm_model_section *section, int models)
{
    const tdm_config_key *key = &section->keys[0];
    const tdm_config_node *value = tdm_config_get(node, "type");
    const char *name = tdm_config_text(value);
    tdm_text known = {0};
    tdm_status status = TDM_OK;
    for (int i = 0; i < models && status == TDM_OK; i++)
        status = tdm_text_printf(&known, "%s%s", i > 0 ? ", " : "", key->choices[i]);
    if (status == TDM_OK && name == NULL)
        status = node == NULL
                     ? tdm_fail(TDM_E_CONFIG, "recipe: model.type: missing; expected one of %s",
                                known.bytes)
                     : tdm_config_fail(value == NULL ? node : value, "type: expected one of %s",
                                       known.bytes);
    if (status == TDM_OK) {
        char advice[TDM_ADVICE_BYTES];
        status = tdm_config_fail(value, "expected one of %s, not %s%s", known.bytes, name,
                                 tdm_did_you_mean(name, key->choices, models, advice));
    }
    tdm_text_free(&known);
    return status;
}

tdm_status tdm_model_section_bind(const tdm_model_type *const *models, const tdm_config_node *node,
                                  tdm_model_section **out)
{
    const tdm_model_type *type = find_type(models, node);
    tdm_model_section *section;
    tdm_status status;
    *out = NULL;
    TDM_TRY(tdm_model_section_create(models, type == NULL ? models[0] : type, &section));
    if (type == NULL) {
        status = refuse_type(node, section, count_models(models));
        goto fail;
    }
    TDM_TRY_GOTO(tdm_alloc(section->schema.size, 1, &section->values), fail);
    TDM_TRY_GOTO(tdm_config_bind(node, &section->schema, section->values), fail);
    *out = section;
    return TDM_OK;
fail:
    tdm_model_section_destroy(section);
    return status;
}

void tdm_model_section_destroy(tdm_model_section *section)
{
    if (section == NULL)
        return;
    if (section->values != NULL)
        tdm_config_unbind(&section->schema, section->values);
    tdm_free(section->values);
    tdm_free(section->keys);
    tdm_free(section->type_names);
    tdm_free(section);
}
