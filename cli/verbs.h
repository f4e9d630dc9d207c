/* What tandem can be told to do: one cmd_<verb>.c each. */
#ifndef TDM_CLI_VERBS_H
#define TDM_CLI_VERBS_H

#include "cli/options.h"

extern const tdm_verb tdm_verb_train;
extern const tdm_verb tdm_verb_check;
extern const tdm_verb tdm_verb_eval;
extern const tdm_verb tdm_verb_predict;
extern const tdm_verb tdm_verb_export;
extern const tdm_verb tdm_verb_features;
extern const tdm_verb tdm_verb_tokenize;
extern const tdm_verb tdm_verb_synth_ctr;
extern const tdm_verb tdm_verb_inspect;
extern const tdm_verb tdm_verb_vocab;
extern const tdm_verb tdm_verb_bench_features;
extern const tdm_verb tdm_verb_bench_tokenize;
extern const tdm_verb tdm_verb_bench_train;
extern const tdm_verb tdm_verb_doctor;
extern const tdm_verb tdm_verb_help_recipe;
extern const tdm_verb tdm_verb_help;

/* All of them, in the order in which help names them, ended by NULL. */
extern const tdm_verb *const tdm_verbs[];

/* The verb that the first one or two of the words name; *used is how many. TDM_E_ARG with a
 * did-you-mean where there is none. */
TDM_MUST_CHECK tdm_status tdm_verb_find(int count, const char *const *words, const tdm_verb **verb,
                                        int *used);

/* Appends the help of all verbs that begin with `word`; nothing where there is none. */
TDM_MUST_CHECK tdm_status tdm_verb_group_describe(const char *word, tdm_text *text);

/* Appends what `tandem --help` prints. */
TDM_MUST_CHECK tdm_status tdm_verbs_describe(tdm_text *text);

#endif
