/* Which backend a recipe asks for. Private to this folder. */
#ifndef TDM_TRAINER_DEVICE_H
#define TDM_TRAINER_DEVICE_H

#include "trainer/recipe.h"

/* train.device: cpu, gpu, or with auto a GPU where there is one. */
TDM_MUST_CHECK tdm_status tdm_device_create(const tdm_recipe *recipe, tdm_pool *pool,
                                            tdm_backend **out);

#endif
