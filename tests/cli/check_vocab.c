/* tandem vocab: files, warnings, refusals. What is counted and merged, the unit tests tell. */
#include "tandem/text.h"
#include "tests/support/check_main.h"
#include "tests/support/run_program.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define SPECIALS "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"

static char folder[256];

static void set_up(void)
{
    snprintf(folder, sizeof folder, "%s", tdm_test_folder());
    tdm_ran ran = tdm_run_shell("cd %s && printf 'Ab ab abc bc\\nbc BC' > a.txt && "
                                "printf 'cab cab' | gzip > b.txt.gz",
                                folder);
    ck_assert_int_eq(ran.code, 0);
    tdm_ran_free(&ran);
}

static void check_run(const char *command, int code, const char *out, const char *err)
{
    tdm_ran ran = tdm_run_shell("cd %s && %s", folder, command);
    ck_assert_ran(ran, code, out, err);
    tdm_ran_free(&ran);
}

static void check_file(const char *name, const char *expected)
{
    tdm_ran ran = tdm_run_shell("cat %s/%s", folder, name);
    ck_assert_ran(ran, 0, NULL, NULL);
    ck_assert_str_eq(ran.out, expected);
    tdm_ran_free(&ran);
}

#define ABC SPECIALS "a\nb\nc\n##a\n##b\n##c\n"

START_TEST(a_vocabulary_is_written)
{
    set_up();
    check_run("tandem vocab a.txt 'b*.gz' -o v.txt", 0, "tokens          15", NULL);
    check_file("v.txt", ABC "ab\nbc\n##ab\ncab\n");
    check_run("tandem vocab a.txt -o v.txt", 2, NULL, "v.txt is there already: --force");
    check_run("tandem vocab a.txt -o v.txt --size 12 --force", 0, "tokens          12", NULL);
    check_file("v.txt", ABC "ab\n");
    check_run("tandem vocab a.txt -o v.txt --min-frequency 1 --force", 0, NULL,
              "no further pair of pieces came 1 times or more: the vocabulary has 14 tokens");
    check_file("v.txt", ABC "ab\nbc\nabc\n");
    check_run("tandem vocab b.txt.gz -o wide.txt --special '[E]' --initial 'x xy ##yz' --special d",
              0, NULL, NULL);
    check_file("wide.txt",
               SPECIALS "[E]\nd\nxy\n##yz\na\nb\nc\nx\n##a\n##b\n##c\n##x\n##ab\ncab\n");
    check_run("printf 'cd\\r\\n\\n##e\\n' > initial && "
              "tandem vocab b.txt.gz -o v.txt --initial @initial --force",
              0, NULL, NULL);
    check_file("v.txt", SPECIALS "cd\na\nb\nc\ne\n##a\n##b\n##c\n##e\n##ab\ncab\n");
}
END_TEST

START_TEST(capitals_are_kept_where_wanted)
{
    set_up();
    check_run("printf 'Bc \\303\\244' | tandem vocab - --cased --min-frequency 1 -o v.txt", 0, NULL,
              NULL);
    check_file("v.txt", SPECIALS "B\nc\n\303\244\n##B\n##c\n##\303\244\nBc\n");
    check_run("printf 'Bc \\303\\244' | tandem vocab --min-frequency 1 -o v.txt --force -", 0, NULL,
              NULL);
    check_file("v.txt", SPECIALS "a\nb\nc\n##a\n##b\n##c\nbc\n");
    /* Case folding is the current mode's. */
    check_run("printf 'Bc \\303\\237' | tandem vocab - --unicode unicode -o v.txt --force", 0, NULL,
              NULL);
    check_file("v.txt", SPECIALS "b\nc\ns\n##b\n##c\n##s\n");
}
END_TEST

START_TEST(a_vocabulary_goes_to_standard_output_too)
{
    set_up();
    tdm_ran ran = tdm_run_shell("cd %s && tandem vocab b.txt.gz", folder);
    ck_assert_ran(ran, 0, NULL, "tokens          13");
    ck_assert_str_eq(ran.out, ABC "##ab\ncab\n");
    tdm_ran_free(&ran);
    check_run("tandem vocab b.txt.gz -o -", 0, ABC "##ab\ncab\n", "tokens          13");
    check_run("tandem vocab b.txt.gz --json", 2, NULL, "--json needs -o FILE");
}
END_TEST

