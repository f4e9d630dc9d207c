/* Which columns become which features, and features.json. */
#include "core/file.h"
#include "core/memory.h"
#include "features/feature_spec.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static tdm_record_format *make_format(int type)
{
    tdm_format_options options = {.type = type};
    static const char header[] = "label,a,b,c,d1,d2,d3";
    tdm_record_format *format;
    ck_assert_ok(tdm_record_format_create(&options, "f.csv", header, sizeof header - 1, &format));
    return format;
}

static tdm_status try_make(const char *features, const tdm_record_format *format,
                           tdm_feature_spec **out)
{
    tdm_text text = {0};
    tdm_config *config = NULL;
    tdm_feature_options options;
    *out = NULL;
    ck_assert_ok(tdm_text_printf(&text, "seed: 1\nfeatures:\n%s", features));
    tdm_status status = tdm_config_parse(text.bytes, text.length, "r.yaml", NULL, 0, &config);
    const tdm_config_node *section = tdm_config_get(tdm_config_root(config), "features");
    if (status == TDM_OK)
        status = tdm_config_bind(section, &tdm_feature_schema, &options);
    if (status == TDM_OK) {
        status = tdm_feature_spec_create(&options, section, format, out);
        tdm_config_unbind(&tdm_feature_schema, &options);
    }
    tdm_config_free(config);
    tdm_text_free(&text);
    return status;
}

static const char *const transforms[] = {"none",       "identity",   "log1p",
                                         "signed_log", "ln_squared", "clip"};

/* "name(column) encoding buckets dim transform[min,max]; …| dense …" */
static void describe(const tdm_feature_spec *spec, const tdm_record_format *format, tdm_text *text)
{
    ck_assert_ok(tdm_text_printf(text, "%s", ""));
    for (int32_t i = 0; i < spec->field_count; i++) {
        const tdm_field *field = &spec->fields[i];
        ck_assert_ok(tdm_text_printf(
            text, "%s(%s) %s %lld %d %s", field->name, format->columns[field->column],
            field->encoding == TDM_ENCODING_HASH ? "hash" : "identity", (long long)field->buckets,
            field->embedding_dim, transforms[field->transform]));
        if (field->transform == TDM_TRANSFORM_CLIP)
            ck_assert_ok(tdm_text_printf(text, "[%g,%g]", field->min, field->max));
        ck_assert_ok(tdm_text_printf(text, "; "));
    }
    for (int32_t i = 0; i < spec->dense_count; i++) {
        const tdm_dense_feature *feature = &spec->dense[i];
        ck_assert_ok(tdm_text_printf(text, "| %s(%s) %s", feature->name,
                                     format->columns[feature->column],
                                     transforms[feature->transform]));
        if (feature->transform == TDM_TRANSFORM_CLIP)
            ck_assert_ok(tdm_text_printf(text, "[%g,%g]", feature->min, feature->max));
    }
}

static void check_spec(const char *features, int type, const char *expected)
{
    tdm_record_format *format = make_format(type);
    tdm_feature_spec *spec;
    tdm_text text = {0};
    ck_assert_ok(try_make(features, format, &spec));
    describe(spec, format, &text);
    ck_assert_str_eq(text.bytes, expected);
    tdm_text_free(&text);
    tdm_feature_spec_destroy(spec);
    tdm_record_format_destroy(format);
}

static void check_fails(const char *features, const char *message)
{
    tdm_record_format *format = make_format(TDM_FORMAT_CSV);
    tdm_feature_spec *spec;
    ck_assert_fails(try_make(features, format, &spec), TDM_E_CONFIG, message);
    ck_assert_ptr_null(spec);
    tdm_record_format_destroy(format);
}

