#include "trainer/device.h"

tdm_status tdm_device_create(const tdm_recipe *recipe, tdm_pool *pool, tdm_backend **out)
{
    switch ((tdm_device_choice)recipe->train.device) {
    case TDM_DEVICE_CPU:
        return tdm_cpu_create(pool, out);
    case TDM_DEVICE_GPU:
        return tdm_gpu_create(pool, 0, out);
    case TDM_DEVICE_AUTO:
        break;
    }
    return tdm_gpu_create(pool, 0, out) == TDM_OK ? TDM_OK : tdm_cpu_create(pool, out);
}
