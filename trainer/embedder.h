/* Vectors of texts: the mean of a text's last hidden states, [CLS] and [SEP] included as Sentence
 * Transformers does it (Reimers and Gurevych, 2019, arXiv 1908.10084), or the state of [CLS]. Texts
 * are tokenized on the pool while the model runs on those before them. */
#ifndef TDM_TRAINER_EMBEDDER_H
#define TDM_TRAINER_EMBEDDER_H

#include "trainer/encoder_run.h"

typedef enum tdm_pooling {
    TDM_POOLING_MEAN = 0,
    TDM_POOLING_CLS = 1,
} tdm_pooling;

/* Sequences of hidden states. */
typedef struct tdm_pooling_args {
    tdm_pooling pooling;
    const float *hidden; /* [tokens, stride] */
    int64_t columns, stride;
    const int32_t *begins;  /* [sequences + 1]: tokens; NULL: padded, and */
    const int32_t *lengths; /* [sequences], */
    int64_t row_tokens;     /* from one to the next */
    int64_t sequences;
    float *vectors; /* [sequences, columns] */
} tdm_pooling_args;

/* Works on the pool. */
void tdm_pool_states(tdm_pool *pool, const tdm_pooling_args *args);

/* ---- texts ----------------------------------------------------------------------------------- */

typedef struct tdm_embedder tdm_embedder;

typedef struct tdm_embedder_options {
    tdm_pooling pooling;
    /* Vectors [count, hidden] of the next texts, in order; valid for the call. */
    tdm_status (*take)(void *context, const float *vectors, int64_t count);
    void *context;
} tdm_embedder_options;

typedef struct tdm_embedder_counts {
    int64_t texts;  /* that were taken */
    int64_t tokens; /* of them, [CLS] and [SEP] included */
    int64_t cut;    /* texts that were longer than a sequence: their ends are left out */
} tdm_embedder_counts;

/* `run` is borrowed and has TDM_HEAD_NONE; its batch is the embedder's. TDM_E_CONFIG for a
 * vocabulary without [CLS] or [SEP]. */
TDM_MUST_CHECK tdm_status tdm_embedder_create(tdm_encoder_run *run,
                                              const tdm_embedder_options *options,
                                              tdm_embedder **out);
/* NULL is allowed. */
void tdm_embedder_destroy(tdm_embedder *embedder);

/* Appends texts, which are copied; special tokens in them are text like any other. Vectors come
 * when there are enough texts, at the latest with the finish. Best with some thousand texts at a
 * time. */
TDM_MUST_CHECK tdm_status tdm_embedder_add(tdm_embedder *embedder, const tdm_text_input *texts,
                                           int64_t count);
/* Gives the vectors of all texts so far. */
TDM_MUST_CHECK tdm_status tdm_embedder_finish(tdm_embedder *embedder);

tdm_embedder_counts tdm_embedder_counts_get(const tdm_embedder *embedder);

#endif
