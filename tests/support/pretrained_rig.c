#include "tests/support/pretrained_rig.h"

#include "core/file.h"
#include "core/log.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "trainer/tensor_file.h"

#include <stdio.h>
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

const char *tdm_golden_folder(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, TDM_SOURCE_DIR "/tests/golden/interchange/%s", name);
    return path;
}

/* ---- notices --------------------------------------------------------------------------------- */

static char notices[8192];

static void keep_notice(void *context, tdm_log_level level, const char *message)
{
    (void)context;
    size_t used = strlen(notices);
    snprintf(notices + used, sizeof notices - used, "%s%s\n",
             level == TDM_LOG_WARNING ? "warning: " : "", message);
}

void tdm_notices_listen(void)
{
    notices[0] = '\0';
    tdm_log_set_sink(keep_notice, NULL);
}

const char *tdm_notices(void)
{
    return notices;
}

void tdm_notices_check(const char *text)
{
    ck_assert_msg(strstr(notices, text) != NULL, "\"%s\" is not in \"%s\"", text, notices);
}

/* ---- folders that are changed ---------------------------------------------------------------- */

static tdm_status keep_all(const char *folder, const char *name)
{
    char *data, from[600];
    size_t bytes;
    snprintf(from, sizeof from, "%s", tdm_test_path(tdm_golden_folder("bert_masked"), name));
    TDM_TRY(tdm_file_get(from, 1 << 20, &data, &bytes));
    tdm_status status = tdm_file_put(tdm_test_path(folder, name), data, bytes, NULL);
    tdm_free(data);
    return status;
}

const char *tdm_changed_folder(tdm_tensor_change how, const tdm_safetensors_source *further)
{
    static char folder[512];
    static char names[TDM_CHANGED_TENSORS][128];
    static float data[TDM_CHANGED_TENSORS][1024];
    tdm_safetensors *file;
    tdm_safetensors_source sources[TDM_CHANGED_TENSORS + 1];
    int count = 0;
    snprintf(folder, sizeof folder, "%s", tdm_test_folder());
    ck_assert_ok(keep_all(folder, "config.json"));
    ck_assert_ok(keep_all(folder, "vocab.txt"));
    ck_assert_ok(tdm_safetensors_open(
        tdm_test_path(tdm_golden_folder("bert_masked"), "model.safetensors"), &file));
    for (int i = 0; i < tdm_safetensors_count(file); i++) {
        const tdm_safetensors_tensor *tensor = tdm_safetensors_get(file, i);
        ck_assert_int_le(tensor->bytes, (int64_t)sizeof data[0]);
        ck_assert_ok(tdm_safetensors_read(file, i, 0, data[count], (size_t)tensor->bytes));
        snprintf(names[count], sizeof names[count], "%s", tensor->name);
        sources[count] = (tdm_safetensors_source){.name = names[count],
                                                  .dtype = tensor->dtype,
                                                  .shape = tensor->shape,
                                                  .data = data[count]};
        if (how == NULL || how(names[count], &sources[count]))
            count++;
    }
    tdm_safetensors_close(file);
    if (further != NULL)
        sources[count++] = *further;
    ck_assert_ok(tdm_safetensors_write(tdm_test_path(folder, "model.safetensors"), sources, count,
                                       NULL, 0, NULL, NULL));
    return folder;
}

/* ---- models ---------------------------------------------------------------------------------- */

void tdm_pretrained_rig_open(tdm_encoder_rig *rig, const tdm_pretrained *from, int64_t vocabulary,
                             tdm_text_head head, int64_t classes)
{
    const tdm_model_inputs inputs = {
        .vocabulary = vocabulary, .max_length = 12, .head = head, .classes = classes};
    tdm_pretrained_rig_init(rig, &from->config.options, &inputs, false, false);
}

tdm_status tdm_pretrained_try(const tdm_pretrained *from, const tdm_tokenizer *tokenizer,
                              tdm_text_head head)
{
    tdm_encoder_rig rig;
    tdm_pretrained_report report;
    int64_t elements;
    tdm_pretrained_rig_open(&rig, from, tdm_tokenizer_size(tokenizer), head, 3);
    float *before = tdm_pretrained_rig_values(&rig, "embeddings.word.weight", &elements);
    tdm_status status = tdm_pretrained_rig_load(&rig, from, tokenizer, &report);
    float *after = tdm_pretrained_rig_values(&rig, "embeddings.word.weight", &elements);
    bool is_same = memcmp(before, after, (size_t)elements * sizeof *before) == 0;
    ck_assert_int_eq(is_same, status != TDM_OK);
    free(before);
    free(after);
    tdm_encoder_rig_deinit(&rig);
    return status;
}
