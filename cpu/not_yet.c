/* Ops that are not written yet. */
#include "cpu/backend_cpu.h"

#define NOT_YET(name)                                                                              \
    tdm_status tdm_cpu_##name(tdm_backend *backend, const tdm_##name##_args *args,                 \
                              tdm_stream *stream)                                                  \
    {                                                                                              \
        (void)backend;                                                                             \
        (void)args;                                                                                \
        (void)stream;                                                                              \
        return tdm_fail(TDM_E_UNSUPPORTED, "the op %s is not written yet", #name);                 \
    }

NOT_YET(attention_fwd)
NOT_YET(attention_bwd)
