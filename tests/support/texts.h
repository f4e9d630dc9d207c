/* A folder with texts, and trainings of small encoders on them: what the tests of training text
 * share. Whatever goes wrong fails the test, unless it is the training. */
#ifndef TDM_TESTS_TEXTS_H
#define TDM_TESTS_TEXTS_H

#include "tests/support/training.h"

/* Where the files of a test are. */
typedef struct tdm_text_paths {
    char folder[256];
    char vocabulary[300];
    char corpus[300], eval_corpus[300]; /* documents, told apart by blank lines */
    char labels[300], eval_labels[300]; /* records "label, text" with a header */
    char run[300];                      /* the run folder of trainings in `folder` */
} tdm_text_paths;

extern tdm_text_paths tdm_texts;

/* Makes the folder, with `documents` documents and as many labelled texts to train on, and a fifth
 * of others to evaluate on. */
void tdm_texts_begin(int documents);
/* Removes it. */
void tdm_texts_end(void);

/* A recipe of masked or labelled text that trains into <folder>/run: 2 layers of 32 units, steps of
 * at most 512 tokens, sequences of at most 32. `overrides` may be NULL. */
tdm_recipe *tdm_texts_recipe(tdm_task_kind task, const char *folder, const char *overrides[]);
TDM_MUST_CHECK tdm_status tdm_texts_try_recipe(tdm_task_kind task, const char *folder,
                                               const char *overrides[], tdm_recipe **out);

/* Loads it and trains, in tdm_texts.folder or in another one. */
TDM_MUST_CHECK tdm_status tdm_texts_train(tdm_task_kind task, const char *overrides[],
                                          const tdm_train_control *control,
                                          tdm_train_result *result);
TDM_MUST_CHECK tdm_status tdm_texts_train_in(const char *folder, tdm_task_kind task,
                                             const char *overrides[],
                                             const tdm_train_control *control,
                                             tdm_train_result *result);

#endif
