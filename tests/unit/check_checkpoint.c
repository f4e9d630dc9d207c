#include "core/file.h"
#include "core/log.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "trainer/checkpoint.h"
#include "trainer/safetensors.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUN_BYTES  300
#define PATH_BYTES 400

/* ---- the run folder ------------------------------------------------------------------------ */

static char run[RUN_BYTES];

static void remove_run(void)
{
    tdm_file_set_test_hook(NULL);
    if (tdm_folder_remove(run) != TDM_OK)
        printf("%s\n", tdm_error_message());
}

/* A new run folder, in memory where there is such a place: these tests sync some ten thousand
 * times. */
static void make_run(void)
{
    snprintf(run, sizeof run, "/dev/shm/tandem-test-XXXXXX");
    if (mkdtemp(run) == NULL)
        snprintf(run, sizeof run, "%s", tdm_test_folder());
    atexit(remove_run);
}

/* ---- what the tests save ------------------------------------------------------------------- */

#define VALUES 100

/* A checkpoint of which every file says `content`. */
static tdm_status save_files(tdm_checkpoint_writer *writer, int content)
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

static tdm_status save(int64_t step, int content)
{
    tdm_checkpoint_writer *writer;
    TDM_TRY(tdm_checkpoint_writer_begin(run, step, &writer));
    tdm_status status = save_files(writer, content);
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

/* Loads all files, which must say the same content, and returns it. */
static int load(int64_t step)
{
    char *path, *text;
    size_t bytes;
    ck_assert_ok(tdm_checkpoint_path(run, step, "model.safetensors", &path));
    int content = load_model(path);
    tdm_free(path);
    ck_assert_ok(tdm_checkpoint_path(run, step, "state.json", &path));
    ck_assert_ok(tdm_file_get(path, 1000, &text, &bytes));
    int state_content = -1;
    ck_assert_int_eq(sscanf(text, "{\"content\": %d}", &state_content), 1);
    ck_assert_int_eq(state_content, content);
    tdm_free(path);
    tdm_free(text);
    return content;
}

static int64_t newest(void)
{
    int64_t step = -1;
    bool found = false;
    ck_assert_ok(tdm_checkpoint_newest_good(run, &step, &found));
    return found ? step : -1;
}

/* The steps that are there, "30 20 10". */
static const char *listed(void)
{
    static char text[200];
    tdm_checkpoint_list list;
    text[0] = '\0';
    ck_assert_ok(tdm_checkpoint_list_read(run, &list));
    for (int64_t i = 0; i < list.count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld", i == 0 ? "" : " ",
                 (long long)list.steps[i]);
    tdm_checkpoint_list_free(&list);
    return text;
}

/* Folders of saves that did not end, or replaced ones. */
static int leftovers(void)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/checkpoints", run);
    DIR *folder = opendir(path);
    ck_assert_ptr_nonnull(folder);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += strchr(entry->d_name, '.') != NULL && strncmp(entry->d_name, "step-", 5) == 0;
    closedir(folder);
    return count;
}

static int64_t best(void)
{
    int64_t step = -1;
    bool found = false;
    ck_assert_ok(tdm_checkpoint_best(run, &step, &found));
    return found ? step : -1;
}

static char warnings[4000];

static void warning_sink(void *context, tdm_log_level level, const char *message)
{
    (void)context;
    (void)level;
    size_t length = strlen(warnings);
    snprintf(warnings + length, sizeof warnings - length, "%s\n", message);
}

static void watch_warnings(void)
{
    warnings[0] = '\0';
    tdm_log_set_sink(warning_sink, NULL);
}

/* ---- plain use ----------------------------------------------------------------------------- */

