/* A batch: a set of tensors of fixed maximum shapes in one piece of memory, so that one copy moves
 * it to a device. Its first `rows` rows are valid; ops never look at the rest. */
#ifndef TDM_CORE_BATCH_H
#define TDM_CORE_BATCH_H

#include "core/tensor.h"

#define TDM_BATCH_MAX_TENSORS 16
#define TDM_MAX_LANES         256

/* Tensors that every family of tasks has; a featurizer appends its own behind them. */
enum {
    TDM_BATCH_ROWS = 0,       /* i64 [1]: the count of valid rows, for ops to read on the device */
    TDM_BATCH_WEIGHT = 1,     /* f32 [batch]: a row's weight in the loss; 0 behind the valid rows */
    TDM_BATCH_SAMPLE = 2,     /* u64 [batch]: the row's number, the counter of its random draws */
    TDM_BATCH_OCCURRENCE = 3, /* u32 [batch]: how often the epoch had the row's sample before */
    TDM_BATCH_COMMON = 4,
};

typedef struct tdm_batch_tensor {
    const char *name;
    tdm_dtype dtype;
    tdm_shape shape;
    size_t offset; /* bytes from the start of the batch, a multiple of TDM_ALIGNMENT */
} tdm_batch_tensor;

typedef struct tdm_batch_layout {
    int64_t batch_size; /* most rows */
    int64_t max_tokens; /* most tokens of its rows together; 0: as many as they have */
    int count;
    tdm_batch_tensor tensors[TDM_BATCH_MAX_TENSORS];
    size_t bytes; /* of a whole batch */
} tdm_batch_layout;

/* A layout with the common tensors. */
void tdm_batch_layout_init(tdm_batch_layout *layout, int64_t batch_size);

/* Appends a tensor and returns its index. `name` must outlive the layout. */
int tdm_batch_layout_add(tdm_batch_layout *layout, const char *name, tdm_dtype dtype,
                         tdm_shape shape);

/* The index of the tensor called `name`, or -1. */
int tdm_batch_layout_find(const tdm_batch_layout *layout, const char *name);

/* Where the rows behind a batch begin: all that a restart needs to go on with the next batch. */
typedef struct tdm_lane_position {
    int64_t window;
    int64_t row;   /* within the window's permuted rows */
    int64_t bytes; /* stored bytes of the windows before it */
} tdm_lane_position;

typedef struct tdm_position {
    int64_t epoch;
    int64_t batches; /* given in this epoch */
    tdm_lane_position lanes[TDM_MAX_LANES];
} tdm_position;

typedef struct tdm_batch {
    const tdm_batch_layout *layout;
    unsigned char *data; /* layout->bytes */
    int64_t rows;        /* valid ones */
    int64_t tokens;      /* of these rows together */
    tdm_position after;  /* the position behind this batch */
    double share;        /* of the epoch's stored bytes, consumed behind this batch */
} tdm_batch;

static inline void *tdm_batch_data(const tdm_batch *batch, int tensor)
{
    return batch->data + batch->layout->tensors[tensor].offset;
}

#endif
