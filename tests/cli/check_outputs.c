/* Files that the program writes, and what it tells of records it reads. */
#include "core/status.h"
#include "tests/support/check_main.h"
#include "tests/support/run_program.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define RECIPE                                                                                     \
    "printf 'model: {type: logistic_regression}\\nfeatures:\\n  defaults: {buckets: 1000}\\n"      \
    "  fields:\\n    - {column: I1..I13, transform: ln_squared}\\n    - {column: C1..C26}\\n"      \
    "  dense: [{column: I1, transform: log1p}]\\n' > r.yaml\n"

static json_t *parse(const tdm_ran *ran)
{
    ck_assert_msg(ran->code == 0, "exit code %d: %s", ran->code, ran->err);
    ck_assert_uint_eq(tdm_count_lines(ran->out), 1);
    json_t *json = json_loads(ran->out, 0, NULL);
    ck_assert_msg(json != NULL, "no JSON: %s", ran->out);
    return json;
}

START_TEST(output_is_never_overwritten_without_force)
{
    const char *folder = tdm_test_folder();
    tdm_ran ran = tdm_run_shell(
        "cd %s && echo mine > log.tsv && tandem synth ctr --rows 5 -o log.tsv", folder);
    ck_assert_ran(ran, 2, NULL, "log.tsv is there already: --force overwrites it");
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && cat log.tsv", folder);
    ck_assert_str_eq(ran.out, "mine\n");
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && tandem synth ctr --rows 5 -o log.tsv --force && wc -l < log.tsv",
                        folder);
    ck_assert_ran(ran, 0, "5\n", NULL);
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && mkdir d && tandem synth ctr --rows 5 -o d", folder);
    ck_assert_ran(ran, 2, NULL, "d: is a folder");
    tdm_ran_free(&ran);
}
END_TEST

/* A device is written to as it is: replacing it would be a disaster. */
START_TEST(a_device_stays_a_device)
{
    tdm_ran ran = tdm_run_shell("tandem synth ctr --rows 5 -o /dev/null");
    ck_assert_ran(ran, 0, NULL, NULL);
    tdm_ran_free(&ran);
    struct stat info;
    ck_assert_int_eq(stat("/dev/null", &info), 0);
    ck_assert(S_ISCHR(info.st_mode));
}
END_TEST

START_TEST(a_full_disk_is_said)
{
    tdm_ran ran = tdm_run_shell("tandem synth ctr --rows 100000 > /dev/full");
    ck_assert_ran(ran, 1, NULL, "standard output");
    tdm_ran_free(&ran);
    ran = tdm_run_shell("tandem help recipe > /dev/full");
    ck_assert_ran(ran, 1, NULL, "standard output");
    tdm_ran_free(&ran);
}
END_TEST

/* The log goes to standard output, the planted result to standard error, and the same bytes to a
 * file. */
START_TEST(a_log_is_the_same_on_standard_output)
{
    const char *folder = tdm_test_folder();
    tdm_ran ran =
        tdm_run_shell("cd %s && tandem synth ctr --rows 300 --seed 7 -o a.tsv && "
                      "tandem synth ctr --rows 300 --seed 7 --threads 1 > b.tsv && cmp a.tsv b.tsv",
                      folder);
    ck_assert_ran(ran, 0, "planted AUC", "planted AUC");
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && tandem synth ctr --rows 300 --seed 7 -o - > b.tsv && "
                        "tandem synth ctr --rows 300 --seed 7 -o - --json > c.tsv && "
                        "cmp a.tsv b.tsv && cmp a.tsv c.tsv && rm c.tsv",
                        folder);
    ck_assert_ran(ran, 0, NULL, "planted AUC");
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && tandem synth ctr --rows 300 --no-label | cut -f40", folder);
    ck_assert_ran(ran, 0, NULL, NULL);
    ck_assert_msg(strspn(ran.out, "\n") == 300 && ran.out[300] == '\0', "a 40th column");
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && tandem synth ctr --rows 300 -o c.tsv --json", folder);
    json_t *json = parse(&ran);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "rows")), 300);
    ck_assert(json_number_value(json_object_get(json, "planted_auc")) > 0.5);
    json_decref(json);
    tdm_ran_free(&ran);
}
END_TEST

