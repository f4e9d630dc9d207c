#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/checkpoint_run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 400

/* ---- plain use ------------------------------------------------------------------------------- */

START_TEST(test_save_and_find)
{
    tdm_test_run_make();
    ck_assert_ok(tdm_folder_remove(tdm_test_run)); /* the save creates it */
    ck_assert_str_eq(tdm_test_run_listed(), "");
    ck_assert_int_eq(tdm_test_run_newest(), -1);
    ck_assert_int_eq(tdm_test_run_best(), -1);
    ck_assert_ok(tdm_test_run_save(9, 1));
    ck_assert_ok(tdm_test_run_save(1200, 2));
    ck_assert_ok(tdm_test_run_save(123456789, 3));
    ck_assert_ok(tdm_test_run_save(0, 4));
    ck_assert_str_eq(tdm_test_run_listed(), "123456789 1200 9 0");
    ck_assert_int_eq(tdm_test_run_newest(), 123456789);
    ck_assert_int_eq(tdm_test_run_load(1200), 2);
    ck_assert_int_eq(tdm_test_run_load(0), 4);
    ck_assert(
        tdm_file_exists(tdm_test_path(tdm_test_run, "checkpoints/step-00001200/manifest.json")));
    ck_assert_ok(tdm_checkpoint_verify(tdm_test_run, 9));
    ck_assert_fails(tdm_checkpoint_verify(tdm_test_run, 10), TDM_E_FORMAT,
                    "step-00000010/manifest.json: missing");
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

START_TEST(test_foreign_names)
{
    static const char *const names[] = {
        "step-1", "step-000000001", "step-00000001x",    "step--0000001",
        "step-",  "other",          "step-00000001.old", "step-99999999999999999999"};
    tdm_test_run_make();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "%s/checkpoints/%s", tdm_test_run, names[i]);
        ck_assert_ok(tdm_folder_create(path));
    }
    ck_assert_str_eq(tdm_test_run_listed(), "");
    ck_assert_ok(tdm_test_run_save(1, 1));
    ck_assert_str_eq(tdm_test_run_listed(), "1");
    ck_assert(tdm_file_exists(tdm_test_path(tdm_test_run, "checkpoints/step-00000001.old")));
}
END_TEST

START_TEST(test_writer_refuses)
{
    static const char *const names[] = {"", ".", "..", "a/b", "manifest.json"};
    tdm_test_run_make();
    tdm_checkpoint_writer *writer;
    ck_assert_fails(tdm_checkpoint_writer_begin(tdm_test_run, -1, &writer), TDM_E_ARG, "step -1");
    ck_assert_ok(tdm_checkpoint_writer_begin(tdm_test_run, 1, &writer));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        ck_assert_fails(tdm_checkpoint_writer_add(writer, names[i], 1, 1), TDM_E_ARG,
                        "cannot be the name");
    ck_assert_ok(tdm_checkpoint_writer_put(writer, "a", "x", 1));
    ck_assert_fails(tdm_checkpoint_writer_add(writer, "a", 1, 1), TDM_E_ARG, "\"a\" already");
    ck_assert_ok(tdm_checkpoint_writer_commit(writer));
    ck_assert_fails(tdm_checkpoint_writer_commit(writer), TDM_E_STATE, "already committed");
    tdm_checkpoint_writer_close(writer);
    tdm_checkpoint_writer_close(NULL);
    ck_assert_int_eq(tdm_test_run_newest(), 1);

    ck_assert_ok(tdm_checkpoint_writer_begin(tdm_test_run, 2, &writer));
    ck_assert_ok(tdm_checkpoint_writer_put(writer, "\xff", "x", 1));
    ck_assert_fails(tdm_checkpoint_writer_commit(writer), TDM_E_NOMEM, "not UTF-8");
    tdm_checkpoint_writer_close(writer);
    ck_assert_int_eq(tdm_test_run_leftovers(), 0);
}
END_TEST

START_TEST(test_close_without_commit)
{
    tdm_test_run_make();
    tdm_checkpoint_writer *writer;
    ck_assert_ok(tdm_test_run_save(1, 1));
    ck_assert_ok(tdm_checkpoint_writer_begin(tdm_test_run, 2, &writer));
    ck_assert_ok(tdm_test_run_save_files(writer, 2));
    ck_assert_int_eq(tdm_test_run_leftovers(), 1);
    ck_assert_str_eq(tdm_test_run_listed(), "1");
    tdm_checkpoint_writer_close(writer);
    ck_assert_int_eq(tdm_test_run_leftovers(), 0);
    ck_assert_str_eq(tdm_test_run_listed(), "1");
}
END_TEST