START_TEST(a_tokenizer_json_holds_the_settings_too)
{
    set_up();
    check_run("tandem vocab a.txt -o t.json --cased --special '[E]' --special '[PAD]'", 0,
              "tokens          20", NULL);
    check_run("tandem vocab a.txt -o t.json", 2, NULL, "t.json is there already: --force");
    char path[512];
    snprintf(path, sizeof path, "%s/t.json", folder);
    tdm_tokenizer *tokenizer;
    ck_assert_ok(tdm_tokenizer_open(path, NULL, &tokenizer));
    ck_assert(!tdm_tokenizer_get_settings(tokenizer).lowercase);
    ck_assert_int_eq(tdm_tokenizer_size(tokenizer), 20);
    ck_assert_int_eq(tdm_tokenizer_find(tokenizer, "[E]", 3), 5);
    ck_assert_int_eq(tdm_tokenizer_find(tokenizer, "bc", 2), 19);
    tdm_encoder *encoder;
    tdm_encodings *encodings;
    ck_assert_ok(tdm_encoder_create(tokenizer, 1, &encoder));
    ck_assert_ok(tdm_encodings_create(&encodings));
    const tdm_text_input input = {.text = "bc[E]", .bytes = 5};
    ck_assert_ok(tdm_encoder_encode(encoder, &input, 1, NULL, encodings));
    static const uint32_t expected[] = {2, 19, 5, 3};
    tdm_encoding encoding = tdm_encodings_get(encodings, 0);
    ck_assert_int_eq(encoding.count, 4);
    ck_assert_mem_eq(encoding.ids, expected, sizeof expected);
    tdm_encodings_destroy(encodings);
    tdm_encoder_destroy(encoder);
    tdm_tokenizer_close(tokenizer);
}
END_TEST

START_TEST(the_result_is_told_in_json)
{
    static const struct {
        const char *key;
        int64_t value;
    } expected[] = {
        {"tokens", 15},        {"characters", 3},     {"alphabet", 3},        {"merges", 4},
        {"last_count", 2},     {"files", 2},          {"bytes", 25},          {"words", 8},
        {"total_words", 8},    {"distinct_words", 4}, {"unknown_words", 0},   {"pruned_words", 0},
        {"too_long_words", 0}, {"invalid_bytes", 0},  {"temporary_files", 0}, {"coverage", 1},
    };
    set_up();
    tdm_ran ran = tdm_run_shell("cd %s && tandem vocab b.txt.gz a.txt -o v.txt --json", folder);
    ck_assert_ran(ran, 0, NULL, NULL);
    json_t *json = json_loads(ran.out, 0, NULL);
    ck_assert_msg(json != NULL, "no JSON: %s", ran.out);
    ck_assert_str_eq(json_string_value(json_object_get(json, "file")), "v.txt");
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        double value = json_number_value(json_object_get(json, expected[i].key));
        ck_assert_msg(value == (double)expected[i].value, "%s is %g", expected[i].key, value);
    }
    ck_assert(json_number_value(json_object_get(json, "count_seconds")) > 0);
    ck_assert(json_number_value(json_object_get(json, "train_seconds")) > 0);
    json_decref(json);
    tdm_ran_free(&ran);
}
END_TEST

START_TEST(what_is_left_out_is_told)
{
    set_up();
    check_run("tandem vocab a.txt -o v.txt --limit-alphabet 2", 0, "2 of 3 characters, for 50 %",
              "the alphabet leaves 1 of 3 characters out: 50 % of the words hold one, and will be "
              "[UNK]; --limit-alphabet 3 keeps all");
    check_run("tandem vocab a.txt -o v.txt --force --initial 'Cd ##x b-c'", 0, NULL,
              "warning: the initial token \"Cd\" will never be found: as a text, it is \"cd\" in 1 "
              "words\nwarning: the initial token \"b-c\" will never be found: as a text, it is "
              "\"b-c\" in 3 words\n");
    check_run("printf 'a \\377 b' | tandem vocab - -o v.txt --force", 0, NULL,
              "1 bytes are not UTF-8");
    check_run("printf 'ab %0101d' 1 | tandem vocab - -o v.txt --force", 0, "for 50 % of the words",
              "1 words of more than 100 characters were left out");
}
END_TEST

START_TEST(counts_are_added_to)
{
    set_up();
    check_run("tandem vocab b.txt.gz -o v.txt --counts words", 0, NULL, NULL);
    check_file("v.txt", ABC "##ab\ncab\n");
    check_run("cat words", 0, "#end 1 2", NULL);
    check_run("tandem vocab a.txt -o v.txt --counts words --force", 0, "words           8", NULL);
    check_file("v.txt", ABC "ab\nbc\n##ab\ncab\n");
    check_run("cat words", 0, "#end 4 8", NULL);
    /* The counts alone. */
    check_run("tandem vocab -o v.txt --counts words --force --size 13", 0, NULL, NULL);
    check_file("v.txt", ABC "ab\nbc\n");
    check_run("tandem vocab -o v.txt --counts words --force --cased", 3, NULL,
              "words: its words were counted with");
    /* A text is not added twice where the training fails. */
    check_run("tandem vocab a.txt -o v.txt --counts words --force --size 10", 2, NULL, "need 11");
    check_run("cat words", 0, "#end 4 8", NULL);
    check_file("v.txt", ABC "ab\nbc\n");
    check_run("ls", 0, "a.txt\nb.txt.gz\nv.txt\nwords\n", NULL);
}
END_TEST

