/* Saving the histogram of an AUC, to the bit. */
#include "trainer/auc.h"
#include "trainer/saved_number.h"

json_t *tdm_auc_save(const tdm_auc *auc)
{
    json_t *array = json_array();
    int failed = array == NULL;
    for (int i = 0; i < TDM_AUC_BINS && !failed; i++) {
        const tdm_auc_bin *bin = &auc->bins[i];
        if (bin->negatives == 0.0 && bin->positives == 0.0)
            continue;
        failed |= json_array_append_new(array, json_integer(i));
        failed |= json_array_append_new(array, tdm_saved_double(bin->negatives));
        failed |= json_array_append_new(array, tdm_saved_double(bin->positives));
    }
    if (!failed)
        return array;
    json_decref(array);
    return NULL;
}

tdm_status tdm_auc_restore(tdm_auc *auc, const json_t *saved)
{
    TDM_FAIL_IF(!json_is_array(saved) || json_array_size(saved) % 3 != 0, TDM_E_FORMAT,
                "saved metrics: auc_bins is not a list of triples");
    json_int_t last = -1;
    for (size_t i = 0; i < json_array_size(saved); i += 3) {
        const json_t *index = json_array_get(saved, i);
        json_int_t bin = json_is_integer(index) ? json_integer_value(index) : -1;
        tdm_auc_bin weights;
        bool good = bin > last && bin < TDM_AUC_BINS &&
                    tdm_saved_double_get(json_array_get(saved, i + 1), &weights.negatives) &&
                    tdm_saved_double_get(json_array_get(saved, i + 2), &weights.positives) &&
                    weights.negatives >= 0.0 && weights.positives >= 0.0;
        TDM_FAIL_IF(!good, TDM_E_FORMAT, "saved metrics: auc_bins is damaged at item %zu", i);
        auc->bins[bin] = weights;
        last = bin;
    }
    return TDM_OK;
}
