/* What steps sum up of a loss (core/ops.h), over many of them. */
#ifndef TDM_TRAINER_LOSS_SUMS_H
#define TDM_TRAINER_LOSS_SUMS_H

#include "core/ops.h"

#include <jansson.h>

void tdm_loss_sums_add(tdm_loss_scalars *into, const tdm_loss_scalars *from);

/* The mean loss, and the share of the weight that is correct; NaN without weight, and where the sum
 * of losses is NaN: what is correct says nothing then. */
double tdm_loss_sums_mean(const tdm_loss_scalars *sums);
double tdm_loss_sums_accuracy(const tdm_loss_scalars *sums);

/* As a new JSON array, to the bit; NULL without memory. */
json_t *tdm_loss_sums_save(const tdm_loss_scalars *sums);

/* TDM_E_FORMAT naming the key where `saved` has no such array there. */
TDM_MUST_CHECK tdm_status tdm_loss_sums_restore(const json_t *saved, const char *key,
                                                tdm_loss_scalars *out);

#endif
