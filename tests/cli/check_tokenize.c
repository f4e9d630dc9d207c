/* tandem tokenize, and the example program on libtandem. */
#include "tests/support/check_main.h"
#include "tests/support/run_program.h"

#include <jansson.h>
#include <string.h>

#define VOCABULARY                                                                                 \
    "printf '[PAD]\\n[UNK]\\n[CLS]\\n[SEP]\\n[MASK]\\na\\nb\\n##b\\nA\\n,\\n\\303\\251\\n[\\n"     \
    "mask\\n]\\ne\\n' > v.txt\n"

static void assert_out(const char *command, const char *out)
{
    tdm_ran ran = tdm_run_shell("cd %s\n" VOCABULARY "%s", tdm_test_folder(), command);
    ck_assert_msg(ran.code == 0, "%s: exit code %d: %s", command, ran.code, ran.err);
    ck_assert_str_eq(ran.out, out);
    tdm_ran_free(&ran);
}

static void assert_error(const char *command, int code, const char *err)
{
    tdm_ran ran = tdm_run_shell("cd %s\n" VOCABULARY "%s", tdm_test_folder(), command);
    ck_assert_ran(ran, code, NULL, err);
    tdm_ran_free(&ran);
}

START_TEST(a_line_of_ids_for_each_line)
{
    assert_out("printf 'a ab\\n\\n\\r\\nb x' | tandem tokenize v.txt", "5 5 7\n\n\n6 1\n");
    assert_out("printf 'ab,\\n' > t; tandem tokenize v.txt t - t < /dev/null", "5 7 9\n5 7 9\n");
    assert_out("printf 'ab\\n' | gzip > t.gz; tandem tokenize v.txt t.gz", "5 7\n");
    assert_out("printf '' | tandem tokenize v.txt", "");
    assert_out("printf '\\357\\273\\277a\\n\\357\\273\\277' > t1; printf b > t2; "
               "tandem tokenize v.txt 't?' --offsets --bytes",
               "5:0:1\n\n6:0:1\n");
    assert_out("printf 'ab\\n' > t; tandem tokenize v.txt t -o o > p; cat o p", "5 7\n");
}
END_TEST

START_TEST(forms_of_a_line)
{
    assert_out("printf '\\303\\251 ab\\n' | tandem tokenize v.txt --tokens", "e a ##b\n");
    assert_out("printf '\\303\\251 ab\\n' | tandem tokenize v.txt --offsets",
               "14:0:1 5:2:3 7:3:4\n");
    assert_out("printf '\\303\\251 ab\\n' | tandem tokenize v.txt --tokens --offsets --bytes",
               "e:0:2 a:3:4 ##b:4:5\n");
    assert_out("printf 'a\\tb\\n' | tandem tokenize v.txt --pairs --special --tokens",
               "[CLS] a [SEP] b [SEP]\n");
    assert_out("printf 'a,a,a\\n' | tandem tokenize v.txt --max-length 2 --overflow --stride 1",
               "5 9\t9 5\t5 9\t9 5\n");
    assert_out("printf 'a,b\\n' | tandem tokenize v.txt --max-length 2 --truncate-left --tokens",
               ", b\n");
    assert_out("printf 'a\\nb a b\\n' | tandem tokenize v.txt --pad 2 --pad-multiple 4",
               "5 0 0 0\n6 5 6 0\n");
    assert_out("printf 'a\\n' | tandem tokenize v.txt --pad 2 --pad-left", "0 5\n");
    assert_out("printf 'a b\\ta b a\\n' | tandem tokenize v.txt --pairs --max-length 3 "
               "--truncation only_second",
               "5 6 5\n");
}
END_TEST

