/* What the tests of recipes share: a schema with a key of every type, and the ways to fail. */
#ifndef TDM_TESTS_CONFIG_OPTIONS_H
#define TDM_TESTS_CONFIG_OPTIONS_H

#include "core/config.h"
#include "tests/support/check_main.h"

typedef struct options_field {
    char *column;
    int64_t buckets;
} options_field;

typedef struct options_rule {
    int type;
    double learning_rate;
} options_rule;

typedef struct options {
    bool shuffle;
    int64_t epochs;
    double clip_norm;
    char *name;
    int device;
    tdm_share bad;
    tdm_strings train;
    tdm_ints units;
    options_rule rule;
    tdm_sections fields;
    const tdm_config_node *model;
} options;

extern const tdm_config_schema tdm_test_schema;

/* Of the file "r.yaml". */
tdm_status tdm_test_parse(const char *text, tdm_config **out);
tdm_status tdm_test_parse_with(const char *text, const char *override, tdm_config **out);

/* Parses and binds; *config is kept for NODE values. `override` may be NULL. */
tdm_status tdm_test_bind(const char *text, const char *override, options *out, tdm_config **config);

/* The status is TDM_E_CONFIG and `message` the whole message. */
void tdm_test_message(tdm_status status, const char *message);
void tdm_test_parse_fails(const char *text, const char *message);
void tdm_test_bind_fails(const char *text, const char *message);
/* Over the recipe "epochs: 1". */
void tdm_test_override_fails(const char *override, const char *message);

/* head, `count` times text, tail; freed with tdm_free(). */
char *tdm_test_repeat(const char *head, const char *text, int count, const char *tail);

/* Writes a file and returns its path, in a buffer that the next call reuses. */
const char *tdm_test_put(const char *folder, const char *name, const char *text);

#endif