START_TEST(test_columns_ranges_and_lists)
{
    check_spec("  fields: [{column: a}]\n", TDM_FORMAT_CSV, "a(a) hash 100000 16 none; ");
    check_spec("  fields: [{column: d1..d3}, {column: [c, a]}]\n", TDM_FORMAT_CSV,
               "d1(d1) hash 100000 16 none; d2(d2) hash 100000 16 none; "
               "d3(d3) hash 100000 16 none; c(c) hash 100000 16 none; a(a) hash 100000 16 none; ");
    check_spec("  fields: [{column: [a, d2..d2]}]\n", TDM_FORMAT_CSV,
               "a(a) hash 100000 16 none; d2(d2) hash 100000 16 none; ");
    check_spec("  dense: [{column: d1..d2, transform: log1p}]\n", TDM_FORMAT_CSV,
               "| d1(d1) log1p| d2(d2) log1p");
    check_spec("  label: C26\n  fields: [{column: I12..I13}, {column: label}]\n", TDM_FORMAT_CRITEO,
               "I12(I12) hash 100000 16 none; I13(I13) hash 100000 16 none; "
               "label(label) hash 100000 16 none; ");
}
END_TEST

START_TEST(test_later_line_wins)
{
    check_spec("  defaults: {buckets: 50, embedding_dim: 3, encoding: identity}\n"
               "  fields:\n"
               "    - {column: [a, b]}\n"
               "    - {column: d1, encoding: hash, transform: clip, min: -2, max: 3}\n"
               "    - {column: d1..d2, buckets: 7}\n"
               "    - {column: d1, embedding_dim: 9}\n"
               "    - {column: b, encoding: hash, name: again}\n"
               "    - {column: c, name: again, buckets: 8}\n"
               "  dense:\n"
               "    - {column: d1..d3, transform: log1p}\n"
               "    - {column: d2, transform: clip, min: 1, max: 2}\n"
               "    - {column: d2}\n"
               "    - {column: d3, transform: none}\n",
               TDM_FORMAT_CSV,
               "a(a) identity 50 3 none; b(b) identity 50 3 none; d1(d1) hash 7 9 clip[-2,3]; "
               "d2(d2) identity 7 3 none; again(c) hash 8 3 none; "
               "| d1(d1) log1p| d2(d2) clip[1,2]| d3(d3) none");
}
END_TEST

START_TEST(test_errors_tell_where)
{
    check_fails("  label: lable\n  fields: [{column: a}]\n",
                "r.yaml:3: features.label: there is no column lable; did you mean label?");
    check_fails("  fields:\n    - {column: a}\n    - {column: d4}\n",
                "r.yaml:5: features.fields[1]: there is no column d4; did you mean d1? "
                "(columns: label .. d3)");
    check_fails("  fields: [{column: d2..d4}]\n", "there is no column d4");
    check_fails("  fields: [{column: d3..d1}]\n", "there is no column d3..d1");
    check_fails("  fields: [{column: d1..d-3}]\n", "there is no column d1..d-3");
    check_fails("  fields: [{column: d1..d+3}]\n", "there is no column d1..d+3");
    check_fails("  fields: [{column: a..c}]\n", "there is no column a..c");
    check_fails("  fields: [{column: label}]\n", "column label is the label");
    check_fails("  fields: [{column: []}]\n", "names no column");
    check_fails("  fields: [{buckets: 3}]\n", "column");
    check_fails("  fields: [{column: [a, b], name: x}]\n", "name: goes with a single column");
    check_fails("  fields: [{column: d1..d2, name: x}]\n", "name: goes with a single column");
    check_fails("  fields: [{column: a, transform: clip}]\n", "clip needs min and max");
    check_fails("  dense: [{column: a, transform: clip, min: 3, max: 3}]\n", "clip needs min");
    check_fails("  dense: [{column: a, transfrom: clip}]\n", "did you mean transform?");
    check_fails("  dense: [{column: a, transform: log}]\n", "r.yaml:3: features.dense[0]");
    check_fails("  fields: [{column: a, buckets: 4294967292}]\n", "buckets");
    check_fails("  fields: [{column: a, embedding_dim: 4097}]\n", "embedding_dim");
    check_fails("  defaults: {buckets: 0}\n  fields: [{column: a}]\n", "features.defaults.buckets");
    check_fails("  hash_seed: 1\n", "names no feature");
    check_fails("  fields: [{column: a}]\n  hash_sed: 1\n", "did you mean hash_seed?");
}
END_TEST

