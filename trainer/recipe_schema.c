/* The keys of a recipe that no other module declares, and the table of its sections. */
#include "trainer/recipe_internal.h"

#include <stddef.h>

#define KEYS(list) .keys = (list), .count = (int)(sizeof(list) / sizeof(list)[0])

const char *const tdm_task_names[] = {"ctr", "mlm", "classify", NULL};
static const char *const precisions[] = {"auto", "fp32", "bf16", NULL};
static const char *const devices[] = {"auto", "cpu", "gpu", NULL};

#define TRAIN(member) offsetof(tdm_train_options, member)

#define PHASE(member) offsetof(tdm_phase, member)

static const tdm_config_key phase_keys[] = {
    {.name = "steps",
     .type = TDM_CONFIG_INT,
     .offset = PHASE(steps),
     .min = 1,
     .max = 1e12,
     .help = "how long it is"},
    {.name = "max_length",
     .type = TDM_CONFIG_INT,
     .offset = PHASE(max_length),
     .fallback = "0",
     .min = 0,
     .max = 32768,
     .help = "of sequences, 8 at least; 0: text.max_length. One that differs from the phase before "
             "begins a new epoch"},
    {.name = "batch_tokens",
     .type = TDM_CONFIG_INT,
     .offset = PHASE(batch_tokens),
     .fallback = "0",
     .min = 0,
     .max = 1 << 26,
     .help = "of a step; 0: train.batch_tokens"},
    {.name = "micro_batch_tokens",
     .type = TDM_CONFIG_INT,
     .offset = PHASE(micro_batch_tokens),
     .fallback = "0",
     .min = 0,
     .max = 1 << 26,
     .help = "that go through the model at a time; 0: train.micro_batch_tokens"},
};

static const tdm_config_schema phase_schema = {.size = sizeof(tdm_phase), KEYS(phase_keys)};

/* The first key is of ctr only, the last TDM_TEXT_TRAIN_KEYS of text only. */
static const tdm_config_key train_keys[] = {
    {.name = "batch_size",
     .type = TDM_CONFIG_INT,
     .offset = TRAIN(batch_size),
     .fallback = "4096",
     .min = 1,
     .max = 1 << 24,
     .help = "rows of a step, a multiple of data.lanes"},
    {.name = "epochs",
     .type = TDM_CONFIG_INT,
     .offset = TRAIN(epochs),
     .fallback = "0",
     .min = 0,
     .max = 65535,
     .help = "passes over the training data; 0: one, or with max_steps as many as that takes"},
    {.name = "max_steps",
     .type = TDM_CONFIG_INT,
     .offset = TRAIN(max_steps),
     .fallback = "0",
     .min = 0,
     .max = 1e15,
     .help = "training ends after so many steps; 0: with the last epoch"},
    {.name = "precision",
     .type = TDM_CONFIG_CHOICE,
     .offset = TRAIN(precision),
     .fallback = "auto",
     .choices = precisions,
     .help = "of matrix products; auto: of text bf16 where the device has it, else fp32"},
    {.name = "clip_norm",
     .type = TDM_CONFIG_FLOAT,
     .offset = TRAIN(clip_norm),
     .fallback = "0",
     .min = 0,
     .max = 1e30,
     .help = "gradients of a larger global norm are scaled down to it; 0: off"},
    {.name = "eval_every_steps",
     .type = TDM_CONFIG_INT,
     .offset = TRAIN(eval_every_steps),
     .fallback = "0",
     .min = 0,
     .max = 1e15,
     .help = "evaluate on data.eval so often, and at the end; 0: at the end only"},
    {.name = "log_every_steps",
     .type = TDM_CONFIG_INT,
     .offset = TRAIN(log_every_steps),
     .fallback = "100",
     .min = 1,
     .max = 1e15,
     .help = "a line of metrics.jsonl"},
    {.name = "log_every_seconds",
     .type = TDM_CONFIG_FLOAT,
     .offset = TRAIN(log_every_seconds),
     .fallback = "10",
     .min = 0.1,
     .max = 1e9,
     .help = "a line of progress where the output is no terminal"},
    {.name = "device",
     .type = TDM_CONFIG_CHOICE,
     .offset = TRAIN(device),
     .fallback = "auto",
     .choices = devices,
     .help = "what runs the model"},
    {.name = "threads",
     .type = TDM_CONFIG_INT,
     .offset = TRAIN(threads),
     .fallback = "0",
     .min = 0,
     .max = 1024,
     .help = "of the pool; 0: one a core. The result is the same with any number"},
    {.name = "batch_tokens",
     .type = TDM_CONFIG_INT,
     .offset = TRAIN(batch_tokens),
     .fallback = "16384",
     .min = 1,
     .max = 1 << 26,
     .help = "most tokens of a step, shared out over data.lanes"},
    {.name = "micro_batch_tokens",
     .type = TDM_CONFIG_INT,
     .offset = TRAIN(micro_batch_tokens),
     .fallback = "0",
     .min = 0,
     .max = 1 << 26,
     .help = "tokens that go through the model at a time, whose gradients are added up over the "
             "step; 0: all of them. Less takes less memory"},
    {.name = "recompute",
     .type = TDM_CONFIG_BOOL,
     .offset = TRAIN(recompute),
     .fallback = "false",
     .help = "run each layer again in the backward pass instead of keeping what it computed: less "
             "memory, about a third more work"},
    {.name = "phases",
     .type = TDM_CONFIG_SECTIONS,
     .offset = TRAIN(phases),
     .fallback = "[]",
     .section = &phase_schema,
     .help = "stretches of the training, one behind the other, that differ from the rest of the "
             "recipe"},
};
#define TRAIN_KEYS    ((int)(sizeof train_keys / sizeof train_keys[0]))
#define CTR_ONLY_KEYS 1

