#include "core/memory.h"
#include "data/synth_ctr.h"
#include "data/synth_ctr_model.h"
#include "tests/support/check_main.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <xxhash.h>

/* XXH3-64 of the first 10,000 rows of seed 1. */
#define GOLDEN_ROWS 10000
#define GOLDEN_HASH 0x9f96f89359db0fe7u

typedef struct captured_log {
    char *text;
    size_t bytes, capacity;
    int64_t calls;
    int64_t fail_at_call; /* 0: never */
    int64_t progress;
    atomic_bool busy;
} captured_log;

static tdm_status capture(void *context, const char *bytes, size_t size)
{
    captured_log *log = context;
    ck_assert_msg(!atomic_exchange(&log->busy, true), "two writes at a time");
    ck_assert_uint_gt(size, 0);
    ck_assert_int_eq(bytes[size - 1], '\n');
    if (++log->calls == log->fail_at_call)
        return tdm_fail(TDM_E_IO, "the disk is full");
    ck_assert_ok(tdm_grow(&log->text, &log->capacity, log->bytes + size, 1));
    memcpy(log->text + log->bytes, bytes, size);
    log->bytes += size;
    atomic_store(&log->busy, false);
    return TDM_OK;
}

static tdm_status discard(void *context, const char *bytes, size_t size)
{
    (void)context;
    (void)bytes;
    (void)size;
    return TDM_OK;
}

static void note_progress(void *context, int64_t rows)
{
    captured_log *log = context;
    ck_assert_int_gt(rows, log->progress);
    log->progress = rows;
}

static tdm_synth_result make(captured_log *log, tdm_synth_ctr_options options, int threads)
{
    tdm_pool *pool;
    tdm_synth_result result;
    memset(log, 0, sizeof *log);
    ck_assert_ok(tdm_pool_create(threads, &pool));
    ck_assert_ok(tdm_synth_ctr(pool, &options, capture, note_progress, log, &result));
    tdm_pool_destroy(pool);
    ck_assert_int_eq(result.rows, options.rows);
    ck_assert_int_eq(log->progress, options.rows);
    return result;
}

static tdm_synth_ctr_options options_for(int64_t rows, uint64_t seed)
{
    tdm_synth_ctr_options options = TDM_SYNTH_CTR_DEFAULTS;
    options.rows = rows;
    options.seed = seed;
    return options;
}

static tdm_synth_model *model_for(uint64_t seed)
{
    tdm_synth_model *model;
    ck_assert_ok(tdm_synth_model_create(seed, &model));
    return model;
}

START_TEST(test_bytes_do_not_depend_on_threads)
{
    const int threads[] = {2, 5};
    captured_log one, other;
    tdm_synth_result expected = make(&one, options_for(50001, 7), 1);
    for (size_t i = 0; i < 2; i++) {
        tdm_synth_result result = make(&other, options_for(50001, 7), threads[i]);
        ck_assert_uint_eq(other.bytes, one.bytes);
        ck_assert_mem_eq(other.text, one.text, one.bytes);
        ck_assert_int_eq(result.positives, expected.positives);
        ck_assert(result.auc == expected.auc && result.logloss == expected.logloss);
        tdm_free(other.text);
    }
    tdm_free(one.text);
}
END_TEST

START_TEST(test_first_rows_are_known)
{
    captured_log log, other;
    make(&log, options_for(GOLDEN_ROWS, 1), 2);
    uint64_t hash = XXH3_64bits(log.text, log.bytes);
    ck_assert_msg(hash == GOLDEN_HASH, "hash 0x%016llx", (unsigned long long)hash);
    make(&other, options_for(GOLDEN_ROWS, 2), 2);
    ck_assert_uint_ne(hash, XXH3_64bits(other.text, other.bytes));
    tdm_free(log.text);
    tdm_free(other.text);
}
END_TEST

START_TEST(test_a_shorter_log_is_a_prefix)
{
    const int64_t rows[] = {1, 511, 512, 513, 8192, 8193, 20000};
    captured_log whole, part;
    make(&whole, options_for(30000, 3), 2);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        make(&part, options_for(rows[i], 3), 2);
        ck_assert_uint_lt(part.bytes, whole.bytes);
        ck_assert_mem_eq(part.text, whole.text, part.bytes);
        int64_t lines = 0;
        for (size_t b = 0; b < part.bytes; b++)
            lines += part.text[b] == '\n';
        ck_assert_int_eq(lines, rows[i]);
        tdm_free(part.text);
    }
    tdm_free(whole.text);
}
END_TEST

