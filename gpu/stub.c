/* Stands in for the CUDA backend in a build without CUDA. */
#include "core/backend.h"

tdm_status tdm_gpu_create(tdm_pool *pool, int device, tdm_backend **out)
{
    (void)pool;
    (void)device;
    *out = NULL;
    return tdm_fail(TDM_E_UNSUPPORTED, "this tandem was built without CUDA: use train.device=cpu");
}