START_TEST(test_save_and_find)
{
    make_run();
    ck_assert_ok(tdm_folder_remove(run)); /* the save creates it */
    ck_assert_str_eq(listed(), "");
    ck_assert_int_eq(newest(), -1);
    ck_assert_int_eq(best(), -1);
    ck_assert_ok(save(9, 1));
    ck_assert_ok(save(1200, 2));
    ck_assert_ok(save(123456789, 3));
    ck_assert_ok(save(0, 4));
    ck_assert_str_eq(listed(), "123456789 1200 9 0");
    ck_assert_int_eq(newest(), 123456789);
    ck_assert_int_eq(load(1200), 2);
    ck_assert_int_eq(load(0), 4);
    ck_assert(tdm_file_exists(tdm_test_path(run, "checkpoints/step-00001200/manifest.json")));
    ck_assert_ok(tdm_checkpoint_verify(run, 9));
    ck_assert_fails(tdm_checkpoint_verify(run, 10), TDM_E_FORMAT,
                    "step-00000010/manifest.json: missing");
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

START_TEST(test_foreign_names)
{
    static const char *const names[] = {
        "step-1", "step-000000001", "step-00000001x",    "step--0000001",
        "step-",  "other",          "step-00000001.old", "step-99999999999999999999"};
    make_run();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "%s/checkpoints/%s", run, names[i]);
        ck_assert_ok(tdm_folder_create(path));
    }
    ck_assert_str_eq(listed(), "");
    ck_assert_ok(save(1, 1));
    ck_assert_str_eq(listed(), "1");
    ck_assert(tdm_file_exists(tdm_test_path(run, "checkpoints/step-00000001.old")));
}
END_TEST

START_TEST(test_writer_refuses)
{
    static const char *const names[] = {"", ".", "..", "a/b", "manifest.json"};
    make_run();
    tdm_checkpoint_writer *writer;
    ck_assert_fails(tdm_checkpoint_writer_begin(run, -1, &writer), TDM_E_ARG, "step -1");
    ck_assert_ok(tdm_checkpoint_writer_begin(run, 1, &writer));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        ck_assert_fails(tdm_checkpoint_writer_add(writer, names[i], 1, 1), TDM_E_ARG,
                        "cannot be the name");
    ck_assert_ok(tdm_checkpoint_writer_put(writer, "a", "x", 1));
    ck_assert_fails(tdm_checkpoint_writer_add(writer, "a", 1, 1), TDM_E_ARG, "\"a\" already");
    ck_assert_ok(tdm_checkpoint_writer_commit(writer));
    ck_assert_fails(tdm_checkpoint_writer_commit(writer), TDM_E_STATE, "already committed");
    tdm_checkpoint_writer_close(writer);
    tdm_checkpoint_writer_close(NULL);
    ck_assert_int_eq(newest(), 1);

    ck_assert_ok(tdm_checkpoint_writer_begin(run, 2, &writer));
    ck_assert_ok(tdm_checkpoint_writer_put(writer, "\xff", "x", 1));
    ck_assert_fails(tdm_checkpoint_writer_commit(writer), TDM_E_NOMEM, "not UTF-8");
    tdm_checkpoint_writer_close(writer);
    ck_assert_int_eq(leftovers(), 0);
}
END_TEST

START_TEST(test_close_without_commit)
{
    make_run();
    tdm_checkpoint_writer *writer;
    ck_assert_ok(save(1, 1));
    ck_assert_ok(tdm_checkpoint_writer_begin(run, 2, &writer));
    ck_assert_ok(save_files(writer, 2));
    ck_assert_int_eq(leftovers(), 1);
    ck_assert_str_eq(listed(), "1");
    tdm_checkpoint_writer_close(writer);
    ck_assert_int_eq(leftovers(), 0);
    ck_assert_str_eq(listed(), "1");
}
END_TEST

START_TEST(test_same_step_again)
{
    make_run();
    ck_assert_ok(save(1, 1));
    ck_assert_ok(save(1, 2));
    ck_assert_str_eq(listed(), "1");
    ck_assert_int_eq(load(1), 2);
    ck_assert_int_eq(leftovers(), 0);
}
END_TEST

