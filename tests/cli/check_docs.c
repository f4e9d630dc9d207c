/* What the documents quote of the program is what the program says. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/run_program.h"

#include <string.h>

START_TEST(recipe_reference_is_current)
{
    char *document;
    size_t bytes;
    ck_assert_ok(tdm_file_get(TDM_SOURCE_DIR "/docs/RECIPES.md", 1 << 20, &document, &bytes));
    tdm_ran run = tdm_run_shell("tandem help recipe");
    ck_assert_ran(run, 0, NULL, NULL);
    ck_assert_msg(strstr(document, run.out) != NULL,
                  "docs/RECIPES.md does not hold what `tandem help recipe` prints");
    tdm_ran_free(&run);
    tdm_free(document);
}
END_TEST

START_TEST(the_example_is_the_one_that_is_built)
{
    char *document, *example;
    size_t bytes;
    ck_assert_ok(tdm_file_get(TDM_SOURCE_DIR "/docs/TOKENIZER.md", 1 << 20, &document, &bytes));
    ck_assert_ok(tdm_file_get(TDM_SOURCE_DIR "/examples/tokenize.c", 1 << 20, &example, &bytes));
    ck_assert_msg(strstr(document, example) != NULL,
                  "docs/TOKENIZER.md does not hold examples/tokenize.c");
    tdm_free(document);
    tdm_free(example);
}
END_TEST

TDM_CHECK_MAIN(recipe_reference_is_current, the_example_is_the_one_that_is_built)
