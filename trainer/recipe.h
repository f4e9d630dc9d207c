/* A recipe, whole: every section bound and checked. docs/RECIPES.md lists the keys. */
#ifndef TDM_TRAINER_RECIPE_H
#define TDM_TRAINER_RECIPE_H

#include "data/input.h"
#include "data/options.h"
#include "features/feature_spec.h"
#include "models/encoder.h"
#include "models/model.h"
#include "text/label_spec.h"
#include "text/text_options.h"
#include "trainer/metrics.h"
#include "trainer/optimizer.h"

typedef enum tdm_task_kind {
    TDM_TASK_CTR = 0,
    TDM_TASK_MLM = 1,
    TDM_TASK_CLASSIFY = 2,
} tdm_task_kind;

typedef enum tdm_precision {
    TDM_PRECISION_AUTO = 0,
    TDM_PRECISION_FP32 = 1,
    TDM_PRECISION_BF16 = 2,
} tdm_precision;

typedef enum tdm_device_choice {
    TDM_DEVICE_AUTO = 0,
    TDM_DEVICE_CPU = 1,
    TDM_DEVICE_GPU = 2,
} tdm_device_choice;

/* A stretch of a training; what is 0 is as the recipe says otherwise. */
typedef struct tdm_phase {
    int64_t steps;
    int64_t max_length;
    int64_t batch_tokens;
    int64_t micro_batch_tokens;
} tdm_phase;

typedef struct tdm_train_options {
    int64_t epochs;             /* 0: without end, until max_steps */
    int64_t max_steps;          /* 0: none */
    int64_t batch_size;         /* ctr */
    int64_t batch_tokens;       /* text */
    int64_t micro_batch_tokens; /* text: that go through the model at a time; 0: all */
    bool recompute;             /* text: layers run twice, to save memory */
    tdm_sections phases;        /* text: of tdm_phase */
    int precision;              /* tdm_precision */
    double clip_norm;           /* 0: off */
    int64_t eval_every_steps;   /* 0: at the end only */
    int64_t log_every_steps;    /* a line of metrics.jsonl */
    double log_every_seconds;   /* a line on stderr that is no terminal */
    int device;                 /* tdm_device_choice */
    int64_t threads;            /* 0: one a core */
} tdm_train_options;

typedef struct tdm_checkpoint_options {
    int64_t every_steps;  /* 0: off */
    double every_minutes; /* 0: off */
    int64_t keep_last;
    int keep_best; /* see tdm_keep_best_names() */
} tdm_checkpoint_options;

typedef struct tdm_recipe {
    char *path; /* of the file, for messages */
    /* the sections, as the table in recipe_schema.c says */
    int task; /* tdm_task_kind */
    int64_t seed;
    tdm_data_options data;
    tdm_feature_options features; /* ctr, like metrics */
    tdm_text_options text;        /* mlm, classify */
    tdm_label_options labels;     /* classify */
    const tdm_config_node *model;
    tdm_optimizer_options optimizer;
    tdm_train_options train;
    tdm_checkpoint_options checkpoint;
    tdm_metrics_options metrics;
    struct tdm_cache_section {
        char *dir; /* NULL: see tdm_recipe_cache_folder */
    } cache;
    struct tdm_output_section {
        char *dir; /* the run folder */
    } output;
    /* made of them */
    tdm_train_source corpora;
    tdm_eval_source eval;
    const tdm_model_type *model_type;
    void *model_options; /* bound by model_type->schema */
    char *init_from;     /* a run folder, or of text another program's; NULL: none */
    /* private */
    tdm_phase base_phase; /* what phases replace in text and train */
    void *model_section;
    tdm_config *config; /* owns nodes */
} tdm_recipe;

/* What the command line says beside the recipe. Everything is borrowed. */
typedef struct tdm_recipe_arguments {
    const char *const *overrides; /* "key.path=value" */
    int override_count;
    const char *const *train; /* files and globs that replace data.train; count 0: none */
    int train_count;
    const char *const *eval; /* the same for data.eval */
    int eval_count;
} tdm_recipe_arguments;

/* Loads, binds and checks a recipe. Errors are TDM_E_CONFIG with file:line, TDM_E_UNSUPPORTED for
 * what this version cannot do. `arguments` may be NULL. */