START_TEST(threads_and_memory_do_not_matter)
{
    set_up();
    check_run("seq 1 60000 | sed 's/$/ seven words/' > big.txt && "
              "tandem vocab big.txt b.txt.gz -o 1.txt --size 500 --threads 1 && "
              "tandem vocab b.txt.gz big.txt -o 2.txt --size 500 --threads 2 && "
              "tandem vocab big.txt b.txt.gz -o 4.txt --size 500 --threads 4 && "
              "cmp 1.txt 2.txt && cmp 1.txt 4.txt",
              0, "tokens          500", NULL);
    /* What training has no memory for is told. */
    check_run("tandem vocab big.txt -o 5.txt --size 500 --memory 1 --json", 0,
              "\"pruned_words\": 60000", "memory for training does not hold all 60002 distinct");
}
END_TEST

START_TEST(what_cannot_be_is_refused)
{
    static const struct {
        const char *command;
        int code;
        const char *message;
    } cases[] = {
        {"tandem vocab -o v.txt", 2, "no text is named"},
        {"tandem vocab -o v.txt --counts nothing", 2, "no text is named"},
        {"tandem vocab a.txt -o v.txt --size 10", 2,
         "a size of 10 is too small: 5 special tokens, 0 initial ones and two forms of 3 "
         "characters need 11"},
        {"tandem vocab a.txt -o v.txt --size 0", 2, "--size takes a whole number from 1"},
        {"tandem vocab a.txt -o v.txt --unicode latin", 2, "--unicode is huggingface, google or"},
        {"tandem vocab missing.txt -o v.txt", 1, "missing.txt: no such file"},
        {"tandem vocab 'missing*' -o v.txt", 1, "no file matches"},
        {"tandem vocab . -o v.txt", 1, "is a folder"},
        {"tandem vocab - - -o v.txt", 2, "standard input (-) is named twice"},
        {"tandem vocab a.txt -o no/v.txt", 1, "no/v.txt"},
        {"tandem vocab a.txt -o v.txt --initial @none", 1, "none"},
        {"printf 'a\\0b' > zero && tandem vocab a.txt -o v.txt --initial @zero", 3,
         "zero: holds NUL bytes"},
        {"tandem vocab a.txt -o v.txt --special ''", 2, "cannot be a token"},
        {"printf ' ' | tandem vocab - -o v.txt", 3, "there is no word to train on"},
    };
    set_up();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_run(cases[i].command, cases[i].code, NULL, cases[i].message);
    check_run("ls", 0, "a.txt\nb.txt.gz\nzero\n", NULL);
}
END_TEST

START_TEST(the_library_trains_the_same)
{
    set_up();
    check_run("tandem vocab a.txt b.txt.gz -o v.txt --special '[E]' --initial xy", 0, NULL, NULL);
    check_run("tandem vocab a.txt b.txt.gz -o v.json --special '[E]' --initial xy", 0, NULL, NULL);
    char text[300], packed[300], vocabulary[300], json[300];
    snprintf(text, sizeof text, "%s/a.txt", folder);
    snprintf(packed, sizeof packed, "%s/b.txt.gz", folder);
    snprintf(vocabulary, sizeof vocabulary, "%s/w.txt", folder);
    snprintf(json, sizeof json, "%s/w.json", folder);
    const char *files[] = {packed, text}, *special[] = {"[E]"}, *initial[] = {"xy"};
    tdm_vocabulary_options options = tdm_vocabulary_default_options();
    options.special = special;
    options.initial = initial;
    options.special_count = options.initial_count = 1;
    tdm_tokenizer *tokenizer;
    ck_assert_ok(tdm_train_vocabulary(files, 2, &options, &tokenizer));
    ck_assert_ok(tdm_tokenizer_save(tokenizer, vocabulary));
    ck_assert_ok(tdm_tokenizer_save(tokenizer, json));
    tdm_tokenizer_close(tokenizer);
    check_run("cmp v.txt w.txt && cmp v.json w.json", 0, NULL, NULL);
    options.size = 7;
    ck_assert_fails(tdm_train_vocabulary(files, 2, &options, &tokenizer), TDM_E_ARG, "size");
    ck_assert_ptr_null(tokenizer);
    options.size = 100;
    options.limit_alphabet = -1;
    ck_assert_fails(tdm_train_vocabulary(files, 2, &options, &tokenizer), TDM_E_ARG, "alphabet");
    options.limit_alphabet = 10;
    options.settings.unicode = (tdm_unicode_mode)7;
    ck_assert_fails(tdm_train_vocabulary(files, 2, &options, &tokenizer), TDM_E_ARG, "unicode");
    files[0] = "/no/such/file";
    ck_assert_fails(tdm_train_vocabulary(files, 2, NULL, &tokenizer), TDM_E_IO, "/no/such/file");
}
END_TEST

TDM_CHECK_MAIN(a_vocabulary_is_written, capitals_are_kept_where_wanted,
               a_vocabulary_goes_to_standard_output_too, a_tokenizer_json_holds_the_settings_too,
               the_result_is_told_in_json, what_is_left_out_is_told, counts_are_added_to,
               threads_and_memory_do_not_matter, what_cannot_be_is_refused,
               the_library_trains_the_same)
