/* What the tasks of text have in common. Private to this folder. */
#ifndef TDM_TRAINER_TASK_TEXT_H
#define TDM_TRAINER_TASK_TEXT_H

#include "text/tokenizer.h"
#include "trainer/task.h"

/* Opens the tokenizer that a run folder holds. */
TDM_MUST_CHECK tdm_status tdm_run_load_tokenizer(const char *folder, tdm_tokenizer **out);

/* The format of a run's records, as its recipe says it; messages call it `folder`. */
TDM_MUST_CHECK tdm_status tdm_run_text_format(const tdm_recipe *recipe, const char *folder,
                                              tdm_record_format **out);

/* Lays out the parts of the featurizer's batches, and completes the inputs. */
TDM_MUST_CHECK tdm_status tdm_text_task_finish(tdm_task *task, const tdm_recipe *recipe,
                                               tdm_text_head head, int64_t classes);

/* save and check of tdm_task_type. */
TDM_MUST_CHECK tdm_status tdm_text_task_save(const tdm_task *task, const tdm_input *input,
                                             const char *folder);
TDM_MUST_CHECK tdm_status tdm_text_task_check(const tdm_task *task, const tdm_input *input,
                                              const char *folder);

#endif
