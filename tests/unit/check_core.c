/* The ground everything stands on: status, memory, the thread pool, random numbers. */
#include "core/log.h"
#include "core/memory.h"
#include "core/pool.h"
#include "core/rng.h"
#include "core/tensor.h"
#include "tests/support/check_main.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- status -------------------------------------------------------------------------------- */

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

/* ---- memory -------------------------------------------------------------------------------- */

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

/* ---- pool ---------------------------------------------------------------------------------- */

#define TILES 1000

static void on_pools(void (*check)(tdm_pool *pool))
{
    static const int threads[] = {1, 2, 16};
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        tdm_pool *pool;
        ck_assert_ok(tdm_pool_create(threads[i], &pool));
        ck_assert_int_eq(tdm_pool_threads(pool), threads[i]);
        ck_assert_int_eq(tdm_pool_thread_index(), 0);
        check(pool);
        tdm_pool_destroy(pool);
        ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
    }
}

typedef struct tile_work {
    tdm_pool *pool;
    int64_t calls[TILES]; /* not atomic: a tile run twice at once is a race that tsan reports */
    _Atomic int bad_index;
} tile_work;

static void count_tile(void *context, int64_t index)
{
    tile_work *work = context;
    work->calls[index]++;
    int thread = tdm_pool_thread_index();
    if (thread < 0 || thread >= tdm_pool_threads(work->pool))
        atomic_fetch_add(&work->bad_index, 1);
}

static void check_pool_for(tdm_pool *pool)
{
    static const int64_t counts[] = {0, 1, 2, 17, TILES};
    for (int round = 0; round < 200; round++) {
        tile_work work = {.pool = pool};
        int64_t count = counts[round % 5];
        tdm_pool_for(pool, count, count_tile, &work);
        for (int64_t i = 0; i < TILES; i++)
            ck_assert_int_eq(work.calls[i], i < count ? 1 : 0);
        ck_assert_int_eq(atomic_load(&work.bad_index), 0);
    }
}

START_TEST(test_pool_for)
{
    on_pools(check_pool_for);
}
END_TEST

typedef struct pool_job {
    tdm_job job;
    tdm_pool *pool;
    int number;
    int64_t sum; /* of the tiles of a nested loop */
    int64_t tiles[64];
    _Atomic int *finished;
    _Atomic int *order; /* order[k]: the number of the job that ran as the k-th; may be NULL */
} pool_job;

static void nested_tile(void *context, int64_t index)
{
    pool_job *job = context;
    job->tiles[index] = index + job->number;
}

static void run_pool_job(tdm_job *base)
{
    pool_job *job = (pool_job *)base;
    tdm_pool_for(job->pool, 64, nested_tile, job);
    for (int i = 0; i < 64; i++)
        job->sum += job->tiles[i];
    /* The owner may free the job as soon as it is counted. */
    _Atomic int *order = job->order;
    int number = job->number;
    int place = atomic_fetch_add(job->finished, 1);
    if (order != NULL)
        atomic_store(&order[place], number);
}

typedef struct target {
    _Atomic int *finished;
    int wanted;
} target;

static bool reached(void *context)
{
    const target *wait = context;
    return atomic_load(wait->finished) >= wait->wanted;
}

/* Jobs of all priorities, each with a loop of its own inside, while the caller loops and helps. */
static void check_pool_jobs_with_nested_loops(tdm_pool *pool)
{
    enum { JOBS = 60 };
    static pool_job jobs[JOBS];
    for (int round = 0; round < 20; round++) {
        _Atomic int finished = 0;
        for (int i = 0; i < JOBS; i++) {
            jobs[i] = (pool_job){
                .job.run = run_pool_job, .pool = pool, .number = i, .finished = &finished};
            tdm_pool_submit(pool, (tdm_priority)(i % TDM_PRIORITIES), &jobs[i].job);
        }
        tile_work work = {.pool = pool};
        tdm_pool_for(pool, TILES, count_tile, &work);
        target wait = {&finished, JOBS};
        tdm_pool_help_until(pool, reached, &wait);
        for (int i = 0; i < JOBS; i++)
            ck_assert_int_eq(jobs[i].sum, 64 * 63 / 2 + 64 * i);
        for (int i = 0; i < TILES; i++)
            ck_assert_int_eq(work.calls[i], 1);
    }
}

START_TEST(test_pool_jobs_with_nested_loops)
{
    on_pools(check_pool_jobs_with_nested_loops);
}
END_TEST

/* Alone, the pool's thread runs jobs by priority, and in order within one. */
START_TEST(test_pool_priorities)
{
    static const tdm_priority priorities[] = {TDM_PRIORITY_BACKGROUND, TDM_PRIORITY_BATCH,
                                              TDM_PRIORITY_STEP,       TDM_PRIORITY_BACKGROUND,
                                              TDM_PRIORITY_STEP,       TDM_PRIORITY_BATCH};
    static const int expected[] = {2, 4, 1, 5, 0, 3};
    pool_job jobs[6];
    _Atomic int order[6];
    _Atomic int finished = 0;
    tdm_pool *pool;
    ck_assert_ok(tdm_pool_create(1, &pool));
    for (int i = 0; i < 6; i++) {
        jobs[i] = (pool_job){.job.run = run_pool_job,
                             .pool = pool,
                             .number = i,
                             .finished = &finished,
                             .order = order};
        tdm_pool_submit(pool, priorities[i], &jobs[i].job);
    }
    target wait = {&finished, 6};
    tdm_pool_help_until(pool, reached, &wait);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(atomic_load(&order[i]), expected[i]);
    tdm_pool_destroy(pool);
}
END_TEST

