#include "tests/support/text_data.h"

#include "core/memory.h"
#include "data/source.h"
#include "tests/support/check_main.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

char *tdm_text_data(const char *name, size_t *bytes)
{
    char path[512];
    tdm_source *source;
    char *text = NULL;
    size_t capacity = 0, got;
    if (tdm_test_data() == NULL) {
        tdm_test_skip("TANDEM_TEST_DATA is not set: texts and Unicode's files");
        return NULL;
    }
    snprintf(path, sizeof path, "%s/%s", tdm_test_data(), name);
    ck_assert_ok(tdm_source_open(path, NULL, &source));
    *bytes = 0;
    do {
        ck_assert_ok(tdm_grow(&text, &capacity, *bytes + (1 << 20), 1));
        ck_assert_ok(tdm_source_read(source, text + *bytes, (1 << 20) - 1, &got));
        *bytes += got;
    } while (got > 0);
    text[*bytes] = '\0';
    tdm_source_close(source);
    return text;
}

const char *tdm_next_line(const char *text, size_t bytes, size_t *at, size_t *line_bytes)
{
    if (*at >= bytes)
        return NULL;
    const char *line = text + *at;
    const char *end = memchr(line, '\n', bytes - *at);
    *line_bytes = end == NULL ? bytes - *at : (size_t)(end - line);
    *at += *line_bytes + 1;
    return line;
}

/* ---- zip (APPNOTE.TXT of PKWARE) ------------------------------------------------------------- */

static uint32_t read_number(const char *at, int bytes)
{
    uint32_t number = 0;
    for (int i = bytes - 1; i >= 0; i--)
        number = number << 8 | (unsigned char)at[i];
    return number;
}

static char *inflate_member(const char *from, uint32_t stored, uint32_t bytes, uint32_t method)
{
    char *text;
    ck_assert_ok(tdm_alloc((size_t)bytes + 1, 1, &text));
    if (method == 0) {
        memcpy(text, from, bytes);
        return text;
    }
    z_stream stream = {.next_in = (unsigned char *)(uintptr_t)from,
                       .avail_in = stored,
                       .next_out = (unsigned char *)text,
                       .avail_out = bytes};
    ck_assert_int_eq(inflateInit2(&stream, -MAX_WBITS), Z_OK);
    ck_assert_int_eq(inflate(&stream, Z_FINISH), Z_STREAM_END);
    ck_assert_uint_eq(stream.total_out, bytes);
    inflateEnd(&stream);
    return text;
}

char *tdm_zip_member(const char *archive, size_t archive_bytes, const char *name, size_t *bytes)
{
    /* The end of the central directory, which has no comment behind it. */
    const char *end = archive + archive_bytes - 22;
    ck_assert_uint_ge(archive_bytes, 22);
    ck_assert_uint_eq(read_number(end, 4), 0x06054b50);
    const char *entry = archive + read_number(end + 16, 4);
    for (uint32_t left = read_number(end + 10, 2); left > 0; left--) {
        uint32_t name_bytes = read_number(entry + 28, 2);
        if (name_bytes == strlen(name) && memcmp(entry + 46, name, name_bytes) == 0) {
            const char *local = archive + read_number(entry + 42, 4);
            const char *data = local + 30 + read_number(local + 26, 2) + read_number(local + 28, 2);
            *bytes = read_number(entry + 24, 4);
            return inflate_member(data, read_number(entry + 20, 4), (uint32_t)*bytes,
                                  read_number(entry + 10, 2));
        }
        entry += 46 + name_bytes + read_number(entry + 30, 2) + read_number(entry + 32, 2);
    }
    ck_abort_msg("the archive has no %s", name);
}
