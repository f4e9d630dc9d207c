/* A queue a priority under one lock. Tiles of tdm_pool_for are claimed from an atomic counter, so
 * the lock is taken a few times an op, not once a tile. Threads that find nothing spin for a few
 * microseconds first: the next op of a step usually follows at once. */
#include "core/pool.h"

#include "core/memory.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

typedef struct job_queue {
    tdm_job *first;
    tdm_job **last;
} job_queue;

/* One tdm_pool_for. It lies on the caller's stack: `entered` workers may look at it, and the caller
 * leaves when no tile is unclaimed and no worker is inside. */
typedef struct tile_loop {
    void (*tile)(void *context, int64_t index);
    void *context;
    int64_t count;
    _Atomic int64_t next;
    _Atomic int entered;
    struct tile_loop *next_loop;
} tile_loop;

struct tdm_pool {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    job_queue queues[TDM_PRIORITIES];
    tile_loop *loops; /* those that may still have unclaimed tiles */
    bool stop;
    _Atomic uint64_t changes; /* bumped with every submit, so that spinning needs no lock */
    int threads;
    int started;
    pthread_t *workers;
};

#define SPINS 2000

static _Thread_local int thread_index;

typedef struct worker_start {
    tdm_pool *pool;
    int index;
} worker_start;

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void run_tiles(tile_loop *loop)
{
    for (;;) {
        int64_t index = atomic_fetch_add(&loop->next, 1);
        if (index >= loop->count)
            return;
        loop->tile(loop->context, index);
    }
}

/* With the lock held: unlinks loops without unclaimed tiles and enters the first that has some. */
static tile_loop *enter_loop(tdm_pool *pool)
{
    while (pool->loops != NULL) {
        tile_loop *loop = pool->loops;
        if (atomic_load(&loop->next) < loop->count) {
            atomic_fetch_add(&loop->entered, 1);
            return loop;
        }
        pool->loops = loop->next_loop;
    }
    return NULL;
}

static tdm_job *take_job(tdm_pool *pool)
{
    for (int priority = 0; priority < TDM_PRIORITIES; priority++) {
        job_queue *queue = &pool->queues[priority];
        tdm_job *job = queue->first;
        if (job == NULL)
            continue;
        queue->first = job->next;
        if (queue->first == NULL)
            queue->last = &queue->first;
        return job;
    }
    return NULL;
}

static void announce(tdm_pool *pool)
{
    atomic_fetch_add(&pool->changes, 1);
    pthread_cond_broadcast(&pool->wake);
}

/* With the lock held; releases it while work runs. False where there was nothing to do. */
static bool run_something(tdm_pool *pool)
{
    tile_loop *loop = enter_loop(pool);
    if (loop != NULL) {
        pthread_mutex_unlock(&pool->lock);
        run_tiles(loop);
        atomic_fetch_sub_explicit(&loop->entered, 1, memory_order_release);
        pthread_mutex_lock(&pool->lock);
        return true;
    }
    tdm_job *job = take_job(pool);
    if (job == NULL)
        return false;
    pthread_mutex_unlock(&pool->lock);
    job->run(job);
    pthread_mutex_lock(&pool->lock);
    announce(pool);
    return true;
}

/* Unlocks, waits a little for a change without sleeping, and locks again. */
static bool spin_for_change(tdm_pool *pool)
{
    uint64_t seen = atomic_load(&pool->changes);
    pthread_mutex_unlock(&pool->lock);
    bool changed = false;
    for (int i = 0; i < SPINS && !changed; i++) {
        relax();
        changed = atomic_load_explicit(&pool->changes, memory_order_relaxed) != seen;
    }
    pthread_mutex_lock(&pool->lock);
    return changed || atomic_load(&pool->changes) != seen;
}

