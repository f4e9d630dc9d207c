/* Combinations that cannot be, each with the place in the recipe. */
#include "trainer/recipe_internal.h"

#include <string.h>

/* Of one layer and sequence: core/rng.h numbers them with 32 bits. */
#define MOST_DROPOUT_ELEMENTS ((int64_t)1 << 32)

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

/* At the phase's own value where it has one, else as refuse(). */
static tdm_status refuse_in_phase(const tdm_recipe *recipe, int64_t phase, const char *section,
                                  const char *key, const char *message)
{
    const tdm_config_node *item =
        tdm_config_item(tdm_recipe_node(recipe, "train", "phases"), phase);
    const tdm_config_node *own = tdm_config_get(item, key);
    return own != NULL ? tdm_config_fail(own, "%s", message)
                       : refuse(recipe, section, key, message);
}

static tdm_status check_phase_tokens(const tdm_recipe *recipe, int64_t index,
                                     const tdm_phase *phase)
{
    long long lanes = recipe->data.lanes, tokens = phase->batch_tokens;
    long long part = phase->micro_batch_tokens, length = phase->max_length;
    char message[256];
    if (tokens / lanes < length) {
        snprintf(message, sizeof message,
                 "%lld is %lld for each of data.lanes, %lld, less than text.max_length, %lld: %lld "
                 "would be enough",
                 tokens, tokens / lanes, lanes, length, length * lanes);
        return refuse_in_phase(recipe, index, "train", "batch_tokens", message);
    }
    if (part > 0 && part < length) {
        snprintf(message, sizeof message, "%lld is less than text.max_length, %lld", part, length);
        return refuse_in_phase(recipe, index, "train", "micro_batch_tokens", message);
    }
    return TDM_OK;
}

static tdm_status check_phase(const tdm_recipe *recipe, int64_t index)
{
    const tdm_bert_options *model = recipe->model_options;
    const tdm_phase phase = tdm_recipe_phase_get(recipe, index);
    long long length = phase.max_length;
    char message[256];
    if (length < TDM_MIN_SEQUENCE_LENGTH) {
        snprintf(message, sizeof message, "expected 0 or a whole number from %d on, not %lld",
                 TDM_MIN_SEQUENCE_LENGTH, length);
        return refuse_in_phase(recipe, index, "text", "max_length", message);
    }
    TDM_TRY(check_phase_tokens(recipe, index, &phase));
    if (model->positions == TDM_POSITION_LEARNED && length > model->max_positions) {
        bool is_said = tdm_recipe_node(recipe, "model", "max_positions") != NULL;
        snprintf(message, sizeof message, "%lld%s is less than text.max_length, %lld",
                 (long long)model->max_positions, is_said ? "" : ", that of model.init_from,",
                 length);
        return refuse(recipe, "model", "max_positions", message);
    }
    if (tdm_bert_attention_dropout(model) > 0 &&
        model->heads * length * length > MOST_DROPOUT_ELEMENTS) {
        snprintf(message, sizeof message,
                 "%lld attention heads of %lld * %lld weights are more than 2^32, as many as can "
                 "be dropped: set it to 0",
                 (long long)model->heads, length, length);
        return refuse(recipe, "model", "attention_dropout", message);
    }
    return TDM_OK;
}

/* What tasks of text have in common. */
static tdm_status check_text(const tdm_recipe *recipe)
{
    const tdm_bert_options *model = recipe->model_options;
    char message[256];
    for (int64_t i = 0; i < tdm_recipe_phase_count(recipe); i++)
        TDM_TRY(check_phase(recipe, i));
    if (model->hidden % model->heads != 0) {
        snprintf(message, sizeof message, "%lld is not a multiple of model.heads, %lld",
                 (long long)model->hidden, (long long)model->heads);
        return refuse(recipe, "model", "hidden", message);
    }
    return TDM_OK;
}

static tdm_status check_mlm(const tdm_recipe *recipe)
{
    const tdm_record_format_type *format = tdm_record_formats[recipe->data.format];
    if (format != &tdm_format_text && format != &tdm_format_jsonl)
        return refuse(recipe, "data", "format", "mlm reads documents: take text or jsonl");
    if (recipe->data.columns.count > 0)
        return refuse(recipe, "data", "columns",
                      "mlm reads one text: of jsonl data.field names it");
    TDM_TRY(tdm_text_options_check(&recipe->text,
                                   tdm_config_get(tdm_config_root(recipe->config), "text")));
    return check_text(recipe);
}

static tdm_status check_classify(const tdm_recipe *recipe)
{
    const tdm_data_options *data = &recipe->data;
    const tdm_record_format_type *format = tdm_record_formats[data->format];
    bool tokens = recipe->labels.type == TDM_LABEL_TOKENS;
    if (format == &tdm_format_criteo || (format == &tdm_format_text && !tokens))
        return refuse(recipe, "data", "format",
                      "classify reads labelled records: take csv, tsv or jsonl; or text for "
                      "labels.type: tokens");
    if (format == &tdm_format_text && data->documents == TDM_DOCUMENTS_LINE)
        return refuse(recipe, "data", "documents",
                      "labels of tokens are read a word a line: take blank_line");
    if (format == &tdm_format_jsonl && strcmp(data->field, "text") != 0)
        return refuse(recipe, "data", "field",
                      "is of mlm: labels.text names the field of the text");
    TDM_TRY(tdm_label_options_check(&recipe->labels, data,
                                    tdm_config_get(tdm_config_root(recipe->config), "labels")));
    return check_text(recipe);
}

static tdm_status check_batch_size(const tdm_recipe *recipe)
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
    return TDM_OK;
}

tdm_status tdm_recipe_check(const tdm_recipe *recipe)
{
    return recipe->task == TDM_TASK_MLM        ? check_mlm(recipe)
           : recipe->task == TDM_TASK_CLASSIFY ? check_classify(recipe)
                                               : check_batch_size(recipe);
}

static tdm_status check_stdin(const tdm_recipe *recipe)
{
    const tdm_train_options *train = &recipe->train;
    if (train->epochs != 1 && recipe->data.cache == TDM_CACHE_OFF)
        return refuse(recipe, "train", "epochs",
                      "standard input can be read once only: set data.cache: auto, or epochs: 1");
    if (tdm_schedule_needs_progress(&recipe->optimizer.schedule) && train->max_steps == 0)
        return refuse(recipe, "optimizer", "schedule",
                      "with standard input, whose length is not known, a decay or a "
                      "warmup_share needs train.max_steps");
    if (recipe->eval.hold_out > 0)
        return refuse(recipe, "data", "eval",
                      "hold_out reads the training data again, which standard input does not "
                      "allow: name files for evaluation");
    if (train->phases.count > 1)
        return refuse(recipe, "train", "phases",
                      "each reads its data anew, which standard input does not allow: name files");
    return TDM_OK;
}

/* Phases end after their steps; where an epoch were the last one, those behind it would be left
 * out. */
static tdm_status check_length(const tdm_recipe *recipe)
{
    if (recipe->train.phases.count > 1 && recipe->train.epochs > 0)
        return refuse(recipe, "train", "epochs",
                      "train.phases say how long the training is: leave it out, or take 0");
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
    return tdm_recipe_reads_stdin(recipe) ? check_stdin(recipe) : check_length(recipe);
}
