#include "tests/support/metrics_rig.h"

#include "tests/support/check_main.h"

#include <math.h>
#include <string.h>

tdm_metrics_result tdm_test_result(tdm_metrics *metrics)
{
    tdm_pool *pool;
    tdm_metrics_result result;
    ck_assert_ok(tdm_pool_create(1, &pool));
    ck_assert_ok(tdm_metrics_get(metrics, pool, &result));
    tdm_pool_destroy(pool);
    return result;
}

double tdm_test_metric(const tdm_metrics_result *result, const char *name)
{
    for (int i = 0; i < result->count; i++) {
        if (strcmp(result->items[i].metric->name, name) == 0)
            return result->items[i].value;
    }
    ck_abort_msg("there is no %s", name);
}

static char *saved_text(const tdm_metrics *metrics)
{
    json_t *saved;
    ck_assert_ok(tdm_metrics_save(metrics, &saved));
    char *text = json_dumps(saved, JSON_COMPACT);
    json_decref(saved);
    return text;
}

void tdm_test_save_and_restore(const tdm_metrics *from, tdm_metrics *to)
{
    char *text = saved_text(from);
    json_t *saved = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(saved);
    free(text);
    ck_assert_ok(tdm_metrics_restore(to, saved));
    json_decref(saved);
}

void tdm_test_same_bits(const tdm_metrics *a, const tdm_metrics *b)
{
    char *one = saved_text(a), *other = saved_text(b);
    ck_assert_str_eq(one, other);
    free(one);
    free(other);
}

void tdm_test_same_result(tdm_metrics *a, tdm_metrics *b, double tolerance)
{
    tdm_metrics_result one = tdm_test_result(a), other = tdm_test_result(b);
    ck_assert_int_eq(one.rows, other.rows);
    ck_assert_int_eq(one.count, other.count);
    for (int i = 0; i < one.count; i++) {
        double x = one.items[i].value, y = other.items[i].value;
        ck_assert_ptr_eq(one.items[i].metric, other.items[i].metric);
        ck_assert_msg((isnan(x) && isnan(y)) || fabs(x - y) <= tolerance, "%s: %.17g and %.17g",
                      one.items[i].metric->name, x, y);
    }
}

static void restore_damaged(tdm_metrics *into, const tdm_metrics *from, const json_t *saved,
                            const char *message)
{
    tdm_metrics empty;
    ck_assert_ok(tdm_metrics_init(&empty, &from->spec, 0));
    ck_assert_ok(tdm_metrics_merge(into, from));
    ck_assert_fails(tdm_metrics_restore(into, saved), TDM_E_FORMAT, message);
    tdm_test_same_bits(into, &empty);
    tdm_metrics_deinit(&empty);
}

void tdm_test_damaged_metrics(const tdm_metrics *metrics, const tdm_test_damage *damages,
                              size_t count)
{
    tdm_metrics restored;
    ck_assert_ok(tdm_metrics_init(&restored, &metrics->spec, 0));
    for (size_t i = 0; i < count; i++) {
        json_t *saved;
        ck_assert_ok(tdm_metrics_save(metrics, &saved));
        json_t *value = json_loads(damages[i].value, JSON_DECODE_ANY, NULL);
        ck_assert_int_eq(json_object_set_new(saved, damages[i].key, value), 0);
        restore_damaged(&restored, metrics, saved, damages[i].message);
        json_object_del(saved, damages[i].key);
        restore_damaged(&restored, metrics, saved, damages[i].key);
        json_decref(saved);
    }
    restore_damaged(&restored, metrics, NULL, "rows");
    tdm_metrics_deinit(&restored);
}

/* ---- memory of the JSON ---------------------------------------------------------------------- */

static int64_t live, calls_left;

static void *count_alloc(size_t bytes)
{
    if (calls_left > 0 && --calls_left == 0)
        return NULL;
    void *memory = malloc(bytes);
    live += memory != NULL;
    return memory;
}

static void count_free(void *memory)
{
    live -= memory != NULL;
    free(memory);
}

void tdm_test_save_without_memory(const tdm_metrics *metrics)
{
    int64_t failures = 0;
    json_set_alloc_funcs(count_alloc, count_free);
    for (int64_t n = 1;; n++) {
        json_t *saved;
        calls_left = n;
        tdm_status status = tdm_metrics_save(metrics, &saved);
        bool reached = calls_left == 0;
        calls_left = 0;
        json_decref(saved);
        ck_assert_msg(live == 0, "allocation %lld: %lld are lost", (long long)n, (long long)live);
        if (!reached)
            break;
        ck_assert_fails(status, TDM_E_NOMEM, "out of memory");
        failures++;
    }
    json_set_alloc_funcs(malloc, free);
    ck_assert_int_gt(failures, 10);
}