START_TEST(test_same_step_again)
{
    tdm_test_run_make();
    ck_assert_ok(tdm_test_run_save(1, 1));
    ck_assert_ok(tdm_test_run_save(1, 2));
    ck_assert_str_eq(tdm_test_run_listed(), "1");
    ck_assert_int_eq(tdm_test_run_load(1), 2);
    ck_assert_int_eq(tdm_test_run_leftovers(), 0);
}
END_TEST

START_TEST(test_prune)
{
    tdm_test_run_make();
    for (int step = 1; step <= 7; step++)
        ck_assert_ok(tdm_test_run_save(step, step));
    ck_assert_fails(tdm_checkpoint_prune(tdm_test_run, 7, 0, -1), TDM_E_ARG, "at least 1");
    ck_assert_ok(tdm_checkpoint_prune(tdm_test_run, 7, 7, -1));
    ck_assert_str_eq(tdm_test_run_listed(), "7 6 5 4 3 2 1");
    ck_assert_ok(tdm_checkpoint_prune(tdm_test_run, 7, 5, 1));
    ck_assert_str_eq(tdm_test_run_listed(), "7 6 5 4 3 1");
    /* A run that resumed from 5 because 6 and 7 were damaged keeps what it just saved. */
    ck_assert_ok(tdm_checkpoint_prune(tdm_test_run, 5, 1, 1));
    ck_assert_str_eq(tdm_test_run_listed(), "7 6 5 1");
    ck_assert_ok(tdm_checkpoint_prune(tdm_test_run, 7, 1, -1));
    ck_assert_str_eq(tdm_test_run_listed(), "7");
    ck_assert_int_eq(tdm_test_run_load(7), 7);
    ck_assert_ok(tdm_checkpoint_prune(tdm_test_run, 7, 1, -1));
    ck_assert_str_eq(tdm_test_run_listed(), "7");
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
    tdm_test_run_make();
    ck_assert_ok(tdm_test_run_save(1, 1));
    ck_assert_ok(tdm_test_run_save(2, 2));
    tdm_file_set_test_hook(stop_after_first);
    ck_assert_fails(tdm_checkpoint_prune(tdm_test_run, 2, 1, -1), TDM_E_IO,
                    "the disk reported an error");
    tdm_file_set_test_hook(NULL);
    ck_assert_ptr_nonnull(strstr(first_call, "step-00000001/manifest.json"));
    ck_assert_str_eq(tdm_test_run_listed(), "2 1");
    ck_assert_fails(tdm_checkpoint_verify(tdm_test_run, 1), TDM_E_FORMAT, "half deleted");
    ck_assert_ok(tdm_checkpoint_prune(tdm_test_run, 2, 1, -1));
    ck_assert_str_eq(tdm_test_run_listed(), "2");
}
END_TEST

