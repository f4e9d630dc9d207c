/* From cells to ids and numbers, and the distinct ids of a batch. */
#include "core/file.h"
#include "core/memory.h"
#include "features/distinct.h"
#include "features/hash.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static char folder[TDM_FOLDER_BYTES];

/* ---- published vectors ----------------------------------------------------------------------- */

#define TEN   "0123456789"
#define FIFTY TEN TEN TEN TEN TEN

/* docs/FORMATS.md, "Feature hashing"; made by Python's xxhash 3.x (XXH3 of xxHash 0.8.4). */
static const struct hash_vector {
    const char *field, *value;
    uint64_t buckets, seed, salt, hash;
    uint32_t id;
} vectors[] = {
    {"C1", "68fd1e64", 100000, 0, 0x3b7d0d206099ca33, 0xbb7b4148340ac23e, 73238u},
    {"C2", "68fd1e64", 100000, 0, 0x0db0735024ae3545, 0x8d420e03ce77e537, 55182u},
    {"C1", "68fd1e64", 100000, 1, 0xc7b818f482ce851e, 0xf6a2321c348b819f, 96345u},
    {"C1", "68fd1e64", 1000000, 0, 0x3b7d0d206099ca33, 0xbb7b4148340ac23e, 732353u},
    {"C1", "0", 1, 0, 0x3b7d0d206099ca33, 0xa0fdf2b929a5fda6, 4u},
    {"I1", "0", 100000, 0, 0x161520c151fdf688, 0x380c94722cc5d879, 21898u},
    {"I1", "-3", 100000, 0, 0x161520c151fdf688, 0x003bcf683ce7a8cf, 95u},
    {"I1", "339", 100000, 0, 0x161520c151fdf688, 0x8a8aa6e04e90591a, 54121u},
    {"site_id", "1fbe01fe", 4294967291, 0, 0x3c4ae04821a1ae79, 0x697d4dc0f652e730, 1769819586u},
    {"Größe", "naïve €", 1000, 9007199254740992, 0xa86693a6d9d2705f, 0xc015ca9b2751ec97, 754u},
    {"a", "x", 100000, 0, 0xe6c632b61e964e1f, 0xa20269d4bca20ac8, 63288u},
    {"a", "abcdefghijklmnopqrstuvwxyz", 100000, 0, 0xe6c632b61e964e1f, 0x54b924b4fcc8e4fd, 33099u},
    {"a", FIFTY FIFTY FIFTY, 100000, 0, 0xe6c632b61e964e1f, 0xb50a3fcab9887465, 70722u},
    {"a", FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY, 100000, 0, 0xe6c632b61e964e1f, 0x81a58b8ef5f858d7,
     50647u},
};
#define VECTORS (sizeof vectors / sizeof vectors[0])

/* Extracts the only block of a TSV. */
static void extract_text(const char *text, const char *recipe, tdm_ctr_use use, tdm_data_rig *rig,
                         tdm_extract *out)
{
    tdm_new_folder(folder);
    char *path = tdm_data_rig_put_text(folder, "a.tsv", text);
    tdm_data_rig_options options = {.files = {path},
                                    .format = TDM_FORMAT_TSV,
                                    .recipe = recipe,
                                    .use = use,
                                    .block_bytes = 4 << 20};
    tdm_data_rig_open(&options, rig);
    tdm_block_text block = {0};
    *out = (tdm_extract){0};
    ck_assert_ok(tdm_input_read_block(rig->input, 0, &block));
    ck_assert_ok(tdm_extract_block(rig->extractor, &block, out));
    tdm_block_text_deinit(&block);
    tdm_free(path);
    ck_assert_ok(tdm_folder_remove(folder));
}

static void close_extract(tdm_data_rig *rig, tdm_extract *extract)
{
    tdm_extract_deinit(extract);
    tdm_data_rig_close(rig);
}

