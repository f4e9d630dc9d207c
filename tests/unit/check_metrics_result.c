/* Lists of named numbers: by name, by their place in a line, as JSON and back. */
#include "tests/support/check_main.h"
#include "trainer/metrics_result.h"

#include <math.h>

static const tdm_metric table[] = {
    {.name = "second", .title = "second", .brief = "2nd", .headline = 2, .decimals = 3},
    {.name = "first", .title = "first", .brief = "1st", .headline = 1, .decimals = 3},
    {.name = "extra", .title = "extra", .headline = 3, .is_optional = true},
    {.name = "things", .title = "things", .is_count = true},
};
#define COUNT ((int)(sizeof table / sizeof table[0]))

/* Without the optional one. */
static tdm_metrics_result make(void)
{
    tdm_metrics_result result = {.rows = 7};
    tdm_metrics_result_add(&result, &table[0], 0.1);
    tdm_metrics_result_add(&result, &table[1], NAN);
    tdm_metrics_result_add(&result, &table[3], 0x1p53);
    return result;
}

START_TEST(by_name)
{
    tdm_metrics_result result = make();
    ck_assert_double_eq(tdm_metrics_result_get(&result, "second"), 0.1);
    ck_assert_double_eq(tdm_metrics_result_get(&result, "things"), 0x1p53);
    ck_assert(isnan(tdm_metrics_result_get(&result, "first")));
    ck_assert(isnan(tdm_metrics_result_get(&result, "extra")));
    ck_assert(isnan(tdm_metrics_result_get(&result, "rows")));
    result = tdm_metrics_result_make(table, COUNT, 3);
    ck_assert_int_eq(result.rows, 0);
    ck_assert_int_eq(result.count, COUNT);
    ck_assert_double_eq(tdm_metrics_result_get(&result, "extra"), 3);
}
END_TEST

START_TEST(by_headline)
{
    tdm_metrics_result result = make();
    ck_assert_ptr_eq(tdm_metrics_result_headline(&result, 1)->metric, &table[1]);
    ck_assert_ptr_eq(tdm_metrics_result_headline(&result, 2)->metric, &table[0]);
    ck_assert_ptr_null(tdm_metrics_result_headline(&result, 3));
    ck_assert_ptr_null(tdm_metrics_result_headline(&result, 4));
}
END_TEST

static json_t *through_text(const tdm_metrics_result *result)
{
    json_t *json;
    ck_assert_ok(tdm_metrics_result_json(result, &json));
    char *text = json_dumps(json, JSON_REAL_PRECISION(17));
    json_decref(json);
    json = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(json);
    free(text);
    return json;
}

START_TEST(both_ways)
{
    const tdm_metrics_result results[] = {make(), tdm_metrics_result_make(table, COUNT, 1.0 / 3)};
    for (int r = 0; r < 2; r++) {
        tdm_metrics_result result = results[r], restored;
        if (r == 1)
            result.items[3].value = 5;
        json_t *json = through_text(&result);
        ck_assert_ok(tdm_metrics_result_restore(json, table, COUNT, &restored));
        ck_assert_int_eq(restored.rows, result.rows);
        ck_assert_int_eq(restored.count, result.count);
        for (int i = 0; i < result.count; i++) {
            double a = restored.items[i].value, b = result.items[i].value;
            ck_assert_ptr_eq(restored.items[i].metric, result.items[i].metric);
            ck_assert(a == b || (isnan(a) && isnan(b)));
        }
        json_decref(json);
    }
}
END_TEST

START_TEST(damaged)
{
    const struct {
        const char *key, *value;
    } cases[] = {{"rows", "1.5"},    {"rows", NULL},    {"first", NULL},
                 {"first", "\"1\""}, {"things", "1.5"}, {"things", "null"},
                 {"extra", "true"},  {"things", NULL},  {"second", "[0.1]"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdm_metrics_result result = make(), restored;
        json_t *json = through_text(&result);
        if (cases[i].value == NULL)
            json_object_del(json, cases[i].key);
        else
            json_object_set_new(json, cases[i].key,
                                json_loads(cases[i].value, JSON_DECODE_ANY, NULL));
        ck_assert_fails(tdm_metrics_result_restore(json, table, COUNT, &restored), TDM_E_FORMAT,
                        cases[i].key);
        json_decref(json);
    }
}
END_TEST

TDM_CHECK_MAIN(by_name, by_headline, both_ways, damaged)
