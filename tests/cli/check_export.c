/* tandem export: what a run becomes for other programs, and what is refused. */
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/run_program.h"
#include "tests/support/text_runs.h"
#include "tests/support/training.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static void check_ran(int code, const char *out, const char *err, const char *command)
{
    tdm_ran ran = tdm_run_shell("cd %s\n%s", tdm_text_folder, command);
    ck_assert_ran(ran, code, out, err);
    tdm_ran_free(&ran);
}

static json_t *json_of(const char *command)
{
    tdm_ran ran = tdm_run_shell("cd %s\n%s", tdm_text_folder, command);
    ck_assert_ran(ran, 0, NULL, NULL);
    json_t *json = json_loads(ran.out, 0, NULL);
    ck_assert_msg(json != NULL, "no JSON: %s", ran.out);
    tdm_ran_free(&ran);
    return json;
}

#define EXPORT " --format huggingface"

/* Both answer the same, number by number. */
static void same_vectors(const char *run, const char *folder)
{
    char command[512];
    json_t *vectors[2];
    const char *const names[] = {run, folder};
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command,
                 "echo 'the river of light' | tandem predict %s --embed --json", names[i]);
        vectors[i] = json_of(command);
    }
    ck_assert_uint_eq(json_array_size(vectors[0]), 16);
    for (size_t c = 0; c < 16; c++)
        ck_assert_double_eq_tol(json_real_value(json_array_get(vectors[0], c)),
                                json_real_value(json_array_get(vectors[1], c)), 1e-6);
    json_decref(vectors[0]);
    json_decref(vectors[1]);
}

START_TEST(a_run_of_masked_text)
{
    tdm_text_runs_begin();
    ck_assert_ok(tdm_text_train(TDM_TASK_MLM, "mlm", WITH("checkpoint.every_steps=2")));
    check_ran(0, "", "out: step 4 of mlm", "tandem export mlm -o out" EXPORT);
    check_ran(0,
              "config.json\nmodel.safetensors\nspecial_tokens_map.json\ntokenizer.json\n"
              "tokenizer_config.json\nvocab.txt\n",
              NULL, "ls out");
    json_t *config = json_of("cat out/config.json");
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(config, "architectures"), 0)),
                     "BertForMaskedLM");
    json_decref(config);
    same_vectors("mlm", "out");
    static const char fill[] = "tandem predict mlm --fill-mask 'the [MASK] .' > a; tandem predict "
                               "out --fill-mask 'the [MASK] .' | cmp - a";
    check_ran(0, "", NULL, fill);
    /* Of another step. */
    check_ran(0, "", "two/: step 2 of mlm", "tandem export mlm -o two/ --checkpoint 2" EXPORT);
    check_ran(1, NULL, "differ", "cmp out/model.safetensors two/model.safetensors 1>&2");
    /* A training begins from it as from the run. */
    ck_assert_ok(tdm_text_train(TDM_TASK_CLASSIFY, "from_run",
                                WITH("optimizer.learning_rate=0", "text.max_length=16",
                                     tdm_text_override("model.init_from=", "mlm"))));
    ck_assert_ok(tdm_text_train(TDM_TASK_CLASSIFY, "from_out",
                                WITH("optimizer.learning_rate=0", "text.max_length=16",
                                     tdm_text_override("model.init_from=", "out"))));
    int64_t a_count, b_count;
    float *a = tdm_text_run_tensor("from_run", "layer.1.attention.qkv.weight", &a_count);
    float *b = tdm_text_run_tensor("from_out", "layer.1.attention.qkv.weight", &b_count);
    ck_assert(a_count == b_count && memcmp(a, b, (size_t)a_count * sizeof *a) == 0);
    tdm_free(a);
    tdm_free(b);
    tdm_text_runs_end();
}
END_TEST

START_TEST(runs_of_labelled_text)
{
    tdm_text_runs_begin();
    ck_assert_ok(tdm_text_train(TDM_TASK_CLASSIFY, "classes", WITH(TINY_MODEL)));
    ck_assert_ok(tdm_text_train(
        TDM_TASK_CLASSIFY, "tags",
        WITH(TINY_MODEL, "labels={type: tokens}", tdm_text_override("data.train=", "words.txt"))));
    check_ran(0, "", NULL,
              "tandem export classes -o c" EXPORT " && tandem export tags -o t" EXPORT);
    json_t *config = json_of("cat c/config.json");
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(config, "architectures"), 0)),
                     "BertForSequenceClassification");
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(config, "id2label"), "0")),
                     "neg");
    json_decref(config);
    config = json_of("cat t/config.json");
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(config, "architectures"), 0)),
                     "BertForTokenClassification");
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(config, "id2label"), "1")),
                     "O");
    json_decref(config);
    tdm_text_runs_end();
}
END_TEST

START_TEST(what_is_refused)
{
    tdm_text_runs_begin();
    ck_assert_ok(tdm_text_train(TDM_TASK_MLM, "mlm", NULL));
    ck_assert_ok(tdm_text_train(TDM_TASK_MLM, "rotary", WITH("model.positions=rotary")));
    check_ran(4, "", "no class of Transformers has model.positions: rotary with model.norm: post",
              "tandem export rotary -o r" EXPORT "; code=$?; ls r 2> /dev/null; exit $code");
    check_ran(2, NULL, "out is there already: --force overwrites it",
              "tandem export mlm -o out" EXPORT " && tandem export mlm -o out" EXPORT);
    check_ran(0, "", NULL, "tandem export mlm -o out --force" EXPORT);
    check_ran(2, NULL, "holds notes.txt, which is no file of an export",
              "touch out/notes.txt; tandem export mlm -o out --force" EXPORT);
    check_ran(2, NULL, "name the folder to write: -o DIR", "tandem export mlm" EXPORT);
    check_ran(2, NULL, "say for whom the folder is", "tandem export mlm -o o");
    check_ran(2, NULL, "say for whom the folder is", "tandem export mlm -o o --format onnx");
    check_ran(2, NULL, "nowhere", "tandem export nowhere -o o" EXPORT);
    check_ran(4, NULL, "ctr: is a run of task ctr",
              "mkdir ctr && printf '# tandem run folder, format 1\\nmodel: {type: "
              "logistic_regression}\\n' > ctr/recipe.yaml; tandem export ctr -o o" EXPORT);
    check_ran(2, NULL, "has no checkpoint of step 3",
              "tandem export mlm -o o --checkpoint 3" EXPORT);
    check_ran(
        3, NULL, "model.safetensors",
        "truncate -s -9 mlm/checkpoints/step-*/model.safetensors; tandem export mlm -o o" EXPORT);
    check_ran(0, "", NULL, "ls | grep '^o$' || true");
    tdm_text_runs_end();
}
END_TEST

TDM_CHECK_MAIN(a_run_of_masked_text, runs_of_labelled_text, what_is_refused)
