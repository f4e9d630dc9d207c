#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

/* What the hook saw: "write b.tmp;fsync b.tmp;…", each path without its folder. */
static char calls[4096];
static const char
    *fail_call; /* fails with fail_errno from its fail_from-th to its fail_until-th time */
static int fail_errno, fail_from, fail_until;
static int seen;

static int hook(const char *call, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t length = strlen(calls);
    snprintf(calls + length, sizeof calls - length, "%s %s;", call,
             slash == NULL ? path : slash + 1);
    if (fail_call == NULL || strcmp(call, fail_call) != 0)
        return 0;
    seen++;
    return seen >= fail_from && seen <= fail_until ? fail_errno : 0;
}

static void watch_calls(void)
{
    calls[0] = '\0';
    tdm_file_set_test_hook(hook);
}

static void fail_calls(const char *call, int error, int from, int until)
{
    fail_call = call;
    fail_errno = error;
    fail_from = from;
    fail_until = until;
    seen = 0;
    watch_calls();
}

static void check_content(const char *path, const void *data, size_t bytes)
{
    char *found;
    size_t found_bytes;
    ck_assert_ok(tdm_file_get(path, SIZE_MAX - 1, &found, &found_bytes));
    ck_assert_uint_eq(found_bytes, bytes);
    ck_assert(memcmp(found, data, bytes) == 0);
    ck_assert_int_eq(found[bytes], 0);
    tdm_free(found);
}

static unsigned char *make_bytes(size_t bytes)
{
    unsigned char *data;
    ck_assert_ok(tdm_alloc(bytes, 1, &data));
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)(i * 31 + i / 251);
    return data;
}

START_TEST(test_bytes_hash_and_length)
{
    /* Pieces below, at and above the buffer's size, and such that one crosses its end. */
    static const size_t pieces[] = {1, 262143, 1, 262144, 100, 700000, 0, 5};
    size_t total = 0;
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++)
        total += pieces[i];
    unsigned char *data = make_bytes(total);
    const char *path = tdm_test_path(tdm_test_folder(), "file");
    tdm_file_writer *writer;
    ck_assert_ok(tdm_file_writer_open(path, &writer));
    size_t done = 0;
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        ck_assert_ok(tdm_file_writer_write(writer, data + done, pieces[i]));
        done += pieces[i];
    }
    ck_assert(!tdm_file_exists(path));
    uint64_t hash, hash_again;
    int64_t bytes, bytes_again;
    ck_assert_ok(tdm_file_writer_commit(writer, &hash, &bytes));
    tdm_file_writer_close(writer);
    ck_assert_int_eq(bytes, (int64_t)total);
    ck_assert_uint_eq(hash, XXH3_64bits(data, total));
    check_content(path, data, total);
    ck_assert_ok(tdm_file_hash(path, &hash_again, &bytes_again));
    ck_assert_uint_eq(hash_again, hash);
    ck_assert_int_eq(bytes_again, bytes);
    tdm_free(data);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

START_TEST(test_order_of_calls)
{
    const char *folder = tdm_test_folder();
    const char *base = strrchr(folder, '/') + 1;
    char expected[256];
    watch_calls();
    ck_assert_ok(tdm_file_put(tdm_test_path(folder, "a"), "one", 3, NULL));
    snprintf(expected, sizeof expected, "write a.tmp;fsync a.tmp;rename a;fsync %s;", base);
    ck_assert_str_eq(calls, expected);

    watch_calls();
    ck_assert_ok(tdm_folder_create(tdm_test_path(folder, "b/c")));
    snprintf(expected, sizeof expected, "mkdir b;fsync %s;mkdir c;fsync b;", base);
    ck_assert_str_eq(calls, expected);
}
END_TEST

START_TEST(test_close_without_commit)
{
    const char *folder = tdm_test_folder();
    ck_assert_ok(tdm_file_put(tdm_test_path(folder, "a"), "old", 3, NULL));
    tdm_file_writer *writer;
    ck_assert_ok(tdm_file_writer_open(tdm_test_path(folder, "a"), &writer));
    ck_assert_ok(tdm_file_writer_write(writer, "new", 3));
    tdm_file_writer_close(writer);
    check_content(tdm_test_path(folder, "a"), "old", 3);
    ck_assert(!tdm_file_exists(tdm_test_path(folder, "a.tmp")));
    tdm_file_writer_close(NULL);
}
END_TEST