static uint32_t id_of(const char *cell, const char *recipe)
{
    tdm_text text = {0};
    ck_assert_ok(tdm_text_printf(&text, "label\ta\tb\n1\t%s\t\n", cell));
    tdm_data_rig rig;
    tdm_extract extract;
    extract_text(text.bytes, recipe, TDM_CTR_TRAINING, &rig, &extract);
    ck_assert_int_eq(extract.rows, 1);
    uint32_t id = ((uint32_t *)extract.columns[1])[0];
    close_extract(&rig, &extract);
    tdm_text_free(&text);
    return id;
}

START_TEST(test_published_vectors)
{
    for (size_t i = 0; i < VECTORS; i++) {
        const struct hash_vector *v = &vectors[i];
        uint64_t salt = tdm_field_salt(v->field, strlen(v->field), v->seed);
        uint64_t hash = tdm_value_hash(v->value, strlen(v->value), salt);
        ck_assert_uint_eq(salt, v->salt);
        ck_assert_uint_eq(hash, v->hash);
        ck_assert_uint_eq(tdm_hash_row(hash, v->buckets), v->id);
        /* The same through a file and a recipe. */
        char recipe[256];
        snprintf(recipe, sizeof recipe,
                 "features: {hash_seed: %llu, fields: [{column: a, name: \"%s\", buckets: %llu}]}",
                 (unsigned long long)v->seed, v->field, (unsigned long long)v->buckets);
        ck_assert_uint_eq(id_of(v->value, recipe), v->id);
    }
    ck_assert_uint_eq(tdm_hash_row(0, 7), 4);
    ck_assert_uint_eq(tdm_hash_row(UINT64_MAX, 7), 10);
    ck_assert_uint_eq(tdm_hash_row(UINT64_MAX, 4294967291), 4294967294u);
}
END_TEST

/* A bin is hashed as its decimal text, bins that are kept ready and others. */
START_TEST(test_bins_are_hashed_as_decimal_text)
{
    static const char *const bins[] = {"0",   "-3",  "-16",  "-17",     "339",
                                       "495", "496", "1000", "1000000", "-99999999"};
    for (size_t i = 0; i < sizeof bins / sizeof bins[0]; i++) {
        uint32_t as_text = id_of(bins[i], "features: {fields: [{column: a, name: I1}]}");
        uint32_t as_bin =
            id_of(bins[i], "features: {fields: [{column: a, name: I1, transform: identity}]}");
        ck_assert_uint_eq(as_text, as_bin);
        for (size_t v = 0; v < VECTORS; v++) {
            if (strcmp(vectors[v].field, "I1") == 0 && strcmp(vectors[v].value, bins[i]) == 0)
                ck_assert_uint_eq(as_bin, vectors[v].id);
        }
    }
    /* However the number is written; as text it is another value. */
    const char *binned = "features: {fields: [{column: a, transform: ln_squared}]}";
    const char *text = "features: {fields: [{column: a}]}";
    ck_assert_uint_eq(id_of("260", binned), id_of("260.0", binned));
    ck_assert_uint_eq(id_of("260", binned), id_of("2.6e2", binned));
    ck_assert_uint_eq(id_of("30", text), id_of("260", binned)); /* ln(260)² = 30.9 */
    ck_assert_uint_ne(id_of("260", text), id_of("260.0", text));
    ck_assert_uint_eq(id_of("-2", binned), id_of("-2", text));
    ck_assert_uint_eq(id_of("9223372036854775807", text),
                      id_of("1e300", "features: {fields: [{column: a, transform: identity}]}"));
    ck_assert_uint_eq(id_of("-9223372036854775808", text),
                      id_of("-1e300", "features: {fields: [{column: a, transform: identity}]}"));
}
END_TEST

/* ---- cells ----------------------------------------------------------------------------------- */

