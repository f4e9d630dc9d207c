#include "tests/support/text_rig.h"

#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"

#include <stdio.h>
#include <string.h>

/* ---- tokenizers ------------------------------------------------------------------------------ */

static void add_token(tdm_tokenizer *tokenizer, uint32_t id, const char *token)
{
    ck_assert_ok(tdm_vocabulary_add(&tokenizer->vocabulary, id, token, strlen(token), NULL));
}

void tdm_rig_tokenizer(int64_t size, tdm_tokenizer *tokenizer)
{
    static const char *const names[TDM_SPECIALS] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    char text[32];
    *tokenizer = (tdm_tokenizer){0};
    for (int i = 0; i < TDM_SPECIALS; i++) {
        add_token(tokenizer, (uint32_t)i, names[i]);
        tokenizer->specials[i] = i;
    }
    for (int i = 0; i < 10; i++) {
        snprintf(text, sizeof text, "[unused%d]", i);
        add_token(tokenizer, (uint32_t)(TDM_SPECIALS + i), text);
    }
    for (int64_t id = TDM_RIG_FIRST_WORD; id < size; id++) {
        snprintf(text, sizeof text, "t%lld", (long long)id);
        add_token(tokenizer, (uint32_t)id, text);
    }
}

void tdm_rig_tokenizer_free(tdm_tokenizer *tokenizer)
{
    tdm_vocabulary_deinit(&tokenizer->vocabulary);
}

/* ---- windows --------------------------------------------------------------------------------- */

static const tdm_columns_layout layout = {
    .rows_are_pieces = true, .count = 2, .columns = {{"ids", TDM_U16, 1}, {"marks", TDM_U8, 1}}};

static void open_blocks(int blocks, int64_t first, tdm_window *window)
{
    *window = (tdm_window){.block_count = blocks};
    ck_assert_ok(tdm_alloc((size_t)blocks, sizeof *window->blocks, &window->blocks));
    for (int b = 0; b < blocks; b++) {
        ck_assert_ok(tdm_alloc(1, sizeof **window->blocks, &window->blocks[b]));
        window->blocks[b]->block = first + b;
    }
}

static void add_word(tdm_extract *block, int tokens, uint8_t marks, uint16_t *id)
{
    ck_assert_ok(tdm_extract_reserve(&layout, block, (size_t)(block->rows + tokens)));
    for (int i = 0; i < tokens; i++) {
        ((uint16_t *)block->columns[0])[block->rows] = (*id)++;
        ((uint8_t *)block->columns[1])[block->rows++] = i == 0 ? marks : 0;
    }
}

static void add_text(tdm_extract *block, const char *text, uint16_t *id)
{
    uint8_t marks = 7;
    for (; *text != '\0'; text++) {
        if (*text == '\n')
            marks = 7;
        else if (*text == '/')
            marks |= TDM_MARK_SENTENCE;
        if (*text != 'w')
            continue;
        add_word(block, atoi(text + 1), marks, id);
        marks = TDM_MARK_WORD;
    }
}

void tdm_rig_window(const char *const *texts, int blocks, int64_t first, tdm_window *window)
{
    uint16_t id = TDM_RIG_FIRST_WORD;
    open_blocks(blocks, first, window);
    for (int b = 0; b < blocks; b++)
        add_text(window->blocks[b], texts[b], &id);
}

static uint32_t draw(uint64_t *state, uint32_t count)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % count;
}

void tdm_rig_random_window(uint64_t seed, int blocks, int documents, int64_t first,
                           tdm_window *window)
{
    uint64_t state = seed;
    uint16_t id = TDM_RIG_FIRST_WORD;
    open_blocks(blocks, first, window);
    for (int d = 0; d < documents; d++) {
        tdm_extract *block = window->blocks[d * blocks / documents];
        uint32_t sentences = 1 + draw(&state, 12);
        for (uint32_t s = 0; s < sentences; s++) {
            uint32_t words = 1 + draw(&state, 30);
            for (uint32_t w = 0; w < words; w++) {
                uint8_t marks = w > 0 ? TDM_MARK_WORD : s > 0 ? 3 : 7;
                add_word(block, 1 + (int)(draw(&state, 10) > 7) + (int)(draw(&state, 10) > 8),
                         marks, &id);
            }
        }
    }
}

void tdm_rig_window_free(tdm_window *window)
{
    for (int b = 0; b < window->block_count; b++) {
        tdm_extract_deinit(window->blocks[b]);
        tdm_free(window->blocks[b]);
    }
    tdm_free(window->blocks);
    tdm_window_deinit(window);
}

uint16_t tdm_rig_token(const tdm_window *window, const tdm_sequence *sequence, uint32_t i)
{
    const tdm_segment *segment = sequence->segments;
    while (i >= segment->count)
        i -= segment++->count;
    return ((const uint16_t *)window->blocks[segment->block]->columns[0])[segment->first + i];
}

/* ---- files ----------------------------------------------------------------------------------- */

static const char *const words[] = {"the",   "river", "house", "of", "light", "and",
                                    "stone", "walks", "green", "a",  "night", "under"};
#define WORDS (sizeof words / sizeof words[0])

char *tdm_rig_vocabulary(const char *folder, int64_t more)
{
    tdm_text text = {0};
    ck_assert_ok(tdm_text_printf(&text, "[PAD]\n[unused0]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n.\n"));
    for (char c = 'a'; c <= 'z'; c++)
        ck_assert_ok(tdm_text_printf(&text, "%c\n##%c\n", c, c));
    for (size_t i = 0; i < WORDS; i++) {
        if (strlen(words[i]) > 1)
            ck_assert_ok(tdm_text_printf(&text, "%s\n", words[i]));
    }
    for (int64_t i = 0; i < more; i++)
        ck_assert_ok(tdm_text_printf(&text, "w%lld\n", (long long)i));
    char *path = tdm_data_rig_put_text(folder, "vocab.txt", text.bytes);
    tdm_text_free(&text);
    return path;
}

static void add_corpus_word(uint64_t *state, tdm_text *text)
{
    uint32_t kind = draw(state, 20);
    if (kind == 0)
        ck_assert_ok(tdm_text_printf(text, "\xe2\x82\xac"));
    else if (kind > 3)
        ck_assert_ok(tdm_text_printf(text, "%s", words[draw(state, WORDS)]));
    for (uint32_t i = 0; kind > 0 && kind <= 3 && i < 1 + 2 * kind; i++)
        ck_assert_ok(tdm_text_printf(text, "%c", 'b' + (char)draw(state, 20)));
}

char *tdm_rig_corpus(uint64_t seed, int documents)
{
    uint64_t state = seed;
    tdm_text text = {0};
    for (int d = 0; d < documents; d++) {
        uint32_t sentences = 1 + draw(&state, 6);
        for (uint32_t s = 0; s < sentences; s++) {
            uint32_t count = 1 + draw(&state, 20);
            for (uint32_t w = 0; w < count; w++) {
                add_corpus_word(&state, &text);
                ck_assert_ok(tdm_text_printf(&text, " "));
            }
            ck_assert_ok(tdm_text_printf(&text, ".\n"));
        }
        ck_assert_ok(tdm_text_printf(&text, "\n"));
    }
    return text.bytes;
}
