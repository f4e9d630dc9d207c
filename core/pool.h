/* The one thread pool. A pool of n threads is n - 1 workers and the thread that created it: that
 * one works too, whenever it waits. So a pool of 1 starts no thread, and results never depend on n.
 */
#ifndef TDM_CORE_POOL_H
#define TDM_CORE_POOL_H

#include "core/status.h"

#include <stdbool.h>

typedef struct tdm_pool tdm_pool;

/* Jobs of a lower number go first. */
typedef enum tdm_priority {
    TDM_PRIORITY_STEP = 0,       /* what the device waits for: tiles of ops */
    TDM_PRIORITY_BATCH = 1,      /* reading, parsing, making batches */
    TDM_PRIORITY_BACKGROUND = 2, /* cache files */
} tdm_priority;
#define TDM_PRIORITIES 3

/* A job lives in its owner's storage until it has run. */
typedef struct tdm_job {
    void (*run)(struct tdm_job *job);
    struct tdm_job *next;
} tdm_job;

/* `threads` 0: one a core that this process may use. */
TDM_MUST_CHECK tdm_status tdm_pool_create(int threads, tdm_pool **out);

/* Waits for running jobs; queued jobs are dropped. NULL is allowed. */
void tdm_pool_destroy(tdm_pool *pool);

int tdm_pool_threads(const tdm_pool *pool);

/* 0 .. threads - 1: which of the pool's threads runs this; 0 for any thread outside the pool. */
int tdm_pool_thread_index(void);

/* From any thread. */
void tdm_pool_submit(tdm_pool *pool, tdm_priority priority, tdm_job *job);

/* Calls tile(context, i) for i in [0, count), in any order, on the calling thread and on idle
 * workers, and returns when all have ended. */
void tdm_pool_for(tdm_pool *pool, int64_t count, void (*tile)(void *context, int64_t index),
                  void *context);

/* Runs queued jobs on the calling thread until done(context) is true, and sleeps while there is
 * nothing to run. `done` is called without locks; it is asked again after every job that ends
 * anywhere, after tdm_pool_wake(), and every 50 ms. */
void tdm_pool_help_until(tdm_pool *pool, bool (*done)(void *context), void *context);

void tdm_pool_wake(tdm_pool *pool);

#endif
