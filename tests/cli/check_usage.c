/* What the program says of itself, and how it answers what it cannot do. */
#include "tests/support/check_main.h"
#include "tests/support/run_program.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const char *const verbs[] = {
    "train",       "check",  "eval",      "predict",        "features",    "inspect",
    "vocab",       "doctor", "synth ctr", "bench features", "bench train", "help",
    "help recipe", "export", "tokenize",  "bench tokenize",
};

START_TEST(every_verb_explains_itself_by_example)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        char usage[64], example[64];
        snprintf(usage, sizeof usage, "Usage: tandem %s", verbs[i]);
        snprintf(example, sizeof example, "\n  tandem %s", verbs[i]);
        tdm_ran ran = tdm_run_shell("tandem %s --help", verbs[i]);
        ck_assert_ran(ran, 0, usage, NULL);
        ck_assert_ran(ran, 0, example, NULL);
        ck_assert_str_eq(ran.err, "");
        tdm_ran_free(&ran);
        ran = tdm_run_shell("tandem --help");
        ck_assert_ran(ran, 0, verbs[i], NULL);
        tdm_ran_free(&ran);
    }
}
END_TEST

START_TEST(help_of_a_verb_is_its_help_option)
{
    tdm_ran help = tdm_run_shell("tandem help train");
    tdm_ran option = tdm_run_shell("tandem train x y --help --resume");
    ck_assert_int_eq(help.code, 0);
    ck_assert_int_eq(option.code, 0);
    ck_assert_str_eq(help.out, option.out);
    tdm_ran_free(&help);
    tdm_ran_free(&option);
    tdm_ran group = tdm_run_shell("tandem bench --help");
    ck_assert_ran(group, 0, "Usage: tandem bench train", NULL);
    ck_assert_ran(group, 0, "Usage: tandem bench features", NULL);
    tdm_ran_free(&group);
}
END_TEST