START_TEST(check_counts_bad_records_by_reason)
{
    const char *folder = tdm_test_folder();
    tdm_ran ran =
        tdm_run_shell("cd %s\n" RECIPE "tandem synth ctr --rows 50 -o log.tsv > /dev/null\n"
                      "{ head -n 10 log.tsv; echo 'a\tb'; sed -n 11,20p log.tsv;"
                      " sed -n '21s/^[01]/2/p' log.tsv; echo 'c\td'; } > bad.tsv\n"
                      "tandem check r.yaml bad.tsv",
                      folder);
    ck_assert_ran(ran, 3, "23 records, 20 rows, 3 bad", "training would stop");
    ck_assert_ran(ran, 3, "2  bad.tsv:11", "bad.tsv:11: 2 columns");
    ck_assert_ran(ran, 3, "1  bad.tsv:22", "bad.tsv:22: label: ");
    tdm_ran_free(&ran);
    ran =
        tdm_run_shell("cd %s && tandem check r.yaml bad.tsv --json data.max_bad_records=3", folder);
    json_t *json = parse(&ran);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "bad_records")), 3);
    ck_assert_uint_eq(json_array_size(json_object_get(json, "reasons")), 2);
    json_t *features = json_object_get(json, "features");
    ck_assert_uint_eq(json_array_size(json_object_get(features, "fields")), 39);
    ck_assert_uint_eq(json_array_size(json_object_get(features, "dense")), 1);
    json_decref(json);
    tdm_ran_free(&ran);
}
END_TEST

/* The statistics of a log that is known: 4 values of C1, one record in two without C2. */
START_TEST(check_looks_at_fields)
{
    const char *folder = tdm_test_folder();
    tdm_ran ran = tdm_run_shell(
        "cd %s\nprintf 'data: {format: csv}\\nmodel: {type: logistic_regression}\\n"
        "features:\\n  defaults: {buckets: 1000}\\n  fields: [{column: [C1, C2]}]\\n"
        "  dense: [{column: X}]\\n' > r.yaml\n"
        "{ echo label,C1,C2,X; for i in $(seq 100); do"
        " echo $((i %% 4 == 0)),v$((i %% 4)),$([ $((i %% 2)) = 0 ] || echo w),$((i %% 4));"
        " done; } > log.csv\ntandem check r.yaml log.csv --json",
        folder);
    json_t *json = parse(&ran);
    ck_assert_double_eq_tol(json_number_value(json_object_get(json, "mean_label")), 0.25, 1e-9);
    json_t *features = json_object_get(json, "features");
    json_t *c1 = json_array_get(json_object_get(features, "fields"), 0);
    json_t *c2 = json_array_get(json_object_get(features, "fields"), 1);
    json_t *x = json_array_get(json_object_get(features, "dense"), 0);
    ck_assert_int_eq((int)json_number_value(json_object_get(c1, "ids_used")), 4);
    ck_assert_int_eq((int)json_number_value(json_object_get(c2, "ids_used")), 1);
    ck_assert_double_eq_tol(json_number_value(json_object_get(c2, "missing_share")), 0.5, 1e-9);
    ck_assert_double_eq_tol(json_number_value(json_object_get(x, "zero_share")), 0.25, 1e-9);
    ck_assert_double_eq_tol(json_number_value(json_object_get(x, "mean")), 1.5, 1e-6);
    ck_assert_double_eq_tol(json_number_value(json_object_get(x, "max")), 3, 1e-9);
    json_decref(json);
    tdm_ran_free(&ran);
}
END_TEST

