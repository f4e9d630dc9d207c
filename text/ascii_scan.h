/* Words of plain ASCII: the loop that looks at every byte of English text, 64 at a time. */
#ifndef TDM_TEXT_ASCII_SCAN_H
#define TDM_TEXT_ASCII_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the byte before the next one is part of. */
typedef enum tdm_open_word {
    TDM_OPEN_NONE = 0,
    TDM_OPEN_WORD = 1,        /* a word that may go on */
    TDM_OPEN_PUNCTUATION = 2, /* a mark whose end has not been written */
} tdm_open_word;

/* Words being found; offsets count in `out`. */
typedef struct tdm_ascii_scan {
    char *out; /* what is scanned is copied here, in lower case if wanted */
    uint32_t out_at;
    uint32_t *begins, *ends; /* of words; a mark is a word of its own */
    uint32_t begin_count, end_count;
    uint32_t *lines; /* words begun before each line feed */
    uint32_t line_count;
    tdm_open_word open;
    /* The last white space: what is in front of it can no longer change what comes behind. */
    size_t hard_at;      /* the byte behind it, as an offset in the text of the call */
    uint32_t hard_words; /* begun before it */
} tdm_ascii_scan;

/* What a call may write behind what it answers for. */
#define TDM_ASCII_SCAN_ROOM 64

/* Scans text[0, bytes) up to the first byte that is not printable ASCII, blank, tab, LF or CR, and
 * returns how many bytes that is. `out` has room for out_at + bytes + TDM_ASCII_SCAN_ROOM bytes,
 * begins and ends for so many more words. hard_at and hard_words stay as they are where there is no
 * white space. Chooses the widest vectors that the CPU has. */
size_t tdm_ascii_scan_text(const char *text, size_t bytes, bool lowercase, tdm_ascii_scan *scan);

/* Tests: 0 baseline, 1 AVX2, 2 AVX-512; -1 lets the CPU decide. False where the CPU lacks it. */
bool tdm_ascii_scan_force(int level);

#endif
