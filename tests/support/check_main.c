#include "tests/support/check_main.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int tdm_check_run(const char *name, const TTest *const *tests, size_t count)
{
    const char *slash = strrchr(name, '/');
    Suite *suite = suite_create(slash == NULL ? name : slash + 1);
    for (size_t i = 0; i < count; i++) {
        TCase *test_case = tcase_create(tests[i]->name);
        tcase_set_timeout(test_case, 500);
        tcase_add_test(test_case, tests[i]);
        suite_add_tcase(suite, test_case);
    }
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

const char *tdm_test_folder(void)
{
    static char folder[256];
    snprintf(folder, sizeof folder, "/tmp/tandem-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    return folder;
}

const char *tdm_test_path(const char *folder, const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

const char *tdm_test_data(void)
{
    const char *folder = getenv("TANDEM_TEST_DATA");
    return folder != NULL && folder[0] != '\0' ? folder : NULL;
}

void tdm_test_skip(const char *why)
{
    printf("SKIPPED: %s\n", why);
    fflush(stdout);
}