START_TEST(settings_of_a_vocabulary)
{
    assert_out("printf 'A \\303\\251\\n' | tandem tokenize v.txt", "5 14\n");
    assert_out("printf 'A \\303\\251\\n' | tandem tokenize v.txt --lowercase", "5 14\n");
    assert_out("printf 'A \\303\\251\\n' | tandem tokenize v.txt --cased", "8 10\n");
    assert_out("printf 'A \\303\\251\\n' | tandem tokenize v.txt --strip-accents no", "5 10\n");
    assert_out("printf 'A \\303\\251\\n' | tandem tokenize v.txt --cased --strip-accents yes",
               "8 14\n");
    assert_out("printf 'e\\314\\201\\n' | tandem tokenize v.txt --cased --form nfc", "10\n");
    assert_out("printf 'abb\\n' | tandem tokenize v.txt --max-word-chars 2", "1\n");
    assert_out("printf '[MASK]\\n' | tandem tokenize v.txt", "4\n");
    assert_out("printf '[MASK]\\n' | tandem tokenize v.txt --specials plain", "11 12 13\n");
}
END_TEST

START_TEST(an_object_for_each_line)
{
    tdm_ran ran = tdm_run_shell("cd %s\n" VOCABULARY
                                "printf '\\303\\251\\tab a\\n\\t\\n' | tandem tokenize v.txt "
                                "--pairs --special --json --max-length 6 --overflow",
                                tdm_test_folder());
    ck_assert_int_eq(ran.code, 0);
    ck_assert_uint_eq(tdm_count_lines(ran.out), 2);
    json_t *json = json_loads(ran.out, JSON_DISABLE_EOF_CHECK, NULL);
    json_t *expected = json_loads(
        "{\"ids\":[2,14,3,5,7,3],\"tokens\":[\"[CLS]\",\"e\",\"[SEP]\",\"a\",\"##b\",\"[SEP]\"],"
        "\"offsets\":[[0,0],[0,1],[0,0],[0,1],[1,2],[0,0]],"
        "\"byte_offsets\":[[0,0],[0,2],[0,0],[0,1],[1,2],[0,0]],\"type_ids\":[0,0,0,1,1,1],"
        "\"attention_mask\":[1,1,1,1,1,1],\"special_tokens_mask\":[1,0,1,0,0,1],"
        "\"word_ids\":[null,0,null,0,0,null],\"sequence_ids\":[null,0,null,1,1,null],"
        "\"overflow\":[{\"ids\":[2,14,3,5,3],\"tokens\":[\"[CLS]\",\"e\",\"[SEP]\",\"a\","
        "\"[SEP]\"],\"offsets\":[[0,0],[0,1],[0,0],[3,4],[0,0]],"
        "\"byte_offsets\":[[0,0],[0,2],[0,0],[3,4],[0,0]],\"type_ids\":[0,0,0,1,1],"
        "\"attention_mask\":[1,1,1,1,1],\"special_tokens_mask\":[1,0,1,0,1],"
        "\"word_ids\":[null,0,null,1,null],\"sequence_ids\":[null,0,null,1,null]}]}",
        0, NULL);
    ck_assert_ptr_nonnull(expected);
    ck_assert_msg(json_equal(json, expected), "%s", ran.out);
    json_decref(json);
    json_decref(expected);
    tdm_ran_free(&ran);
    assert_out("printf '[UNK]\\n\"\\n\\\\\\n' > w.txt; printf '\"\\\\x' > t; "
               "tandem tokenize w.txt t --json | cut -d] -f2",
               ",\"tokens\":[\"\\\"\",\"\\\\\",\"[UNK\n");
}
END_TEST

START_TEST(ids_become_text)
{
    assert_out("printf '2 5 7 9 3\\n\\n 5\\r\\n' | tandem tokenize v.txt --decode", "ab,\n\na\n");
    assert_out("printf '2 5 7 9 3\\n' | tandem tokenize v.txt --decode --special",
               "[CLS] ab, [SEP]\n");
    assert_error("printf '5\\n5 x\\n' | tandem tokenize v.txt --decode", 3,
                 "standard input:2: \"x\" is no id");
    assert_error("printf '5 15\\n' | tandem tokenize v.txt --decode", 3,
                 "standard input:1: id 15 at place 1 is not in the vocabulary");
    assert_error("printf '99999999999\\n' | tandem tokenize v.txt --decode", 3, "is no id");
}
END_TEST

