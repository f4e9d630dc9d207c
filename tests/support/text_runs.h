/* Small trainings of text for tests: their data, recipes and runs. Whatever fails, fails the test,
 * unless a status is answered. */
#ifndef TDM_TESTS_TEXT_RUNS_H
#define TDM_TESTS_TEXT_RUNS_H

#include "tests/support/training.h"
#include "trainer/trainer.h"

/* A folder in memory that holds
 *   vocab.txt    of tdm_rig_vocabulary()
 *   corpus.txt   documents of tdm_rig_corpus()
 *   lines.tsv    "label", "text" and "pair": pos where the text has the word light, else neg
 *   words.txt    a word and its class a line, a blank line between records */
extern char tdm_text_folder[256];

void tdm_text_runs_begin(void);
void tdm_text_runs_end(void);

/* The path of a file in the folder; eight of them at a time. */
const char *tdm_text_path(const char *name);

/* "key=<path of a file in the folder>"; eight of them at a time. */
const char *tdm_text_override(const char *key_and_equals, const char *name);

/* A recipe of a small model that reads the folder, 4 steps of 256 tokens, a learning rate of 0.001,
 * 2 threads, into <folder>/<name>. Mlm says all of the model's sizes, classify none; both have
 * text.max_length 32. */
TDM_MUST_CHECK tdm_status tdm_text_recipe(tdm_task_kind task, const char *name,
                                          const char *const overrides[], tdm_recipe **out);
TDM_MUST_CHECK tdm_status tdm_text_train(tdm_task_kind task, const char *name,
                                         const char *const overrides[]);

/* A small model for classify, as overrides. */
#define TINY_MODEL "model.layers=2", "model.hidden=16", "model.heads=2", "text.tokenizer=vocab.txt"

/* A tensor of a run's newest checkpoint, in new memory freed with tdm_free(). NULL: it has none. */
float *tdm_text_run_tensor(const char *name, const char *tensor, int64_t *elements);

#endif
