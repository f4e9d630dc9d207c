#include "text/word_ids.h"

#include "core/memory.h"
#include "text/word_cache.h"
#include "text/word_splitter.h"

#include <string.h>

struct tdm_word_ids {
    const tdm_tokenizer *tokenizer;
    tdm_word_splitter *splitter;
    tdm_word_cache cache;
    uint32_t *places; /* of each word of a group, in the list */
    size_t places_capacity;
};

void tdm_token_list_deinit(tdm_token_list *list)
{
    tdm_free(list->ids);
    tdm_free(list->marks);
    *list = (tdm_token_list){0};
}

/* ---- the vocabulary's own words -------------------------------------------------------------- */

static bool is_short_word(const tdm_vocabulary *vocabulary, int64_t id, int max_word_chars)
{
    const char *token = vocabulary->text + vocabulary->begins[id];
    size_t bytes = vocabulary->bytes[id];
    bool continues = bytes > TDM_CONTINUATION_BYTES &&
                     memcmp(token, TDM_CONTINUATION, TDM_CONTINUATION_BYTES) == 0;
    return bytes >= 1 && bytes <= TDM_SHORT_WORD_BYTES && bytes <= (size_t)max_word_chars &&
           !continues;
}

static void fill_cache(tdm_word_ids *words)
{
    const tdm_vocabulary *vocabulary = &words->tokenizer->vocabulary;
    int max_word_chars = words->tokenizer->settings.max_word_chars;
    const bool *beside = words->tokenizer->beside;
    for (int64_t id = 0; id < vocabulary->size; id++) {
        if (!is_short_word(vocabulary, id, max_word_chars) || (beside != NULL && beside[id]))
            continue;
        char word[TDM_SHORT_WORD_BYTES + 1] = {0};
        size_t bytes = vocabulary->bytes[id];
        memcpy(word, vocabulary->text + vocabulary->begins[id], bytes);
        uint32_t ids[1] = {(uint32_t)id};
        tdm_word_cache_put(&words->cache, tdm_word_key_of(word, bytes), ids, 1);
    }
}

tdm_status tdm_word_ids_create(const tdm_tokenizer *tokenizer, tdm_word_ids **out)
{
    *out = NULL;
    tdm_word_ids *words;
    TDM_TRY(tdm_alloc(1, sizeof *words, &words));
    words->tokenizer = tokenizer;
    tdm_status status;
    TDM_TRY_GOTO(tdm_word_splitter_create(tokenizer->normalizer, &words->splitter), fail);
    TDM_TRY_GOTO(tdm_word_cache_init(&words->cache, tokenizer->vocabulary.used_slots), fail);
    fill_cache(words);
    *out = words;
    return TDM_OK;
fail:
    tdm_word_ids_destroy(words);
    return status;
}

void tdm_word_ids_destroy(tdm_word_ids *words)
{
    if (words == NULL)
        return;
    tdm_word_splitter_destroy(words->splitter);
    tdm_word_cache_deinit(&words->cache);
    tdm_free(words->places);
    tdm_free(words);
}

/* ---- words ----------------------------------------------------------------------------------- */

/* Room for the ids of `more` tokens, and for what is written behind them. */
static tdm_status make_room(tdm_token_list *list, size_t more)
{
    size_t needed = (size_t)list->count + more + TDM_SHORT_WORD_IDS + 1;
    TDM_TRY(tdm_grow(&list->ids, &list->ids_capacity, needed, sizeof *list->ids));
    return tdm_grow(&list->marks, &list->marks_capacity, needed, 1);
}

/* Takes in a word whose ids are there already. */
static void end_word(tdm_token_list *list, uint32_t count)
{
    memset(list->marks + list->count, 0, count);
    list->marks[list->count] = TDM_MARK_WORD;
    list->count += count;
}

