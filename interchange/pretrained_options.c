/* A checkpoint's options beside those of a recipe. */
#include "interchange/pretrained_config.h"

#include "core/memory.h"

#include <math.h>
#include <string.h>

/* Keys that do not change what the same weights compute, or that the file does not say. */
static const char *const free_keys[] = {"dropout", "attention_dropout", "initializer", "pooler",
                                        NULL};

/* ---- values of any type ---------------------------------------------------------------------- */

static size_t value_bytes(tdm_config_type type)
{
    switch (type) {
    case TDM_CONFIG_BOOL:
        return sizeof(bool);
    case TDM_CONFIG_CHOICE:
        return sizeof(int);
    case TDM_CONFIG_FLOAT:
        return sizeof(double);
    default:
        return sizeof(int64_t);
    }
}

static const void *value_at(const tdm_bert_options *options, const tdm_config_key *key)
{
    return (const char *)options + key->offset;
}

/* Files may have less digits of a number than a recipe. */
static bool is_same(const tdm_config_key *key, const void *a, const void *b)
{
    if (key->type != TDM_CONFIG_FLOAT)
        return memcmp(a, b, value_bytes(key->type)) == 0;
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return fabs(x - y) <= 1e-6 * fmax(fabs(x), fabs(y));
}

static tdm_status print_value(const tdm_config_key *key, const void *value, tdm_text *text)
{
    int64_t integer;
    double number;
    int choice;
    bool flag;
    switch (key->type) {
    case TDM_CONFIG_BOOL:
        memcpy(&flag, value, sizeof flag);
        return tdm_text_printf(text, "%s", flag ? "true" : "false");
    case TDM_CONFIG_CHOICE:
        memcpy(&choice, value, sizeof choice);
        return tdm_text_printf(text, "%s", key->choices[choice]);
    case TDM_CONFIG_FLOAT:
        memcpy(&number, value, sizeof number);
        return tdm_text_printf(text, "%g", number);
    default:
        memcpy(&integer, value, sizeof integer);
        return tdm_text_printf(text, "%lld", (long long)integer);
    }
}

/* ---- filling --------------------------------------------------------------------------------- */

void tdm_pretrained_config_fill(const tdm_pretrained_config *config, const tdm_config_node *model,
                                tdm_bert_options *options)
{
    for (int i = 0; i < tdm_bert_schema.count; i++) {
        const tdm_config_key *key = &tdm_bert_schema.keys[i];
        if (strcmp(key->name, "pooler") == 0 || tdm_config_get(model, key->name) != NULL)
            continue;
        memcpy((char *)options + key->offset, value_at(&config->options, key),
               value_bytes(key->type));
    }
}

/* ---- checking -------------------------------------------------------------------------------- */

/* The options with defaults resolved, and what has no effect made the same everywhere. */
static tdm_bert_options in_force(const tdm_bert_options *options, int64_t max_length)
{
    tdm_bert_options force = *options;
    if (force.intermediate == 0)
        force.intermediate = 4 * force.hidden;
    if (force.positions == TDM_POSITION_ROTARY)
        force.max_positions = 0;
    else if (force.max_positions == 0)
        force.max_positions = max_length;
    if (force.norm == TDM_NORM_POST)
        force.embedding_norm = true;
    if (force.global_every > force.layers)
        force.global_every = force.layers;
    if (force.global_every == 1)
        force.local_window = 0;
    bool is_local = force.local_window > 0;
    if (!is_local)
        force.global_every = 1;
    if (force.positions == TDM_POSITION_LEARNED)
        force.rotary_theta = 0;
    if (force.positions == TDM_POSITION_LEARNED || !is_local)
        force.local_rotary_theta = 0;
    return force;
}

/* Appends what differs: "model.hidden is 256 here and 768 there". */
static tdm_status list_differences(const tdm_bert_options *ours, const tdm_bert_options *theirs,
                                   tdm_text *text)
{
    for (int i = 0; i < tdm_bert_schema.count; i++) {
        const tdm_config_key *key = &tdm_bert_schema.keys[i];
        const void *mine = value_at(ours, key), *others = value_at(theirs, key);
        if (tdm_name_find(free_keys, key->name) >= 0 || is_same(key, mine, others))
            continue;
        TDM_TRY(tdm_text_printf(text, "%smodel.%s is ", text->length == 0 ? "" : "; ", key->name));
        TDM_TRY(print_value(key, mine, text));
        TDM_TRY(tdm_text_printf(text, " here and "));
        TDM_TRY(print_value(key, others, text));
        TDM_TRY(tdm_text_printf(text, " there"));
    }
    return TDM_OK;
}

tdm_status tdm_pretrained_config_check(const tdm_pretrained_config *config,
                                       const tdm_config_node *model,
                                       const tdm_bert_options *options, int64_t max_length)
{
    tdm_bert_options ours = in_force(options, max_length);
    tdm_bert_options theirs = in_force(&config->options, max_length);
    tdm_text text = {0};
    tdm_status status = list_differences(&ours, &theirs, &text);
    if (status == TDM_OK && text.length > 0) {
        static const char message[] = "%s is of another model: %s: set the options as they are "
                                      "there, or leave them out";
        status = model != NULL ? tdm_config_fail(model, message, config->path, text.bytes)
                               : tdm_fail(TDM_E_CONFIG, message, config->path, text.bytes);
    }
    tdm_text_free(&text);
    return status;
}