/* One cell of one column: an id, or a reason. */
static void check_cell(const char *recipe, const char *cell, int64_t id, const char *reason)
{
    tdm_text text = {0};
    /* Good records around it. */
    ck_assert_ok(tdm_text_printf(&text, "label\ta\n0\t\n1\t%s\n0\t\n", cell));
    tdm_data_rig rig;
    tdm_extract extract;
    extract_text(text.bytes, recipe, TDM_CTR_TRAINING, &rig, &extract);
    ck_assert_int_eq(extract.records, 3);
    ck_assert_int_eq(extract.lines, 4);
    const uint32_t *ids = extract.columns[1];
    const float *labels = extract.columns[0];
    ck_assert_uint_eq(ids[0], TDM_ID_MISSING);
    if (reason == NULL) {
        ck_assert_msg(extract.rows == 3, "\"%s\": %s", cell,
                      extract.bad_count > 0 ? extract.bad[0].reason : "");
        ck_assert_msg((int64_t)ids[1] == id, "\"%s\": id %u", cell, ids[1]);
        ck_assert(labels[0] == 0 && labels[1] == 1 && labels[2] == 0);
    } else {
        ck_assert_int_eq(extract.rows, 2);
        ck_assert_uint_eq(extract.bad_count, 1);
        ck_assert_str_eq(extract.bad[0].reason, reason);
        ck_assert_int_eq(extract.bad[0].column, 1);
        ck_assert_int_eq(extract.bad[0].line, 2);
        ck_assert_int_eq(extract.bad[0].record, 1);
        ck_assert_uint_eq(extract.row_records[1], 2);
        ck_assert(labels[0] == 0 && labels[1] == 0);
    }
    ck_assert_uint_eq(ids[extract.rows - 1], TDM_ID_MISSING);
    close_extract(&rig, &extract);
    tdm_text_free(&text);
}

START_TEST(test_identity)
{
    const char *plain = "features: {fields: [{column: a, encoding: identity, buckets: 100}]}";
    const char *range = "id out of range: identity takes 0 to buckets - 1";
    const char *digits = "identity takes an integer of at most 10 digits";
    check_cell(plain, "", TDM_ID_MISSING, NULL);
    check_cell(plain, "0", 4, NULL);
    check_cell(plain, "99", 103, NULL);
    check_cell(plain, "0000000007", 11, NULL);
    check_cell(plain, "100", 0, range);
    check_cell(plain, "9999999999", 0, range);
    check_cell(plain, "4294967296", 0, range); /* 2^32 */
    check_cell(plain, "00000000007", 0, digits);
    check_cell(plain, "-1", 0, digits);
    check_cell(plain, "+1", 0, digits);
    check_cell(plain, "1.0", 0, digits);
    check_cell(plain, "x", 0, digits);
    check_cell(plain, " 1", 0, digits);
    const char *binned =
        "features: {fields: [{column: a, encoding: identity, buckets: 100, transform: log1p}]}";
    check_cell(binned, "-5", 4, NULL);
    check_cell(binned, "6.5", 6, NULL);
    check_cell(binned, "1e43", 103, NULL); /* ln = 99.01 */
    check_cell(binned, "1e44", 0, range);
    check_cell(binned, "x", 0, "not a number, or out of range");
    const char *widest =
        "features: {fields: [{column: a, encoding: identity, buckets: 4294967291}]}";
    check_cell(widest, "4294967290", 4294967294, NULL);
    check_cell(widest, "4294967291", 0, range);
}
END_TEST

START_TEST(test_numbers_that_are_refused)
{
    static const char *const recipes[] = {
        "features: {fields: [{column: a, transform: ln_squared}]}",
        "features: {fields: [{column: a}], dense: [{column: a, transform: log1p}]}"};
    const char *special = "nan and inf are not accepted; leave a missing value empty";
    const char *other = "not a number, or out of range";
    for (int i = 0; i < 2; i++) {
        static const char *const specials[] = {"nan", "NaN",  "-nan",     "inf",
                                               "Inf", "-inf", "infinity", "NANCY"};
        static const char *const others[] = {"x",    "1e999",     "-", "1,5",
                                             "0x10", "12345678x", "n", "\xc2\xbd"};
        for (int c = 0; c < 8; c++) {
            check_cell(recipes[i], specials[c], 0, special);
            check_cell(recipes[i], others[c], 0, other);
        }
    }
}
END_TEST