START_TEST(test_a_recipe_without_features)
{
    tdm_record_format *format = make_format(TDM_FORMAT_CSV);
    tdm_feature_options options;
    tdm_feature_spec *spec;
    ck_assert_ok(tdm_config_bind(NULL, &tdm_feature_schema, &options));
    ck_assert_fails(tdm_feature_spec_create(&options, NULL, format, &spec), TDM_E_CONFIG,
                    "names no feature");
    tdm_config_unbind(&tdm_feature_schema, &options);
    tdm_record_format_destroy(format);
}
END_TEST

/* ---- features.json --------------------------------------------------------------------------- */

static const char full_recipe[] =
    "  hash_seed: 9007199254740992\n"
    "  fields:\n"
    "    - {column: a, buckets: 4294967291, embedding_dim: 4096}\n"
    "    - {column: b, encoding: identity, buckets: 1}\n"
    "    - {column: c, transform: clip, min: -0.1, max: 1.0e+300, name: \"\\u00e9 \\\" \\\\\"}\n"
    "    - {column: d1, transform: ln_squared}\n"
    "    - {column: d2, transform: none}\n"
    "  dense:\n"
    "    - {column: d1, transform: signed_log}\n"
    "    - {column: d2, transform: identity}\n"
    "    - {column: d3, transform: clip, min: 0.30000000000000004, max: 0.3333333333333333}\n";

static void check_round_trip(int type, const char *recipe)
{
    char folder[TDM_FOLDER_BYTES];
    tdm_new_folder(folder);
    char *path;
    ck_assert_ok(tdm_format(&path, "%s/features.json", folder));
    tdm_record_format *format = make_format(type), *loaded_format;
    tdm_feature_spec *spec, *loaded;
    ck_assert_ok(try_make(recipe, format, &spec));
    ck_assert_ok(tdm_feature_spec_save(spec, format, path));
    ck_assert_ok(tdm_feature_spec_load(path, &loaded, &loaded_format));
    ck_assert_ptr_eq(loaded_format->type, format->type);
    ck_assert_int_eq(loaded_format->separator, format->separator);
    ck_assert_int_eq(loaded_format->header, format->header);
    ck_assert_int_eq(loaded_format->column_count, format->column_count);
    for (int32_t i = 0; i < format->column_count; i++)
        ck_assert_str_eq(loaded_format->columns[i], format->columns[i]);
    ck_assert_uint_eq(loaded->hash_seed, spec->hash_seed);
    ck_assert_int_eq(loaded->label, spec->label);
    ck_assert_int_eq(loaded->field_count, spec->field_count);
    ck_assert_int_eq(loaded->dense_count, spec->dense_count);
    tdm_text a = {0}, b = {0};
    describe(spec, format, &a);
    describe(loaded, loaded_format, &b);
    ck_assert_str_eq(a.bytes, b.bytes);
    for (int32_t i = 0; i < spec->field_count; i++)
        ck_assert(spec->fields[i].min == loaded->fields[i].min &&
                  spec->fields[i].max == loaded->fields[i].max);
    for (int32_t i = 0; i < spec->dense_count; i++)
        ck_assert(spec->dense[i].min == loaded->dense[i].min &&
                  spec->dense[i].max == loaded->dense[i].max);
    uint64_t hash, loaded_hash;
    ck_assert_ok(tdm_feature_spec_hash(spec, format, &hash));
    ck_assert_ok(tdm_feature_spec_hash(loaded, loaded_format, &loaded_hash));
    ck_assert_uint_eq(hash, loaded_hash);
    tdm_text_free(&a);
    tdm_text_free(&b);
    tdm_feature_spec_destroy(spec);
    tdm_feature_spec_destroy(loaded);
    tdm_record_format_destroy(format);
    tdm_record_format_destroy(loaded_format);
    tdm_free(path);
    ck_assert_ok(tdm_folder_remove(folder));
}