typedef struct waiting_job {
    tdm_job job;
    tdm_pool *pool;
    pool_job inner;
    _Atomic int inner_finished;
    _Atomic int *finished;
} waiting_job;

static void run_waiting_job(tdm_job *base)
{
    waiting_job *job = (waiting_job *)base;
    job->inner = (pool_job){
        .job.run = run_pool_job, .pool = job->pool, .number = 1, .finished = &job->inner_finished};
    tdm_pool_submit(job->pool, TDM_PRIORITY_BACKGROUND, &job->inner.job);
    target wait = {&job->inner_finished, 1};
    tdm_pool_help_until(job->pool, reached, &wait);
    atomic_fetch_add(job->finished, 1);
}

/* Jobs that wait for jobs of their own must not use up the threads. */
static void check_pool_help_from_jobs(tdm_pool *pool)
{
    enum { JOBS = 40 };
    static waiting_job jobs[JOBS];
    _Atomic int finished = 0;
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (waiting_job){.job.run = run_waiting_job, .pool = pool, .finished = &finished};
        tdm_pool_submit(pool, TDM_PRIORITY_BATCH, &jobs[i].job);
    }
    target wait = {&finished, JOBS};
    tdm_pool_help_until(pool, reached, &wait);
    for (int i = 0; i < JOBS; i++)
        ck_assert_int_eq(jobs[i].inner.sum, 64 * 63 / 2 + 64);
}

START_TEST(test_pool_help_from_jobs)
{
    on_pools(check_pool_help_from_jobs);
}
END_TEST

typedef struct loop_nest {
    tdm_pool *pool;
    int64_t sums[8];
} loop_nest;

static void outer_tile(void *context, int64_t index)
{
    loop_nest *nest = context;
    pool_job job = {.number = (int)index};
    tdm_pool_for(nest->pool, 64, nested_tile, &job);
    for (int i = 0; i < 64; i++)
        nest->sums[index] += job.tiles[i];
}

static void check_pool_for_in_a_tile(tdm_pool *pool)
{
    for (int round = 0; round < 100; round++) {
        loop_nest nest = {.pool = pool};
        tdm_pool_for(pool, 8, outer_tile, &nest);
        for (int i = 0; i < 8; i++)
            ck_assert_int_eq(nest.sums[i], 64 * 63 / 2 + 64 * i);
    }
}

START_TEST(test_pool_for_in_a_tile)
{
    on_pools(check_pool_for_in_a_tile);
}
END_TEST

typedef struct outside_thread {
    tdm_pool *pool;
    _Atomic int *finished;
} outside_thread;

static void *wake_from_outside(void *argument)
{
    outside_thread *thread = argument;
    tile_work *work;
    if (tdm_alloc(1, sizeof *work, &work) != TDM_OK)
        return NULL;
    work->pool = thread->pool;
    tdm_pool_for(thread->pool, TILES, count_tile, work);
    bool good = true;
    for (int i = 0; i < TILES; i++)
        good = good && work->calls[i] == 1;
    tdm_free(work);
    if (good)
        atomic_fetch_add(thread->finished, 1);
    tdm_pool_wake(thread->pool);
    return NULL;
}

/* Threads outside of the pool may loop on it and wake who waits in it. */
static void check_pool_outside_threads(tdm_pool *pool)
{
    pthread_t threads[4];
    _Atomic int finished = 0;
    outside_thread thread = {pool, &finished};
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, wake_from_outside, &thread), 0);
    target wait = {&finished, 4};
    tdm_pool_help_until(pool, reached, &wait);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
}

START_TEST(test_pool_outside_threads)
{
    on_pools(check_pool_outside_threads);
}
END_TEST

START_TEST(test_pool_create_and_destroy)
{
    tdm_pool *pool;
    ck_assert_ok(tdm_pool_create(0, &pool));
    ck_assert_int_ge(tdm_pool_threads(pool), 1);
    tdm_pool_destroy(pool);
    tdm_pool_destroy(NULL);

    /* Queued jobs are dropped: alone, nobody has run this one. */
    _Atomic int finished = 0;
    pool_job job = {.job.run = run_pool_job, .finished = &finished};
    ck_assert_ok(tdm_pool_create(1, &pool));
    tdm_pool_submit(pool, TDM_PRIORITY_STEP, &job.job);
    tdm_pool_destroy(pool);
    ck_assert_int_eq(atomic_load(&finished), 0);

    for (int64_t n = 1; n <= 5; n++) {
        tdm_memory_fail_at(n, false);
        ck_assert_fails(tdm_pool_create(4, &pool), TDM_E_NOMEM, "out of memory");
        ck_assert_ptr_null(pool);
    }
    tdm_memory_fail_at(0, false);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

/* ---- random numbers ------------------------------------------------------------------------ */

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

/* ---- tensors ------------------------------------------------------------------------------- */

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

TDM_CHECK_MAIN(test_status_texts, test_status_macros, test_status_messages,
               test_status_across_threads, test_log, test_memory_alloc, test_memory_grow,
               test_memory_strings, test_memory_fail_at, test_pool_for,
               test_pool_jobs_with_nested_loops, test_pool_priorities, test_pool_help_from_jobs,
               test_pool_for_in_a_tile, test_pool_outside_threads, test_pool_create_and_destroy,
               test_philox_vectors, test_random_layout, test_uniform, test_dtypes)
