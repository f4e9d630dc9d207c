#include "core/memory.h"
#include "core/pool.h"
#include "tests/support/check_main.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

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

TDM_CHECK_MAIN(test_pool_for, test_pool_jobs_with_nested_loops, test_pool_priorities,
               test_pool_help_from_jobs, test_pool_for_in_a_tile, test_pool_outside_threads,
               test_pool_create_and_destroy)
