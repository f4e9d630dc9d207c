#include "trainer/task_text.h"

#include "core/file.h"
#include "core/memory.h"
#include "trainer/batch_parts.h"
#include "trainer/run_folder.h"

tdm_status tdm_run_load_tokenizer(const char *folder, tdm_tokenizer **out)
{
    char *path;
    *out = NULL;
    TDM_TRY(tdm_path_join(folder, TDM_RUN_TOKENIZER, &path));
    tdm_status status = tdm_tokenizer_open(path, NULL, out);
    tdm_free(path);
    return status;
}

tdm_status tdm_run_text_format(const tdm_recipe *recipe, const char *folder,
                               tdm_record_format **out)
{
    tdm_format_options options;
    TDM_TRY(tdm_data_format_options(&recipe->data, &options));
    return tdm_record_format_create(&options, folder, "", 0, out);
}

tdm_status tdm_text_task_finish(tdm_task *task, const tdm_recipe *recipe, tdm_text_head head,
                                int64_t classes)
{
    task->inputs = (tdm_model_inputs){
        .vocabulary = tdm_tokenizer_size(task->tokenizer),
        .max_length = recipe->text.max_length,
        .head = head,
        .classes = classes,
    };
    task->encoder = recipe->model_options;
    return tdm_batch_part_layout(&task->featurizer->batch, recipe->train.micro_batch_tokens,
                                 recipe->text.max_length, &task->model_batch);
}

tdm_status tdm_text_task_save(const tdm_task *task, const tdm_input *input, const char *folder)
{
    char *path;
    (void)input;
    TDM_TRY(tdm_path_join(folder, TDM_RUN_TOKENIZER, &path));
    tdm_status status = tdm_tokenizer_save(task->tokenizer, path);
    tdm_free(path);
    return status;
}

tdm_status tdm_text_task_check(const tdm_task *task, const tdm_input *input, const char *folder)
{
    tdm_tokenizer *saved;
    (void)input;
    TDM_TRY(tdm_run_load_tokenizer(folder, &saved));
    bool same = tdm_tokenizer_hash(saved) == tdm_tokenizer_hash(task->tokenizer);
    tdm_tokenizer_close(saved);
    TDM_FAIL_IF(!same, TDM_E_CONFIG,
                "%s/%s: text.tokenizer is not what it was: change it back, or train into another "
                "folder (output.dir)",
                folder, TDM_RUN_TOKENIZER);
    return TDM_OK;
}
