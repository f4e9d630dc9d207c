#include "trainer/recipe.h"

#include "core/file.h"
#include "core/memory.h"
#include "text/label_classes.h"
#include "trainer/init_from.h"
#include "trainer/recipe_internal.h"
#include "trainer/run_folder.h"

#include <stdlib.h>
#include <string.h>

/* ---- loading --------------------------------------------------------------------------------- */

/* The overrides of the command line, and its files as overrides of data.train and data.eval. */
typedef struct override_list {
    const char **items;
    int count;
    tdm_text files[2];
} override_list;

static tdm_status add_files(override_list *list, const char *key, const char *const *files,
                            int count)
{
    if (count == 0)
        return TDM_OK;
    tdm_text *text = &list->files[key == NULL];
    tdm_strings strings = {.count = count};
    TDM_TRY(tdm_alloc((size_t)count, sizeof *strings.items, &strings.items));
    for (int i = 0; i < count; i++)
        strings.items[i] = (char *)(uintptr_t)files[i];
    const char *name = key == NULL ? "eval" : key;
    const tdm_config_key entry = {.name = name, .type = TDM_CONFIG_STRINGS};
    const tdm_config_schema schema = {.size = sizeof strings, .keys = &entry, .count = 1};
    tdm_text value = {0};
    tdm_status status = tdm_config_emit(&schema, &strings, 0, &value);
    if (status == TDM_OK)
        status = tdm_text_printf(text, "data.%s=%s", name, value.bytes + strlen(name) + 1);
    if (status == TDM_OK)
        list->items[list->count++] = text->bytes;
    tdm_text_free(&value);
    tdm_free(strings.items);
    return status;
}

static tdm_status make_overrides(const tdm_recipe_arguments *arguments, override_list *list)
{
    TDM_TRY(tdm_alloc((size_t)arguments->override_count + 2, sizeof *list->items, &list->items));
    for (int i = 0; i < arguments->override_count; i++)
        list->items[list->count++] = arguments->overrides[i];
    TDM_TRY(add_files(list, "train", arguments->train, arguments->train_count));
    return add_files(list, NULL, arguments->eval, arguments->eval_count);
}

static void free_overrides(override_list *list)
{
    tdm_text_free(&list->files[0]);
    tdm_text_free(&list->files[1]);
    tdm_free(list->items);
}

/* Sections of other tasks are unknown keys: the task is looked at before all else. What is wrong
 * with it, binding says. */
static int find_task(const tdm_config_node *root)
{
    const char *name = tdm_config_text(tdm_config_get(root, "task"));
    int task = name == NULL ? -1 : tdm_name_find(tdm_task_names, name);
    return task < 0 ? TDM_TASK_CTR : task;
}

/* "runs/" and the recipe's name without folder and ending. */
static tdm_status default_output(const char *path, char **out)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    const char *dot = strrchr(name, '.');
    size_t length = dot == NULL || dot == name ? strlen(name) : (size_t)(dot - name);
    return tdm_format(out, "runs/%.*s", (int)length, name);
}

static bool says(const tdm_recipe *recipe, const char *key)
{
    return tdm_recipe_node(recipe, "data", key) != NULL;
}

static void set_format(tdm_recipe *recipe, const tdm_record_format_type *format)
{
    for (recipe->data.format = 0; tdm_record_formats[recipe->data.format] != format;)
        recipe->data.format++;
}

/* The fields of JSON that labels name are its columns. */
static tdm_status default_fields(tdm_recipe *recipe)
{
    const tdm_label_options *labels = &recipe->labels;
    const char *const names[] = {labels->column, labels->text, labels->text_pair};
    tdm_strings *columns = &recipe->data.columns;
    TDM_TRY(tdm_alloc(3, sizeof *columns->items, &columns->items));
    for (int i = 0; i < 3 && names[i] != NULL; i++) {
        TDM_TRY(tdm_strdup(names[i], &columns->items[i]));
        columns->count++;
    }
    return TDM_OK;
}

/* What records are, unless the recipe says it: of mlm documents; of classify lines of cells, or
 * where words have labels, a word a line. */