static void check_label(const char *label, const char *reason)
{
    char text[64];
    snprintf(text, sizeof text, "label\ta\n%s\tx\n", label);
    tdm_data_rig rig;
    tdm_extract extract;
    const char *recipe = "features: {fields: [{column: a}]}";
    extract_text(text, recipe, TDM_CTR_EVALUATION, &rig, &extract);
    ck_assert_int_eq(extract.rows, reason == NULL);
    if (reason == NULL)
        ck_assert(((float *)extract.columns[0])[0] == strtof(label, NULL));
    else
        ck_assert_str_eq(extract.bad[0].reason, reason);
    close_extract(&rig, &extract);
    /* A prediction does not look at it. */
    extract_text(text, recipe, TDM_CTR_PREDICTION, &rig, &extract);
    ck_assert_int_eq(extract.rows, 1);
    ck_assert(((float *)extract.columns[0])[0] == 0);
    close_extract(&rig, &extract);
}

START_TEST(test_labels)
{
    static const char *const good[] = {"0", "1", "0.0", "1.0", "1e0", "+1", "00", "1.000"};
    static const char *const bad[] = {"2", "-1", "0.5", "x", "nan", "10", "01x", "1 ", "true"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        check_label(good[i], NULL);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        check_label(bad[i], "the label is not 0 or 1");
    check_label("", "the label is missing");
}
END_TEST

START_TEST(test_dense_numbers)
{
    static const struct {
        const char *cell;
        float value;
    } cases[] = {{"", 0},
                 {"7", 7},
                 {"-7", -7},
                 {"1.5e3", 1500},
                 {"1e300", FLT_MAX},
                 {"-1e300", -FLT_MAX},
                 {"3.4028235e38", FLT_MAX},
                 {"1e-300", 0},
                 {"99999999", 1e8f},
                 {"123456789", 123456792},
                 {"0.1", 0.1f}};
    tdm_text text = {0};
    ck_assert_ok(tdm_text_printf(&text, "label\ta\n"));
    size_t count = sizeof cases / sizeof cases[0];
    for (size_t i = 0; i < count; i++)
        ck_assert_ok(tdm_text_printf(&text, "0\t%s\n", cases[i].cell));
    tdm_data_rig rig;
    tdm_extract extract;
    extract_text(text.bytes,
                 "features: {dense: [{column: a}, {column: a, name: log, transform: signed_log}, "
                 "{column: a, name: clip, transform: clip, min: 1, max: 2}]}",
                 TDM_CTR_TRAINING, &rig, &extract);
    ck_assert_int_eq(extract.rows, (int64_t)count);
    for (size_t i = 0; i < count; i++) {
        const float *row = (const float *)extract.columns[1] + 3 * i;
        ck_assert_msg(row[0] == cases[i].value, "%s: %g", cases[i].cell, (double)row[0]);
        double x = strtod(cases[i].cell, NULL);
        ck_assert(row[1] == (float)copysign(log1p(fabs(x)), x) || cases[i].cell[0] == '\0');
        /* Missing is 0, whatever the transform. */
        double clipped = cases[i].cell[0] == '\0' ? 0 : x < 1 ? 1 : x > 2 ? 2 : x;
        ck_assert(row[2] == (float)clipped);
    }
    close_extract(&rig, &extract);
    tdm_text_free(&text);
}
END_TEST

/* Only the first refusal of a record counts, and rows close up behind it. */
START_TEST(test_records_with_several_faults)
{
    tdm_data_rig rig;
    tdm_extract extract;
    extract_text("label\ta\tb\n1\t1\t1\n2\tx\ty\n0\t2\t2\n1\tx\ty\n0\t3\ty\n1\t4\t4\n",
                 "features: {fields: [{column: a, encoding: identity, buckets: 9}], "
                 "dense: [{column: b}]}",
                 TDM_CTR_TRAINING, &rig, &extract);
    ck_assert_int_eq(extract.rows, 3);
    ck_assert_uint_eq(extract.bad_count, 3);
    static const int32_t columns[] = {0, 1, 2};
    static const int64_t records[] = {1, 3, 4};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(extract.bad[i].column, columns[i]);
        ck_assert_int_eq(extract.bad[i].record, records[i]);
    }
    static const uint32_t ids[] = {5, 6, 8};
    static const float labels[] = {1, 0, 1}, dense[] = {1, 2, 4};
    static const uint32_t row_records[] = {0, 2, 5};
    ck_assert_mem_eq(extract.columns[0], labels, sizeof labels);
    ck_assert_mem_eq(extract.columns[1], ids, sizeof ids);
    ck_assert_mem_eq(extract.columns[2], dense, sizeof dense);
    ck_assert_mem_eq(extract.row_records, row_records, sizeof row_records);
    close_extract(&rig, &extract);
}
END_TEST

