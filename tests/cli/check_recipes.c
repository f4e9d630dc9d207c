/* The recipes of encoders that are shipped: each can be trained, and its comment says how large it
 * is. */
#include "core/file.h"
#include "core/memory.h"
#include "models/encoder.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"
#include "tests/support/run_program.h"
#include "tests/support/text_runs.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* Tokens of the vocabulary that comments count with. */
#define PUBLISHED_TOKENS 30522

/* The dry run of a recipe; the vocabulary is the test's. */
static json_t *plan_of(const char *name, const char *arguments)
{
    tdm_ran ran = tdm_run_shell("cd %s && tandem train %s/recipes/bert/%s %s --dry-run --json",
                                tdm_text_folder, TDM_SOURCE_DIR, name, arguments);
    ck_assert_ran(ran, 0, NULL, NULL);
    json_t *json = json_loads(ran.out, 0, NULL);
    ck_assert_msg(json != NULL, "no JSON: %s", ran.out);
    tdm_ran_free(&ran);
    return json;
}

static int64_t integer_of(const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json, key);
    ck_assert_msg(json_is_integer(value), "%s is no integer", key);
    return json_integer_value(value);
}

static char *text_of(const char *path)
{
    char *text;
    size_t bytes;
    ck_assert_ok(tdm_file_get(path, 1 << 20, &text, &bytes));
    return text;
}

/* ---- encoders -------------------------------------------------------------------------------- */

static void assert_said(const char *name, const char *comment, const char *text)
{
    ck_assert_msg(strstr(comment, text) != NULL, "recipes/bert/%s does not say \"%s\"", name, text);
}

/* Tokens that a token of a full sequence sees, in the mean of the layers. */
static double context_of(const tdm_bert_options *model, int64_t length)
{
    int64_t window = 2 * model->local_window + 1;
    if (model->local_window == 0 || window >= length)
        return (double)length;
    int64_t global = (model->layers + model->global_every - 1) / model->global_every;
    int64_t all = global * length + (model->layers - global) * window;
    return (double)all / (double)model->layers;
}

/* The work of a training step for each token of a full sequence. */
static double token_work(const tdm_recipe *recipe)
{
    const tdm_model_inputs inputs = {.vocabulary = PUBLISHED_TOKENS, .head = TDM_HEAD_MASKED};
    tdm_encoder_work work = tdm_bert_work(recipe->model_options, &inputs);
    double predictions = tdm_text_masking_options(&recipe->text).rate;
    return work.per_token +
           work.per_token_and_context * context_of(recipe->model_options, recipe->text.max_length) +
           work.per_prediction * predictions;
}

static void check_work(const char *name, const char *comment, const tdm_recipe *recipe)
{
    char text[64];
    double work = token_work(recipe);
    if (work < 1e9)
        snprintf(text, sizeof text, "%.*f MFLOP a token", work < 1e8 ? 1 : 0, work / 1e6);
    else
        snprintf(text, sizeof text, "%.2f GFLOP a token", work / 1e9);
    assert_said(name, comment, text);
}

static void check_parameters(const char *name, const char *comment, const tdm_recipe *recipe,
                             int64_t parameters)
{
    const tdm_bert_options *model = recipe->model_options;
    char text[64];
    char *vocabulary = text_of(tdm_text_path("vocab.txt"));
    int64_t missing = PUBLISHED_TOKENS - (int64_t)tdm_count_lines(vocabulary);
    double published = (double)(parameters + missing * (model->hidden + 1));
    snprintf(text, sizeof text, "%.1f M parameters", published / 1e6);
    assert_said(name, comment, text);
    tdm_free(vocabulary);
}