static tdm_status default_data(tdm_recipe *recipe)
{
    tdm_data_options *data = &recipe->data;
    bool classify = recipe->task == TDM_TASK_CLASSIFY;
    if (recipe->task == TDM_TASK_CTR)
        return TDM_OK;
    if (!says(recipe, "format"))
        set_format(recipe, classify && recipe->labels.type != TDM_LABEL_TOKENS ? &tdm_format_tsv
                                                                               : &tdm_format_text);
    if (!classify)
        return TDM_OK;
    if (data->columns.count > 0 && !says(recipe, "header"))
        data->header = false;
    bool json = tdm_record_formats[data->format] == &tdm_format_jsonl;
    return json && data->columns.count == 0 ? default_fields(recipe) : TDM_OK;
}

/* A run's recipe says all: what it began from is not asked again. */
static tdm_status complete(tdm_recipe *recipe, bool is_run)
{
    const tdm_model_type *const *models = tdm_recipe_models(recipe->task);
    tdm_model_section *section;
    TDM_TRY(default_data(recipe));
    TDM_TRY(tdm_model_section_bind(models, recipe->model, &section));
    recipe->model_section = section;
    recipe->model_type = models[section->values->type];
    recipe->model_options = (char *)section->values + TDM_MODEL_OPTIONS;
    recipe->init_from = section->values->init_from;
    if (recipe->init_from != NULL && recipe->task != TDM_TASK_CTR && !is_run)
        TDM_TRY(tdm_init_from_complete(recipe));
    TDM_TRY(tdm_train_source_bind(recipe->data.train, &recipe->corpora));
    TDM_TRY(tdm_eval_source_bind(recipe->data.eval, &recipe->eval));
    const tdm_config_node *optimizer = tdm_config_get(tdm_config_root(recipe->config), "optimizer");
    TDM_TRY(recipe->task == TDM_TASK_CTR
                ? tdm_optimizer_resolve(optimizer, &recipe->optimizer)
                : tdm_text_optimizer_resolve(optimizer, &recipe->optimizer));
    if (recipe->output.dir == NULL)
        TDM_TRY(default_output(recipe->path, &recipe->output.dir));
    if (recipe->train.precision == TDM_PRECISION_AUTO && recipe->task == TDM_TASK_CTR)
        recipe->train.precision = TDM_PRECISION_FP32;
    if (recipe->task != TDM_TASK_CTR)
        TDM_TRY(tdm_recipe_complete_phases(recipe));
    bool ends = recipe->train.max_steps > 0 && !tdm_recipe_reads_stdin(recipe);
    if (recipe->train.epochs == 0 && !ends)
        recipe->train.epochs = 1;
    return tdm_recipe_check(recipe);
}

/* `config` goes to the recipe. */
static tdm_status bind_recipe(tdm_config *config, const char *path, bool is_run, tdm_recipe **out)
{
    tdm_recipe *recipe = NULL;
    tdm_status status;
    *out = NULL;
    int task = find_task(tdm_config_root(config));
    TDM_TRY_GOTO(tdm_alloc(1, sizeof *recipe, &recipe), fail);
    TDM_TRY_GOTO(tdm_config_bind(tdm_config_root(config), tdm_recipe_schema(task), recipe), fail);
    recipe->config = config;
    config = NULL;
    TDM_TRY_GOTO(tdm_strdup(path, &recipe->path), fail);
    TDM_TRY_GOTO(complete(recipe, is_run), fail);
    *out = recipe;
    return TDM_OK;
fail:
    tdm_config_free(config);
    tdm_recipe_free(recipe);
    return status;
}

static const tdm_recipe_arguments no_arguments;

static tdm_status load(const char *path, const tdm_recipe_arguments *arguments, bool is_run,
                       tdm_recipe **out)
{
    override_list list = {0};
    tdm_config *config;
    *out = NULL;
    tdm_status status = make_overrides(arguments == NULL ? &no_arguments : arguments, &list);
    if (status == TDM_OK)
        status = tdm_config_load(path, list.items, list.count, &config);
    if (status == TDM_OK)
        status = bind_recipe(config, path, is_run, out);
    free_overrides(&list);
    return status;
}

tdm_status tdm_recipe_load(const char *path, const tdm_recipe_arguments *arguments,
                           tdm_recipe **out)
{
    char *recipe;
    *out = NULL;
    TDM_TRY(tdm_path_join(path, TDM_RUN_RECIPE, &recipe));
    tdm_status status = TDM_OK;
    if (tdm_file_exists(recipe))
        status = tdm_fail(TDM_E_ARG,
                          "%s: is the folder of a run, whose recipe is %s: a training goes on with "
                          "--resume",
                          path, recipe);
    tdm_free(recipe);
    return status == TDM_OK ? load(path, arguments, false, out) : status;
}