START_TEST(test_prune)
{
    make_run();
    for (int step = 1; step <= 7; step++)
        ck_assert_ok(save(step, step));
    ck_assert_fails(tdm_checkpoint_prune(run, 7, 0, -1), TDM_E_ARG, "at least 1");
    ck_assert_ok(tdm_checkpoint_prune(run, 7, 7, -1));
    ck_assert_str_eq(listed(), "7 6 5 4 3 2 1");
    ck_assert_ok(tdm_checkpoint_prune(run, 7, 5, 1));
    ck_assert_str_eq(listed(), "7 6 5 4 3 1");
    /* A run that resumed from 5 because 6 and 7 were damaged keeps what it just saved. */
    ck_assert_ok(tdm_checkpoint_prune(run, 5, 1, 1));
    ck_assert_str_eq(listed(), "7 6 5 1");
    ck_assert_ok(tdm_checkpoint_prune(run, 7, 1, -1));
    ck_assert_str_eq(listed(), "7");
    ck_assert_int_eq(load(7), 7);
    ck_assert_ok(tdm_checkpoint_prune(run, 7, 1, -1));
    ck_assert_str_eq(listed(), "7");
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

static char first_call[PATH_BYTES];

static int stop_after_first(const char *call, const char *path)
{
    if (strcmp(call, "unlink") != 0)
        return 0;
    if (first_call[0] != '\0')
        return EIO;
    snprintf(first_call, sizeof first_call, "%s", path);
    return 0;
}

START_TEST(test_half_deleted_never_verifies)
{
    make_run();
    ck_assert_ok(save(1, 1));
    ck_assert_ok(save(2, 2));
    tdm_file_set_test_hook(stop_after_first);
    ck_assert_fails(tdm_checkpoint_prune(run, 2, 1, -1), TDM_E_IO, "the disk reported an error");
    tdm_file_set_test_hook(NULL);
    ck_assert_ptr_nonnull(strstr(first_call, "step-00000001/manifest.json"));
    ck_assert_str_eq(listed(), "2 1");
    ck_assert_fails(tdm_checkpoint_verify(run, 1), TDM_E_FORMAT, "half deleted");
    ck_assert_ok(tdm_checkpoint_prune(run, 2, 1, -1));
    ck_assert_str_eq(listed(), "2");
}
END_TEST

START_TEST(test_best)
{
    char link[PATH_BYTES], target[PATH_BYTES] = {0};
    make_run();
    snprintf(link, sizeof link, "%s/checkpoints/best", run);
    ck_assert_fails(tdm_checkpoint_set_best(run, 1), TDM_E_ARG, "step-00000001: there is no such");
    ck_assert_ok(save(1, 1));
    ck_assert_ok(save(2, 2));
    ck_assert_ok(tdm_checkpoint_set_best(run, 1));
    ck_assert_int_eq(best(), 1);
    ck_assert_int_gt(readlink(link, target, sizeof target - 1), 0);
    ck_assert_str_eq(target, "step-00000001");
    ck_assert_ok(tdm_checkpoint_set_best(run, 2));
    ck_assert_int_eq(best(), 2);
    ck_assert_str_eq(listed(), "2 1");

    watch_warnings();
    ck_assert_ok(tdm_folder_remove(tdm_test_path(run, "checkpoints/step-00000002")));
    ck_assert_int_eq(best(), -1);
    ck_assert_ptr_nonnull(strstr(warnings, "best: the checkpoint of step 2 that it points to is"));

    int64_t step;
    bool found;
    ck_assert_ok(tdm_link_replace("../other", link));
    ck_assert_fails(tdm_checkpoint_best(run, &step, &found), TDM_E_FORMAT, "best: not a link");
    ck_assert_int_eq(unlink(link), 0);
    ck_assert_ok(tdm_file_put(link, "x", 1));
    ck_assert_fails(tdm_checkpoint_best(run, &step, &found), TDM_E_FORMAT, "best: not a link");
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

/* ---- damage -------------------------------------------------------------------------------- */

static void damage(const char *path, const char *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, bytes, file), bytes);
    ck_assert_int_eq(fclose(file), 0);
}

