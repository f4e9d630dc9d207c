#include "tests/support/clicks.h"

#include "core/file.h"
#include "tests/support/check_main.h"

#include <stdio.h>

tdm_click_paths tdm_clicks;

static void set_path(char path[300], const char *name)
{
    snprintf(path, 300, "%.255s/%.40s", tdm_clicks.folder, name);
}

void tdm_clicks_begin(int rows)
{
    tdm_click_paths *paths = &tdm_clicks;
    tdm_test_fast_folder(paths->folder);
    set_path(paths->data, "clicks.csv");
    set_path(paths->eval_data, "later.csv");
    set_path(paths->run, "run");
    tdm_test_write_clicks(paths->data, rows, 1);
    tdm_test_write_clicks(paths->eval_data, 1500, 2);
}

void tdm_clicks_end(void)
{
    ck_assert_ok(tdm_folder_remove(tdm_clicks.folder));
}

tdm_status tdm_clicks_train(const char *model, const char *overrides[],
                            const tdm_train_control *control, tdm_train_result *result)
{
    int count = 0;
    while (overrides != NULL && overrides[count] != NULL)
        count++;
    tdm_recipe *recipe =
        tdm_test_recipe(tdm_clicks.folder, tdm_clicks.data, model, overrides, count);
    tdm_status status = tdm_train(recipe, control, result);
    tdm_recipe_free(recipe);
    return status;
}

const char *tdm_clicks_eval(void)
{
    static char text[400];
    snprintf(text, sizeof text, "data.eval=[%s]", tdm_clicks.eval_data);
    return text;
}

const char *tdm_clicks_file(int64_t step, const char *name)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/checkpoints/step-%08lld/%s", tdm_clicks.run, (long long)step,
             name);
    return path;
}

uint64_t tdm_clicks_hash(int64_t step)
{
    uint64_t hash;
    int64_t bytes;
    ck_assert_ok(tdm_file_hash(tdm_clicks_file(step, "model.safetensors"), &hash, &bytes));
    return hash;
}

void tdm_clicks_damage(const char *path)
{
    FILE *file = fopen(path, "r+e");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, -3, SEEK_END), 0);
    fputc('!', file);
    ck_assert_int_eq(fclose(file), 0);
}