START_TEST(the_reference_lists_the_keys_of_a_recipe)
{
    tdm_ran ran = tdm_run_shell("tandem help recipe");
    static const char *const keys[] = {"\ndata.format",          "\nfeatures.hash_seed",
                                       "\ntrain.batch_size",     "\noptimizer.sparse.learning_rate",
                                       "\ncheckpoint.keep_last", "\ntext.masking.rate",
                                       "\nlabels.type",          "\nmodel.layers",
                                       "\ntrain.phases[].steps"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        ck_assert_ran(ran, 0, keys[i], NULL);
    tdm_ran_free(&ran);
}
END_TEST

START_TEST(help_knows_of_text)
{
    tdm_ran ran = tdm_run_shell("tandem help");
    ck_assert_ran(ran, 0, "click-through-rate models and BERT-style encoders", NULL);
    ck_assert_ran(ran, 0, "\n  tandem train recipes/bert/bert_mini.yaml ", NULL);
    tdm_ran_free(&ran);
    ran = tdm_run_shell("tandem train --help");
    ck_assert_ran(ran, 0, "\n  tandem train recipes/bert/classify.yaml ", NULL);
    tdm_ran_free(&ran);
}
END_TEST

START_TEST(the_version_is_that_of_the_library)
{
    tdm_ran ran = tdm_run_shell("tandem --version");
    ck_assert_ran(ran, 0, NULL, NULL);
    ck_assert_str_eq(ran.out, "tandem " TDM_VERSION "\n");
    tdm_ran_free(&ran);
}
END_TEST

START_TEST(wrong_usage_is_2_and_says_what_was_meant)
{
    static const struct {
        const char *command, *message;
    } cases[] = {
        {"tandem", "say what to do"},
        {"tandem trian x.yaml", "tandem: there is no verb trian; did you mean train?"},
        {"tandem xyzzy", "there is no verb xyzzy; tandem --help lists them"},
        {"tandem bench", "bench needs to know what: features, train"},
        {"tandem bench feature", "did you mean features?"},
        {"tandem train --resme x.yaml",
         "tandem train: unknown option --resme; did you mean --resume?"},
        {"tandem train --xyzzy x.yaml", "unknown option --xyzzy"},
        {"tandem train -x", "unknown option -x"},
        {"tandem predict runs/x -ofile", "unknown option -ofile"},
        {"tandem train", "too few arguments: tandem train RECIPE"},
        {"tandem eval runs/x", "too few arguments: tandem eval RUN FILE"},
        {"tandem inspect a b", "\"b\" is one argument too many"},
        {"tandem train --resume=yes x", "--resume takes no value"},
        {"tandem train x --eval", "--eval needs a value: --eval FILE"},
        {"tandem synth ctr --rows many -o x", "--rows takes a whole number from 1 to"},
        {"tandem synth ctr --rows 0 -o x", "--rows takes a whole number from 1 to"},
        {"tandem synth ctr --rows 5k -o x", "not \"5k\""},
        {"tandem synth ctr --rows=99999999999999999999 -o x", "--rows takes a whole number"},
        {"tandem help trian", "did you mean train?"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdm_ran ran = tdm_run_shell("%s", cases[i].command);
        ck_assert_ran(ran, 2, NULL, cases[i].message);
        ck_assert_str_eq(ran.out, "");
        tdm_ran_free(&ran);
    }
}
END_TEST

START_TEST(a_wrong_recipe_is_2_with_file_and_line)
{
    const char *folder = tdm_test_folder();
    tdm_ran ran = tdm_run_shell("cd %s && printf 'model: {type: logistic_regression}\\n"
                                "features: {fields: [{column: C1}]}\\n"
                                "train: {batchsize: 32}\\n' > r.yaml && tandem check r.yaml x",
                                folder);
    ck_assert_ran(ran, 2, NULL, "r.yaml:3: train.batchsize: unknown key; did you mean batch_size?");
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && tandem check r.yaml x trian.epochs=2", folder);
    ck_assert_ran(ran, 2, NULL, "trian");
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && tandem check missing.yaml x", folder);
    ck_assert_int_ne(ran.code, 0);
    ck_assert_ran(ran, ran.code, NULL, "missing.yaml");
    tdm_ran_free(&ran);
}
END_TEST

/* Behind -- everything is plain: "a.b=c" is a file there. */
START_TEST(two_dashes_end_options_and_keys)
{
    const char *folder = tdm_test_folder();
    tdm_ran ran = tdm_run_shell("cd %s && printf 'model: {type: logistic_regression}\\nfeatures: "
                                "{fields: [{column: C1}]}\\n'"
                                " > r.yaml && tandem synth ctr --rows 20 -o train.epochs=2 && "
                                "tandem check -- r.yaml train.epochs=2",
                                folder);
    ck_assert_ran(ran, 0, "20 records, 20 rows, 0 bad", NULL);
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && tandem check -- r.yaml --json", folder);
    ck_assert_ran(ran, 1, NULL, "--json: no such file");
    tdm_ran_free(&ran);
}
END_TEST

START_TEST(doctor_answers_in_json)
{
    tdm_ran ran = tdm_run_shell("tandem doctor --json");
    ck_assert_ran(ran, 0, NULL, NULL);
    json_t *json = json_loads(ran.out, 0, NULL);
    ck_assert_msg(json != NULL, "no JSON: %s", ran.out);
    ck_assert_int_ge(json_integer_value(json_object_get(json, "cores")), 1);
    ck_assert(json_number_value(json_object_get(json, "matmul_flops_per_second")) > 0);
    ck_assert(json_number_value(json_object_get(json, "memory_bytes_per_second")) > 0);
    ck_assert_ptr_nonnull(strstr(json_string_value(json_object_get(json, "libraries")), "oneDNN"));
    json_decref(json);
    tdm_ran_free(&ran);
}
END_TEST

TDM_CHECK_MAIN(every_verb_explains_itself_by_example, help_of_a_verb_is_its_help_option,
               the_reference_lists_the_keys_of_a_recipe, help_knows_of_text,
               the_version_is_that_of_the_library, wrong_usage_is_2_and_says_what_was_meant,
               a_wrong_recipe_is_2_with_file_and_line, two_dashes_end_options_and_keys,
               doctor_answers_in_json)
