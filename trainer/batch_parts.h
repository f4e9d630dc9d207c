/* A batch of text in parts that the model takes one at a time, so that memory does not grow with
 * the batch: gradients of the parts are added up, and masks, dropout and order are those of the
 * whole. What the encoder needs beside the featurizer's tensors is made on the way. Private to this
 * folder. */
#ifndef TDM_TRAINER_BATCH_PARTS_H
#define TDM_TRAINER_BATCH_PARTS_H

#include "core/backend.h"
#include "core/batch.h"

/* The layout of parts (models/encoder.h) of batches laid out as `from`, of at most `tokens` tokens
 * (0: as many as a batch has). Sequences have at most `max_length`. */
TDM_MUST_CHECK tdm_status tdm_batch_part_layout(const tdm_batch_layout *from, int64_t tokens,
                                                int64_t max_length, tdm_batch_layout *out);

typedef struct tdm_batch_parts tdm_batch_parts;

/* Layouts are copied. Where they are the same, a batch has one part, itself. */
TDM_MUST_CHECK tdm_status tdm_batch_parts_create(const tdm_batch_layout *from,
                                                 const tdm_batch_layout *part, tdm_backend *backend,
                                                 tdm_batch_parts **out);
/* NULL is allowed. */
void tdm_batch_parts_destroy(tdm_batch_parts *parts);

/* Bytes, of host and device, that it takes. */
int64_t tdm_batch_parts_bytes(const tdm_batch_layout *part, bool host_memory);

/* Begins a batch, which stays as it is until its last part was taken; `data` is where the device
 * has it. */
void tdm_batch_parts_begin(tdm_batch_parts *parts, const tdm_batch *batch,
                           const unsigned char *data);

typedef struct tdm_row_range {
    int64_t begin, end;
} tdm_row_range;

/* The next part, on the device, ready for the default stream, and its rows of the batch; *data NULL
 * behind the last. What was given before is no longer needed. */
TDM_MUST_CHECK tdm_status tdm_batch_parts_next(tdm_batch_parts *parts, const unsigned char **data,
                                               tdm_row_range *rows);

#endif
