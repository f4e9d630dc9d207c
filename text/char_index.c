#include "text/char_index.h"

#include "core/memory.h"
#include "text/unicode.h"

#include <string.h>

#define ASCII_MASK UINT64_C(0x8080808080808080)

/* Bytes of ASCII at `at`. */
static size_t ascii_run(const char *text, size_t bytes, size_t at)
{
    size_t begin = at;
    for (uint64_t word; at + sizeof word <= bytes; at += sizeof word) {
        memcpy(&word, text + at, sizeof word);
        if ((word & ASCII_MASK) != 0)
            break;
    }
    while (at < bytes && (unsigned char)text[at] < 0x80)
        at++;
    return at - begin;
}

static void set_bits(uint64_t *bits, size_t begin, size_t end)
{
    for (; begin < end; begin++)
        bits[begin / 64] |= UINT64_C(1) << begin % 64;
}

static void set_starts(uint64_t *starts, const char *text, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        size_t run = ascii_run(text, bytes, at);
        set_bits(starts, at, at + run);
        at += run;
        if (at == bytes)
            return;
        uint32_t code_point;
        bool valid;
        set_bits(starts, at, at + 1);
        at += (size_t)tdm_utf8_read(text, bytes, at, &code_point, &valid);
    }
}

tdm_status tdm_char_index_fill(tdm_char_index *index, const char *text, size_t bytes)
{
    index->is_ascii = ascii_run(text, bytes, 0) == bytes;
    if (index->is_ascii)
        return TDM_OK;
    size_t words = bytes / 64 + 1;
    TDM_TRY(tdm_grow(&index->starts, &index->starts_capacity, words, sizeof *index->starts));
    TDM_TRY(tdm_grow(&index->ranks, &index->ranks_capacity, words, sizeof *index->ranks));
    memset(index->starts, 0, words * sizeof *index->starts);
    set_starts(index->starts, text, bytes);
    uint32_t rank = 0;
    for (size_t w = 0; w < words; w++) {
        index->ranks[w] = rank;
        rank += (uint32_t)__builtin_popcountll(index->starts[w]);
    }
    return TDM_OK;
}

uint32_t tdm_char_index_before(const tdm_char_index *index, size_t at)
{
    if (index->is_ascii)
        return (uint32_t)at;
    uint64_t below = index->starts[at / 64] & ((UINT64_C(1) << at % 64) - 1);
    return index->ranks[at / 64] + (uint32_t)__builtin_popcountll(below);
}

void tdm_char_index_deinit(tdm_char_index *index)
{
    tdm_free(index->starts);
    tdm_free(index->ranks);
    *index = (tdm_char_index){0};
}