tdm_status tdm_recipe_parse(const char *text, size_t bytes, const char *name,
                            const tdm_recipe_arguments *arguments, tdm_recipe **out)
{
    override_list list = {0};
    tdm_config *config;
    *out = NULL;
    tdm_status status = make_overrides(arguments == NULL ? &no_arguments : arguments, &list);
    if (status == TDM_OK)
        status = tdm_config_parse(text, bytes, name, list.items, list.count, &config);
    if (status == TDM_OK)
        status = bind_recipe(config, name, false, out);
    free_overrides(&list);
    return status;
}

tdm_status tdm_recipe_load_run(const char *run_folder, tdm_recipe **out)
{
    char *path;
    *out = NULL;
    TDM_TRY(tdm_run_folder_check(run_folder));
    TDM_TRY(tdm_path_join(run_folder, TDM_RUN_RECIPE, &path));
    tdm_status status = load(path, NULL, true, out);
    tdm_free(path);
    return status;
}

void tdm_recipe_free(tdm_recipe *recipe)
{
    if (recipe == NULL)
        return;
    tdm_model_section_destroy(recipe->model_section);
    tdm_train_source_deinit(&recipe->corpora);
    tdm_eval_source_deinit(&recipe->eval);
    char *path = recipe->path;
    tdm_config *config = recipe->config;
    tdm_config_unbind(tdm_recipe_schema(recipe->task), recipe);
    tdm_config_free(config);
    tdm_free(path);
    tdm_free(recipe);
}

/* ---- using ----------------------------------------------------------------------------------- */

tdm_status tdm_recipe_open_input(tdm_recipe *recipe, tdm_pool *pool, const atomic_bool *cancel,
                                 tdm_input **out)
{
    tdm_format_options format;
    *out = NULL;
    TDM_TRY(tdm_data_format_options(&recipe->data, &format));
    const tdm_input_options options = {
        .paths = &recipe->corpora.files,
        .weights = recipe->corpora.weights,
        .format = &format,
        .block_bytes = recipe->data.block_bytes,
        .lanes = (int)recipe->data.lanes,
        .max_record_bytes = recipe->data.max_record_bytes,
        .pool = pool,
        .cancel = cancel,
    };
    TDM_TRY(tdm_input_open(&options, out));
    recipe->data.block_bytes = tdm_input_block_bytes(*out);
    return TDM_OK;
}

tdm_status tdm_recipe_feature_spec(const tdm_recipe *recipe, const tdm_input *input,
                                   tdm_feature_spec **out)
{
    return tdm_feature_spec_create(&recipe->features,
                                   tdm_config_get(tdm_config_root(recipe->config), "features"),
                                   tdm_input_format(input), out);
}

static tdm_status make_label_spec(const tdm_recipe *recipe, const tdm_input *input,
                                  tdm_label_use use, tdm_label_spec **out)
{
    return tdm_label_spec_create(&recipe->labels,
                                 tdm_config_get(tdm_config_root(recipe->config), "labels"),
                                 tdm_input_format(input), &recipe->data.columns, use, out);
}

tdm_status tdm_recipe_label_spec(tdm_recipe *recipe, tdm_input *input, tdm_pool *pool,
                                 tdm_label_use use, tdm_label_spec **out)
{
    TDM_TRY(make_label_spec(recipe, input, use, out));
    if (use == TDM_LABEL_PREDICTION || !tdm_label_classes_are_auto(&recipe->labels))
        return TDM_OK;
    tdm_strings classes;
    tdm_status status = tdm_label_classes_find(*out, input, pool, &classes);
    tdm_label_spec_destroy(*out);
    *out = NULL;
    TDM_TRY(status);
    tdm_strings_free(&recipe->labels.classes);
    recipe->labels.classes = classes;
    return make_label_spec(recipe, input, use, out);
}

tdm_status tdm_recipe_tokenizer(const tdm_recipe *recipe, tdm_tokenizer **out)
{
    return tdm_text_open_tokenizer(&recipe->text,
                                   tdm_config_get(tdm_config_root(recipe->config), "text"), out);
}

tdm_status tdm_recipe_cache_folder(const tdm_recipe *recipe, char **out)
{
    if (recipe->cache.dir != NULL)
        return tdm_strdup(recipe->cache.dir, out);
    const char *folder = getenv("XDG_CACHE_HOME");
    if (folder != NULL && folder[0] == '/')
        return tdm_format(out, "%s/tandem", folder);
    const char *home = getenv("HOME");
    if (home != NULL && home[0] == '/')
        return tdm_format(out, "%s/.cache/tandem", home);
    return tdm_format(out, "%s/cache", recipe->output.dir);
}

