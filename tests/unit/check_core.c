/* The ground everything stands on: status, memory, random numbers, element types. */
#include "core/log.h"
#include "core/memory.h"
#include "core/random_fill.h"
#include "core/rng.h"
#include "core/tensor.h"
#include "tests/support/check_main.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- status ---------------------------------------------------------------------------------- */

START_TEST(test_status_texts)
{
    ck_assert_str_eq(tdm_status_text(TDM_OK), "ok");
    ck_assert_str_eq(tdm_status_text(TDM_E_NOMEM), "out of memory");
    ck_assert_str_eq(tdm_status_text(TDM_E_CANCELLED), "stopped");
    ck_assert_str_eq(tdm_status_text((tdm_status)999), "unknown status");
    ck_assert_int_eq(TDM_E_CANCELLED, 12);
}
END_TEST

static tdm_status fail_where(bool condition)
{
    TDM_FAIL_IF(condition, TDM_E_DATA, "number %d", 7);
    return TDM_OK;
}

static tdm_status try_and_clean(bool condition, bool *cleaned)
{
    tdm_status status;
    TDM_TRY_GOTO(fail_where(condition), done);
done:
    *cleaned = true;
    return status;
}

static tdm_status try_twice(bool first, bool second)
{
    TDM_TRY(fail_where(first));
    TDM_TRY(fail_where(second));
    return TDM_OK;
}

START_TEST(test_status_macros)
{
    bool cleaned = false;
    ck_assert_ok(try_twice(false, false));
    ck_assert_fails(try_twice(true, false), TDM_E_DATA, "number 7");
    ck_assert_fails(try_twice(false, true), TDM_E_DATA, "number 7");
    ck_assert_fails(try_and_clean(true, &cleaned), TDM_E_DATA, "number 7");
    ck_assert(cleaned);
    ck_assert_ok(try_and_clean(false, &cleaned));
}
END_TEST

START_TEST(test_status_messages)
{
    ck_assert_int_eq(tdm_fail(TDM_E_IO, "a.tsv: %s", "gone"), TDM_E_IO);
    ck_assert_int_eq(tdm_fail_context(TDM_E_DATA, "step %d", 3), TDM_E_DATA);
    ck_assert_str_eq(tdm_error_message(), "step 3: a.tsv: gone");
    /* The record may be an argument of its own successor. */
    ck_assert_int_eq(tdm_fail(TDM_E_IO, "<%s>", tdm_error_message()), TDM_E_IO);
    ck_assert_str_eq(tdm_error_message(), "<step 3: a.tsv: gone>");

    char longer[3 * TDM_ERROR_BYTES];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    ck_assert_int_eq(tdm_fail(TDM_E_IO, "%s", longer), TDM_E_IO);
    ck_assert_uint_eq(strlen(tdm_error_message()), TDM_ERROR_BYTES - 1);
    ck_assert_int_eq(tdm_fail_context(TDM_E_IO, "head"), TDM_E_IO);
    ck_assert_int_eq(strncmp(tdm_error_message(), "head: xxx", 9), 0);
}
END_TEST

static void *fail_in_thread(void *error)
{
    tdm_status status = tdm_fail(TDM_E_NUMERIC, "from the worker");
    tdm_error_keep(error, status);
    status = tdm_fail(TDM_E_IO, "a later one");
    tdm_error_keep(error, status);
    return NULL;
}

START_TEST(test_printable)
{
    char shown[12];
    tdm_printable("caf\xe9\n", shown, sizeof shown);
    ck_assert_str_eq(shown, "caf\\xe9\\x0a");
    tdm_printable("cafe\xe9\n", shown, sizeof shown);
    ck_assert_str_eq(shown, "cafe\\xe9");
    tdm_printable("", shown, sizeof shown);
    ck_assert_str_eq(shown, "");
}
END_TEST

