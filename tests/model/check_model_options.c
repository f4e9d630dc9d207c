/* The recipe's section `model`: what each model reads of it and what it takes where it says
 * nothing. */
#include "tests/support/check_main.h"
#include "tests/support/ctr_rig.h"

#include "core/config.h"

#include <string.h>

static tdm_status bind(const char *text, const tdm_model_type *type, void *options)
{
    tdm_config *config;
    TDM_TRY(tdm_config_parse(text, strlen(text), "recipe.yaml", NULL, 0, &config));
    tdm_status status = tdm_config_bind(tdm_config_root(config), type->schema, options);
    tdm_config_free(config);
    return status;
}

START_TEST(deepfm_has_the_papers_defaults)
{
    tdm_deepfm_options options;
    ck_assert_ok(bind("{}", &tdm_deepfm, &options));
    ck_assert_int_eq(options.mlp.units.count, 3);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(options.mlp.units.items[i], 400);
    ck_assert(options.mlp.dropout == 0);
    ck_assert(options.embedding_init == 0.01);
    tdm_config_unbind(tdm_deepfm.schema, &options);
}
END_TEST

START_TEST(options_are_read)
{
    tdm_deepfm_options deepfm;
    ck_assert_ok(
        bind("{mlp: {units: [32, 8], dropout: 0.25}, embedding_init: 0.05}", &tdm_deepfm, &deepfm));
    ck_assert_int_eq(deepfm.mlp.units.count, 2);
    ck_assert_int_eq(deepfm.mlp.units.items[1], 8);
    ck_assert(deepfm.mlp.dropout == 0.25);
    ck_assert(deepfm.embedding_init == 0.05);
    tdm_config_unbind(tdm_deepfm.schema, &deepfm);

    tdm_dcn_v2_options dcn_v2;
    ck_assert_ok(bind("{crosses: 2, mlp: {units: []}}", &tdm_dcn_v2, &dcn_v2));
    ck_assert_int_eq(dcn_v2.crosses, 2);
    ck_assert_int_eq(dcn_v2.mlp.units.count, 0);
    ck_assert(dcn_v2.embedding_init == 0.01);
    tdm_config_unbind(tdm_dcn_v2.schema, &dcn_v2);
    ck_assert_ok(bind("{}", &tdm_dcn_v2, &dcn_v2));
    ck_assert_int_eq(dcn_v2.crosses, 3);
    tdm_config_unbind(tdm_dcn_v2.schema, &dcn_v2);

    char none;
    ck_assert_ok(bind("{}", &tdm_logistic_regression, &none));
    tdm_config_unbind(tdm_logistic_regression.schema, &none);
}
END_TEST

START_TEST(options_out_of_range_are_refused)
{
    tdm_deepfm_options deepfm;
    tdm_dcn_v2_options dcn_v2;
    char none;
    ck_assert_fails(bind("{mlp: {dropout: 1.0}}", &tdm_deepfm, &deepfm), TDM_E_CONFIG, "dropout");
    ck_assert_fails(bind("{mlp: {units: [0]}}", &tdm_deepfm, &deepfm), TDM_E_CONFIG, "units");
    ck_assert_fails(bind("{embedding_init: -1}", &tdm_deepfm, &deepfm), TDM_E_CONFIG,
                    "embedding_init");
    ck_assert_fails(bind("{crosses: 0}", &tdm_dcn_v2, &dcn_v2), TDM_E_CONFIG, "crosses");
    ck_assert_fails(bind("{mlp: {}}", &tdm_logistic_regression, &none), TDM_E_CONFIG, "mlp");
}
END_TEST

START_TEST(every_model_is_in_the_table)
{
    static const char *const names[] = {"logistic_regression", "deepfm", "dcn_v2"};
    int count = 0;
    for (; tdm_models[count] != NULL; count++) {
        const tdm_model_type *type = tdm_models[count];
        ck_assert_int_lt(count, 3);
        ck_assert_str_eq(type->name, names[count]);
        ck_assert(type->help != NULL && type->schema != NULL && type->build != NULL);
    }
    ck_assert_int_eq(count, 3);
}
END_TEST

TDM_CHECK_MAIN(deepfm_has_the_papers_defaults, options_are_read, options_out_of_range_are_refused,
               every_model_is_in_the_table)