static const tdm_config_schema train_schema = {.size = sizeof(tdm_train_options),
                                               .keys = train_keys,
                                               .count = TRAIN_KEYS - TDM_TEXT_TRAIN_KEYS};
static const tdm_config_schema text_train_schema = {.size = sizeof(tdm_train_options),
                                                    .keys = train_keys + CTR_ONLY_KEYS,
                                                    .count = TRAIN_KEYS - CTR_ONLY_KEYS};

#define CHECKPOINT(member) offsetof(tdm_checkpoint_options, member)

/* What differs between tasks is what the best is. */
#define CHECKPOINT_KEYS(best, bests, what)                                                         \
    {.name = "every_steps",                                                                        \
     .type = TDM_CONFIG_INT,                                                                       \
     .offset = CHECKPOINT(every_steps),                                                            \
     .fallback = "0",                                                                              \
     .min = 0,                                                                                     \
     .max = 1e15,                                                                                  \
     .help = "save so often; 0: off"},                                                             \
        {.name = "every_minutes",                                                                  \
         .type = TDM_CONFIG_FLOAT,                                                                 \
         .offset = CHECKPOINT(every_minutes),                                                      \
         .fallback = "10",                                                                         \
         .min = 0,                                                                                 \
         .max = 1e9,                                                                               \
         .help = "save so often; 0: off"},                                                         \
        {.name = "keep_last",                                                                      \
         .type = TDM_CONFIG_INT,                                                                   \
         .offset = CHECKPOINT(keep_last),                                                          \
         .fallback = "3",                                                                          \
         .min = 1,                                                                                 \
         .max = 1e9,                                                                               \
         .help = "checkpoints that are kept, beside the best"},                                    \
    {                                                                                              \
        .name = "keep_best", .type = TDM_CONFIG_CHOICE, .offset = CHECKPOINT(keep_best),           \
        .fallback = (best), .choices = (bests),                                                    \
        .help = "by which score of data.eval a checkpoint is the best" what                        \
    }

static const char *const ctr_bests[] = {"auc", "logloss", "none", NULL};
static const char *const mlm_bests[] = {"loss", "masked_accuracy", "none", NULL};
static const char *const classify_bests[] = {"auto",    "accuracy", "f1",   "auc", "loss",
                                             "pearson", "r2",       "none", NULL};

static const tdm_config_key checkpoint_keys[] = {CHECKPOINT_KEYS("auc", ctr_bests, "")};
static const tdm_config_key mlm_checkpoint_keys[] = {CHECKPOINT_KEYS("loss", mlm_bests, "")};
static const tdm_config_key classify_checkpoint_keys[] = {CHECKPOINT_KEYS(
    "auto", classify_bests,
    "; auto: accuracy of classes, f1 of multiple and tokens, pearson of regression")};

static const tdm_config_schema checkpoint_schema = {.size = sizeof(tdm_checkpoint_options),
                                                    KEYS(checkpoint_keys)};
static const tdm_config_schema mlm_checkpoint_schema = {.size = sizeof(tdm_checkpoint_options),
                                                        KEYS(mlm_checkpoint_keys)};
static const tdm_config_schema classify_checkpoint_schema = {.size = sizeof(tdm_checkpoint_options),
                                                             KEYS(classify_checkpoint_keys)};

const char *const *tdm_keep_best_names(int task)
{
    return task == TDM_TASK_CLASSIFY ? classify_bests
           : task == TDM_TASK_MLM    ? mlm_bests
                                     : ctr_bests;
}

static const tdm_config_key cache_keys[] = {
    {.name = "dir",
     .type = TDM_CONFIG_STRING,
     .offset = offsetof(struct tdm_cache_section, dir),
     .fallback = "~",
     .help = "where caches of extracted features lie; ~: the user's cache folder, tandem/"},
};

static const tdm_config_schema cache_schema = {.size = sizeof(struct tdm_cache_section),
                                               KEYS(cache_keys)};