START_TEST(test_status_across_threads)
{
    tdm_error error = {.status = TDM_OK};
    pthread_t thread;
    ck_assert_int_eq(tdm_fail(TDM_E_ARG, "mine"), TDM_E_ARG);
    ck_assert_int_eq(pthread_create(&thread, NULL, fail_in_thread, &error), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_str_eq(tdm_error_message(), "mine");
    ck_assert_int_eq(tdm_error_raise(&error), TDM_E_NUMERIC);
    ck_assert_str_eq(tdm_error_message(), "from the worker");
}
END_TEST

static char logged[2][64];

static void log_sink(void *context, tdm_log_level level, const char *message)
{
    snprintf(logged[level], sizeof logged[level], "%s%s", (const char *)context, message);
}

START_TEST(test_log)
{
    tdm_warn("dropped");
    tdm_log_set_sink(log_sink, "> ");
    tdm_info("step %d", 1);
    tdm_warn("slow");
    ck_assert_str_eq(logged[TDM_LOG_INFO], "> step 1");
    ck_assert_str_eq(logged[TDM_LOG_WARNING], "> slow");
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

START_TEST(test_memory_alloc)
{
    int64_t calls = tdm_memory_stats_get().allocations;
    unsigned char *bytes;
    ck_assert_ok(tdm_alloc(1000, 3, &bytes));
    ck_assert_uint_eq((uintptr_t)bytes % TDM_ALIGNMENT, 0);
    for (int i = 0; i < 3000; i++)
        ck_assert_int_eq(bytes[i], 0);
    tdm_memory_stats stats = tdm_memory_stats_get();
    ck_assert_int_eq(stats.allocations, calls + 1);
    ck_assert_int_ge(stats.live_bytes, 3000);
    tdm_free(bytes);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
    ck_assert_int_ge(tdm_memory_stats_get().peak_bytes, stats.live_bytes);

    ck_assert_ok(tdm_alloc(0, 8, &bytes));
    ck_assert_ptr_null(bytes);
    tdm_free(bytes);
    bytes = (unsigned char *)logged;
    ck_assert_fails(tdm_alloc(SIZE_MAX / 2, 3, &bytes), TDM_E_NOMEM, "out of memory");
    ck_assert_ptr_null(bytes);
    ck_assert_fails(tdm_alloc(SIZE_MAX, 1, &bytes), TDM_E_NOMEM, "out of memory");
}
END_TEST

START_TEST(test_memory_grow)
{
    int *items = NULL;
    size_t capacity = 0;
    int64_t calls = tdm_memory_stats_get().allocations;
    for (int i = 0; i < 10000; i++) {
        ck_assert_ok(tdm_grow(&items, &capacity, (size_t)i + 1, sizeof *items));
        items[i] = i;
    }
    for (int i = 0; i < 10000; i++)
        ck_assert_int_eq(items[i], i);
    /* Doubling from 4: 4, 8, …, 16384. */
    ck_assert_int_le(tdm_memory_stats_get().allocations - calls, 13);
    int *before = items;
    tdm_memory_fail_at(1, false);
    ck_assert_fails(tdm_grow(&items, &capacity, capacity + 1, sizeof *items), TDM_E_NOMEM,
                    "out of memory");
    ck_assert_ptr_eq(items, before);
    ck_assert_int_eq(items[9999], 9999);
    ck_assert_fails(tdm_grow(&items, &capacity, SIZE_MAX / 2, sizeof *items), TDM_E_NOMEM,
                    "out of memory");
    ck_assert_ok(tdm_grow(&items, &capacity, capacity, sizeof *items));
    tdm_free(items);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

START_TEST(test_memory_strings)
{
    char *text;
    ck_assert_ok(tdm_strdup("recipe", &text));
    ck_assert_str_eq(text, "recipe");
    tdm_free(text);
    ck_assert_ok(tdm_strndup("recipe", 3, &text));
    ck_assert_str_eq(text, "rec");
    tdm_free(text);
    ck_assert_ok(tdm_format(&text, "%s-%03d", "step", 7));
    ck_assert_str_eq(text, "step-007");
    tdm_free(text);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

START_TEST(test_memory_fail_at)
{
    static const struct {
        bool persistent;
        bool fails[5]; /* with the third to fail */
    } cases[] = {{false, {false, false, true, false, false}},
                 {true, {false, false, true, true, true}}};
    for (size_t c = 0; c < 2; c++) {
        tdm_memory_fail_at(3, cases[c].persistent);
        for (int i = 0; i < 5; i++) {
            char *memory;
            tdm_status status = tdm_alloc(1, 1, &memory);
            ck_assert_int_eq(status, cases[c].fails[i] ? TDM_E_NOMEM : TDM_OK);
            ck_assert_int_eq(memory == NULL, cases[c].fails[i]);
            tdm_free(memory);
        }
        tdm_memory_fail_at(0, false);
        char *memory;
        ck_assert_ok(tdm_alloc(1, 1, &memory));
        tdm_free(memory);
    }
}
END_TEST

/* ---- random numbers -------------------------------------------------------------------------- */

/* kat_vectors of Random123 (D. E. Shaw Research), philox4x32 with 10 rounds. */
START_TEST(test_philox_vectors)
{
    static const struct {
        tdm_philox_words counter;
        tdm_philox_key key;
        uint32_t expected[4];
    } vectors[] = {
        {{{0, 0, 0, 0}}, {{0, 0}}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
         {{0xffffffff, 0xffffffff}},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
         {{0xa4093822, 0x299f31d0}},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        tdm_philox_words words = tdm_philox(vectors[i].key, vectors[i].counter);
        for (int w = 0; w < 4; w++)
            ck_assert_uint_eq(words.words[w], vectors[i].expected[w]);
    }
}
END_TEST

START_TEST(test_random_layout)
{
    tdm_philox_key key = tdm_philox_make_key(0x123456789abcdef0, TDM_PURPOSE_DROPOUT, 0x10007);
    ck_assert_uint_eq(key.words[0], 0x12345678 ^ 0x9abcdef0);
    ck_assert_uint_eq(key.words[1], 4u << 16 | 7u);
    tdm_philox_words counter = {{25, 0x55667788, 0x11223344, 3}};
    tdm_philox_words words = tdm_philox(key, counter);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_uint_eq(tdm_random(key, 0x1122334455667788, 3, 100 + i), words.words[i]);
}
END_TEST

START_TEST(test_uniform)
{
    ck_assert(tdm_uniform(0) == 0.0f);
    ck_assert(tdm_uniform(0xffffffff) == 1.0f - 0x1p-24f);
    ck_assert(tdm_uniform(0x80000000) == 0.5f);
    ck_assert(tdm_uniform(0x1ff) == 0x1p-24f);
}
END_TEST

/* ---- tensors --------------------------------------------------------------------------------- */

START_TEST(test_dtypes)
{
    static const struct {
        tdm_dtype dtype;
        const char *name;
        size_t size;
    } cases[] = {{TDM_F32, "F32", 4}, {TDM_BF16, "BF16", 2}, {TDM_F16, "F16", 2},
                 {TDM_F64, "F64", 8}, {TDM_I32, "I32", 4},   {TDM_U32, "U32", 4},
                 {TDM_I64, "I64", 8}, {TDM_U64, "U64", 8}};
    tdm_dtype found;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_str_eq(tdm_dtype_name(cases[i].dtype), cases[i].name);
        ck_assert_uint_eq(tdm_dtype_size(cases[i].dtype), cases[i].size);
        ck_assert_ok(tdm_dtype_from_name(cases[i].name, &found));
        ck_assert_int_eq(found, cases[i].dtype);
    }
    ck_assert_fails(tdm_dtype_from_name("f32", &found), TDM_E_FORMAT, "\"f32\"");
    ck_assert_int_eq(tdm_shape_elements(&(tdm_shape){0}), 1);
    ck_assert_int_eq(tdm_shape_elements(&(tdm_shape){3, {2, 3, 5}}), 30);
}
END_TEST

/* In vectors or not, at any beginning and for any count, also where the element wraps. */
START_TEST(test_filled_numbers_are_the_same)
{
    static const uint32_t firsts[] = {0, 1, 7, 1000, UINT32_MAX - 3};
    uint32_t words[4 * 40];
    tdm_philox_key key = tdm_philox_make_key(0x123456789abcdefu, TDM_PURPOSE_MASK, 3);
    for (int level = 0; level < 3; level++) {
        if (!tdm_random_fill_force(level))
            continue;
        for (size_t f = 0; f < sizeof firsts / sizeof firsts[0]; f++) {
            for (int64_t groups = 1; groups <= 40; groups += 13) {
                bool good = true;
                tdm_random_fill(key, 0xfedcba9876543210u, 77, firsts[f], groups, words);
                for (uint32_t i = 0; i < 4 * groups; i++) {
                    tdm_philox_words four =
                        tdm_random4(key, 0xfedcba9876543210u, 77, firsts[f] + i / 4);
                    good = good && words[i] == four.words[i % 4];
                }
                ck_assert(good);
            }
        }
    }
    ck_assert(tdm_random_fill_force(-1));
    ck_assert(!tdm_random_fill_force(3));
}
END_TEST

START_TEST(test_streams_are_the_elements)
{
    tdm_philox_key key = tdm_philox_make_key(9, TDM_PURPOSE_SEQUENCES, 0);
    tdm_random_stream stream = {.key = key, .sample = 5, .epoch = 6};
    for (uint32_t i = 0; i < 11; i++)
        ck_assert_uint_eq(tdm_random_next(&stream), tdm_random(key, 5, 6, i));
    ck_assert_uint_eq(tdm_random_below(0, 7), 0);
    ck_assert_uint_eq(tdm_random_below(UINT32_MAX, 7), 6);
}
END_TEST

TDM_CHECK_MAIN(test_filled_numbers_are_the_same, test_streams_are_the_elements, test_status_texts,
               test_status_macros, test_status_messages, test_printable, test_status_across_threads,
               test_log, test_memory_alloc, test_memory_grow, test_memory_strings,
               test_memory_fail_at, test_philox_vectors, test_random_layout, test_uniform,
               test_dtypes)
