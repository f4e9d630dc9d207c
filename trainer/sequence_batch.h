/* A batch for an encoder (models/encoder.h), unpadded, put together on the host a sequence at a
 * time. */
#ifndef TDM_TRAINER_SEQUENCE_BATCH_H
#define TDM_TRAINER_SEQUENCE_BATCH_H

#include "core/backend.h"
#include "core/batch.h"

typedef struct tdm_sequence_batch {
    tdm_batch_layout layout;
    tdm_backend *backend;  /* borrowed */
    unsigned char *host;   /* layout.bytes */
    unsigned char *device; /* the same; `host` where the device reads it */
    int64_t max_sequences, max_tokens, max_predictions;
    int64_t sequences, tokens, predictions;
} tdm_sequence_batch;

/* The most that a batch holds. */
typedef struct tdm_sequence_room {
    int64_t sequences, tokens;
    int64_t predictions; /* 0: nothing is predicted */
    bool labels;         /* predictions have labels */
} tdm_sequence_room;

/* On failure too it is freed by deinit. */
TDM_MUST_CHECK tdm_status tdm_sequence_batch_init(tdm_sequence_batch *batch,
                                                  const tdm_sequence_room *room,
                                                  tdm_backend *backend);
/* One of zeros is allowed. */
void tdm_sequence_batch_deinit(tdm_sequence_batch *batch);

static inline bool tdm_sequence_batch_has_room(const tdm_sequence_batch *batch, int64_t tokens,
                                               int64_t predictions)
{
    return batch->sequences < batch->max_sequences && batch->tokens + tokens <= batch->max_tokens &&
           batch->predictions + predictions <= batch->max_predictions;
}

/* Appends a sequence of `length` tokens, for which there is room; its second text begins at token
 * `second` (`length`: there is none). Returns where its ids go. */
uint32_t *tdm_sequence_batch_add(tdm_sequence_batch *batch, int64_t length, int64_t second);

/* Token `token` of the last sequence is to be predicted; `label` counts where there are labels. */
void tdm_sequence_batch_predict(tdm_sequence_batch *batch, int64_t token, uint32_t label);

/* The tokens that sequences begin with; of a batch that was put also where the last one ends. */
const int32_t *tdm_sequence_batch_begins(const tdm_sequence_batch *batch);

/* Puts the batch on the device, ready for the default stream. */
TDM_MUST_CHECK tdm_status tdm_sequence_batch_put(tdm_sequence_batch *batch);

void tdm_sequence_batch_empty(tdm_sequence_batch *batch);

#endif
