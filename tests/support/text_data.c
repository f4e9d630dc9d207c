#include "tests/support/text_data.h"

#include "core/memory.h"
#include "data/source.h"
#include "tests/support/check_main.h"

#include <stdio.h>
#include <string.h>

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
