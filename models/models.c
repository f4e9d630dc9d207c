#include "models/ctr_models.h"

const tdm_model_type *const tdm_models[] = {
    &tdm_logistic_regression,
    &tdm_deepfm,
    &tdm_dcn_v2,
    NULL,
};

tdm_status tdm_inputs_check(const tdm_model_inputs *inputs)
{
    TDM_FAIL_IF(inputs->field_count == 0 && inputs->dense_count == 0, TDM_E_CONFIG,
                "features: the model has no inputs: name columns under features.fields or "
                "features.dense");
    return TDM_OK;
}