START_TEST(test_file_gives_back_the_spec)
{
    check_round_trip(TDM_FORMAT_CSV, full_recipe);
    check_round_trip(TDM_FORMAT_CRITEO, "  fields: [{column: I1..I13, transform: ln_squared}, "
                                        "{column: C1..C26}]\n");
}
END_TEST

/* What decides what a record becomes, changed in one place. */
START_TEST(test_hash_sees_every_change)
{
    static const char *const recipes[] = {
        "  fields: [{column: a}]\n",
        "  fields: [{column: b}]\n",
        "  fields: [{column: a, name: b}]\n",
        "  fields: [{column: a}, {column: b}]\n",
        "  fields: [{column: b}, {column: a}]\n",
        "  fields: [{column: a, buckets: 3}]\n",
        "  fields: [{column: a, encoding: identity}]\n",
        "  fields: [{column: a, transform: log1p}]\n",
        "  fields: [{column: a, transform: clip, min: 1, max: 2}]\n",
        "  fields: [{column: a, transform: clip, min: 1, max: 2.0000000000000004}]\n",
        "  label: b\n  fields: [{column: a}]\n",
        "  hash_seed: 1\n  fields: [{column: a}]\n",
        "  dense: [{column: a}]\n"};
    uint64_t hashes[16];
    tdm_record_format *format = make_format(TDM_FORMAT_CSV), *other = make_format(TDM_FORMAT_CSV);
    size_t count = sizeof recipes / sizeof recipes[0];
    for (size_t i = 0; i < count; i++) {
        tdm_feature_spec *spec;
        ck_assert_ok(try_make(recipes[i], format, &spec));
        ck_assert_ok(tdm_feature_spec_hash(spec, format, &hashes[i]));
        other->separator = ';';
        if (i == 0)
            ck_assert_ok(tdm_feature_spec_hash(spec, other, &hashes[count]));
        tdm_feature_spec_destroy(spec);
    }
    for (size_t i = 0; i <= count; i++) {
        for (size_t j = 0; j < i; j++)
            ck_assert_uint_ne(hashes[i], hashes[j]);
    }
    tdm_record_format_destroy(format);
    tdm_record_format_destroy(other);
}
END_TEST

/* Replaces the first `old` in a saved file by `new`: loading must fail so. */
static void check_damage(const char *good, const char *path, const char *old, const char *new,
                         tdm_status status, const char *message)
{
    const char *at = strstr(good, old);
    ck_assert_msg(at != NULL, "no %s in %s", old, good);
    tdm_text text = {0};
    ck_assert_ok(tdm_text_printf(&text, "%.*s%s%s", (int)(at - good), good, new, at + strlen(old)));
    ck_assert_ok(tdm_file_put(path, text.bytes, text.length, NULL));
    tdm_feature_spec *spec;
    tdm_record_format *format;
    ck_assert_fails(tdm_feature_spec_load(path, &spec, &format), status, message);
    ck_assert_ptr_nonnull(strstr(tdm_error_message(), path));
    ck_assert_ptr_null(spec);
    ck_assert_ptr_null(format);
    tdm_text_free(&text);
}

