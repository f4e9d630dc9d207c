#include "models/text_models.h"

#define AT(member) offsetof(tdm_bert_options, member)

static const tdm_config_key keys[] = {
    {.name = "layers",
     .type = TDM_CONFIG_INT,
     .offset = AT(layers),
     .fallback = "12",
     .min = 1,
     .max = 1024,
     .help = "of the encoder"},
    {.name = "hidden",
     .type = TDM_CONFIG_INT,
     .offset = AT(hidden),
     .fallback = "768",
     .min = 1,
     .max = 65536,
     .help = "width of its values, a multiple of heads"},
    {.name = "heads",
     .type = TDM_CONFIG_INT,
     .offset = AT(heads),
     .fallback = "12",
     .min = 1,
     .max = 1024,
     .help = "of the attention"},
    {.name = "intermediate",
     .type = TDM_CONFIG_INT,
     .offset = AT(intermediate),
     .fallback = "0",
     .min = 0,
     .max = 1 << 20,
     .help = "units of the feed-forward layers; 0: 4 * hidden"},
    {.name = "dropout",
     .type = TDM_CONFIG_FLOAT,
     .offset = AT(dropout),
     .fallback = "0.1",
     .min = 0,
     .max = 0.99,
     .help = "of embeddings, attention and layers"},
};

static const tdm_config_schema schema = {
    .size = sizeof(tdm_bert_options), .keys = keys, .count = sizeof keys / sizeof keys[0]};

static tdm_status build(const void *options, const tdm_model_inputs *inputs, tdm_plan *plan,
                        tdm_value *logits)
{
    (void)options;
    (void)inputs;
    (void)plan;
    (void)logits;
    return tdm_fail(TDM_E_UNSUPPORTED, "model.type bert is not built yet");
}

const tdm_model_type tdm_bert = {
    .name = "bert",
    .help = "the encoder of BERT; it cannot be trained in this version",
    .schema = &schema,
    .build = build,
};

const tdm_model_type *const tdm_text_models[] = {
    &tdm_bert,
    NULL,
};
