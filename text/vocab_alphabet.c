#include "text/vocab_alphabet.h"

#include "core/memory.h"
#include "text/unicode.h"

#include <stdlib.h>
#include <string.h>

void tdm_alphabet_deinit(tdm_alphabet *alphabet)
{
    for (int i = 0; i < TDM_LETTER_PAGES; i++)
        tdm_free(alphabet->pages[i]);
    *alphabet = (tdm_alphabet){0};
}

static tdm_status get_letter(tdm_alphabet *alphabet, uint32_t code_point, tdm_letter **out)
{
    tdm_letter **page = &alphabet->pages[code_point >> 8];
    if (*page == NULL) {
        TDM_TRY(tdm_alloc(256, sizeof **page, page));
        for (int i = 0; i < 256; i++)
            (*page)[i].bare = (*page)[i].continued = TDM_NO_TOKEN;
    }
    *out = &(*page)[code_point & 0xff];
    return TDM_OK;
}

tdm_status tdm_alphabet_require(tdm_alphabet *alphabet, uint32_t code_point)
{
    tdm_letter *letter;
    TDM_TRY(get_letter(alphabet, code_point, &letter));
    alphabet->used += letter->weight == 0;
    letter->weight = INT64_MAX;
    return TDM_OK;
}

uint32_t tdm_alphabet_read(const char *text, size_t bytes, size_t *at)
{
    uint32_t code_point = (unsigned char)text[*at];
    bool valid;
    if (code_point < 0x80)
        ++*at;
    else
        *at += (size_t)tdm_utf8_read(text, bytes, *at, &code_point, &valid);
    return code_point;
}

tdm_status tdm_alphabet_count(tdm_alphabet *alphabet, const tdm_word_list *words)
{
    for (int64_t i = 0; i < words->count; i++) {
        for (size_t at = words->begins[i]; at < words->begins[i + 1];) {
            tdm_letter *letter;
            uint32_t code_point = tdm_alphabet_read(words->text, words->begins[i + 1], &at);
            TDM_TRY(get_letter(alphabet, code_point, &letter));
            alphabet->used += letter->weight == 0;
            if (letter->weight != INT64_MAX)
                letter->weight += words->counts[i];
        }
    }
    return TDM_OK;
}

/* ---- choosing -------------------------------------------------------------------------------- */

typedef struct candidate {
    int64_t weight;
    uint32_t code_point;
} candidate;

static int by_code_point(const void *a, const void *b)
{
    uint32_t left = ((const candidate *)a)->code_point, right = ((const candidate *)b)->code_point;
    return (left > right) - (left < right);
}

static int by_weight(const void *a, const void *b)
{
    int64_t left = ((const candidate *)a)->weight, right = ((const candidate *)b)->weight;
    return left != right ? (left < right) - (left > right) : by_code_point(a, b);
}

/* All characters, in order of their code points. */
static tdm_status list_candidates(const tdm_alphabet *alphabet, candidate **out)
{
    int64_t count = 0;
    TDM_TRY(tdm_alloc((size_t)alphabet->used, sizeof **out, out));
    for (uint32_t page = 0; page < TDM_LETTER_PAGES; page++) {
        const tdm_letter *letters = alphabet->pages[page];
        for (uint32_t i = 0; letters != NULL && i < 256; i++) {
            if (letters[i].weight > 0)
                (*out)[count++] = (candidate){letters[i].weight, page << 8 | i};
        }
    }
    return TDM_OK;
}

tdm_status tdm_vocabulary_intern(tdm_vocabulary *vocabulary, const char *token, size_t bytes,
                                 uint32_t *id)
{
    int64_t found = tdm_vocabulary_find(vocabulary, token, bytes);
    if (found < 0) {
        found = vocabulary->size;
        TDM_TRY(tdm_vocabulary_add(vocabulary, (uint32_t)found, token, bytes, NULL));
    }
    *id = (uint32_t)found;
    return TDM_OK;
}

static tdm_status add_letter(tdm_alphabet *alphabet, uint32_t code_point, bool continued,
                             tdm_vocabulary *vocabulary)
{
    char token[TDM_CONTINUATION_BYTES + 4] = TDM_CONTINUATION;
    tdm_letter *letter = tdm_alphabet_find(alphabet, code_point);
    size_t bytes = (size_t)tdm_utf8_write(code_point, token + TDM_CONTINUATION_BYTES);
    if (continued)
        return tdm_vocabulary_intern(vocabulary, token, TDM_CONTINUATION_BYTES + bytes,
                                     &letter->continued);
    return tdm_vocabulary_intern(vocabulary, token + TDM_CONTINUATION_BYTES, bytes, &letter->bare);
}

tdm_status tdm_alphabet_choose(tdm_alphabet *alphabet, int64_t limit, tdm_vocabulary *vocabulary,
                               int64_t *chosen)
{
    candidate *candidates;
    TDM_TRY(list_candidates(alphabet, &candidates));
    int64_t count = alphabet->used;
    if (count > limit) {
        qsort(candidates, (size_t)count, sizeof *candidates, by_weight);
        count = limit;
        while (count < alphabet->used && candidates[count].weight == INT64_MAX)
            count++;
        qsort(candidates, (size_t)count, sizeof *candidates, by_code_point);
    }
    tdm_status status = TDM_OK;
    for (int64_t i = 0; i < count && status == TDM_OK; i++)
        status = add_letter(alphabet, candidates[i].code_point, false, vocabulary);
    for (int64_t i = 0; i < count && status == TDM_OK; i++)
        status = add_letter(alphabet, candidates[i].code_point, true, vocabulary);
    tdm_free(candidates);
    *chosen = count;
    return status;
}