START_TEST(features_shows_value_bin_and_id)
{
    const char *folder = tdm_test_folder();
    tdm_ran ran = tdm_run_shell(
        "cd %s\nprintf 'data: {format: csv}\\nmodel: {type: logistic_regression}\\n"
        "features:\\n  defaults: {buckets: 10}\\n  fields:\\n"
        "    - {column: N, transform: ln_squared, encoding: identity}\\n    - {column: C}\\n"
        "  dense: [{column: N, transform: log1p}]\\n' > r.yaml\n"
        "printf 'label,N,C\\n1,9,\\n0,,x\"y\\n' > log.csv\n"
        "tandem features r.yaml log.csv --json",
        folder);
    json_t *json = parse(&ran);
    json_t *rows = json_object_get(json, "rows");
    ck_assert_uint_eq(json_array_size(rows), 2);
    json_t *fields = json_object_get(json_array_get(rows, 0), "fields");
    /* ln(9)² = 4.83: bin 4, and with identity id 4 + 4. */
    ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(fields, 0), "bin")), 4);
    ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(fields, 0), "id")), 8);
    ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(fields, 1), "id")), 1);
    json_t *dense = json_array_get(json_object_get(json_array_get(rows, 0), "dense"), 0);
    ck_assert_double_eq_tol(json_number_value(json_object_get(dense, "number")), 2.302585, 1e-5);
    fields = json_object_get(json_array_get(rows, 1), "fields");
    ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(fields, 0), "id")), 1);
    ck_assert_str_eq(json_string_value(json_object_get(json_array_get(fields, 1), "value")),
                     "x\"y");
    json_decref(json);
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && tandem features r.yaml log.csv --rows 1", folder);
    ck_assert_ran(ran, 0, "record 1, label 1", NULL);
    ck_assert_ran(ran, 0, "missing", NULL);
    ck_assert_ptr_null(strstr(ran.out, "record 2"));
    tdm_ran_free(&ran);
}
END_TEST

START_TEST(the_benchmark_of_reading_answers_in_json)
{
    const char *folder = tdm_test_folder();
    tdm_ran ran =
        tdm_run_shell("cd %s\n" RECIPE "tandem synth ctr --rows 500 -o log.tsv > /dev/null\n"
                      "TMPDIR=%s tandem bench features r.yaml log.tsv --threads 1 --cache"
                      " --json && ls > left",
                      folder, folder);
    json_t *json = parse(&ran);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "rows")), 500);
    static const char *const keys[] = {"rows_per_second", "bytes_per_second",
                                       "cache_rows_per_second", "source_bytes_per_second",
                                       "memory_bytes_per_second"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        ck_assert_msg(json_number_value(json_object_get(json, keys[i])) > 0, "%s", keys[i]);
    json_decref(json);
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cat %s/left", folder);
    ck_assert_str_eq(ran.out, "left\nlog.tsv\nr.yaml\n");
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && tandem bench features r.yaml - < log.tsv", folder);
    ck_assert_ran(ran, 2, NULL, "standard input cannot be read more than once");
    tdm_ran_free(&ran);
}
END_TEST

START_TEST(data_that_is_not_there_or_empty_is_an_error)
{
    const char *folder = tdm_test_folder();
    tdm_ran ran = tdm_run_shell("cd %s\n" RECIPE "tandem check r.yaml nowhere.tsv", folder);
    ck_assert_ran(ran, 1, NULL, "nowhere.tsv: no such file");
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && : > empty.tsv && tandem check r.yaml empty.tsv", folder);
    ck_assert_ran(ran, 3, NULL, "empty.tsv: is empty");
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && tandem check r.yaml - < /dev/null", folder);
    ck_assert_ran(ran, 3, NULL, "is empty");
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && tandem check r.yaml .", folder);
    ck_assert_ran(ran, 1, NULL, "is a folder");
    tdm_ran_free(&ran);
}
END_TEST

TDM_CHECK_MAIN(output_is_never_overwritten_without_force, a_device_stays_a_device,
               a_full_disk_is_said, a_log_is_the_same_on_standard_output,
               check_counts_bad_records_by_reason, check_looks_at_fields,
               features_shows_value_bin_and_id, the_benchmark_of_reading_answers_in_json,
               data_that_is_not_there_or_empty_is_an_error)