START_TEST(test_best)
{
    char link[PATH_BYTES], target[PATH_BYTES] = {0};
    tdm_test_run_make();
    snprintf(link, sizeof link, "%s/checkpoints/best", tdm_test_run);
    ck_assert_fails(tdm_checkpoint_set_best(tdm_test_run, 1), TDM_E_ARG,
                    "step-00000001: there is no such");
    ck_assert_ok(tdm_test_run_save(1, 1));
    ck_assert_ok(tdm_test_run_save(2, 2));
    ck_assert_ok(tdm_checkpoint_set_best(tdm_test_run, 1));
    ck_assert_int_eq(tdm_test_run_best(), 1);
    ck_assert_int_gt(readlink(link, target, sizeof target - 1), 0);
    ck_assert_str_eq(target, "step-00000001");
    ck_assert_ok(tdm_checkpoint_set_best(tdm_test_run, 2));
    ck_assert_int_eq(tdm_test_run_best(), 2);
    ck_assert_str_eq(tdm_test_run_listed(), "2 1");

    tdm_test_run_watch_warnings();
    ck_assert_ok(tdm_folder_remove(tdm_test_path(tdm_test_run, "checkpoints/step-00000002")));
    ck_assert_int_eq(tdm_test_run_best(), -1);
    ck_assert_ptr_nonnull(
        strstr(tdm_test_run_warnings, "best: the checkpoint of step 2 that it points to is"));

    int64_t step;
    bool found;
    ck_assert_ok(tdm_link_replace("../other", link));
    ck_assert_fails(tdm_checkpoint_best(tdm_test_run, &step, &found), TDM_E_FORMAT,
                    "best: not a link");
    ck_assert_int_eq(unlink(link), 0);
    ck_assert_ok(tdm_file_put(link, "x", 1, NULL));
    ck_assert_fails(tdm_checkpoint_best(tdm_test_run, &step, &found), TDM_E_FORMAT,
                    "best: not a link");
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------------- */

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
    tdm_test_run_make();
    ck_assert_ok(tdm_test_run_save(1, 1));
    for (size_t f = 0; f < sizeof names / sizeof names[0]; f++) {
        char *path, *data;
        size_t bytes;
        ck_assert_ok(tdm_checkpoint_path(tdm_test_run, 1, names[f], &path));
        ck_assert_ok(tdm_file_get(path, 10000, &data, &bytes));
        for (size_t bit = 0; bit < 8 * bytes; bit++) {
            data[bit / 8] = (char)(data[bit / 8] ^ 1 << bit % 8);
            damage(path, data, bytes);
            tdm_status status = tdm_checkpoint_verify(tdm_test_run, 1);
            ck_assert_msg(status != TDM_OK, "%s: bit %zu flipped, and nobody saw", names[f], bit);
            data[bit / 8] = (char)(data[bit / 8] ^ 1 << bit % 8);
        }
        for (size_t length = 0; length < bytes; length++) {
            damage(path, data, length);
            /* All that a manifest loses with its last byte is the newline. */
            if (f == 0 && length == bytes - 1)
                continue;
            ck_assert_msg(tdm_checkpoint_verify(tdm_test_run, 1) != TDM_OK, "%s: cut at %zu",
                          names[f], length);
        }
        damage(path, data, bytes);
        ck_assert_ok(tdm_checkpoint_verify(tdm_test_run, 1));
        tdm_free(data);
        tdm_free(path);
    }
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

START_TEST(test_damage_is_named)
{
    char path[PATH_BYTES];
    tdm_test_run_make();
    for (int step = 1; step <= 3; step++)
        ck_assert_ok(tdm_test_run_save(step, step));
    snprintf(path, sizeof path, "%s/checkpoints/step-00000003/state.json", tdm_test_run);
    damage(path, "{\"content\": 9}\n", 15);
    ck_assert_fails(tdm_checkpoint_verify(tdm_test_run, 3), TDM_E_FORMAT,
                    "step-00000003/state.json: damaged: its bytes are not those");
    damage(path, "short", 5);
    ck_assert_fails(tdm_checkpoint_verify(tdm_test_run, 3), TDM_E_FORMAT,
                    "5 bytes, where 15 were written");
    ck_assert_ok(tdm_file_remove(path));
    ck_assert_fails(tdm_checkpoint_verify(tdm_test_run, 3), TDM_E_IO,
                    "state.json: cannot open: no such");
    snprintf(path, sizeof path, "%s/checkpoints/step-00000002/manifest.json", tdm_test_run);
    damage(path, "{", 1);

    tdm_test_run_watch_warnings();
    ck_assert_int_eq(tdm_test_run_newest(), 1);
    ck_assert_ptr_nonnull(
        strstr(tdm_test_run_warnings, "the checkpoint of step 3 cannot be used: "));
    ck_assert_ptr_nonnull(
        strstr(tdm_test_run_warnings, "the checkpoint of step 2 cannot be used: "));
    ck_assert_ptr_nonnull(
        strstr(tdm_test_run_warnings, "step-00000002/manifest.json:1: damaged: "));
    ck_assert_ptr_null(strstr(tdm_test_run_warnings, "step 1 "));

    int64_t step;
    bool found;
    ck_assert_ok(tdm_folder_remove(tdm_test_path(tdm_test_run, "checkpoints/step-00000001")));
    ck_assert_fails(tdm_checkpoint_newest_good(tdm_test_run, &step, &found), TDM_E_IO,
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
    tdm_test_run_make();
    ck_assert_ok(tdm_test_run_save(1, 1));
    char *path;
    ck_assert_ok(tdm_checkpoint_path(tdm_test_run, 1, "manifest.json", &path));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        damage(path, cases[i].text, strlen(cases[i].text));
        if (cases[i].message == NULL)
            ck_assert_ok(tdm_checkpoint_verify(tdm_test_run, 1));
        else
            ck_assert_fails(tdm_checkpoint_verify(tdm_test_run, 1), cases[i].status,
                            cases[i].message);
    }
    tdm_free(path);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

TDM_CHECK_MAIN(test_save_and_find, test_foreign_names, test_writer_refuses,
               test_close_without_commit, test_same_step_again, test_prune,
               test_half_deleted_never_verifies, test_best, test_damage_is_seen,
               test_damage_is_named, test_manifests)
