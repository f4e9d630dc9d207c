/* The recipe's `optimizer` section. */
#include "tests/support/check_main.h"

#include "trainer/optimizer.h"

#include <stdio.h>
#include <string.h>

/* Every task's schema comes with what completes it. */
typedef struct section_type {
    const tdm_config_schema *schema;
    tdm_status (*resolve)(const tdm_config_node *node, tdm_optimizer_options *options);
} section_type;

static const section_type ctr_section = {&tdm_optimizer_schema, tdm_optimizer_resolve};
static const section_type text_section = {&tdm_text_optimizer_schema, tdm_text_optimizer_resolve};

static tdm_status bind_section(const section_type *type, const char *text,
                               tdm_optimizer_options *options)
{
    tdm_config *config;
    TDM_TRY(tdm_config_parse(text, strlen(text), "recipe.yaml", NULL, 0, &config));
    const tdm_config_node *node = tdm_config_get(tdm_config_root(config), "optimizer");
    tdm_status status = tdm_config_bind(node, type->schema, options);
    if (status == TDM_OK)
        status = type->resolve(node, options);
    tdm_config_free(config);
    return status;
}

static tdm_status bind(const char *text, tdm_optimizer_options *options)
{
    return bind_section(&ctr_section, text, options);
}

static tdm_status bind_text(const char *text, tdm_optimizer_options *options)
{
    return bind_section(&text_section, text, options);
}

START_TEST(defaults)
{
    tdm_optimizer_options options;
    ck_assert_ok(bind("task: ctr\n", &options));
    const tdm_update_options *sides[] = {&options.dense, &options.sparse};
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(sides[i]->type, TDM_UPDATE_ADAM);
        ck_assert_double_eq(sides[i]->learning_rate, 0.001);
        ck_assert_double_eq(sides[i]->beta1, 0.9);
        ck_assert_double_eq(sides[i]->beta2, 0.999);
        ck_assert_double_eq(sides[i]->eps, 1e-8);
        ck_assert_double_eq(sides[i]->momentum, 0.0);
        ck_assert_double_eq(sides[i]->l2, 0.0);
        ck_assert_double_eq(sides[i]->weight_decay, 0.0);
        ck_assert_double_eq(sides[i]->initial_accumulator, 0.1);
    }
    ck_assert_int_eq(options.schedule.type, TDM_SCHEDULE_CONSTANT);
    ck_assert_int_eq(options.schedule.warmup_steps, 0);
    ck_assert_double_eq(options.schedule.final, 0.0);
}
END_TEST

START_TEST(a_recipe)
{
    tdm_optimizer_options options;
    ck_assert_ok(bind("optimizer:\n"
                      "  dense: {type: sgd, learning_rate: 0.5, momentum: 0.9}\n"
                      "  sparse: {type: adagrad, learning_rate: 0.01, l2: 1.0e-6}\n"
                      "  schedule: {type: linear, warmup_steps: 4, final: 0.25}\n",
                      &options));
    ck_assert_int_eq(options.dense.type, TDM_UPDATE_SGD);
    ck_assert_double_eq(options.dense.momentum, 0.9);
    ck_assert_int_eq(options.sparse.type, TDM_UPDATE_ADAGRAD);
    ck_assert_double_eq(options.sparse.eps, 1e-10);
    ck_assert_double_eq(options.sparse.l2, 1e-6);

    tdm_step_scalars scalars = {0};
    tdm_optimizer_learning_rates(&options, 2, 0.0, &scalars);
    ck_assert_double_eq(scalars.dense_learning_rate, 0.25);
    ck_assert_double_eq(scalars.sparse_learning_rate, 0.005);
    tdm_optimizer_learning_rates(&options, 9, 1.0, &scalars);
    ck_assert_double_eq(scalars.dense_learning_rate, 0.125);
    ck_assert_double_eq(scalars.sparse_learning_rate, 0.0025);
}
END_TEST

START_TEST(text_defaults)
{
    tdm_optimizer_options options;
    ck_assert_ok(bind_text("task: mlm\n", &options));
    ck_assert_int_eq(options.dense.type, TDM_UPDATE_ADAMW);
    ck_assert_double_eq(options.dense.learning_rate, 1e-4);
    ck_assert_double_eq(options.dense.beta1, 0.9);
    ck_assert_double_eq(options.dense.beta2, 0.999);
    ck_assert_double_eq(options.dense.eps, 1e-6);
    ck_assert_double_eq(options.dense.weight_decay, 0.01);
    ck_assert_double_eq(options.dense.momentum, 0.0);
    ck_assert_double_eq(options.dense.l2, 0.0);
    ck_assert_int_eq(options.schedule.type, TDM_SCHEDULE_CONSTANT);
    const tdm_update_options none = {0};
    ck_assert_int_eq(memcmp(&options.sparse, &none, sizeof none), 0);
}
END_TEST

