#include "text/word_counts.h"

#include "core/memory.h"

#include <string.h>

tdm_status tdm_word_list_add(tdm_word_list *list, const char *word, size_t bytes, int64_t count)
{
    size_t begin = list->count == 0 ? 0 : list->begins[list->count];
    size_t words = (size_t)list->count + 1;
    TDM_FAIL_IF(count > TDM_WORD_TOTAL_MAX - list->total, TDM_E_DATA,
                "more than %lld words: they cannot be counted", (long long)TDM_WORD_TOTAL_MAX);
    TDM_TRY(tdm_grow(&list->text, &list->text_capacity, begin + bytes, 1));
    TDM_TRY(tdm_grow(&list->begins, &list->begins_capacity, words + 1, sizeof *list->begins));
    TDM_TRY(tdm_grow(&list->counts, &list->counts_capacity, words, sizeof *list->counts));
    memcpy(list->text + begin, word, bytes);
    list->begins[words - 1] = begin;
    list->begins[words] = begin + bytes;
    list->counts[words - 1] = count;
    list->count++;
    list->total += count;
    return TDM_OK;
}

void tdm_word_list_deinit(tdm_word_list *list)
{
    tdm_free(list->text);
    tdm_free(list->begins);
    tdm_free(list->counts);
    *list = (tdm_word_list){0};
}