/* ---- text ------------------------------------------------------------------------------------ */

tdm_status tdm_recipe_emit(const tdm_recipe *recipe, tdm_text *text)
{
    const tdm_config_schema *schema = tdm_recipe_schema(recipe->task);
    const tdm_model_section *section = recipe->model_section;
    tdm_recipe plain;
    if (recipe->task != TDM_TASK_CTR) {
        plain = tdm_recipe_without_phase(recipe);
        recipe = &plain;
    }
    for (int i = 0; i < schema->count; i++) {
        const tdm_config_key *key = &schema->keys[i];
        const tdm_config_schema one = {.size = schema->size, .keys = key, .count = 1};
        if (strcmp(key->name, TDM_RECIPE_MODEL) != 0) {
            TDM_TRY(tdm_config_emit(&one, recipe, 0, text));
            continue;
        }
        TDM_TRY(tdm_text_printf(text, "%s:\n", key->name));
        TDM_TRY(tdm_config_emit(&section->schema, section->values, 2, text));
    }
    return TDM_OK;
}

static tdm_status describe_models(int task, tdm_text *text)
{
    const tdm_model_type *const *models = tdm_recipe_models(task);
    for (int i = 0; models[i] != NULL; i++) {
        tdm_model_section *section;
        TDM_TRY(
            tdm_text_printf(text, "\n# model.type: %s: %s\n", models[i]->name, models[i]->help));
        TDM_TRY(tdm_model_section_create(models, models[i], &section));
        tdm_status status = tdm_config_describe(&section->schema, TDM_RECIPE_MODEL, text);
        tdm_model_section_destroy(section);
        TDM_TRY(status);
    }
    return tdm_text_printf(text, "\n");
}

static tdm_status describe_keep_best(int task, tdm_text *text)
{
    const tdm_config_schema *checkpoint = tdm_checkpoint_schema(task);
    const tdm_config_schema last = {
        .size = checkpoint->size, .keys = &checkpoint->keys[checkpoint->count - 1], .count = 1};
    return tdm_config_describe(&last, "checkpoint", text);
}

/* What an mlm recipe has and a ctr recipe has not. */
static tdm_status describe_mlm(tdm_text *text)
{
    const tdm_config_schema *train = tdm_train_schema(TDM_TASK_MLM);
    const tdm_config_schema tokens = {.size = train->size,
                                      .keys = &train->keys[train->count - TDM_TEXT_TRAIN_KEYS],
                                      .count = TDM_TEXT_TRAIN_KEYS};
    TDM_TRY(tdm_text_printf(
        text, "\n# task: mlm: text in place of features and metrics; optimizer with one "
              "rule; train.batch_tokens in place of train.batch_size; data.format is "
              "text unless said\n"));
    TDM_TRY(tdm_config_describe(&tdm_text_schema, "text", text));
    TDM_TRY(tdm_config_describe(&tdm_text_optimizer_schema, "optimizer", text));
    TDM_TRY(tdm_config_describe(&tokens, "train", text));
    TDM_TRY(describe_keep_best(TDM_TASK_MLM, text));
    return describe_models(TDM_TASK_MLM, text);
}

static tdm_status describe_classify(tdm_text *text)
{
    TDM_TRY(tdm_text_printf(
        text, "# task: classify: as mlm, with labels and metrics, and in text without "
              "sequences and masking; data.format is tsv unless said, text for "
              "labels of tokens\n"));
    TDM_TRY(tdm_config_describe(&tdm_label_schema, "labels", text));
    return describe_keep_best(TDM_TASK_CLASSIFY, text);
}

tdm_status tdm_recipe_describe(tdm_text *text)
{
    const tdm_config_schema *schema = tdm_recipe_schema(TDM_TASK_CTR);
    for (int i = 0; i < schema->count; i++) {
        const tdm_config_key *key = &schema->keys[i];
        const tdm_config_schema one = {.size = schema->size, .keys = key, .count = 1};
        if (strcmp(key->name, TDM_RECIPE_MODEL) == 0)
            TDM_TRY(describe_models(TDM_TASK_CTR, text));
        else
            TDM_TRY(tdm_config_describe(&one, "", text));
    }
    TDM_TRY(describe_mlm(text));
    return describe_classify(text);
}