/* Every bit of every file flipped, and every file cut at every length. */
START_TEST(test_damage_is_seen)
{
    static const char *const names[] = {"manifest.json", "state.json", "model.safetensors"};
    make_run();
    ck_assert_ok(save(1, 1));
    for (size_t f = 0; f < sizeof names / sizeof names[0]; f++) {
        char *path, *data;
        size_t bytes;
        ck_assert_ok(tdm_checkpoint_path(run, 1, names[f], &path));
        ck_assert_ok(tdm_file_get(path, 10000, &data, &bytes));
        for (size_t bit = 0; bit < 8 * bytes; bit++) {
            data[bit / 8] = (char)(data[bit / 8] ^ 1 << bit % 8);
            damage(path, data, bytes);
            tdm_status status = tdm_checkpoint_verify(run, 1);
            ck_assert_msg(status != TDM_OK, "%s: bit %zu flipped, and nobody saw", names[f], bit);
            data[bit / 8] = (char)(data[bit / 8] ^ 1 << bit % 8);
        }
        for (size_t length = 0; length < bytes; length++) {
            damage(path, data, length);
            /* All that a manifest loses with its last byte is the newline. */
            if (f == 0 && length == bytes - 1)
                continue;
            ck_assert_msg(tdm_checkpoint_verify(run, 1) != TDM_OK, "%s: cut at %zu", names[f],
                          length);
        }
        damage(path, data, bytes);
        ck_assert_ok(tdm_checkpoint_verify(run, 1));
        tdm_free(data);
        tdm_free(path);
    }
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

START_TEST(test_damage_is_named)
{
    char path[PATH_BYTES];
    make_run();
    for (int step = 1; step <= 3; step++)
        ck_assert_ok(save(step, step));
    snprintf(path, sizeof path, "%s/checkpoints/step-00000003/state.json", run);
    damage(path, "{\"content\": 9}\n", 15);
    ck_assert_fails(tdm_checkpoint_verify(run, 3), TDM_E_FORMAT,
                    "step-00000003/state.json: damaged: its bytes are not those");
    damage(path, "short", 5);
    ck_assert_fails(tdm_checkpoint_verify(run, 3), TDM_E_FORMAT, "5 bytes, where 15 were written");
    ck_assert_ok(tdm_file_remove(path));
    ck_assert_fails(tdm_checkpoint_verify(run, 3), TDM_E_IO, "state.json: cannot open: no such");
    snprintf(path, sizeof path, "%s/checkpoints/step-00000002/manifest.json", run);
    damage(path, "{", 1);

    watch_warnings();
    ck_assert_int_eq(newest(), 1);
    ck_assert_ptr_nonnull(strstr(warnings, "the checkpoint of step 3 cannot be used: "));
    ck_assert_ptr_nonnull(strstr(warnings, "the checkpoint of step 2 cannot be used: "));
    ck_assert_ptr_nonnull(strstr(warnings, "step-00000002/manifest.json:1: damaged: "));
    ck_assert_ptr_null(strstr(warnings, "step 1 "));

    int64_t step;
    bool found;
    ck_assert_ok(tdm_folder_remove(tdm_test_path(run, "checkpoints/step-00000001")));
    ck_assert_fails(tdm_checkpoint_newest_good(run, &step, &found), TDM_E_IO,
                    "none of its 2 checkpoints is good; the newest: ");
    ck_assert(!found);
    ck_assert_ptr_nonnull(strstr(tdm_error_message(), "step-00000003/state.json: cannot open"));
}
END_TEST

START_TEST(test_manifests)
{
    static const struct {
        const char *text;
        tdm_status status;
        const char *message;
    } cases[] = {
        {"{\"format_version\": 1, \"files\": {}}", TDM_OK, NULL},
        {"{\"format_version\": 2, \"tree\": []}", TDM_E_VERSION,
         "a newer tandem wrote it (format 2, this one reads up to 1)"},
        {"{\"format_version\": 0, \"files\": {}}", TDM_E_FORMAT, "no format_version"},
        {"{\"format_version\": \"1\", \"files\": {}}", TDM_E_FORMAT, "no format_version"},
        {"{\"files\": {}}", TDM_E_FORMAT, "no format_version"},
        {"{\"format_version\": 1}", TDM_E_FORMAT, "no files"},
        {"{\"format_version\": 1, \"files\": []}", TDM_E_FORMAT, "no files"},
        {"[]", TDM_E_FORMAT, "no format_version"},
        {"", TDM_E_FORMAT, "damaged"},
        {"{\"format_version\": 1, \"files\": {\"a\": {\"bytes\": 1}}}", TDM_E_FORMAT,
         "the entry of \"a\""},
        {"{\"format_version\": 1, \"files\": {\"a\": {\"bytes\": -1, \"xxh3\": "
         "\"0123456789abcdef\"}}}",
         TDM_E_FORMAT, "the entry of \"a\""},
        {"{\"format_version\": 1, \"files\": {\"a\": {\"bytes\": 1, \"xxh3\": "
         "\"0123456789ABCDEF\"}}}",
         TDM_E_FORMAT, "the entry of \"a\""},
        {"{\"format_version\": 1, \"files\": {\"a\": {\"bytes\": 1, \"xxh3\": \"123\"}}}",
         TDM_E_FORMAT, "the entry of \"a\""},
        {"{\"format_version\": 1, \"files\": {\"../a\": {\"bytes\": 1, \"xxh3\": "
         "\"0123456789abcdef\"}}}",
         TDM_E_FORMAT, "the entry of \"../a\""},
        {"{\"format_version\": 1, \"files\": {}, \"files\": {}}", TDM_E_FORMAT, "duplicate"},
    };
    make_run();
    ck_assert_ok(save(1, 1));
    char *path;
    ck_assert_ok(tdm_checkpoint_path(run, 1, "manifest.json", &path));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        damage(path, cases[i].text, strlen(cases[i].text));
        if (cases[i].message == NULL)
            ck_assert_ok(tdm_checkpoint_verify(run, 1));
        else
            ck_assert_fails(tdm_checkpoint_verify(run, 1), cases[i].status, cases[i].message);
    }
    tdm_free(path);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

/* ---- killed and failing at every call ------------------------------------------------------ */

typedef struct scenario {
    const char *name;
    int64_t step;  /* that is saved, with content 2, over checkpoints 1 and 5 with content 1 */
    bool is_again; /* the step is there already */
} scenario;

static const scenario scenarios[] = {{"new step", 7, false}, {"same step again", 5, true}};
#define SCENARIOS (sizeof scenarios / sizeof scenarios[0])

static int hook_calls, hook_stop;
static int hook_error; /* 0: the process ends */
static bool hook_persistent;

static int stop_hook(const char *call, const char *path)
{
    (void)call;
    (void)path;
    hook_calls++;
    if (hook_calls < hook_stop || (hook_calls > hook_stop && !hook_persistent))
        return 0;
    if (hook_error == 0)
        _exit(42);
    return hook_error;
}

static void stop_at(int n, int error, bool persistent)
{
    hook_calls = 0;
    hook_stop = n;
    hook_error = error;
    hook_persistent = persistent;
    tdm_file_set_test_hook(stop_hook);
}

/* A save as the trainer does it: the checkpoint, then the link, then the old ones go. */
static tdm_status save_and_keep(int64_t step)
{
    TDM_TRY(save(step, 2));
    TDM_TRY(tdm_checkpoint_set_best(run, step));
    return tdm_checkpoint_prune(run, step, 1, step);
}

static void prepare(void)
{
    tdm_file_set_test_hook(NULL);
    ck_assert_ok(tdm_folder_remove(run));
    ck_assert_ok(save(1, 1));
    ck_assert_ok(save(5, 1));
    ck_assert_ok(tdm_checkpoint_set_best(run, 5));
}

/* How many calls an undisturbed save makes. */
static int count_calls(const scenario *s)
{
    prepare();
    stop_at(1000000, EIO, false);
    ck_assert_ok(save_and_keep(s->step));
    tdm_file_set_test_hook(NULL);
    return hook_calls;
}

/* The newest good checkpoint is the old or the new one, whole, and so is the best; saving goes on.
 */
static bool check_survivor(const scenario *s, int n)
{
    tdm_file_set_test_hook(NULL);
    int64_t step = newest();
    int content = step < 0 ? -1 : load(step);
    bool is_new = step == s->step && content == 2;
    ck_assert_msg(is_new || (step == 5 && content == 1), "%s, call %d: newest is %lld, content %d",
                  s->name, n, (long long)step, content);
    int64_t best_step = best();
    ck_assert_msg(best_step == 5 || best_step == s->step, "%s, call %d: best is %lld", s->name, n,
                  (long long)best_step);
    ck_assert_ok(tdm_checkpoint_verify(run, best_step));

    ck_assert_ok(save(9, 9));
    ck_assert_int_eq(newest(), 9);
    ck_assert_int_eq(load(9), 9);
    ck_assert_int_eq(leftovers(), 0);
    ck_assert_ok(tdm_checkpoint_verify(run, step));
    ck_assert_int_eq(load(step), content);
    ck_assert_ok(tdm_checkpoint_prune(run, 9, 1, -1));
    ck_assert_str_eq(listed(), "9");
    return is_new;
}

START_TEST(test_killed_at_every_call)
{
    make_run();
    for (size_t i = 0; i < SCENARIOS; i++) {
        int calls = count_calls(&scenarios[i]), old_ones = 0, new_ones = 0;
        ck_assert_int_gt(calls, 20);
        for (int n = 1; n <= calls; n++) {
            prepare();
            pid_t child = fork();
            ck_assert_int_ge(child, 0);
            if (child == 0) {
                stop_at(n, 0, false);
                _exit(save_and_keep(scenarios[i].step) == TDM_OK ? 0 : 1);
            }
            int state;
            ck_assert_int_eq(waitpid(child, &state, 0), child);
            ck_assert(WIFEXITED(state) && WEXITSTATUS(state) == 42);
            if (check_survivor(&scenarios[i], n))
                new_ones++;
            else
                old_ones++;
        }
        ck_assert_int_gt(old_ones, 5);
        ck_assert_int_gt(new_ones, 5);
    }
}
END_TEST

static void fail_at_every_call(int error, bool persistent)
{
    make_run();
    for (size_t i = 0; i < SCENARIOS; i++) {
        int calls = count_calls(&scenarios[i]), failures = 0;
        for (int n = 1; n <= calls; n++) {
            prepare();
            watch_warnings();
            stop_at(n, error, persistent);
            tdm_status status = save_and_keep(scenarios[i].step);
            if (status != TDM_OK) {
                ck_assert_int_eq(status, TDM_E_IO);
                ck_assert_ptr_nonnull(strstr(tdm_error_message(), tdm_io_error_text(error)));
                failures++;
            } else {
                /* Only clearing away the replaced one may fail without failing the save. */
                ck_assert_ptr_nonnull(strstr(warnings, "step-00000005.replaced"));
            }
            watch_warnings();
            bool is_new = check_survivor(&scenarios[i], n);
            ck_assert(status != TDM_OK || is_new);
        }
        ck_assert_int_gt(failures, 20);
        ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
    }
}

START_TEST(test_disk_full_at_every_call)
{
    fail_at_every_call(ENOSPC, false);
}
END_TEST

START_TEST(test_disk_stays_broken)
{
    fail_at_every_call(EIO, true);
}
END_TEST

/* What a killed replacement leaves: step 5 only as ".replaced". */
START_TEST(test_replaced_counts)
{
    char final[PATH_BYTES], replaced[PATH_BYTES];
    make_run();
    snprintf(final, sizeof final, "%s/checkpoints/step-00000005", run);
    snprintf(replaced, sizeof replaced, "%s/checkpoints/step-00000005.replaced", run);
    ck_assert_ok(save(5, 1));
    ck_assert_ok(tdm_checkpoint_set_best(run, 5));
    ck_assert_int_eq(rename(final, replaced), 0);
    ck_assert_str_eq(listed(), "5");
    ck_assert_int_eq(newest(), 5);
    ck_assert_int_eq(best(), 5);
    ck_assert_int_eq(load(5), 1);

    tdm_checkpoint_writer *writer;
    ck_assert_ok(tdm_checkpoint_writer_begin(run, 6, &writer));
    ck_assert(tdm_file_exists(final) && !tdm_file_exists(replaced));
    tdm_checkpoint_writer_close(writer);
    ck_assert_int_eq(load(5), 1);
}
END_TEST

START_TEST(test_out_of_memory)
{
    make_run();
    watch_warnings();
    ck_assert_ok(save(5, 1));
    int failures = 0;
    for (int64_t n = 1;; n++) {
        tdm_memory_fail_at(n, false);
        tdm_status status = save_and_keep(5);
        int64_t step;
        bool found;
        if (status == TDM_OK)
            status = tdm_checkpoint_newest_good(run, &step, &found);
        if (status == TDM_OK)
            status = tdm_checkpoint_best(run, &step, &found);
        tdm_memory_fail_at(0, false);
        ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
        ck_assert_int_eq(newest(), 5);
        if (status == TDM_OK && warnings[0] == '\0')
            break;
        ck_assert(status == TDM_OK || status == TDM_E_NOMEM);
        watch_warnings();
        failures++;
    }
    ck_assert_int_gt(failures, 50);
}
END_TEST

TDM_CHECK_MAIN(test_save_and_find, test_foreign_names, test_writer_refuses,
               test_close_without_commit, test_same_step_again, test_prune,
               test_half_deleted_never_verifies, test_best, test_damage_is_seen,
               test_damage_is_named, test_manifests, test_killed_at_every_call,
               test_disk_full_at_every_call, test_disk_stays_broken, test_replaced_counts,
               test_out_of_memory)
