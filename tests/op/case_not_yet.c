/* Ops whose cases and references are not written yet. */
#include "tests/op/op_cases.h"
#include "tests/op/reference_ops.h"

#define NOT_YET(name)                                                                              \
    bool case_##name(op_world *world, int n, tdm_##name##_args *args)                              \
    {                                                                                              \
        (void)world;                                                                               \
        (void)n;                                                                                   \
        (void)args;                                                                                \
        return false;                                                                              \
    }                                                                                              \
    void reference_##name(op_world *world, const tdm_##name##_args *args)                          \
    {                                                                                              \
        (void)world;                                                                               \
        (void)args;                                                                                \
    }

NOT_YET(activation_bwd)
NOT_YET(gated_fwd)
NOT_YET(gated_bwd)
NOT_YET(rotary)
NOT_YET(softmax_loss)
NOT_YET(squared_loss)
