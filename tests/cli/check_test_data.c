/* The program on logs as people have them: ragged, without labels, compressed, with other columns.
 */
#include "tests/support/check_main.h"
#include "tests/support/run_program.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define CRITEO_RECIPE                                                                              \
    "printf 'model: {type: logistic_regression}\\nfeatures:\\n  defaults: {buckets: 5000}\\n"      \
    "  fields:\\n    - {column: I1..I13, transform: ln_squared}\\n    - {column: C1..C26}\\n"      \
    "optimizer: {sparse: {type: adagrad, learning_rate: 0.1}}\\n"                                  \
    "train: {batch_size: 256}\\noutput: {dir: run}\\n' > r.yaml\n"

/* The folder of the Criteo files, or NULL, which is counted as a skipped test. */
static const char *criteo(void)
{
    static char path[512];
    if (tdm_test_data() == NULL) {
        tdm_test_skip("TANDEM_TEST_DATA is not set");
        return NULL;
    }
    snprintf(path, sizeof path, "%s/ctr/criteo", tdm_test_data());
    return path;
}

static int64_t count_of(const tdm_ran *ran, const char *key)
{
    json_t *json = json_loads(ran->out, 0, NULL);
    ck_assert_msg(json != NULL, "no JSON: %s%s", ran->out, ran->err);
    int64_t count = json_integer_value(json_object_get(json, key));
    json_decref(json);
    return count;
}

START_TEST(check_reads_the_whole_log)
{
    const char *data = criteo();
    if (data == NULL)
        return;
    tdm_ran ran = tdm_run_shell("cd %s\n" CRITEO_RECIPE
                                "tandem check r.yaml %s/criteo_dac_first10001.tsv.gz --json",
                                tdm_test_folder(), data);
    ck_assert_ran(ran, 0, NULL, NULL);
    ck_assert_int_eq(count_of(&ran, "rows"), 10001);
    ck_assert_int_eq(count_of(&ran, "bad_records"), 0);
    ck_assert_ran(ran, 0, "\"mean_label\": 0.218178", NULL);
    tdm_ran_free(&ran);
}
END_TEST

/* 502 of its 1,000 rows have all 40 columns, 469 have 38, 29 have 37. */
START_TEST(check_tells_what_is_wrong_with_the_ragged_log)
{
    const char *data = criteo();
    if (data == NULL)
        return;
    tdm_ran ran = tdm_run_shell("cd %s\n" CRITEO_RECIPE
                                "tandem check r.yaml %s/criteo_dac_ragged_1000.tsv.gz",
                                tdm_test_folder(), data);
    ck_assert_ran(ran, 3, "1000 records, 502 rows, 498 bad", "training would stop");
    ck_assert_ran(ran, 3, "  469  ", NULL);
    ck_assert_ran(ran, 3, "38 columns, expected 40", NULL);
    ck_assert_ran(ran, 3, "   29  ", NULL);
    ck_assert_ran(ran, 3, "ragged_1000.tsv.gz:3 ", NULL);
    tdm_ran_free(&ran);
}
END_TEST

/* Trains on what is good of the ragged log, then answers all of it. */
START_TEST(the_ragged_log_is_trained_on_and_answered)
{
    const char *data = criteo();
    if (data == NULL)
        return;
    const char *folder = tdm_test_folder();
    tdm_ran ran = tdm_run_shell("cd %s\n" CRITEO_RECIPE
                                "tandem train r.yaml %s/criteo_dac_ragged_1000.tsv.gz",
                                folder, data);
    ck_assert_ran(ran, 3, NULL, "max_bad_records");
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && tandem train r.yaml %s/criteo_dac_ragged_1000.tsv.gz --json "
                        "data.max_bad_records=60%% output.dir=patient",
                        folder, data);
    ck_assert_ran(ran, 0, NULL, NULL);
    ck_assert_int_eq(count_of(&ran, "rows"), 502);
    ck_assert_int_eq(count_of(&ran, "bad_records"), 498);
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && grep -c '^# ' patient/quarantine.txt && "
                        "tandem predict patient %s/criteo_dac_ragged_1000.tsv.gz > answers && "
                        "wc -l < answers && grep -c '^$' answers",
                        folder, data);
    ck_assert_ran(ran, 0, NULL, "498 of 1000 records were bad");
    ck_assert_str_eq(ran.out, "498\n1000\n498\n");
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && tandem train r.yaml %s/criteo_dac_ragged_1000.tsv.gz "
                        "data.on_bad_record=fail output.dir=strict",
                        folder, data);
    ck_assert_ran(ran, 3, NULL, "ragged_1000.tsv.gz:3: 38 columns, expected 40");
    tdm_ran_free(&ran);
}
END_TEST