static void check_encoder(const char *name)
{
    char path[512];
    const char *const overrides[] = {"text.tokenizer=vocab.txt"};
    const tdm_recipe_arguments arguments = {.overrides = overrides, .override_count = 1};
    tdm_recipe *recipe;
    snprintf(path, sizeof path, "%s/recipes/bert/%s", TDM_SOURCE_DIR, name);
    char *comment = text_of(path);
    ck_assert_ok(tdm_recipe_load(path, &arguments, &recipe));
    json_t *plan = plan_of(name, "corpus.txt text.tokenizer=vocab.txt");
    ck_assert_int_gt(integer_of(plan, "tokens"), 1000);
    ck_assert_int_gt(integer_of(plan, "steps"), 0);
    check_parameters(name, comment, recipe, integer_of(plan, "parameters"));
    check_work(name, comment, recipe);
    json_decref(plan);
    tdm_recipe_free(recipe);
    tdm_free(comment);
}

START_TEST(encoders_are_what_their_comments_say)
{
    static const char *const names[] = {"bert_mini.yaml",  "bert_small.yaml", "bert_base.yaml",
                                        "bert_large.yaml", "roberta.yaml",    "mosaicbert.yaml",
                                        "modernbert.yaml"};
    tdm_text_runs_begin();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check_encoder(names[i]);
    tdm_text_runs_end();
}
END_TEST

/* ---- trainings that begin from one ----------------------------------------------------------- */

START_TEST(what_begins_from_an_encoder_is_planned)
{
    tdm_text_runs_begin();
    ck_assert_ok(tdm_text_train(TDM_TASK_MLM, "mlm", NULL));
    json_t *run =
        plan_of("bert_mini.yaml", "corpus.txt text.tokenizer=vocab.txt text.max_length=32 "
                                  "model.layers=2 model.hidden=16 model.heads=2");
    json_t *plan = plan_of("continue.yaml", "corpus.txt model.init_from=mlm text.max_length=32");
    ck_assert_int_eq(integer_of(plan, "parameters"), integer_of(run, "parameters"));
    json_decref(plan);
    json_decref(run);
    tdm_free(tdm_data_rig_put_text(tdm_text_folder, "reviews.tsv",
                                   "pos\tthe light\nneg\tthe night\npos\ta light\n"));
    plan = plan_of("classify.yaml", "reviews.tsv model.init_from=mlm text.max_length=32 "
                                    "'data.eval=[reviews.tsv]'");
    ck_assert_int_gt(integer_of(plan, "parameters"), 0);
    ck_assert_int_eq(integer_of(plan, "eval_rows"), 3);
    json_decref(plan);
    tdm_text_runs_end();
}
END_TEST

/* ---- lengths of trainings -------------------------------------------------------------------- */

/* Steps are counted in tokens, shared out over lanes; of phases they are the sum. */
START_TEST(steps_are_of_tokens)
{
    tdm_text_runs_begin();
    json_t *one = plan_of("bert_mini.yaml", "corpus.txt text.tokenizer=vocab.txt");
    json_t *many = plan_of("bert_mini.yaml", "corpus.txt text.tokenizer=vocab.txt train.epochs=50");
    int64_t steps = integer_of(one, "steps");
    ck_assert_int_gt(integer_of(one, "tokens"), 8 * integer_of(one, "rows"));
    ck_assert_int_ge(steps, (integer_of(one, "tokens") + 4095) / 4096);
    ck_assert_int_eq(integer_of(many, "steps"), 50 * steps);
    json_t *phases = plan_of("bert_base.yaml", "corpus.txt text.tokenizer=vocab.txt");
    ck_assert_int_eq(integer_of(phases, "steps"), 1000000);
    json_decref(one);
    json_decref(many);
    json_decref(phases);
    tdm_ran ran = tdm_run_shell("cd %s && tandem train %s/recipes/bert/bert_mini.yaml corpus.txt "
                                "text.tokenizer=vocab.txt --dry-run",
                                tdm_text_folder, TDM_SOURCE_DIR);
    ck_assert_ran(ran, 0, "\ntokens        about ", NULL);
    tdm_ran_free(&ran);
    tdm_text_runs_end();
}
END_TEST

TDM_CHECK_MAIN(encoders_are_what_their_comments_say, what_begins_from_an_encoder_is_planned,
               steps_are_of_tokens)
