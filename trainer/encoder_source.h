/* Where an encoder's weights come from: a run folder of a text task, or a checkpoint of another
 * program (interchange/pretrained.h). What the folder holds decides. */
#ifndef TDM_TRAINER_ENCODER_SOURCE_H
#define TDM_TRAINER_ENCODER_SOURCE_H

#include "interchange/pretrained.h"
#include "trainer/recipe.h"

typedef struct tdm_encoder_source {
    tdm_pretrained from; /* of a run: its recipe, tokenizer and checkpoint */
    tdm_recipe *recipe;  /* of a run, in its checkpoint's phase; NULL: another program's */
    int64_t step;        /* of a run's checkpoint */
} tdm_encoder_source;

typedef struct tdm_encoder_source_options {
    bool settings_only;                     /* no weights, which need not be there */
    const char *checkpoint;                 /* of a run; as in tdm_run_options */
    const tdm_tokenizer_settings *settings; /* see tdm_pretrained_open(); NULL: the defaults */
} tdm_encoder_source_options;

/* TDM_E_STATE where the folder holds neither, TDM_E_CONFIG for a run of ctr. On failure nothing is
 * left to close. */
TDM_MUST_CHECK tdm_status tdm_encoder_source_open(const char *path,
                                                  const tdm_encoder_source_options *options,
                                                  tdm_encoder_source *out);
/* *out: it is a run whose records hold texts (task: classify). */
TDM_MUST_CHECK tdm_status tdm_encoder_source_has_records(const char *path, bool *out);

/* One of zeros is allowed. */
void tdm_encoder_source_close(tdm_encoder_source *source);

#endif