START_TEST(a_text_recipe)
{
    tdm_optimizer_options options;
    ck_assert_ok(bind_text("optimizer:\n"
                           "  type: lamb\n"
                           "  learning_rate: 5.0e-4\n"
                           "  beta2: 0.98\n"
                           "  weight_decay: 0.1\n"
                           "  schedule: {type: wsd, warmup_share: 0.06, final: 0.02}\n",
                           &options));
    ck_assert_int_eq(options.dense.type, TDM_UPDATE_LAMB);
    ck_assert_double_eq(options.dense.beta2, 0.98);
    ck_assert_double_eq(options.dense.eps, 1e-6);
    ck_assert_double_eq(options.dense.weight_decay, 0.1);
    ck_assert_double_eq(options.schedule.decay_share, 0.1);
    tdm_step_scalars scalars = {0};
    tdm_optimizer_learning_rates(&options, 4, 0.03, &scalars);
    ck_assert_double_eq_tol(scalars.dense_learning_rate, 2.5e-4, 1e-18);
    ck_assert_double_eq(scalars.sparse_learning_rate, 0.0);

    /* The default of weight_decay is of the rules that have it. */
    const char *const plain[] = {"sgd", "adagrad", "adam"};
    for (int i = 0; i < 3; i++) {
        char text[64];
        snprintf(text, sizeof text, "optimizer: {type: %s}\n", plain[i]);
        ck_assert_ok(bind_text(text, &options));
        ck_assert_double_eq(options.dense.weight_decay, 0.0);
        ck_assert_double_eq(options.dense.eps, i == 1 ? 1e-10 : 1e-6);
    }
    ck_assert_ok(bind_text("optimizer: {weight_decay: 0}\n", &options));
    ck_assert_double_eq(options.dense.weight_decay, 0.0);
}
END_TEST

/* What resolving wrote is what loading the resolved recipe gives. */
static void assert_binds_again(const section_type *type, const char *recipe)
{
    tdm_optimizer_options options, again;
    tdm_text text = {0};
    ck_assert_ok(bind_section(type, recipe, &options));
    ck_assert_ok(tdm_text_printf(&text, "optimizer:\n"));
    ck_assert_ok(tdm_config_emit(type->schema, &options, 2, &text));
    ck_assert_ok(bind_section(type, text.bytes, &again));
    ck_assert_int_eq(memcmp(&options, &again, sizeof options), 0);
    tdm_text_free(&text);
}

START_TEST(resolved_options_bind_again)
{
    assert_binds_again(&ctr_section, "optimizer:\n  sparse: {type: adagrad}\n"
                                     "  dense: {type: adamw, weight_decay: 0.01}\n"
                                     "  schedule: {type: linear, warmup_share: 0.1}\n");
    assert_binds_again(&text_section, "optimizer: {schedule: {type: wsd}}\n");
    assert_binds_again(&text_section, "optimizer: {type: adam}\n");
    assert_binds_again(&text_section, "optimizer: {type: sgd, momentum: 0.9}\n");
}
END_TEST

START_TEST(refused_options)
{
    const struct {
        const char *text, *message;
    } cases[] = {
        {"optimizer:\n  dense: {momentum: 0.9}\n",
         "recipe.yaml:2: optimizer.dense.momentum: adam has none"},
        {"optimizer:\n  sparse: {type: adagrad, momentum: 0.9}\n",
         "optimizer.sparse.momentum: adagrad has none"},
        {"optimizer:\n  dense: {type: adamw, l2: 0.1}\n",
         "optimizer.dense.l2: adamw has none: set weight_decay"},
        {"optimizer:\n  sparse: {weight_decay: 0.1}\n",
         "optimizer.sparse.weight_decay: adam has none: set l2"},
        {"optimizer:\n  dense: {type: lamb, weight_decay: 0.1, l2: 0.1}\n",
         "optimizer.dense.l2: lamb has none: set weight_decay"},
        {"optimizer:\n  dense: {type: lamb}\n",
         "recipe.yaml:2: optimizer.dense.type: lamb without weight_decay is adam"},
        {"optimizer:\n  sparse: {type: lamb, weight_decay: 0.1}\n",
         "recipe.yaml:2: optimizer.sparse.type: lamb goes by the norm of a whole tensor"},
        {"optimizer:\n  schedule: {warmup_steps: 5, warmup_share: 0.1}\n",
         "recipe.yaml:2: optimizer.schedule.warmup_share: warmup_steps is set too"},
        {"optimizer:\n  schedule: {type: linear, decay_share: 0.1}\n",
         "recipe.yaml:2: optimizer.schedule.decay_share: only wsd has one"},
        {"optimizer:\n  dense: {type: adma}\n", "adam"},
        {"optimizer:\n  dense: {learning_rate: -1}\n", "learning_rate"},
        {"optimizer:\n  dense: {beta1: 1}\n", "beta1"},
        {"optimizer:\n  schedule: {final: 2}\n", "final"},
        {"optimizer:\n  schedule: {type: step}\n", "cosine"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdm_optimizer_options options;
        ck_assert_fails(bind(cases[i].text, &options), TDM_E_CONFIG, cases[i].message);
    }
    tdm_optimizer_options options = {.dense = {.type = TDM_UPDATE_ADAM, .momentum = 0.5}};
    ck_assert_fails(tdm_optimizer_resolve(NULL, &options), TDM_E_CONFIG, "momentum: adam has none");
}
END_TEST

START_TEST(refused_text_options)
{
    const struct {
        const char *text, *message;
    } cases[] = {
        {"optimizer:\n  type: adam\n  weight_decay: 0.01\n",
         "recipe.yaml:3: optimizer.weight_decay: adam has none: remove it, or choose type: adamw"},
        {"optimizer: {type: lamb, weight_decay: 0}\n",
         "optimizer.type: lamb without weight_decay is adam"},
        {"optimizer: {momentum: 0.9}\n", "optimizer.momentum: adamw has none"},
        {"optimizer: {dense: {type: adam}}\n", "dense"},
        {"optimizer: {schedule: {warmup_steps: 5, warmup_share: 0.1}}\n",
         "optimizer.schedule.warmup_share: warmup_steps is set too"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdm_optimizer_options options;
        ck_assert_fails(bind_text(cases[i].text, &options), TDM_E_CONFIG, cases[i].message);
    }
}
END_TEST

TDM_CHECK_MAIN(defaults, a_recipe, text_defaults, a_text_recipe, resolved_options_bind_again,
               refused_options, refused_text_options)