/* Criteo's own test files have no label; this copy is a CSV with an Id and CRLF. */
START_TEST(a_log_without_labels_is_answered)
{
    const char *data = criteo();
    if (data == NULL)
        return;
    const char *folder = tdm_test_folder();
    tdm_ran ran = tdm_run_shell(
        "cd %s\n" CRITEO_RECIPE
        "tandem train r.yaml %s/criteo_dac_first10001.tsv.gz > /dev/null || exit 9\n"
        "zcat %s/criteo_dac_test_nolabel_1999.csv.gz | tail -n +2 | cut -d, -f3- | tr , '\\t'"
        " > nolabel.tsv\ntandem predict run nolabel.tsv --with C1 > keyed || exit 8\n"
        "tr -d '\\r' < nolabel.tsv | cut -f14 > c1; cut -d, -f1 keyed | cmp - c1\n"
        "tandem features r.yaml nolabel.tsv --rows 1 | head -n 1\nwc -l < keyed",
        folder, data, data);
    ck_assert_ran(ran, 0, NULL, NULL);
    ck_assert_str_eq(ran.out, "record 1, label missing\n1999\n");
    tdm_ran_free(&ran);
    ran = tdm_run_shell("cd %s && tandem eval run nolabel.tsv", folder);
    ck_assert_ran(ran, 3, NULL, "the label is missing");
    tdm_ran_free(&ran);
}
END_TEST

/* Files of one format whose columns lie differently: the header says where. */
START_TEST(csv_files_are_read_by_their_headers)
{
    const char *data = criteo();
    if (data == NULL)
        return;
    const char *folder = tdm_test_folder();
    tdm_ran ran = tdm_run_shell(
        "cd %s\nprintf 'data: {format: csv}\\nmodel: {type: logistic_regression}\\nfeatures:\\n"
        "  label: Label\\n  defaults: {buckets: 5000}\\n  fields:\\n"
        "    - {column: I1..I13, transform: ln_squared}\\n    - {column: C1..C26}\\n"
        "optimizer: {sparse: {type: adagrad, learning_rate: 0.1}}\\n"
        "train: {batch_size: 256, epochs: 2}\\ncache: {dir: cache}\\noutput: {dir: run}\\n' > "
        "r.yaml\n"
        "tandem train r.yaml %s/criteo_x4_valid_3999.csv.gz > /dev/null || exit 9\n"
        "tandem eval run %s/criteo_x4_test_3999.csv.gz --json || exit 8\n"
        "tandem predict run %s/criteo_dac_test_nolabel_1999.csv.gz | wc -l 1>&2",
        folder, data, data, data);
    ck_assert_ran(ran, 0, NULL, "1999\n");
    ck_assert_int_eq(count_of(&ran, "rows"), 3999);
    json_t *json = json_loads(ran.out, 0, NULL);
    ck_assert_double_ge(json_number_value(json_object_get(json, "auc")), 0.65);
    json_decref(json);
    tdm_ran_free(&ran);
}
END_TEST

TDM_CHECK_MAIN(check_reads_the_whole_log, check_tells_what_is_wrong_with_the_ragged_log,
               the_ragged_log_is_trained_on_and_answered, a_log_without_labels_is_answered,
               csv_files_are_read_by_their_headers)