START_TEST(test_damaged_files_are_refused)
{
    static const struct {
        const char *old, *new, *message;
    } cases[] = {
        {"\"version\": 1", "\"version\": 0", "it has no version"},
        {"\"version\": 1", "\"version\": \"1\"", "it has no version"},
        {"\"version\": 1", "\"version\": 1, \"version\": 1", "duplicate"},
        {"\"records\"", "\"record\"", "records"},
        {"\"csv\"", "\"cvs\"", "records"},
        {"\"separator\": \",\"", "\"separator\": \",,\"", "records"},
        {"\"separator\": \",\"", "\"separator\": \"\\n\"", "records"},
        {"\"separator\": \",\"", "\"separator\": 1", "records"},
        {"\"header\": true", "\"header\": 1", "records"},
        {"\"columns\": [", "\"columns\": [1, ", "records.columns"},
        {"\"columns\": [", "\"columns\": [\"a\", ", "records.columns"},
        {"\"label\": \"label\"", "\"label\": \"lable\"", "label"},
        {"\"label\": \"label\"", "\"label\": 1", "label"},
        {"\"hash_seed\": 9007199254740992", "\"hash_seed\": \"9007199254740992\"", "hash_seed"},
        {"\"hash_seed\": 9007199254740992,", "", "hash_seed"},
        {"\"fields\": [", "\"feilds\": [", "fields"},
        {"\"dense\": [", "\"dence\": [", "dense"},
        {"\"column\": \"a\"", "\"column\": \"z\"", "a feature lacks its name, column or transform"},
        {"\"name\": \"a\"", "\"name\": 1", "a feature lacks its name"},
        {"\"name\": \"a\"", "\"name\": \"b\"", "two fields have the same name"},
        {"\"transform\": \"clip\"", "\"transform\": \"clop\"", "a feature lacks"},
        {"\"max\": 1.", "\"mux\": 1.", "clip lacks its min and max"},
        {"\"encoding\": \"hash\"", "\"encoding\": \"hush\"", "a field lacks its encoding"},
        {"\"buckets\": 4294967291", "\"buckets\": 4294967292", "a field lacks"},
        {"\"buckets\": 4294967291", "\"buckets\": 0", "a field lacks"},
        {"\"buckets\": 4294967291", "\"buckets\": 1.5", "a field lacks"},
        {"\"embedding_dim\": 4096", "\"embedding_dim\": 4097", "a field lacks"},
        {"{", "", "damaged"},
        {"\"fields\": [", "\"fields\": [7, ", "a feature lacks"},
        {"{", "[{}, {", "damaged"},
    };
    char folder[TDM_FOLDER_BYTES];
    tdm_new_folder(folder);
    char *path, *good;
    size_t bytes;
    ck_assert_ok(tdm_format(&path, "%s/features.json", folder));
    tdm_record_format *format = make_format(TDM_FORMAT_CSV);
    tdm_feature_spec *spec;
    ck_assert_ok(try_make(full_recipe, format, &spec));
    ck_assert_ok(tdm_feature_spec_save(spec, format, path));
    ck_assert_ok(tdm_file_get(path, 1 << 20, &good, &bytes));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_damage(good, path, cases[i].old, cases[i].new, TDM_E_FORMAT, cases[i].message);
    check_damage(good, path, "\"version\": 1", "\"version\": 2", TDM_E_VERSION,
                 "has version 2, this tandem reads up to 1");
    for (size_t cut = 0; cut < bytes; cut += 3) {
        tdm_record_format *none;
        tdm_feature_spec *nothing;
        ck_assert_ok(tdm_file_put(path, good, cut, NULL));
        ck_assert_fails(tdm_feature_spec_load(path, &nothing, &none), TDM_E_FORMAT, "damaged");
    }
    ck_assert_ok(tdm_file_remove(path));
    tdm_record_format *none;
    tdm_feature_spec *nothing;
    ck_assert_fails(tdm_feature_spec_load(path, &nothing, &none), TDM_E_IO, path);
    tdm_free(good);
    tdm_free(path);
    tdm_feature_spec_destroy(spec);
    tdm_record_format_destroy(format);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

TDM_CHECK_MAIN(test_columns_ranges_and_lists, test_later_line_wins, test_errors_tell_where,
               test_a_recipe_without_features, test_file_gives_back_the_spec,
               test_hash_sees_every_change, test_damaged_files_are_refused)
