#include "trainer/device.h"

static tdm_status (*test_create)(tdm_pool *pool, tdm_backend **out);

void tdm_device_set_test_create(tdm_status (*create)(tdm_pool *pool, tdm_backend **out))
{
    test_create = create;
}

tdm_status tdm_device_create(const tdm_recipe *recipe, tdm_pool *pool, tdm_backend **out)
{
    if (test_create != NULL)
        return test_create(pool, out);
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

tdm_status tdm_recipe_resolve_precision(tdm_recipe *recipe, const tdm_backend_properties *device)
{
    int *precision = &recipe->train.precision;
    if (*precision == TDM_PRECISION_AUTO)
        *precision = device->bf16 ? TDM_PRECISION_BF16 : TDM_PRECISION_FP32;
    TDM_FAIL_IF(*precision == TDM_PRECISION_BF16 && !device->bf16, TDM_E_UNSUPPORTED,
                "train.precision: %s has no products in bfloat16 (AVX512_BF16 or AMX): take fp32, "
                "or auto",
                device->name);
    return TDM_OK;
}
