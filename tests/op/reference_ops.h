/* The specification of every op: plain loops in double precision on the mirror of an op_world. What
 * is no float (ids, positions, counts) is read from the staging memory. */
#ifndef TDM_TESTS_REFERENCE_OPS_H
#define TDM_TESTS_REFERENCE_OPS_H

#include "tests/op/op_world.h"

#define REFERENCE_OP(name, kind)                                                                   \
    void reference_##name(op_world *world, const tdm_##name##_args *args);
TDM_OPS_LIST(REFERENCE_OP)
#undef REFERENCE_OP

#endif
