/* The featurizer of CTR tasks: records to labels, ids of fields and dense numbers. */
#ifndef TDM_FEATURES_CTR_FEATURIZER_H
#define TDM_FEATURES_CTR_FEATURIZER_H

#include "core/featurizer.h"
#include "core/pool.h"
#include "features/feature_spec.h"

/* What a featurizer is for. */
typedef enum tdm_ctr_use {
    TDM_CTR_TRAINING = 0, /* labels must be there; batches carry distinct ids */
    TDM_CTR_EVALUATION = 1,
    TDM_CTR_PREDICTION = 2, /* labels are not looked at */
} tdm_ctr_use;

/* Columns of a block: "label" f32 [1], "ids" u32 [fields], "dense" f32 [dense].
 *
 * Tensors of a batch, behind the common ones; B is batch_size, F the fields, D the dense features:
 *   label               f32 [B]
 *   dense               f32 [B, D]     where D > 0
 *   ids                 u32 [F, B]     where F > 0
 * and for training, where F > 0 (see tdm_distinct_ids in ops.h):
 *   distinct_counts     i32 [F]
 *   distinct_ids        u32 [F, B]
 *   distinct_starts     i32 [F, B + 1]
 *   distinct_positions  i32 [F, B]
 *
 * Borrows `spec`; `format` and `pool` are looked at only here. */
TDM_MUST_CHECK tdm_status tdm_ctr_featurizer_create(const tdm_feature_spec *spec,
                                                    const tdm_record_format *format, tdm_pool *pool,
                                                    int64_t batch_size, tdm_ctr_use use,
                                                    tdm_featurizer **out);

#endif
