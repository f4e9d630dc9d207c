#include "cli/op_profile.h"

#include "core/clock.h"

#include <stdlib.h>

/* clang-format off */
enum {
#define KIND_OF(name, kind) KIND_##name,
    TDM_OPS_LIST(KIND_OF)
#undef KIND_OF
    KIND_FORWARD_PRODUCT,
    KIND_INPUT_GRADIENT,
    KIND_WEIGHT_GRADIENT,
    KINDS,
};

static tdm_op_time times[KINDS] = {
#define TIME_OF(op, kind) [KIND_##op] = {.name = #op},
    TDM_OPS_LIST(TIME_OF)
#undef TIME_OF
    [KIND_FORWARD_PRODUCT] = {.name = "gemm, forward"},
    [KIND_INPUT_GRADIENT] = {.name = "gemm, input gradient"},
    [KIND_WEIGHT_GRADIENT] = {.name = "gemm, weight gradient"},
};
/* clang-format on */
static const tdm_ops *profiled;

static void note(int kind, double start)
{
    times[kind].seconds += tdm_clock_seconds() - start;
    times[kind].calls++;
}

static int kind_of_gemm(const tdm_gemm_args *args)
{
    if (args->trans_a)
        return KIND_WEIGHT_GRADIENT;
    return args->trans_b ? KIND_FORWARD_PRODUCT : KIND_INPUT_GRADIENT;
}

#define KIND_OF_CALL(name, args)                                                                   \
    _Generic((args), const tdm_gemm_args *: kind_of_gemm((const void *)(args)),                    \
        default: KIND_##name)

#define PROFILE_OP(name, kind)                                                                     \
    static tdm_status profile_##name(tdm_backend *backend, const tdm_##name##_args *args,          \
                                     tdm_stream *stream)                                           \
    {                                                                                              \
        double start = tdm_clock_seconds();                                                        \
        TDM_TRY(profiled->name(backend, args, stream));                                            \
        TDM_TRY(backend->type->stream_sync(backend, stream));                                      \
        note(KIND_OF_CALL(name, args), start);                                                     \
        return TDM_OK;                                                                             \
    }
TDM_OPS_LIST(PROFILE_OP)
#undef PROFILE_OP

static const tdm_ops profile_ops = {
#define PROFILE_SLOT(name, kind) .name = profile_##name,
    TDM_OPS_LIST(PROFILE_SLOT)
#undef PROFILE_SLOT
};

void tdm_op_profile_watch(void *context, tdm_backend *backend)
{
    (void)context;
    profiled = backend->ops;
    backend->ops = &profile_ops;
}

static int by_seconds(const void *a, const void *b)
{
    const tdm_op_time *left = a, *right = b;
    return (left->seconds < right->seconds) - (left->seconds > right->seconds);
}

const tdm_op_time *tdm_op_profile_get(int *count)
{
    static tdm_op_time called[KINDS];
    *count = 0;
    for (int kind = 0; kind < KINDS; kind++) {
        if (times[kind].calls > 0)
            called[(*count)++] = times[kind];
    }
    qsort(called, (size_t)*count, sizeof called[0], by_seconds);
    return called;
}
