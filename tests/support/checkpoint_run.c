#include "tests/support/checkpoint_run.h"

#include "core/file.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/safetensors.h"
#include "tests/support/check_main.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define PATH_BYTES 400

char tdm_test_run[TDM_TEST_RUN_BYTES];

static void remove_run(void)
{
    tdm_file_set_test_hook(NULL);
    if (tdm_folder_remove(tdm_test_run) != TDM_OK)
        printf("%s\n", tdm_error_message());
}

void tdm_test_run_make(void)
{
    snprintf(tdm_test_run, sizeof tdm_test_run, "/dev/shm/tandem-test-XXXXXX");
    if (mkdtemp(tdm_test_run) == NULL)
        snprintf(tdm_test_run, sizeof tdm_test_run, "%s", tdm_test_folder());
    atexit(remove_run);
}

#define VALUES 100

tdm_status tdm_test_run_save_files(tdm_checkpoint_writer *writer, int content)
{
    int32_t values[VALUES];
    for (int i = 0; i < VALUES; i++)
        values[i] = content * 1000 + i;
    const tdm_safetensors_source source = {"w", TDM_I32, {1, {VALUES}}, values, NULL, NULL};
    char *path, text[64];
    uint64_t hash = 0;
    int64_t bytes = 0;
    TDM_TRY(tdm_checkpoint_writer_path(writer, "model.safetensors", &path));
    tdm_status status = tdm_safetensors_write(path, &source, 1, NULL, 0, &hash, &bytes);
    tdm_free(path);
    TDM_TRY(status);
    TDM_TRY(tdm_checkpoint_writer_add(writer, "model.safetensors", hash, bytes));
    snprintf(text, sizeof text, "{\"content\": %d}\n", content);
    return tdm_checkpoint_writer_put(writer, "state.json", text, strlen(text));
}

tdm_status tdm_test_run_save(int64_t step, int content)
{
    tdm_checkpoint_writer *writer;
    TDM_TRY(tdm_checkpoint_writer_begin(tdm_test_run, step, &writer));
    tdm_status status = tdm_test_run_save_files(writer, content);
    if (status == TDM_OK)
        status = tdm_checkpoint_writer_commit(writer);
    tdm_checkpoint_writer_close(writer);
    return status;
}

static int load_model(const char *path)
{
    tdm_safetensors *file;
    int32_t values[VALUES];
    ck_assert_ok(tdm_safetensors_open(path, &file));
    ck_assert_ok(
        tdm_safetensors_read(file, tdm_safetensors_find(file, "w"), 0, values, sizeof values));
    tdm_safetensors_close(file);
    for (int i = 0; i < VALUES; i++)
        ck_assert_int_eq(values[i], values[0] + i);
    return values[0] / 1000;
}

int tdm_test_run_load(int64_t step)
{
    char *path, *text;
    size_t bytes;
    ck_assert_ok(tdm_checkpoint_path(tdm_test_run, step, "model.safetensors", &path));
    int content = load_model(path);
    tdm_free(path);
    ck_assert_ok(tdm_checkpoint_path(tdm_test_run, step, "state.json", &path));
    ck_assert_ok(tdm_file_get(path, 1000, &text, &bytes));
    int state_content = -1;
    ck_assert_int_eq(sscanf(text, "{\"content\": %d}", &state_content), 1);
    ck_assert_int_eq(state_content, content);
    tdm_free(path);
    tdm_free(text);
    return content;
}

int64_t tdm_test_run_newest(void)
{
    int64_t step = -1;
    bool found = false;
    ck_assert_ok(tdm_checkpoint_newest_good(tdm_test_run, &step, &found));
    return found ? step : -1;
}

const char *tdm_test_run_listed(void)
{
    static char text[200];
    tdm_checkpoint_list list;
    text[0] = '\0';
    ck_assert_ok(tdm_checkpoint_list_read(tdm_test_run, &list));
    for (int64_t i = 0; i < list.count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld", i == 0 ? "" : " ",
                 (long long)list.steps[i]);
    tdm_checkpoint_list_free(&list);
    return text;
}

int tdm_test_run_leftovers(void)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/checkpoints", tdm_test_run);
    DIR *folder = opendir(path);
    ck_assert_ptr_nonnull(folder);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += strchr(entry->d_name, '.') != NULL && strncmp(entry->d_name, "step-", 5) == 0;
    closedir(folder);
    return count;
}

int64_t tdm_test_run_best(void)
{
    int64_t step = -1;
    bool found = false;
    ck_assert_ok(tdm_checkpoint_best(tdm_test_run, &step, &found));
    return found ? step : -1;
}

char tdm_test_run_warnings[4000];

static void warning_sink(void *context, tdm_log_level level, const char *message)
{
    (void)context;
    (void)level;
    size_t length = strlen(tdm_test_run_warnings);
    snprintf(tdm_test_run_warnings + length, sizeof tdm_test_run_warnings - length, "%s\n",
             message);
}

void tdm_test_run_watch_warnings(void)
{
    tdm_test_run_warnings[0] = '\0';
    tdm_log_set_sink(warning_sink, NULL);
}
