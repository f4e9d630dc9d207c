/* How often each word occurs in many texts: what a vocabulary is trained on. The result is the same
 * for any number of threads and any order of files; where training has no memory for all words, the
 * rarest are left out of the list. */
#ifndef TDM_TEXT_WORD_COUNTS_H
#define TDM_TEXT_WORD_COUNTS_H

#include "core/config.h"
#include "core/file.h"
#include "core/pool.h"
#include "tandem/text.h"

#include <stdatomic.h>

/* ---- distinct words -------------------------------------------------------------------------- */

/* Ordered by their bytes, none twice. */
typedef struct tdm_word_list {
    char *text;       /* all words one after another */
    uint64_t *begins; /* [count + 1]: word i is text[begins[i], begins[i + 1]), UTF-8 */
    int64_t *counts;  /* [count]: 1 and more */
    int64_t count;
    int64_t total; /* of counts; at most TDM_WORD_TOTAL_MAX */
    size_t text_capacity, begins_capacity, counts_capacity;
} tdm_word_list;

/* So that sums over all characters of all words stay below 2^63. */
#define TDM_WORD_TOTAL_MAX (INT64_MAX >> 17)

/* What training needs for a word of that many bytes, the list included: about. */
#define TDM_TRAINING_BYTES(bytes) ((size_t)96 + 24 * (size_t)(bytes))

/* Behind all words that are there; they come in order. */
TDM_MUST_CHECK tdm_status tdm_word_list_add(tdm_word_list *list, const char *word, size_t bytes,
                                            int64_t count);
void tdm_word_list_deinit(tdm_word_list *list);

/* ---- counting -------------------------------------------------------------------------------- */

typedef struct tdm_word_count_options {
    const tdm_strings *names; /* files, globs, "-"; none where counts_path is there already */
    const tdm_tokenizer_settings *settings;
    const char *counts_path; /* a file of word counts that these are added to; NULL: none */
    size_t map_bytes;        /* memory for counting, all threads together: what is beyond it goes */
                             /* to temporary files */
    size_t list_bytes;       /* memory for training on the result, see TDM_TRAINING_BYTES() */
    tdm_pool *pool;
    const atomic_bool *cancel; /* may be NULL */
    /* Called now and then from the thread that counts; `share` of the stored bytes is NaN where
     * it is not known. May be NULL. */
    void (*progress)(void *context, int64_t text_bytes, int64_t words, double share);
    void *progress_context;
} tdm_word_count_options;

typedef struct tdm_word_count_report {
    int64_t files;
    int64_t text_bytes;    /* read now, uncompressed */
    int64_t words;         /* counted now */
    int64_t too_long;      /* further ones of more than max_word_chars: they would be [UNK] */
    int64_t invalid_bytes; /* that are not UTF-8, and counted as U+FFFD */
    int64_t spilled;       /* temporary files that were needed */
    int64_t distinct;      /* in all, what counts_path held included */
    int64_t total;         /* as words, in all */
    int64_t pruned;        /* distinct words that training has no memory for: the rarest */
    int64_t pruned_total;  /* their counts */
    int64_t pruned_below;  /* that is, those that came less often; 1 where none was */
} tdm_word_count_report;

/* Counts the words of all texts. Where counts_path is given, *counts is a writer of that file with
 * all words in it, the old ones included, which the caller commits and closes; else NULL. On
 * failure nothing is left to free. */
TDM_MUST_CHECK tdm_status tdm_word_counts(const tdm_word_count_options *options,
                                          tdm_file_writer **counts, tdm_word_list *list,
                                          tdm_word_count_report *report);

#endif
