#include "trainer/loss_sums.h"

#include "trainer/metrics_result.h"
#include "trainer/saved_number.h"

void tdm_loss_sums_add(tdm_loss_scalars *into, const tdm_loss_scalars *from)
{
    into->weight_sum += from->weight_sum;
    into->loss_sum += from->loss_sum;
    into->correct_sum += from->correct_sum;
}

double tdm_loss_sums_mean(const tdm_loss_scalars *sums)
{
    return tdm_ratio(sums->loss_sum, sums->weight_sum);
}

double tdm_loss_sums_accuracy(const tdm_loss_scalars *sums)
{
    return isnan(sums->loss_sum) ? NAN : tdm_ratio(sums->correct_sum, sums->weight_sum);
}

json_t *tdm_loss_sums_save(const tdm_loss_scalars *sums)
{
    return json_pack("[o, o, o]", tdm_saved_double(sums->weight_sum),
                     tdm_saved_double(sums->loss_sum), tdm_saved_double(sums->correct_sum));
}

tdm_status tdm_loss_sums_restore(const json_t *saved, const char *key, tdm_loss_scalars *out)
{
    const json_t *array = json_object_get(saved, key);
    bool good = json_array_size(array) == 3 &&
                tdm_saved_double_get(json_array_get(array, 0), &out->weight_sum) &&
                tdm_saved_double_get(json_array_get(array, 1), &out->loss_sum) &&
                tdm_saved_double_get(json_array_get(array, 2), &out->correct_sum);
    TDM_FAIL_IF(!good, TDM_E_FORMAT, "saved metrics: %s is not the sums of a loss", key);
    return TDM_OK;
}