START_TEST(lines_that_cannot_be_encoded_are_named)
{
    assert_error("{ seq 3; echo; } > t; tandem tokenize v.txt t --pairs", 3,
                 "t:1: no tab divides the line");
    assert_error("{ yes a | head -20000; echo 'a [SEP]'; echo '[SEP]'; } > t\n"
                 "tandem tokenize v.txt t --specials error > o",
                 3, "t:20001: the text holds the special token \"[SEP]\" at byte 2");
    assert_error(
        "printf 'a a a\\n' | tandem tokenize v.txt --max-length 2 --truncation only_second", 3,
        "standard input:1: there is no second text");
    assert_error("printf 'a\\n' | tandem tokenize v.txt nowhere", 1, "nowhere: no such file");
    assert_error("tandem tokenize v.txt t -o o; code=$?; test ! -e o && exit $code", 1,
                 "t: no such file");
}
END_TEST

START_TEST(wrong_command_lines)
{
    assert_error("tandem tokenize", 2, "too few arguments");
    assert_error("tandem tokenize v.txt --lowercase --cased", 2, "contradict");
    assert_error("tandem tokenize v.txt --unicode latin", 2,
                 "--unicode is one of huggingface, google, unicode, not \"latin\"");
    assert_error("tandem tokenize v.txt --specials no", 2, "--specials is one of match, plain");
    assert_error("tandem tokenize v.txt --decode --json", 2, "--decode writes text");
    assert_error("tandem tokenize v.txt --stats --tokens", 2, "--stats prints no tokens");
    assert_error("tandem tokenize v.txt --bytes", 2, "give both");
    assert_error("echo a | tandem tokenize v.txt --special --max-length 1", 2, "max_length is 1");
    assert_error("tandem tokenize v.txt --specails plain", 2, "did you mean --specials?");
    assert_error("printf 'a\\n' > w; tandem tokenize w t", 3,
                 "w: the vocabulary of 1 tokens has no");
    assert_error(": > o; echo a | tandem tokenize v.txt -o o", 2, "o is there already: --force");
}
END_TEST

START_TEST(a_tokenizer_is_saved_in_the_other_form)
{
    assert_out("tandem tokenize v.txt --cased --save t.json && "
               "printf 'A e\\314\\201\\n' | tandem tokenize t.json --tokens && "
               "tandem tokenize t.json --save w.txt && cmp v.txt w.txt",
               "A [UNK]\n");
    assert_error(": > t.json; tandem tokenize v.txt --save t.json", 2, "t.json is there already");
    assert_out(": > t.json; tandem tokenize v.txt --save t.json --force; grep -c model t.json",
               "1\n");
    assert_error("tandem tokenize v.txt t --save t.json", 2, "name no file");
    assert_error("tandem tokenize v.txt --save t.json; tandem tokenize t.json --cased", 2,
                 "t.json: has settings of its own");
}
END_TEST

START_TEST(truncation_and_padding_of_a_file_hold)
{
    assert_out("tandem tokenize v.txt --save t.json\n"
               "sed 's/\"truncation\": null/\"truncation\": {\"max_length\": 4, \"stride\": 0, "
               "\"strategy\": \"LongestFirst\", \"direction\": \"Left\"}/; "
               "s/\"padding\": null/\"padding\": {\"strategy\": {\"Fixed\": 3}, \"direction\": "
               "\"Left\", \"pad_to_multiple_of\": null, \"pad_id\": 0, \"pad_type_id\": 0, "
               "\"pad_token\": \"[PAD]\"}/' t.json > u.json\n"
               "printf 'a\\na b a b a a\\n' > t\n"
               "tandem tokenize u.json t; tandem tokenize u.json t --max-length 9 --pad 1",
               "0 0 5\n5 6 5 5\n5\n5 6 5 6 5 5\n");
}
END_TEST

static json_t *stats_of(const char *text)
{
    tdm_ran ran =
        tdm_run_shell("cd %s\n" VOCABULARY "%s > t; tandem tokenize v.txt t --stats --json",
                      tdm_test_folder(), text);
    ck_assert_msg(ran.code == 0, "exit code %d: %s", ran.code, ran.err);
    json_t *json = json_loads(ran.out, 0, NULL);
    ck_assert_ptr_nonnull(json);
    tdm_ran_free(&ran);
    return json;
}