START_TEST(test_labels_can_be_left_out)
{
    captured_log with, without;
    tdm_synth_ctr_options options = options_for(3000, 1);
    tdm_synth_result labelled = make(&with, options, 2);
    options.labels = false;
    tdm_synth_result bare = make(&without, options, 2);
    ck_assert_int_eq(bare.positives, labelled.positives);
    ck_assert_uint_eq(without.bytes + 2 * 3000, with.bytes);
    const char *a = with.text, *b = without.text;
    for (int row = 0; row < 3000; row++) {
        ck_assert(a[0] == '0' || a[0] == '1');
        ck_assert_int_eq(a[1], '\t');
        size_t length = strcspn(b, "\n") + 1;
        ck_assert_mem_eq(a + 2, b, length);
        a += length + 2;
        b += length;
    }
    tdm_free(with.text);
    tdm_free(without.text);
}
END_TEST

static long parse_integer(const char *field, size_t length)
{
    char *end;
    long value = strtol(field, &end, 10);
    ck_assert_ptr_eq(end, field + length);
    return value;
}

static void check_category(const char *field, size_t length)
{
    ck_assert_uint_eq(length, 8);
    ck_assert_uint_eq(strspn(field, "0123456789abcdef"), 8);
}

typedef struct column_counts {
    int64_t missing, negative, large; /* large: above 100,000 */
    long least;
} column_counts;

/* Counts one line's fields and returns the start of the next line. */
static const char *count_line(const char *line, column_counts *counts)
{
    ck_assert((line[0] == '0' || line[0] == '1') && line[1] == '\t');
    const char *at = line + 2;
    for (int c = 0; c < TDM_SYNTH_COLUMNS; c++) {
        size_t length = strcspn(at, "\t\n");
        ck_assert_int_eq(at[length], c == TDM_SYNTH_COLUMNS - 1 ? '\n' : '\t');
        if (length == 0) {
            counts[c].missing++;
        } else if (c < TDM_SYNTH_INTEGERS) {
            long value = parse_integer(at, length);
            counts[c].negative += value < 0;
            counts[c].large += value > 100000;
            counts[c].least = value < counts[c].least ? value : counts[c].least;
        } else {
            check_category(at, length);
        }
        at += length + 1;
    }
    return at;
}

START_TEST(test_columns_have_their_shapes)
{
    static const int missing_permille[TDM_SYNTH_COLUMNS] = {
        454, 0, 215, 217, 26, 224, 43, 1, 43, 454, 43, 765, 217, 0,  0,   34, 34, 0,   121, 0,
        0,   0, 0,   0,   34, 0,   0,  0, 34, 0,   0,  440, 440, 34, 762, 0,  34, 440, 440};
    const int64_t rows = 100000;
    column_counts counts[TDM_SYNTH_COLUMNS] = {0};
    captured_log log;
    make(&log, options_for(rows, 1), 2);
    const char *at = log.text;
    for (int64_t row = 0; row < rows; row++)
        at = count_line(at, counts);
    ck_assert_ptr_eq(at, log.text + log.bytes);
    for (int c = 0; c < TDM_SYNTH_COLUMNS; c++) {
        double rate = (double)counts[c].missing / (double)rows, plan = missing_permille[c] / 1000.0;
        ck_assert_msg(fabs(rate - plan) <= 5 * sqrt(plan * (1 - plan) / (double)rows),
                      "column %d: %g missing, not %g", c, rate, plan);
        ck_assert_int_eq(counts[c].least, c == 1 ? -3 : c == 9 ? -1 : 0);
    }
    ck_assert(counts[1].negative > 100 && counts[1].negative < 5000);
    ck_assert(counts[4].large > 1000 && counts[9].large == 0);
    tdm_free(log.text);
}
END_TEST

static int compare_strings(const void *a, const void *b)
{
    return memcmp(a, b, 8);
}

/* Different strings in column C<number> of the log. */
static int64_t count_different(const captured_log *log, int64_t rows, int number)
{
    char(*values)[8];
    ck_assert_ok(tdm_alloc((size_t)rows, sizeof *values, &values));
    const char *at = log->text;
    size_t count = 0;
    for (int64_t row = 0; row < rows; row++) {
        const char *field = at;
        for (int c = 0; c < TDM_SYNTH_INTEGERS + number; c++)
            field += strcspn(field, "\t") + 1;
        if (strcspn(field, "\t\n") == 8)
            memcpy(values[count++], field, 8);
        at += strcspn(at, "\n") + 1;
    }
    qsort(values, count, sizeof *values, compare_strings);
    int64_t different = count > 0;
    for (size_t i = 1; i < count; i++)
        different += memcmp(values[i - 1], values[i], 8) != 0;
    tdm_free(values);
    return different;
}