static const tdm_config_key output_keys[] = {
    {.name = "dir",
     .type = TDM_CONFIG_STRING,
     .offset = offsetof(struct tdm_output_section, dir),
     .fallback = "~",
     .help = "the run folder; ~: runs/ and the name of the recipe"},
};

static const tdm_config_schema output_schema = {.size = sizeof(struct tdm_output_section),
                                                KEYS(output_keys)};

#define SECTION(member, of, text)                                                                  \
    {                                                                                              \
        .name = #member, .type = TDM_CONFIG_SECTION, .offset = offsetof(tdm_recipe, member),       \
        .section = (of), .help = (text)                                                            \
    }

#define TASK_AND_SEED                                                                              \
    {.name = "task",                                                                               \
     .type = TDM_CONFIG_CHOICE,                                                                    \
     .offset = offsetof(tdm_recipe, task),                                                         \
     .fallback = "ctr",                                                                            \
     .choices = tdm_task_names,                                                                    \
     .help = "what is learnt"},                                                                    \
    {                                                                                              \
        .name = "seed", .type = TDM_CONFIG_INT, .offset = offsetof(tdm_recipe, seed),              \
        .fallback = "1", .min = 0, .max = 0x1p53,                                                  \
        .help = "of initial values, order, masks and dropout"                                      \
    }

#define MODEL                                                                                      \
    {                                                                                              \
        .name = TDM_RECIPE_MODEL, .type = TDM_CONFIG_NODE, .offset = offsetof(tdm_recipe, model),  \
        .fallback = "~", .help = "what is trained"                                                 \
    }

static const tdm_config_key ctr_keys[] = {
    TASK_AND_SEED,
    SECTION(data, &tdm_data_schema, "what is read"),
    SECTION(features, &tdm_feature_schema, "what a record becomes"),
    MODEL,
    SECTION(optimizer, &tdm_optimizer_schema, "how it is trained"),
    SECTION(train, &train_schema, "how long, in what steps, on what"),
    SECTION(checkpoint, &checkpoint_schema, "when to save and what to keep"),
    SECTION(metrics, &tdm_metrics_schema, "how results are measured"),
    SECTION(cache, &cache_schema, "where extracted features are kept"),
    SECTION(output, &output_schema, "where results go"),
};

static const tdm_config_key mlm_keys[] = {
    TASK_AND_SEED,
    SECTION(data, &tdm_data_schema, "what is read"),
    SECTION(text, &tdm_text_schema, "how text becomes masked sequences"),
    MODEL,
    SECTION(optimizer, &tdm_text_optimizer_schema, "how it is trained"),
    SECTION(train, &text_train_schema, "how long, in what steps, on what"),
    SECTION(checkpoint, &mlm_checkpoint_schema, "when to save and what to keep"),
    SECTION(cache, &cache_schema, "where tokens are kept"),
    SECTION(output, &output_schema, "where results go"),
};

static const tdm_config_key classify_keys[] = {
    TASK_AND_SEED,
    SECTION(data, &tdm_data_schema, "what is read"),
    SECTION(text, &tdm_labelled_text_schema, "how text becomes sequences"),
    SECTION(labels, &tdm_label_schema, "what is told of each text, and where it stands"),
    MODEL,
    SECTION(optimizer, &tdm_text_optimizer_schema, "how it is trained"),
    SECTION(train, &text_train_schema, "how long, in what steps, on what"),
    SECTION(checkpoint, &classify_checkpoint_schema, "when to save and what to keep"),
    SECTION(metrics, &tdm_metrics_schema, "how results are measured"),
    SECTION(cache, &cache_schema, "where tokens are kept"),
    SECTION(output, &output_schema, "where results go"),
};

static const tdm_config_schema ctr_schema = {.size = sizeof(tdm_recipe), KEYS(ctr_keys)};
static const tdm_config_schema mlm_schema = {.size = sizeof(tdm_recipe), KEYS(mlm_keys)};

static const tdm_config_schema classify_schema = {.size = sizeof(tdm_recipe), KEYS(classify_keys)};

const tdm_config_schema *tdm_recipe_schema(int task)
{
    return task == TDM_TASK_MLM        ? &mlm_schema
           : task == TDM_TASK_CLASSIFY ? &classify_schema
                                       : &ctr_schema;
}

const tdm_config_schema *tdm_train_schema(int task)
{
    return task == TDM_TASK_CTR ? &train_schema : &text_train_schema;
}

const tdm_config_schema *tdm_checkpoint_schema(int task)
{
    return task == TDM_TASK_MLM        ? &mlm_checkpoint_schema
           : task == TDM_TASK_CLASSIFY ? &classify_checkpoint_schema
                                       : &checkpoint_schema;
}

const tdm_model_type *const *tdm_recipe_models(int task)
{
    return task == TDM_TASK_CTR ? tdm_models : tdm_text_models;
}