START_TEST(test_writer_states)
{
    const char *folder = tdm_test_folder();
    tdm_file_writer *writer;
    ck_assert_ok(tdm_file_writer_open(tdm_test_path(folder, "a"), &writer));
    ck_assert_ok(tdm_file_writer_commit(writer, NULL, NULL));
    ck_assert_fails(tdm_file_writer_write(writer, "x", 1), TDM_E_STATE, "already committed");
    ck_assert_fails(tdm_file_writer_commit(writer, NULL, NULL), TDM_E_STATE, "already committed");
    tdm_file_writer_close(writer);
    check_content(tdm_test_path(folder, "a"), "", 0);

    ck_assert_ok(tdm_file_writer_open(tdm_test_path(folder, "b"), &writer));
    unsigned char *data = make_bytes(300000);
    fail_calls("write", EIO, 1, 1);
    ck_assert_fails(tdm_file_writer_write(writer, data, 300000), TDM_E_IO, "b.tmp: cannot write");
    ck_assert_fails(tdm_file_writer_write(writer, data, 1), TDM_E_STATE, "an earlier write failed");
    ck_assert_fails(tdm_file_writer_commit(writer, NULL, NULL), TDM_E_STATE, "earlier write");
    tdm_file_writer_close(writer);
    ck_assert(!tdm_file_exists(tdm_test_path(folder, "b")));
    ck_assert(!tdm_file_exists(tdm_test_path(folder, "b.tmp")));
    tdm_free(data);
}
END_TEST

START_TEST(test_patches)
{
    const char *path = tdm_test_path(tdm_test_folder(), "a");
    unsigned char *data = make_bytes(300000);
    tdm_file_writer *writer;
    uint64_t hash;
    int64_t bytes;
    ck_assert_ok(tdm_file_writer_open(path, &writer));
    ck_assert_ok(tdm_file_writer_write(writer, data, 299990));
    memset(data + 3, 'x', 20);
    ck_assert_ok(tdm_file_writer_patch(writer, 3, data + 3, 20));
    ck_assert_ok(tdm_file_writer_write(writer, data + 299990, 10));
    memset(data + 299998, 'y', 2);
    ck_assert_ok(tdm_file_writer_patch(writer, 299998, "yy", 2));
    ck_assert_fails(tdm_file_writer_patch(writer, 299999, "zz", 2), TDM_E_ARG, "were not written");
    ck_assert_fails(tdm_file_writer_commit(writer, &hash, NULL), TDM_E_STATE, "has no hash");
    ck_assert_ok(tdm_file_writer_commit(writer, NULL, &bytes));
    tdm_file_writer_close(writer);
    ck_assert_int_eq(bytes, 300000);
    check_content(path, data, 300000);
    ck_assert_ok(tdm_file_writer_open(path, &writer));
    ck_assert_ok(tdm_file_writer_write(writer, data, 10));
    fail_calls("write", EIO, 2, 2);
    ck_assert_fails(tdm_file_writer_patch(writer, 3, "z", 1), TDM_E_IO, "a.tmp: cannot write");
    ck_assert_fails(tdm_file_writer_commit(writer, NULL, NULL), TDM_E_STATE, "earlier write");
    tdm_file_writer_close(writer);
    tdm_free(data);
}
END_TEST

START_TEST(test_each_call_fails)
{
    static const char *const names[] = {"write", "fsync", "rename"};
    const char *folder = tdm_test_folder();
    const char *path = tdm_test_path(folder, "a");
    ck_assert_ok(tdm_file_put(path, "old", 3, NULL));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        fail_calls(names[i], ENOSPC, 1, 1);
        ck_assert_fails(tdm_file_put(path, "new", 3, NULL), TDM_E_IO, "disk full: free some space");
        ck_assert(strstr(tdm_error_message(), "a.tmp") != NULL);
        check_content(path, "old", 3);
    }
    fail_calls("fsync", EIO, 2, 2); /* of the folder, after the rename */
    ck_assert_fails(tdm_file_put(path, "new", 3, NULL), TDM_E_IO, "the disk reported an error");
    char temporary[300];
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    ck_assert(!tdm_file_exists(temporary));
}
END_TEST

