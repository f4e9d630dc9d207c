/* The loops over tokens that making batches spends its time in, in the widest vectors that the CPU
 * has. All counts may be 0. */
#ifndef TDM_TEXT_TOKEN_LOOPS_H
#define TDM_TEXT_TOKEN_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tdm_token_loops {
    void (*narrow)(const uint32_t *from, int64_t count, uint16_t *to);
    void (*widen)(const uint16_t *from, int64_t count, uint32_t *to);
    /* to[i] = value */
    void (*fill)(uint32_t *to, int64_t count, uint32_t value);
    /* to[i] = first + i */
    void (*count_on)(uint32_t *to, int64_t count, uint32_t first);
    /* 1 where an id is one of five, else 0. */
    void (*find)(const uint32_t *ids, int64_t count, const uint32_t five[5], uint8_t *found);
    /* Where never[i], 0; else 1 where marks[i] has bit 0 or never[i - 1], else 2. Returns how often
     * 1; never[-1] is there. `marks` NULL: as if all had bit 0. */
    int64_t (*units)(const uint8_t *never, const uint8_t *marks, int64_t count, uint8_t *units);
    /* Lists the i from `first` to end - 1 where marks[i] has one of the bits `wanted`; returns how
     * many.
     */
    int64_t (*list)(const uint8_t *marks, int64_t first, int64_t end, uint8_t wanted,
                    uint32_t *found);
} tdm_token_loops;

/* `vectors` false: those that any CPU has, for tests. */
const tdm_token_loops *tdm_token_loops_choose(bool vectors);

#endif
