/* The frame of a Check program: TDM_CHECK_MAIN(test_a, test_b, …) makes one suite of the tests,
 * runs it and fails where one fails. */
#ifndef TDM_TESTS_CHECK_MAIN_H
#define TDM_TESTS_CHECK_MAIN_H

#include "core/status.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>

/* The status must be OK; prints the message where it is not. */
#define ck_assert_ok(expr)                                                                         \
    do {                                                                                           \
        tdm_status ck_status_ = (expr);                                                            \
        ck_assert_msg(ck_status_ == TDM_OK, "%s: %s", #expr, tdm_error_message());                 \
    } while (0)

/* The status must be `code` and the message contain `text`. */
#define ck_assert_fails(expr, code, text)                                                          \
    do {                                                                                           \
        tdm_status ck_status_ = (expr);                                                            \
        ck_assert_msg(ck_status_ == (code), "%s: status %d (%s)", #expr, (int)ck_status_,          \
                      tdm_error_message());                                                        \
        ck_assert_msg(strstr(tdm_error_message(), (text)) != NULL, "message \"%s\" lacks \"%s\"",  \
                      tdm_error_message(), (text));                                                \
    } while (0)

int tdm_check_run(const char *name, const TTest *const *tests, size_t count);

/* A new empty folder under the build tree, and the path of a file in it; both static buffers that
 * the next call of the same function reuses. */
const char *tdm_test_folder(void);
const char *tdm_test_path(const char *folder, const char *name);

/* The folder of the test data, or NULL where TANDEM_TEST_DATA is not set: then the test calls
 * tdm_test_skip(), which counts it, and returns. */
const char *tdm_test_data(void);
void tdm_test_skip(const char *why);

#define TDM_CHECK_MAIN(...)                                                                        \
    int main(void)                                                                                 \
    {                                                                                              \
        const TTest *const tests[] = {__VA_ARGS__};                                                \
        return tdm_check_run(__FILE__, tests, sizeof tests / sizeof tests[0]);                     \
    }

#endif