static void *worker_main(void *argument)
{
    worker_start start = *(worker_start *)argument;
    tdm_free(argument);
    tdm_pool *pool = start.pool;
    thread_index = start.index;
    pthread_mutex_lock(&pool->lock);
    while (!pool->stop) {
        if (run_something(pool) || spin_for_change(pool))
            continue;
        pthread_cond_wait(&pool->wake, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static int usable_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    return CPU_COUNT(&set);
}

static tdm_status start_workers(tdm_pool *pool)
{
    for (int index = 1; index < pool->threads; index++) {
        worker_start *start;
        TDM_TRY(tdm_alloc(1, sizeof *start, &start));
        *start = (worker_start){.pool = pool, .index = index};
        int error = pthread_create(&pool->workers[index - 1], NULL, worker_main, start);
        if (error != 0) {
            tdm_free(start);
            return tdm_fail(TDM_E_NOMEM,
                            "thread %d of %d could not be started (error %d): lower "
                            "train.threads",
                            index + 1, pool->threads, error);
        }
        pool->started++;
    }
    return TDM_OK;
}

tdm_status tdm_pool_create(int threads, tdm_pool **out)
{
    tdm_pool *pool = NULL;
    *out = NULL;
    TDM_TRY(tdm_alloc(1, sizeof *pool, &pool));
    pool->threads = threads > 0 ? threads : usable_cores();
    pthread_mutex_init(&pool->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    for (int i = 0; i < TDM_PRIORITIES; i++)
        pool->queues[i].last = &pool->queues[i].first;
    tdm_status status;
    TDM_TRY_GOTO(tdm_alloc((size_t)pool->threads, sizeof *pool->workers, &pool->workers), fail);
    TDM_TRY_GOTO(start_workers(pool), fail);
    *out = pool;
    return TDM_OK;
fail:
    tdm_pool_destroy(pool);
    return status;
}

void tdm_pool_destroy(tdm_pool *pool)
{
    if (pool == NULL)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    announce(pool);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->started; i++)
        pthread_join(pool->workers[i], NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    tdm_free(pool->workers);
    tdm_free(pool);
}

int tdm_pool_threads(const tdm_pool *pool)
{
    return pool->threads;
}

int tdm_pool_thread_index(void)
{
    return thread_index;
}

void tdm_pool_submit(tdm_pool *pool, tdm_priority priority, tdm_job *job)
{
    job_queue *queue = &pool->queues[priority];
    pthread_mutex_lock(&pool->lock);
    job->next = NULL;
    *queue->last = job;
    queue->last = &job->next;
    announce(pool);
    pthread_mutex_unlock(&pool->lock);
}

void tdm_pool_for(tdm_pool *pool, int64_t count, void (*tile)(void *context, int64_t index),
                  void *context)
{
    if (pool->threads == 1 || count <= 1) {
        for (int64_t i = 0; i < count; i++)
            tile(context, i);
        return;
    }
    tile_loop loop = {.tile = tile, .context = context, .count = count};
    pthread_mutex_lock(&pool->lock);
    loop.next_loop = pool->loops;
    pool->loops = &loop;
    announce(pool);
    pthread_mutex_unlock(&pool->lock);

    run_tiles(&loop);

    /* No worker enters once the loop is unlinked. */
    pthread_mutex_lock(&pool->lock);
    for (tile_loop **link = &pool->loops; *link != NULL; link = &(*link)->next_loop) {
        if (*link == &loop) {
            *link = loop.next_loop;
            break;
        }
    }
    pthread_mutex_unlock(&pool->lock);
    for (int spins = 0; atomic_load_explicit(&loop.entered, memory_order_acquire) != 0; spins++) {
        if (spins < SPINS)
            relax();
        else
            sched_yield();
    }
}

void tdm_pool_help_until(tdm_pool *pool, bool (*done)(void *context), void *context)
{
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        uint64_t seen = atomic_load(&pool->changes);
        pthread_mutex_unlock(&pool->lock);
        bool finished = done(context);
        pthread_mutex_lock(&pool->lock);
        if (finished)
            break;
        if (run_something(pool) || atomic_load(&pool->changes) != seen)
            continue;
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += 50000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        pthread_cond_timedwait(&pool->wake, &pool->lock, &until);
    }
    pthread_mutex_unlock(&pool->lock);
}

void tdm_pool_wake(tdm_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    announce(pool);
    pthread_mutex_unlock(&pool->lock);
}
