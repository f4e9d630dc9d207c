/* Counted words that lie in several places, each ordered by the words' bytes: in maps, in temporary
 * files where memory did not suffice, in a file of word counts. */
#ifndef TDM_TEXT_WORD_RUNS_H
#define TDM_TEXT_WORD_RUNS_H

#include "text/word_lines.h"
#include "text/word_map.h"

typedef struct tdm_word_runs tdm_word_runs;

TDM_MUST_CHECK tdm_status tdm_word_runs_create(tdm_word_runs **out);
/* Removes the temporary files. NULL is allowed. */
void tdm_word_runs_destroy(tdm_word_runs *runs);

/* Moves the words of a map to a file in a new folder under $TMPDIR, or /tmp, and clears it. From
 * any thread. */
TDM_MUST_CHECK tdm_status tdm_word_runs_spill(tdm_word_runs *runs, tdm_word_map *map);

/* Files that maps were moved to so far. */
int64_t tdm_word_runs_spilled(const tdm_word_runs *runs);

/* Adds the words of a map, which stays as it is while they are merged. From any thread. */
TDM_MUST_CHECK tdm_status tdm_word_runs_add_map(tdm_word_runs *runs, const tdm_word_map *map);

/* Adds what a reader has yet to give, and takes it over, on failure too. */
TDM_MUST_CHECK tdm_status tdm_word_runs_take_reader(tdm_word_runs *runs, tdm_word_reader *reader);

/* Calls take(context, entry) for each distinct word, in order, with the sum of its counts. Once. */
TDM_MUST_CHECK tdm_status tdm_word_runs_merge(tdm_word_runs *runs,
                                              tdm_status (*take)(void *context,
                                                                 const tdm_word_entry *entry),
                                              void *context);

#endif
