#include "core/ops.h"

enum { OP_FUSED, OP_REQUIRED };

tdm_status tdm_ops_check(const tdm_backend *backend)
{
#define CHECK_SLOT(slot, kind)                                                                     \
    TDM_FAIL_IF(OP_##kind == OP_REQUIRED && backend->ops->slot == NULL, TDM_E_UNSUPPORTED,         \
                "backend %s lacks the op %s", backend->type->name, #slot);
    TDM_OPS_LIST(CHECK_SLOT)
#undef CHECK_SLOT
    return TDM_OK;
}

void tdm_backend_destroy(tdm_backend *backend)
{
    if (backend != NULL)
        backend->type->destroy(backend);
}
