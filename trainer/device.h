/* Which backend a recipe asks for. Private to this folder. */
#ifndef TDM_TRAINER_DEVICE_H
#define TDM_TRAINER_DEVICE_H

#include "trainer/recipe.h"

/* train.device: cpu, gpu, or with auto a GPU where there is one. */
TDM_MUST_CHECK tdm_status tdm_device_create(const tdm_recipe *recipe, tdm_pool *pool,
                                            tdm_backend **out);

/* Tests: what tdm_device_create() calls from now on; NULL: the backends again. */
void tdm_device_set_test_create(tdm_status (*create)(tdm_pool *pool, tdm_backend **out));

/* Completes train.precision with what the device has, where it is auto; TDM_E_UNSUPPORTED where it
 * asks for what the device lacks. */
TDM_MUST_CHECK tdm_status tdm_recipe_resolve_precision(tdm_recipe *recipe,
                                                       const tdm_backend_properties *device);

#endif
