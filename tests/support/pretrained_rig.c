#include "tests/support/pretrained_rig.h"

#include "core/memory.h"
#include "tests/support/check_main.h"
#include "trainer/tensor_file.h"

#include <string.h>

enum { TOKENS = 256 };

tdm_saved_tensor *tdm_pretrained_parameters(const tdm_encoder_rig *rig, int *count)
{
    tdm_saved_tensor *tensors;
    ck_assert_ok(tdm_model_tensors(rig->rig.model, &tensors, count));
    return tensors;
}

void tdm_pretrained_rig_init(tdm_encoder_rig *rig, const tdm_bert_options *options,
                             const tdm_model_inputs *inputs, bool pairs, bool inference)
{
    const tdm_encoder_rig_options rig_options = {.model = *options,
                                                 .inputs = *inputs,
                                                 .setup = {.seed = 3, .compute = TDM_F32},
                                                 .sequences = TDM_PRETRAINED_SEQUENCES,
                                                 .tokens = TOKENS,
                                                 .predictions = TOKENS,
                                                 .pairs = pairs,
                                                 .inference = inference};
    tdm_encoder_rig_init(rig, &rig_options);
}

tdm_status tdm_pretrained_rig_load(tdm_encoder_rig *rig, const tdm_pretrained *from,
                                   const tdm_tokenizer *tokenizer, tdm_pretrained_report *report)
{
    int count;
    tdm_saved_tensor *parameters = tdm_pretrained_parameters(rig, &count);
    tdm_status status = tdm_pretrained_load(from, &rig->options.model, &rig->options.inputs,
                                            tokenizer, rig->rig.backend, parameters, count, report);
    tdm_free(parameters);
    return status;
}

tdm_safetensors *tdm_pretrained_rig_save(tdm_encoder_rig *rig)
{
    int count;
    tdm_safetensors *file;
    const char *path = tdm_test_path(tdm_test_folder(), "model.safetensors");
    tdm_saved_tensor *parameters = tdm_pretrained_parameters(rig, &count);
    ck_assert_ok(tdm_tensor_file_save(path, rig->rig.backend, parameters, count, NULL, NULL));
    ck_assert_ok(tdm_safetensors_open(path, &file));
    tdm_free(parameters);
    return file;
}

float *tdm_pretrained_rig_values(tdm_encoder_rig *rig, const char *name, int64_t *elements)
{
    const tdm_parameter *parameter = tdm_rig_parameter(&rig->rig, name);
    *elements = tdm_shape_elements(&parameter->shape);
    float *values = malloc((size_t)*elements * sizeof *values);
    ck_assert_ptr_nonnull(values);
    tdm_rig_copy_out(&rig->rig, values, tdm_rig_values(&rig->rig, parameter),
                     (size_t)*elements * sizeof *values);
    return values;
}