/* A word that is not among the short ones, with `left` words behind it. */
__attribute__((noinline)) static tdm_status append_other_word(tdm_word_ids *words, const char *word,
                                                              size_t bytes, int64_t left,
                                                              tdm_token_list *list)
{
    TDM_TRY(make_room(list, bytes + TDM_SHORT_WORD_IDS * (size_t)left));
    uint32_t count;
    const uint32_t *ids = tdm_word_cache_find_long(&words->cache, word, bytes, &count);
    if (ids != NULL) {
        memcpy(list->ids + list->count, ids, count * sizeof *ids);
        end_word(list, count);
        return TDM_OK;
    }
    uint32_t *pieces = list->ids + list->count;
    count = (uint32_t)tdm_word_piece_split(words->tokenizer->word_piece, word, bytes, pieces);
    if (count == 0) {
        pieces[0] = (uint32_t)words->tokenizer->specials[TDM_SPECIAL_UNK];
        count = 1;
    }
    end_word(list, count);
    if (bytes <= TDM_SHORT_WORD_BYTES && count <= TDM_SHORT_WORD_IDS) {
        tdm_word_cache_put(&words->cache, tdm_word_key_of(word, bytes), pieces, count);
        return TDM_OK;
    }
    return tdm_word_cache_put_long(&words->cache, word, bytes, pieces, count);
}

/* The slot of a short word, or NULL. */
static inline const tdm_word_slot *find_short(const tdm_word_cache *cache, const char *word,
                                              size_t bytes)
{
    tdm_word_key key = tdm_word_key_of(word, bytes);
    const tdm_word_slot *set = tdm_word_cache_set(cache, key);
    for (int i = 0; i < TDM_WORD_SET; i++) {
        if (((set[i].key.low ^ key.low) | (set[i].key.high ^ key.high)) == 0)
            return &set[i];
    }
    return NULL;
}

static tdm_status append_words(tdm_word_ids *words, const tdm_words *found, tdm_token_list *list)
{
    TDM_TRY(make_room(list, TDM_SHORT_WORD_IDS * (size_t)found->count));
    TDM_TRY(tdm_grow(&words->places, &words->places_capacity, (size_t)found->count,
                     sizeof *words->places));
    int64_t first = list->count;
    for (int64_t i = 0; i < found->count; i++) {
        const char *word = found->text + found->begins[i];
        size_t bytes = found->ends[i] - found->begins[i];
        const tdm_word_slot *slot = NULL;
        words->places[i] = (uint32_t)(list->count - first);
        if (bytes <= TDM_SHORT_WORD_BYTES)
            slot = find_short(&words->cache, word, bytes);
        if (slot == NULL) {
            TDM_TRY(append_other_word(words, word, bytes, found->count - i, list));
            continue;
        }
        /* Three ids and what is behind them, whatever the count: the next word overwrites it. */
        static const uint8_t one_start[4] = {TDM_MARK_WORD, 0, 0, 0};
        memcpy(list->ids + list->count, slot->ids, sizeof slot->ids);
        memcpy(list->marks + list->count, one_start, sizeof one_start);
        list->count += slot->count;
    }
    return TDM_OK;
}

/* Marks the first token of every line, `first` being that of the group's first word. *begins tells
 * whether the group's first word begins one, then whether the next group's does. */
static void mark_lines(const tdm_word_ids *words, const tdm_words *found, int64_t first,
                       bool *begins, tdm_token_list *list)
{
    if (*begins && found->count > 0)
        list->marks[first] |= TDM_MARK_SENTENCE;
    *begins = *begins && found->count == 0;
    for (int64_t i = 0; i < found->line_count; i++) {
        if (found->lines[i] < found->count)
            list->marks[first + words->places[found->lines[i]]] |= TDM_MARK_SENTENCE;
        else
            *begins = true;
    }
}

tdm_status tdm_word_ids_append(tdm_word_ids *words, const char *text, size_t bytes,
                               tdm_token_list *list)
{
    tdm_words found;
    bool line_begins = true;
    tdm_word_splitter_start(words->splitter, text, bytes);
    do {
        TDM_TRY(tdm_word_splitter_next(words->splitter, &found));
        int64_t first = list->count;
        if (found.count > 0)
            TDM_TRY(append_words(words, &found, list));
        mark_lines(words, &found, first, &line_begins, list);
    } while (found.count > 0);
    return TDM_OK;
}
