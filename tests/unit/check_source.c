/* Bytes of plain, gzip and Zstandard files and of standard input. */
#include "core/file.h"
#include "core/memory.h"
#include "data/source.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

static char folder[TDM_FOLDER_BYTES];

/* ---- compressed bytes ------------------------------------------------------------------------ */

typedef struct bytes {
    unsigned char *data;
    size_t size;
    size_t capacity;
} bytes;

static void add_bytes(bytes *to, const void *data, size_t size)
{
    ck_assert_ok(tdm_grow(&to->data, &to->capacity, to->size + size + 1, 1));
    if (size > 0)
        memcpy(to->data + to->size, data, size);
    to->size += size;
}

static void add_gzip(bytes *to, const void *data, size_t size, int level)
{
    z_stream stream = {0};
    ck_assert_int_eq(deflateInit2(&stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY),
                     Z_OK);
    size_t bound = deflateBound(&stream, size);
    unsigned char *out;
    ck_assert_ok(tdm_alloc(bound, 1, &out));
    stream.next_in = (unsigned char *)(uintptr_t)data;
    stream.avail_in = (unsigned)size;
    stream.next_out = out;
    stream.avail_out = (unsigned)bound;
    ck_assert_int_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
    add_bytes(to, out, stream.total_out);
    deflateEnd(&stream);
    tdm_free(out);
}

static void add_zstd(bytes *to, const void *data, size_t size)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ck_assert(!ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)));
    size_t bound = ZSTD_compressBound(size);
    unsigned char *out;
    ck_assert_ok(tdm_alloc(bound, 1, &out));
    size_t written = ZSTD_compress2(context, out, bound, data, size);
    ck_assert(!ZSTD_isError(written));
    add_bytes(to, out, written);
    ZSTD_freeCCtx(context);
    tdm_free(out);
}

