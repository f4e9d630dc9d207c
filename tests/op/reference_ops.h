/* The specification of every op: plain loops in double precision on the mirror of an op_world. What
 * is no float (ids, positions, counts) is read from the staging memory. */
#ifndef TDM_TESTS_REFERENCE_OPS_H
#define TDM_TESTS_REFERENCE_OPS_H

#include "tests/op/op_world.h"

#define REFERENCE_OP(name, kind)                                                                   \
    void reference_##name(op_world *world, const tdm_##name##_args *args);
TDM_OPS_LIST(REFERENCE_OP)
#undef REFERENCE_OP

/* keep / (1 - rate) of an element of the sample of row `sample` of the batch. */
double reference_kept(const op_world *world, const tdm_dropout_draws *draws, int64_t sample,
                      uint32_t element);
/* The same of an element of a matrix of so many columns. */
double reference_keep(const op_world *world, const tdm_dropout_draws *draws, int64_t row,
                      int64_t columns, int64_t column);

/* x rounded to bfloat16. */
double reference_bf16(double x);

double reference_activation(tdm_activation activation, double x);

#endif
