/* Loops that are there for several instruction sets: level 0 runs anywhere, higher ones are wider.
 * The widest that the CPU has is chosen at the first call; any thread may ask. */
#ifndef TDM_CORE_CPU_LEVEL_H
#define TDM_CORE_CPU_LEVEL_H

#include <stdatomic.h>
#include <stdbool.h>

typedef struct tdm_cpu_level {
    int count;                    /* of levels */
    bool (*supported)(int level); /* by this CPU; 0 is */
    _Atomic(int) chosen;          /* -1: not yet */
} tdm_cpu_level;

static inline int tdm_cpu_level_get(tdm_cpu_level *levels)
{
    int level = atomic_load_explicit(&levels->chosen, memory_order_relaxed);
    if (level < 0) {
        level = levels->count - 1;
        while (!levels->supported(level))
            level--;
        atomic_store_explicit(&levels->chosen, level, memory_order_relaxed);
    }
    return level;
}

/* Tests: -1 lets the CPU decide again. False where the CPU, or the build, lacks the level. */
static inline bool tdm_cpu_level_force(tdm_cpu_level *levels, int level)
{
    if (level >= levels->count || (level >= 0 && !levels->supported(level)))
        return false;
    atomic_store(&levels->chosen, level);
    return true;
}

#endif
