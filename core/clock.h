/* Time that only goes forward. */
#ifndef TDM_CORE_CLOCK_H
#define TDM_CORE_CLOCK_H

#include <time.h>

static inline double tdm_clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* That the calling thread has computed. */
static inline double tdm_clock_thread_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
