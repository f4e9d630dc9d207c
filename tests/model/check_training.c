#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/training.h"

#include <string.h>

#define DEEPFM "{type: deepfm, mlp: {units: [16, 8], dropout: 0.1}}"

static const tdm_train_control plain_control = {0};

START_TEST(test_deepfm_learns)
{
    char folder[256], data[512];
    strcpy(folder, tdm_test_folder());
    strcpy(data, tdm_test_path(folder, "clicks.csv"));
    tdm_test_write_clicks(data, 6000, 1);
    const char *overrides[] = {"train.epochs=3"};
    tdm_recipe *recipe = tdm_test_recipe(folder, data, DEEPFM, overrides, 1);
    tdm_train_result result;
    ck_assert_ok(tdm_train(recipe, &plain_control, &result));
    char *metrics = tdm_test_metrics(recipe->output.dir);
    fprintf(stderr, "%s", metrics);
    fprintf(stderr, "%lld steps auc %f loss %f\n", (long long)result.step, result.train.auc,
            result.train.logloss);
    tdm_free(metrics);
    tdm_recipe_free(recipe);
    ck_assert_ok(tdm_folder_remove(folder));
}
END_TEST

TDM_CHECK_MAIN(test_deepfm_learns)