START_TEST(how_well_a_vocabulary_fits)
{
    json_t *json = stats_of("printf 'ab Xyz q\\nXyz abbbbb,\\n\\n\\377\\033z'");
    ck_assert_int_eq(json_integer_value(json_object_get(json, "lines")), 4);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "bytes")), 22);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "words")), 7);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "tokens")), 13);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "unknown")), 4);
    ck_assert_double_eq_tol(json_number_value(json_object_get(json, "unknown_rate")), 4.0 / 7,
                            1e-9);
    ck_assert_double_eq_tol(json_number_value(json_object_get(json, "bytes_per_token")), 22.0 / 13,
                            1e-9);
    ck_assert_double_eq_tol(json_number_value(json_object_get(json, "tokens_per_word")), 13.0 / 7,
                            1e-9);
    json_t *expected = json_loads("[{\"word\":\"Xyz\",\"count\":2},{\"word\":\"q\",\"count\":1},"
                                  "{\"word\":\"z\",\"count\":1}]",
                                  0, NULL);
    ck_assert(json_equal(json_object_get(json, "unknown_words"), expected));
    json_decref(expected);
    json_t *longest = json_object_get(json, "longest_words");
    ck_assert_uint_eq(json_array_size(longest), 6);
    expected = json_loads("{\"word\":\"abbbbb\",\"characters\":6,\"tokens\":6,\"place\":\"t:2\"}",
                          0, NULL);
    ck_assert(json_equal(json_array_get(longest, 0), expected));
    json_decref(expected);
    json_decref(json);
    json = stats_of("printf ''");
    ck_assert_int_eq(json_integer_value(json_object_get(json, "tokens")), 0);
    json_decref(json);
}
END_TEST

START_TEST(statistics_for_people)
{
    tdm_ran ran =
        tdm_run_shell("cd %s\n" VOCABULARY "for i in $(seq 30); do echo w$i w1 abb; done > t\n"
                      "tandem tokenize v.txt t --stats --threads 2",
                      tdm_test_folder());
    ck_assert_ran(ran, 0, "lines        30, ", NULL);
    ck_assert_ran(ran, 0, "tokens       150, ", NULL);
    ck_assert_ran(ran, 0, "words        90, 1.667 tokens a word\n", NULL);
    ck_assert_ran(ran, 0, "[UNK]        60, 66.7 % of the words\n          31  w1\n", NULL);
    ck_assert_ran(ran, 0, "and 10 other words\n", NULL);
    ck_assert_ran(ran, 0, "           3      3  t:1  abb\n", NULL);
    tdm_ran_free(&ran);
}
END_TEST

START_TEST(threads_do_not_change_the_output)
{
    assert_out("for i in $(seq 3000); do echo \"a ab,\303\251 x [MASK] $i\"; done > t\n"
               "tandem tokenize v.txt t --threads 1 --json > one\n"
               "tandem tokenize v.txt t --threads 3 --json > three\ncmp one three && wc -l < one",
               "3000\n");
}
END_TEST

/* The line comes before the input has ended. */
START_TEST(standard_input_is_answered_as_it_comes)
{
    assert_out("mkfifo p q; tandem tokenize v.txt < p > q &\n"
               "exec 3> p 4< q; echo ab a >&3; read answer <&4; echo \"$answer\"; exec 3>&-; wait",
               "5 7 5\n");
}
END_TEST

START_TEST(the_example_prints_the_same_ids)
{
    assert_out("printf 'ab a\\n\\nx' > t; tandem tokenize v.txt t > a\n" TDM_EXAMPLE_TOKENIZE
               " v.txt < t > b; cmp a b && cat b",
               "5 7 5\n\n1\n");
    assert_error(TDM_EXAMPLE_TOKENIZE " nowhere < v.txt", 1, "nowhere: no such file");
}
END_TEST

TDM_CHECK_MAIN(a_line_of_ids_for_each_line, forms_of_a_line, settings_of_a_vocabulary,
               an_object_for_each_line, ids_become_text, lines_that_cannot_be_encoded_are_named,
               wrong_command_lines, a_tokenizer_is_saved_in_the_other_form,
               truncation_and_padding_of_a_file_hold, how_well_a_vocabulary_fits,
               statistics_for_people, threads_do_not_change_the_output,
               standard_input_is_answered_as_it_comes, the_example_prints_the_same_ids)