TDM_MUST_CHECK tdm_status tdm_recipe_load(const char *path, const tdm_recipe_arguments *arguments,
                                          tdm_recipe **out);

/* The same from text in memory, which messages call `name`. */
TDM_MUST_CHECK tdm_status tdm_recipe_parse(const char *text, size_t bytes, const char *name,
                                           const tdm_recipe_arguments *arguments, tdm_recipe **out);

/* Loads the resolved recipe of a run folder. TDM_E_STATE where the folder holds no run. */
TDM_MUST_CHECK tdm_status tdm_recipe_load_run(const char *run_folder, tdm_recipe **out);

/* NULL is allowed. */
void tdm_recipe_free(tdm_recipe *recipe);

/* Checks what training needs and eval or predict do not: that there is something to train on, and
 * that standard input, epochs, cache, schedule and data.eval fit together. */
TDM_MUST_CHECK tdm_status tdm_recipe_check_training(const tdm_recipe *recipe);

/* Phases of a training of text, from 0; where the recipe has none there is one. `begin` is the
 * steps before it; _of the one that follows `step` steps. */
int64_t tdm_recipe_phase_count(const tdm_recipe *recipe);
int64_t tdm_recipe_phase_begin(const tdm_recipe *recipe, int64_t phase);
int64_t tdm_recipe_phase_of(const tdm_recipe *recipe, int64_t step);
tdm_phase tdm_recipe_phase_get(const tdm_recipe *recipe, int64_t phase);
/* Puts the phase's values into text.max_length, train.batch_tokens and train.micro_batch_tokens; of
 * ctr, nothing. */
void tdm_recipe_set_phase(tdm_recipe *recipe, int64_t phase);

/* Opens the files of data.train, in order, and completes the recipe with what order depends on:
 * data.block_bytes. `pool` and `cancel` may be NULL; see tdm_input_options. */
TDM_MUST_CHECK tdm_status tdm_recipe_open_input(tdm_recipe *recipe, tdm_pool *pool,
                                                const atomic_bool *cancel, tdm_input **out);

/* Resolves the features section of a ctr recipe against an input. */
TDM_MUST_CHECK tdm_status tdm_recipe_feature_spec(const tdm_recipe *recipe, const tdm_input *input,
                                                  tdm_feature_spec **out);

/* Resolves the labels section of a classify recipe against an input's columns. For training,
 * classes that are auto are found first, by one pass over the input, and labels.classes is
 * completed with them. */
TDM_MUST_CHECK tdm_status tdm_recipe_label_spec(tdm_recipe *recipe, tdm_input *input,
                                                tdm_pool *pool, tdm_label_use use,
                                                tdm_label_spec **out);

/* Opens the tokenizer of a recipe of text; freed with tdm_tokenizer_close(). */
TDM_MUST_CHECK tdm_status tdm_recipe_tokenizer(const tdm_recipe *recipe, tdm_tokenizer **out);

/* How the recipe's results are measured. Of classify, once its classes are known. */
tdm_metrics_spec tdm_recipe_metrics(const tdm_recipe *recipe);

/* What checkpoint.keep_best may say of a task, ended by NULL: names of metrics, f1 for that which
 * the kind of metrics has, none, and auto for the kind's own choice. */
const char *const *tdm_keep_best_names(int task);

/* The metric that checkpoint.keep_best says, NULL for none; completes the recipe where that is
 * auto. TDM_E_CONFIG naming those that can be where this kind of metrics lacks it. */
TDM_MUST_CHECK tdm_status tdm_recipe_best_metric(tdm_recipe *recipe, const tdm_metrics_type *type,
                                                 const tdm_metric **out);

/* Where caches lie: cache.dir, or the user's cache folder. In new memory, freed with tdm_free(). */
TDM_MUST_CHECK tdm_status tdm_recipe_cache_folder(const tdm_recipe *recipe, char **out);

/* Appends the recipe as YAML, every key with its value in force: loading the text gives the same
 * recipe. */
TDM_MUST_CHECK tdm_status tdm_recipe_emit(const tdm_recipe *recipe, tdm_text *text);

/* Appends the reference of all keys: what `tandem help recipe` prints. */
TDM_MUST_CHECK tdm_status tdm_recipe_describe(tdm_text *text);

#endif