START_TEST(test_interrupted_calls)
{
    const char *path = tdm_test_path(tdm_test_folder(), "a");
    fail_calls("write", EINTR, 1, 3);
    ck_assert_ok(tdm_file_put(path, "new", 3, NULL));
    ck_assert_int_eq(seen, 4);
    fail_calls("fsync", EINTR, 1, 3);
    ck_assert_ok(tdm_file_put(path, "new", 3, NULL));
    check_content(path, "new", 3);
}
END_TEST

/* The file-size limit cuts the first write short; at the second one it is gone. */
static int lift_limit(const char *call, const char *path)
{
    (void)path;
    if (strcmp(call, "write") == 0 && ++seen == 2)
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
    return 0;
}

START_TEST(test_short_writes)
{
    const char *path = tdm_test_path(tdm_test_folder(), "a");
    unsigned char *data = make_bytes(300000);
    signal(SIGXFSZ, SIG_IGN);
    seen = 0;
    tdm_file_set_test_hook(lift_limit);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){100000, RLIM_INFINITY}), 0);
    ck_assert_ok(tdm_file_put(path, data, 300000, NULL));
    ck_assert_int_eq(seen, 2);
    check_content(path, data, 300000);

    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){100000, RLIM_INFINITY}), 0);
    ck_assert_fails(tdm_file_put(path, data, 300000, NULL), TDM_E_IO,
                    "a.tmp: cannot write: File too");
    check_content(path, data, 300000);
    tdm_free(data);
}
END_TEST

START_TEST(test_get_limit_and_missing)
{
    const char *folder = tdm_test_folder();
    const char *path = tdm_test_path(folder, "a");
    char *data;
    size_t bytes;
    ck_assert_ok(tdm_file_put(path, "12345", 5, NULL));
    ck_assert_ok(tdm_file_get(path, 5, &data, &bytes));
    ck_assert_str_eq(data, "12345");
    tdm_free(data);
    ck_assert_fails(tdm_file_get(path, 4, &data, &bytes), TDM_E_FORMAT, "5 bytes are more than");
    ck_assert_ptr_null(data);
    ck_assert_fails(tdm_file_get("/proc/self/stat", 4, &data, &bytes), TDM_E_FORMAT,
                    "more than the 4 bytes");
    ck_assert_ok(tdm_file_get("/proc/self/stat", 100000, &data, &bytes));
    ck_assert_uint_gt(bytes, 10);
    tdm_free(data);

    uint64_t hash;
    int64_t length;
    path = tdm_test_path(folder, "none");
    ck_assert_fails(tdm_file_get(path, 5, &data, &bytes), TDM_E_IO, "none: cannot open: no such");
    ck_assert_fails(tdm_file_hash(path, &hash, &length), TDM_E_IO, "none: cannot open: no such");
    ck_assert_fails(tdm_file_get(folder, 5000, &data, &bytes), TDM_E_IO, "cannot read");
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

START_TEST(test_folder_create)
{
    const char *folder = tdm_test_folder();
    ck_assert_ok(tdm_folder_create(tdm_test_path(folder, "a//b/c/")));
    ck_assert(tdm_file_exists(tdm_test_path(folder, "a/b/c")));
    ck_assert_ok(tdm_folder_create(tdm_test_path(folder, "a/b/c")));
    ck_assert_int_eq(chdir(folder), 0);
    ck_assert_ok(tdm_folder_create("relative/inner"));
    ck_assert(tdm_file_exists(tdm_test_path(folder, "relative/inner")));

    ck_assert_ok(tdm_file_put("file", "x", 1, NULL));
    ck_assert_fails(tdm_folder_create("file"), TDM_E_IO, "cannot create the folder");
    ck_assert_fails(tdm_folder_create("file/inner"), TDM_E_IO, "file: cannot create the folder");
    fail_calls("mkdir", EACCES, 1, 1);
    ck_assert_fails(tdm_folder_create(tdm_test_path(folder, "other")), TDM_E_IO,
                    "other: cannot create the folder: no permission");
}
END_TEST

START_TEST(test_folder_remove)
{
    const char *folder = tdm_test_folder();
    ck_assert_ok(tdm_folder_create(tdm_test_path(folder, "outside")));
    ck_assert_ok(tdm_file_put(tdm_test_path(folder, "outside/kept"), "x", 1, NULL));
    ck_assert_ok(tdm_folder_create(tdm_test_path(folder, "a/b/c")));
    ck_assert_ok(tdm_file_put(tdm_test_path(folder, "a/b/file"), "x", 1, NULL));
    ck_assert_ok(tdm_link_replace("../outside", tdm_test_path(folder, "a/link")));
    fail_calls("unlink", EACCES, 1, 1);
    ck_assert_fails(tdm_folder_remove(tdm_test_path(folder, "a")), TDM_E_IO, "no permission");
    ck_assert_ok(tdm_folder_remove(tdm_test_path(folder, "a")));
    ck_assert(!tdm_file_exists(tdm_test_path(folder, "a")));
    ck_assert_ok(tdm_folder_remove(tdm_test_path(folder, "a")));
    ck_assert(tdm_file_exists(tdm_test_path(folder, "outside/kept")));

    ck_assert_ok(tdm_link_replace("outside", tdm_test_path(folder, "link")));
    ck_assert_fails(tdm_folder_remove(tdm_test_path(folder, "link")), TDM_E_IO, "cannot open");
    ck_assert(tdm_file_exists(tdm_test_path(folder, "outside/kept")));
}
END_TEST

static void check_link(const char *path, const char *target)
{
    char found[64] = {0};
    ck_assert_int_gt(readlink(path, found, sizeof found - 1), 0);
    ck_assert_str_eq(found, target);
}

START_TEST(test_rename_link_and_remove)
{
    const char *folder = tdm_test_folder();
    char from[300];
    snprintf(from, sizeof from, "%s/from", folder);
    ck_assert_ok(tdm_file_put(from, "x", 1, NULL));
    watch_calls();
    ck_assert_ok(tdm_file_rename(from, tdm_test_path(folder, "to")));
    ck_assert(strstr(calls, "rename to;fsync ") == calls);
    ck_assert_fails(tdm_file_rename(from, tdm_test_path(folder, "to")), TDM_E_IO,
                    "from: cannot rename to ");

    const char *link = tdm_test_path(folder, "link");
    ck_assert_ok(tdm_link_replace("to", link));
    check_link(link, "to");
    fail_calls("rename", EIO, 1, 1);
    ck_assert_fails(tdm_link_replace("other", link), TDM_E_IO, "the disk reported an error");
    check_link(link, "to");
    ck_assert_ok(tdm_link_replace("other", link)); /* with the link.tmp that is left */
    check_link(link, "other");

    ck_assert_ok(tdm_file_remove(link));
    ck_assert_ok(tdm_file_remove(link));
    ck_assert_fails(tdm_file_remove(folder), TDM_E_IO, "cannot remove");
}
END_TEST

START_TEST(test_path_join)
{
    static const char *const cases[][3] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"/", "b", "/b"}, {"", "b", "b"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *path;
        ck_assert_ok(tdm_path_join(cases[i][0], cases[i][1], &path));
        ck_assert_str_eq(path, cases[i][2]);
        tdm_free(path);
    }
}
END_TEST