static const unsigned char skip_frame[] = {0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'};

/* Text that compresses well, and text that does not. */
static bytes make_text(size_t size)
{
    bytes text = {0};
    ck_assert_ok(tdm_grow(&text.data, &text.capacity, size + 1, 1));
    uint64_t state = size;
    for (size_t i = 0; i < size; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        text.data[i] = i % 20000 < 10000 ? (unsigned char)(state >> 56) : (unsigned char)(i >> 8);
    }
    text.size = size;
    return text;
}

/* Writes the bytes as they are. */
static char *put(const char *name, const bytes *content)
{
    char *path;
    ck_assert_ok(tdm_format(&path, "%s/%s", folder, name));
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(content->data, 1, content->size, file), content->size);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

/* Reads all of a file in pieces of `step` bytes. */
static tdm_status read_all(const char *path, size_t step, bytes *out)
{
    tdm_source *source;
    tdm_status status;
    *out = (bytes){0};
    TDM_TRY(tdm_source_open(path, NULL, &source));
    for (size_t got = 1; got > 0;) {
        ck_assert_ok(tdm_grow(&out->data, &out->capacity, out->size + step, 1));
        TDM_TRY_GOTO(tdm_source_read(source, out->data + out->size, step, &got), out);
        ck_assert_uint_le(got, step);
        out->size += got;
        if (got == 0)
            break;
        /* Short only at the end. */
        size_t more = 1;
        if (got < step) {
            ck_assert_ok(tdm_source_read(source, out->data + out->size - got, 1, &more));
            ck_assert_uint_eq(more, 0);
        }
    }
    ck_assert_ok(tdm_source_read(source, out->data, 1, &step));
    ck_assert_uint_eq(step, 0);
    if (strcmp(path, "-") != 0) {
        struct stat info;
        ck_assert_int_eq(stat(path, &info), 0);
        ck_assert_int_eq(tdm_source_stored_position(source), info.st_size);
    }
out:
    tdm_source_close(source);
    return status;
}

static void check_reads(const char *name, const bytes *stored, const bytes *text,
                        tdm_compression compression)
{
    static const size_t steps[] = {1, 7, 4096, 65536, 1 << 20};
    char *path = put(name, stored);
    tdm_source *source;
    ck_assert_ok(tdm_source_open(path, NULL, &source));
    ck_assert_int_eq(tdm_source_compression(source), compression);
    tdm_source_close(source);
    for (size_t i = text->size > 10000 ? 2 : 0; i < sizeof steps / sizeof steps[0]; i++) {
        bytes got;
        ck_assert_ok(read_all(path, steps[i], &got));
        ck_assert_uint_eq(got.size, text->size);
        ck_assert(text->size == 0 || memcmp(got.data, text->data, text->size) == 0);
        tdm_free(got.data);
    }
    tdm_free(path);
}

START_TEST(test_every_compression)
{
    static const size_t sizes[] = {0, 1, 2, 3, 4, 5, 1000, 262143, 262144, 262145, 2000000};
    tdm_new_folder(folder);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        bytes text = make_text(sizes[i]), gzip = {0}, zstd = {0};
        if (text.size > 0)
            text.data[0] = 'x';
        add_gzip(&gzip, text.data, text.size, 6);
        add_zstd(&zstd, text.data, text.size);
        check_reads("a.tsv", &text, &text, TDM_COMPRESSION_NONE);
        check_reads("a.tsv.gz", &gzip, &text, TDM_COMPRESSION_GZIP);
        check_reads("a.tsv.zst", &zstd, &text, TDM_COMPRESSION_ZSTD);
        /* Content decides, not the name. */
        check_reads("b.tsv", &gzip, &text, TDM_COMPRESSION_GZIP);
        check_reads("c", &zstd, &text, TDM_COMPRESSION_ZSTD);
        tdm_free(text.data);
        tdm_free(gzip.data);
        tdm_free(zstd.data);
    }
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

START_TEST(test_several_members_and_frames)
{
    tdm_new_folder(folder);
    bytes text = make_text(50000), stored = {0}, zstd = {0}, all = {0};
    for (int level = 0; level < 10; level += 3) {
        add_gzip(&stored, text.data, text.size, level);
        add_bytes(&all, text.data, text.size);
        add_gzip(&stored, "", 0, level); /* an empty member */
        add_zstd(&zstd, text.data, text.size);
        add_bytes(&zstd, skip_frame, sizeof skip_frame);
        add_zstd(&zstd, "", 0);
    }
    check_reads("a.gz", &stored, &all, TDM_COMPRESSION_GZIP);
    check_reads("a.zst", &zstd, &all, TDM_COMPRESSION_ZSTD);
    /* Padding behind and between members. */
    static const char zeros[1000];
    add_bytes(&stored, zeros, sizeof zeros);
    check_reads("b.gz", &stored, &all, TDM_COMPRESSION_GZIP);
    add_gzip(&stored, text.data, text.size, 6);
    add_bytes(&all, text.data, text.size);
    check_reads("c.gz", &stored, &all, TDM_COMPRESSION_GZIP);
    /* pzstd begins with a frame to skip. */
    bytes skipped = {0};
    add_bytes(&skipped, skip_frame, sizeof skip_frame);
    add_zstd(&skipped, text.data, text.size);
    check_reads("d.zst", &skipped, &text, TDM_COMPRESSION_ZSTD);
    tdm_free(skipped.data);
    tdm_free(text.data);
    tdm_free(stored.data);
    tdm_free(zstd.data);
    tdm_free(all.data);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* ---- errors ---------------------------------------------------------------------------------- */

static void check_fails(const char *name, const bytes *stored, const char *why)
{
    bytes got;
    char *path = put(name, stored);
    ck_assert_fails(read_all(path, 4096, &got), TDM_E_DATA, why);
    ck_assert_ptr_nonnull(strstr(tdm_error_message(), path));
    tdm_free(got.data);
    tdm_free(path);
}

/* Cut at every byte: never a success, but where nothing is left at all. */
START_TEST(test_truncated_streams)
{
    tdm_new_folder(folder);
    bytes text = make_text(100), gzip = {0}, zstd = {0};
    add_gzip(&gzip, text.data, text.size, 6);
    add_zstd(&zstd, text.data, text.size);
    for (bytes cut = gzip; --cut.size > 0;)
        check_fails("a.gz", &cut,
                    cut.size < 2 ? "does not begin as a gzip file does" : "truncated");
    for (bytes cut = zstd; --cut.size > 0;)
        check_fails("a.zst", &cut,
                    cut.size < 4 ? "does not begin as a Zstandard file does" : "truncated");
    /* In the second member. */
    size_t first = gzip.size;
    add_gzip(&gzip, text.data, text.size, 6);
    for (bytes cut = gzip; --cut.size > first;)
        check_fails("a.gz", &cut, "truncated");
    tdm_free(text.data);
    tdm_free(gzip.data);
    tdm_free(zstd.data);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* A flipped bit anywhere is an error or, in a header's free fields, changes no byte. */
static void check_flips(const char *name, const bytes *stored, const bytes *text)
{
    int failures = 0;
    for (size_t i = 0; i < stored->size * 8; i += 3) {
        stored->data[i / 8] ^= (unsigned char)(1 << i % 8);
        char *path = put(name, stored);
        bytes got;
        tdm_status status = read_all(path, 4096, &got);
        if (status == TDM_OK) {
            ck_assert_uint_eq(got.size, text->size);
            ck_assert_mem_eq(got.data, text->data, text->size);
        } else {
            ck_assert_int_eq(status, TDM_E_DATA);
            ck_assert_ptr_nonnull(strstr(tdm_error_message(), path));
            failures++;
        }
        tdm_free(got.data);
        tdm_free(path);
        stored->data[i / 8] ^= (unsigned char)(1 << i % 8);
    }
    ck_assert_int_gt(failures, (int)stored->size * 2);
}

START_TEST(test_corrupt_streams)
{
    tdm_new_folder(folder);
    bytes text = make_text(120), gzip = {0}, zstd = {0};
    add_gzip(&gzip, text.data, text.size, 6);
    add_zstd(&zstd, text.data, text.size);
    check_flips("a.gz", &gzip, &text);
    check_flips("a.zst", &zstd, &text);
    /* What follows a member and is none. */
    add_bytes(&gzip, "garbage", 7);
    check_fails("b.gz", &gzip, "corrupt gzip stream near stored byte");
    add_bytes(&zstd, "garbage", 7);
    check_fails("b.zst", &zstd, "corrupt Zstandard stream near stored byte");
    bytes plain = {(unsigned char *)(uintptr_t) "plain text", 10, 0};
    check_fails("c.gz", &plain, "does not begin as a gzip file does; rename it");
    check_fails("c.zst", &plain, "does not begin as a Zstandard file does; rename it");
    tdm_free(text.data);
    tdm_free(gzip.data);
    tdm_free(zstd.data);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

START_TEST(test_what_is_no_file)
{
    tdm_source *source;
    tdm_new_folder(folder);
    ck_assert_fails(tdm_source_open("/nowhere/x", NULL, &source), TDM_E_IO, "/nowhere/x: no such");
    ck_assert_ptr_null(source);
    ck_assert_fails(tdm_source_open(folder, NULL, &source), TDM_E_IO, "is a folder: name its");
    char *path = tdm_data_rig_put_text(folder, "secret", "x");
    ck_assert_int_eq(chmod(path, 0), 0);
    if (geteuid() == 0)
        ck_assert_int_eq(seteuid(65534), 0);
    ck_assert_fails(tdm_source_open(path, NULL, &source), TDM_E_IO, "secret: ");
    if (getuid() == 0)
        ck_assert_int_eq(seteuid(0), 0);
    tdm_free(path);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

/* ---- standard input -------------------------------------------------------------------------- */

typedef struct writer {
    int fd;
    const bytes *content;
    size_t step;
} writer;

static void *write_slowly(void *argument)
{
    writer *w = argument;
    for (size_t at = 0; at < w->content->size;) {
        size_t left = w->content->size - at;
        ssize_t count = write(w->fd, w->content->data + at, left < w->step ? left : w->step);
        ck_assert_int_gt(count, 0);
        at += (size_t)count;
    }
    close(w->fd);
    return NULL;
}

static void check_stdin(const bytes *stored, const bytes *text, size_t step)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    if (ends[0] != STDIN_FILENO)
        close(ends[0]);
    writer w = {ends[1], stored, step};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, write_slowly, &w), 0);
    bytes got;
    ck_assert_ok(read_all("-", 3000, &got));
    pthread_join(thread, NULL);
    ck_assert_uint_eq(got.size, text->size);
    ck_assert_mem_eq(got.data, text->data, text->size);
    tdm_free(got.data);
}

START_TEST(test_standard_input_of_every_compression)
{
    bytes text = make_text(3000), gzip = {0}, zstd = {0};
    add_gzip(&gzip, text.data, text.size, 6);
    add_zstd(&zstd, text.data, text.size);
    for (size_t step = 1; step < 4000; step = 10 * step + 1) {
        check_stdin(&text, &text, step);
        check_stdin(&gzip, &text, step);
        check_stdin(&zstd, &text, step);
    }
    tdm_free(text.data);
    tdm_free(gzip.data);
    tdm_free(zstd.data);
}
END_TEST

START_TEST(test_eager_reads_and_cancelling)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    static atomic_bool cancel;
    tdm_source *source;
    char buffer[100];
    size_t got;
    ck_assert_int_eq(write(ends[1], "12345", 5), 5);
    ck_assert_ok(tdm_source_open("-", &cancel, &source));
    tdm_source_set_eager(source);
    ck_assert_ok(tdm_source_read(source, buffer, sizeof buffer, &got));
    ck_assert_uint_eq(got, 5);
    ck_assert_int_eq(write(ends[1], "67", 2), 2);
    ck_assert_ok(tdm_source_read(source, buffer, sizeof buffer, &got));
    ck_assert_uint_eq(got, 2);
    atomic_store(&cancel, true);
    ck_assert_fails(tdm_source_read(source, buffer, sizeof buffer, &got), TDM_E_CANCELLED,
                    "stopped while reading standard input");
    tdm_source_close(source);
    ck_assert_fails(tdm_source_open("-", &cancel, &source), TDM_E_CANCELLED, "standard input");
    close(ends[1]);
}
END_TEST

TDM_CHECK_MAIN(test_every_compression, test_several_members_and_frames, test_truncated_streams,
               test_corrupt_streams, test_what_is_no_file, test_standard_input_of_every_compression,
               test_eager_reads_and_cancelling)