START_TEST(test_columns_have_their_cardinalities)
{
    captured_log log;
    make(&log, options_for(60000, 1), 2);
    ck_assert_int_eq(count_different(&log, 60000, 9), 3);
    ck_assert_int_eq(count_different(&log, 60000, 6), 24);
    ck_assert_int_eq(count_different(&log, 60000, 14), 27);
    int64_t thousands = count_different(&log, 60000, 13);
    ck_assert_msg(thousands > 1500 && thousands <= 3194, "%lld", (long long)thousands);
    int64_t million = count_different(&log, 60000, 3);
    ck_assert_msg(million > 5000, "%lld", (long long)million);
    tdm_free(log.text);
}
END_TEST

START_TEST(test_planted_quality)
{
    tdm_pool *pool;
    ck_assert_ok(tdm_pool_create(2, &pool));
    for (uint64_t seed = 1; seed <= 3; seed++) {
        tdm_synth_ctr_options options = options_for(200000, seed);
        tdm_synth_result result;
        ck_assert_ok(tdm_synth_ctr(pool, &options, discard, NULL, NULL, &result));
        double rate = (double)result.positives / 200000;
        ck_assert_msg(result.auc > 0.78 && result.auc < 0.85, "auc %g", result.auc);
        ck_assert_msg(rate > 0.2 && rate < 0.3, "rate %g", rate);
        double entropy = -rate * log(rate) - (1 - rate) * log1p(-rate);
        ck_assert_msg(result.logloss < 0.85 * entropy, "logloss %g", result.logloss);
    }
    tdm_pool_destroy(pool);
}
END_TEST

START_TEST(test_result_is_exact)
{
    enum { ROWS = 2000 };
    static int32_t logits[ROWS];
    static bool labels[ROWS];
    tdm_synth_model *model = model_for(5);
    char line[TDM_SYNTH_ROW_BYTES];
    double ordered = 0, pairs = 0, loss = 0;
    for (uint64_t r = 0; r < ROWS; r++) {
        tdm_synth_row(model, r, true, line, &logits[r], &labels[r]);
        double z = logits[r] / 65536.0;
        loss += log1p(exp(labels[r] ? -z : z)) / ROWS;
    }
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < ROWS; j++) {
            if (labels[i] && !labels[j]) {
                pairs++;
                ordered += logits[i] > logits[j] ? 1 : logits[i] == logits[j] ? 0.5 : 0;
            }
        }
    }
    captured_log log;
    tdm_synth_result result = make(&log, options_for(ROWS, 5), 2);
    ck_assert_double_eq_tol(result.auc, ordered / pairs, 1e-12);
    ck_assert_double_eq_tol(result.logloss, loss, 1e-5);
    tdm_free(log.text);
    tdm_free(model);
}
END_TEST

START_TEST(test_sigmoid)
{
    tdm_synth_model *model = model_for(1);
    uint32_t before = 0;
    for (int32_t z = -TDM_SYNTH_LOGIT_LIMIT; z < TDM_SYNTH_LOGIT_LIMIT; z++) {
        uint32_t probability = tdm_synth_probability(model, z);
        double error = probability * 0x1p-32 - 1 / (1 + exp(-z / 65536.0));
        if (fabs(error) >= 3e-6 || probability < before)
            ck_abort_msg("logit %d: off by %g", z, error);
        before = probability;
    }
    tdm_free(model);
}
END_TEST

START_TEST(test_alias_tables_give_exact_probabilities)
{
    tdm_synth_model *model = model_for(1);
    for (int c = 0; c < TDM_SYNTH_COLUMNS; c++) {
        const tdm_synth_column *column = &model->columns[c];
        uint64_t mass[TDM_SYNTH_OUTCOMES] = {0}, total = 0;
        uint64_t full = (uint64_t)1 << (32 - column->cell_bits);
        for (int32_t i = 0; i < 1 << column->cell_bits; i++) {
            mass[i] += column->cells[i].threshold;
            mass[column->cells[i].alias] += full - column->cells[i].threshold;
        }
        for (int32_t i = 0; i < TDM_SYNTH_OUTCOMES; i++) {
            ck_assert_uint_eq(mass[i], column->probability[i]);
            total += mass[i];
        }
        ck_assert_uint_eq(total, (uint64_t)1 << 32);
    }
    tdm_free(model);
}
END_TEST