START_TEST(test_error_texts)
{
    ck_assert_ptr_nonnull(strstr(tdm_io_error_text(ENOSPC), "disk full"));
    ck_assert_ptr_nonnull(strstr(tdm_io_error_text(EDQUOT), "quota"));
    ck_assert_ptr_nonnull(strstr(tdm_io_error_text(EACCES), "no permission"));
    ck_assert_str_eq(tdm_io_error_text(EXDEV), "Invalid cross-device link");
    ck_assert_str_eq(tdm_io_error_text(99999), "unknown error");
}
END_TEST

START_TEST(test_out_of_memory)
{
    const char *path = tdm_test_path(tdm_test_folder(), "a");
    int failures = 0;
    for (int64_t n = 1;; n++) {
        tdm_memory_fail_at(n, false);
        tdm_status status = tdm_file_put(path, "x", 1, NULL);
        tdm_memory_fail_at(0, false);
        ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
        if (status == TDM_OK)
            break;
        ck_assert_int_eq(status, TDM_E_NOMEM);
        failures++;
    }
    ck_assert_int_ge(failures, 5);
}
END_TEST

TDM_CHECK_MAIN(test_bytes_hash_and_length, test_order_of_calls, test_close_without_commit,
               test_writer_states, test_patches, test_each_call_fails, test_interrupted_calls,
               test_short_writes, test_get_limit_and_missing, test_folder_create,
               test_folder_remove, test_rename_link_and_remove, test_path_join, test_error_texts,
               test_out_of_memory)
