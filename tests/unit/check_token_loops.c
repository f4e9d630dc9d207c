/* The loops over tokens do what they say, with any vectors, for any count, and write no further. */
#include "tests/support/check_main.h"
#include "text/token_loops.h"

#include <string.h>

#define MOST 300

static uint32_t ids[MOST];
static uint8_t never[MOST + 1], marks[MOST];

static void make_inputs(void)
{
    uint64_t state = 5;
    for (int i = 0; i < MOST; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        ids[i] = (uint32_t)(state >> 40) % 60000;
        if ((state >> 33) % 7 == 0)
            ids[i] = (uint32_t)(state >> 36) % 8;
        marks[i] = (uint8_t)(state >> 60);
        never[i + 1] = (state >> 50) % 5 == 0;
    }
    never[0] = 1;
}

static void check_copies(const tdm_token_loops *loops, int64_t count)
{
    uint16_t narrow[MOST + 1];
    uint32_t wide[MOST + 1], filled[MOST + 1], counted[MOST + 1];
    bool good = true;
    narrow[count] = 7;
    wide[count] = filled[count] = counted[count] = 7;
    loops->narrow(ids, count, narrow);
    loops->widen(narrow, count, wide);
    loops->fill(filled, count, 123456);
    loops->count_on(counted, count, 70000);
    for (int64_t i = 0; i < count; i++)
        good = good && narrow[i] == ids[i] && wide[i] == ids[i] && filled[i] == 123456 &&
               counted[i] == 70000 + i;
    ck_assert(good);
    ck_assert(narrow[count] == 7 && wide[count] == 7 && filled[count] == 7 && counted[count] == 7);
}

static void check_finds(const tdm_token_loops *loops, int64_t count)
{
    static const uint32_t five[5] = {0, 7, 3, 3, 59999};
    uint8_t found[MOST + 1];
    bool good = true;
    found[count] = 9;
    loops->find(ids, count, five, found);
    for (int64_t i = 0; i < count; i++) {
        bool expected = ids[i] == 0 || ids[i] == 7 || ids[i] == 3 || ids[i] == 59999;
        good = good && found[i] == expected;
    }
    ck_assert(good);
    ck_assert_uint_eq(found[count], 9);
}

static void check_units(const tdm_token_loops *loops, int64_t count, bool words)
{
    uint8_t units[MOST + 1];
    int64_t begins = 0;
    bool good = true;
    units[count] = 9;
    int64_t told = loops->units(never + 1, words ? marks : NULL, count, units);
    for (int64_t i = 0; i < count; i++) {
        bool begin = !words || (marks[i] & 1) != 0 || never[i] != 0;
        good = good && units[i] == (never[i + 1] != 0 ? 0 : begin ? 1 : 2);
        begins += units[i] == 1;
    }
    ck_assert(good);
    ck_assert_int_eq(told, begins);
    ck_assert_uint_eq(units[count], 9);
}

static void check_list(const tdm_token_loops *loops, int64_t first, int64_t end)
{
    uint32_t found[MOST + 1];
    int64_t expected = 0;
    bool good = true;
    found[0] = 7;
    int64_t count = loops->list(marks, first, end, 6, found);
    for (int64_t i = first; i < end; i++) {
        if ((marks[i] & 6) == 0)
            continue;
        good = good && expected < count && found[expected] == i;
        expected++;
    }
    ck_assert(good);
    ck_assert_int_eq(count, expected);
}

START_TEST(test_loops_with_and_without_vectors)
{
    make_inputs();
    for (int vectors = 0; vectors < 2; vectors++) {
        const tdm_token_loops *loops = tdm_token_loops_choose(vectors);
        for (int64_t count = 0; count <= MOST; count++) {
            check_copies(loops, count);
            check_finds(loops, count);
            check_units(loops, count, false);
            check_units(loops, count, true);
            check_list(loops, 0, count);
            check_list(loops, count / 3, count);
        }
    }
}
END_TEST

TDM_CHECK_MAIN(test_loops_with_and_without_vectors)