typedef struct effect_moments {
    double effect_mean, effect_variance, latent_mean, latent_variance;
} effect_moments;

/* Of one column, under its distribution; checks that effects are on frequent values alone. */
static effect_moments moments_of(const tdm_synth_column *column, bool integers)
{
    effect_moments moments = {0};
    for (int32_t i = 0; i < column->count; i++) {
        const tdm_synth_outcome *outcome = &column->outcomes[i];
        double probability = column->probability[i] * 0x1p-32;
        double effect = outcome->effect / 65536.0, latent = outcome->latent[0] / 65536.0;
        moments.effect_mean += probability * effect;
        moments.effect_variance += probability * effect * effect;
        moments.latent_mean += probability * latent;
        moments.latent_variance += probability * latent * latent;
        if (effect != 0 || latent != 0) {
            ck_assert_double_ge(probability * 2e6, 50);
            ck_assert(integers || outcome->width <= 1);
        }
    }
    return moments;
}

START_TEST(test_effects_are_centred_and_on_frequent_values)
{
    tdm_synth_model *model = model_for(1);
    double variance = 0;
    int members[TDM_SYNTH_GROUPS + 1] = {0};
    for (int c = 0; c < TDM_SYNTH_COLUMNS; c++) {
        const tdm_synth_column *column = &model->columns[c];
        effect_moments moments = moments_of(column, c < TDM_SYNTH_INTEGERS);
        ck_assert_double_lt(fabs(moments.effect_mean), 0.005);
        ck_assert_double_lt(fabs(moments.latent_mean), 0.005);
        ck_assert((moments.latent_variance > 0.05) == (column->group > 0));
        variance += moments.effect_variance;
        members[column->group]++;
    }
    ck_assert_msg(variance > 1 && variance < 2, "variance %g", variance);
    for (int group = 1; group <= TDM_SYNTH_GROUPS; group++)
        ck_assert_int_ge(members[group], 3);
    tdm_free(model);
}
END_TEST

START_TEST(test_no_rows)
{
    captured_log log;
    tdm_synth_result result = make(&log, options_for(0, 1), 2);
    ck_assert_int_eq(log.calls, 0);
    ck_assert_int_eq(result.positives, 0);
    ck_assert(isnan(result.auc) && isnan(result.logloss));
}
END_TEST

START_TEST(test_errors)
{
    tdm_pool *pool;
    tdm_synth_result result;
    captured_log log = {.fail_at_call = 3};
    tdm_synth_ctr_options options = options_for(100000, 1);
    ck_assert_ok(tdm_pool_create(2, &pool));
    ck_assert_fails(tdm_synth_ctr(pool, &options, capture, NULL, &log, &result), TDM_E_IO,
                    "the disk is full");
    ck_assert_int_eq(log.calls, 3);
    tdm_free(log.text);
    options.rows = -1;
    ck_assert_fails(tdm_synth_ctr(pool, &options, capture, NULL, &log, &result), TDM_E_ARG,
                    "-1 rows");
    tdm_pool_destroy(pool);
}
END_TEST

START_TEST(test_allocation_failures)
{
    tdm_pool *pool;
    ck_assert_ok(tdm_pool_create(1, &pool));
    int64_t live = tdm_memory_stats_get().live_bytes;
    tdm_synth_ctr_options options = options_for(1000, 1);
    tdm_synth_result result;
    int failures = -1;
    tdm_status status;
    do {
        failures++;
        tdm_memory_fail_at(failures + 1, false);
        status = tdm_synth_ctr(pool, &options, discard, NULL, NULL, &result);
        tdm_memory_fail_at(0, false);
        ck_assert(status == TDM_OK || status == TDM_E_NOMEM);
        ck_assert_int_eq(tdm_memory_stats_get().live_bytes, live);
    } while (status != TDM_OK);
    ck_assert_int_eq(failures, 4);
    tdm_pool_destroy(pool);
}
END_TEST

TDM_CHECK_MAIN(test_bytes_do_not_depend_on_threads, test_first_rows_are_known,
               test_a_shorter_log_is_a_prefix, test_labels_can_be_left_out,
               test_columns_have_their_shapes, test_columns_have_their_cardinalities,
               test_planted_quality, test_result_is_exact, test_sigmoid,
               test_alias_tables_give_exact_probabilities,
               test_effects_are_centred_and_on_frequent_values, test_no_rows, test_errors,
               test_allocation_failures)