/* ---- distinct ids ---------------------------------------------------------------------------- */

static void check_distinct(int64_t batch_size, int64_t rows, uint32_t values, uint64_t seed)
{
    tdm_batch_layout layout;
    tdm_batch_layout_init(&layout, batch_size);
    int ids_tensor = tdm_batch_layout_add(&layout, "ids", TDM_U32, (tdm_shape){2, {3, batch_size}});
    tdm_distinct_layout_add(&layout, 3);
    tdm_batch batch = {.layout = &layout, .rows = rows};
    tdm_distinct_scratch scratch = {0};
    ck_assert_ok(tdm_alloc(layout.bytes, 1, &batch.data));
    memset(batch.data, 0x5a, layout.bytes);
    ck_assert_ok(tdm_distinct_scratch_init(&scratch, batch_size));
    uint32_t *ids = tdm_batch_data(&batch, ids_tensor);
    for (int64_t i = 0; i < 3 * batch_size; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        ids[i] = (uint32_t)(seed >> 33) % values * (values == 5 ? 0x10000u : 1);
    }
    for (int32_t field = 0; field < 3; field++) {
        tdm_find_distinct(&batch, ids_tensor, field, &scratch);
        const uint32_t *own = ids + field * batch_size;
        int32_t count = ((int32_t *)tdm_batch_data(&batch, ids_tensor + 1))[field];
        const uint32_t *distinct =
            (uint32_t *)tdm_batch_data(&batch, ids_tensor + 2) + field * batch_size;
        const int32_t *starts =
            (int32_t *)tdm_batch_data(&batch, ids_tensor + 3) + field * (batch_size + 1);
        const int32_t *positions =
            (int32_t *)tdm_batch_data(&batch, ids_tensor + 4) + field * batch_size;
        /* In order of first use; each with its positions, rising. */
        int32_t found = 0, at = 0;
        ck_assert_int_eq(starts[0], 0);
        for (int64_t i = 0; i < rows; i++) {
            bool first = own[i] != 0;
            for (int64_t j = 0; j < i; j++)
                first = first && own[j] != own[i];
            if (!first)
                continue;
            ck_assert_int_lt(found, count);
            ck_assert_uint_eq(distinct[found], own[i]);
            for (int64_t j = i; j < rows; j++) {
                if (own[j] == own[i])
                    ck_assert_int_eq(positions[at++], j);
            }
            ck_assert_int_eq(starts[++found], at);
        }
        ck_assert_int_eq(found, count);
    }
    tdm_distinct_scratch_deinit(&scratch);
    tdm_free(batch.data);
}

START_TEST(test_distinct_ids_against_brute_force)
{
    static const int64_t sizes[] = {1, 2, 7, 64, 300};
    static const uint32_t values[] = {1, 2, 5, 100, 0x7fffffff};
    for (size_t s = 0; s < 5; s++) {
        for (size_t v = 0; v < 5; v++) {
            for (uint64_t seed = 0; seed < 6; seed++) {
                int64_t rows = seed == 0 ? sizes[s] : (int64_t)(seed * 7919) % sizes[s];
                check_distinct(sizes[s], rows, values[v], seed);
            }
        }
    }
}
END_TEST

/* ---- real files ------------------------------------------------------------------------------ */

#define CRITEO_RECIPE                                                                              \
    "features: {fields: [{column: I1..I13, transform: ln_squared}, {column: C1..C26}], "           \
    "dense: [{column: I1..I13, transform: signed_log}]}"
#define CRITEO_CSV_RECIPE                                                                          \
    "features: {label: Label, fields: [{column: I1..I13, transform: ln_squared}, "                 \
    "{column: C1..C26}]}"
#define AVAZU_RECIPE                                                                               \
    "features: {label: click, fields: [{column: [hour, C1, banner_pos, site_id, app_id]}, "        \
    "{column: C14..C21}]}"

static const struct real_file {
    const char *name, *recipe;
    int format;
    int64_t good, positive, bad;
} real_files[] = {
    {"criteo/criteo_dac_first10001.tsv.gz", CRITEO_RECIPE, TDM_FORMAT_CRITEO, 10001, 2182, 0},
    {"criteo/criteo_dac_ragged_1000.tsv.gz", CRITEO_RECIPE, TDM_FORMAT_CRITEO, 502, -1, 498},
    {"criteo/criteo_terabyte_day0_1000.tsv.gz", CRITEO_RECIPE, TDM_FORMAT_CRITEO, 1000, 21, 0},
    {"criteo/criteo_x4_valid_3999.csv.gz", CRITEO_CSV_RECIPE, TDM_FORMAT_CSV, 3999, 864, 0},
    {"criteo/criteo_x4_test_3999.csv.gz", CRITEO_CSV_RECIPE, TDM_FORMAT_CSV, 3999, 837, 0},
    {"criteo/criteo_dac_test_nolabel_1999.csv.gz", CRITEO_CSV_RECIPE, TDM_FORMAT_CSV, 1999, 0, 0},
    {"criteo/criteo_sample_200.csv", CRITEO_RECIPE, TDM_FORMAT_CSV, 200, 49, 0},
    {"avazu/avazu_train.csv.gz", AVAZU_RECIPE, TDM_FORMAT_CSV, 8087, 1397, 0},
    {"avazu/avazu_crlf_2994.csv.gz", AVAZU_RECIPE, TDM_FORMAT_CSV, 2994, 522, 0},
};

START_TEST(test_real_files)
{
    if (tdm_test_data() == NULL) {
        tdm_test_skip("TANDEM_TEST_DATA is not set: real click logs");
        return;
    }
    for (size_t i = 0; i < sizeof real_files / sizeof real_files[0]; i++) {
        const struct real_file *real = &real_files[i];
        char *path;
        ck_assert_ok(tdm_format(&path, "%s/ctr/%s", tdm_test_data(), real->name));
        tdm_data_rig_options options = {.files = {path},
                                        .format = real->format,
                                        .recipe = real->recipe,
                                        .threads = 2,
                                        .batch_size = 64};
        tdm_data_rig rig;
        tdm_data_rig_open(&options, &rig);
        tdm_data_rig_start(&rig);
        int64_t good = 0, positive = 0, bad = 0;
        for (bool last = false; !last;) {
            tdm_delivery *delivery;
            ck_assert_ok(tdm_pipeline_next(rig.pipeline, &delivery));
            const tdm_batch *batch = &delivery->batch;
            const float *labels =
                tdm_batch_data(batch, tdm_batch_layout_find(batch->layout, "label"));
            good += batch->rows;
            for (int64_t r = 0; r < batch->rows; r++)
                positive += labels[r] > 0;
            for (size_t r = 0; r < delivery->report_count; r++)
                bad += (int64_t)delivery->reports[r].count;
            last = delivery->last;
            tdm_pipeline_release(rig.pipeline, delivery);
        }
        tdm_data_rig_close(&rig);
        ck_assert_msg(good == real->good && bad == real->bad, "%s: %lld good, %lld bad", real->name,
                      (long long)good, (long long)bad);
        ck_assert(real->positive < 0 || positive == real->positive);
        tdm_free(path);
    }
}
END_TEST

TDM_CHECK_MAIN(test_published_vectors, test_bins_are_hashed_as_decimal_text, test_identity,
               test_numbers_that_are_refused, test_labels, test_dense_numbers,
               test_records_with_several_faults, test_distinct_ids_against_brute_force,
               test_real_files)
