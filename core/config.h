/* Recipes: YAML files bound to C structs by tables.
 *
 * A module describes its section of a recipe with a schema, one line a key. From that one table
 * come reading, defaults, range checks, errors with file:line and a did-you-mean, the resolved
 * recipe, and the reference that `tandem help recipe` prints. */
#ifndef TDM_CORE_CONFIG_H
#define TDM_CORE_CONFIG_H

#include "core/status.h"

#include <stdbool.h>

/* ---- the tree -------------------------------------------------------------------------------- */

typedef struct tdm_config tdm_config;           /* a loaded recipe; owns its nodes */
typedef struct tdm_config_node tdm_config_node; /* borrowed from it */

/* Loads a recipe. `extends: other.yaml` (relative to the file that says it; chains are allowed,
 * circles are errors) is loaded first; then mappings merge key by key and anything else replaces.
 * Then each of `overrides`, "key.path=value" with the value in YAML ("train.epochs=2",
 * "data.train=[a.tsv, b.tsv]"), replaces what stands there, creating mappings on the way. Duplicate
 * keys, anchors, aliases, tags, a second document and what is not YAML in UTF-8 are errors with
 * file:line. A null (~) stands for an absent value, also over one that is inherited. */
TDM_MUST_CHECK tdm_status tdm_config_load(const char *path, const char *const *overrides,
                                          int override_count, tdm_config **out);

/* The same from text in memory; `name` stands for the file in errors and for `extends`. */
TDM_MUST_CHECK tdm_status tdm_config_parse(const char *text, size_t bytes, const char *name,
                                           const char *const *overrides, int override_count,
                                           tdm_config **out);
/* NULL is allowed. */
void tdm_config_free(tdm_config *config);

const tdm_config_node *tdm_config_root(const tdm_config *config);

/* The value at `key` of a mapping; NULL where there is none or a null, or `node` is NULL or no
 * mapping. */
const tdm_config_node *tdm_config_get(const tdm_config_node *node, const char *key);

/* A scalar's text; NULL for nulls and other nodes. */
const char *tdm_config_text(const tdm_config_node *node);
bool tdm_config_is_mapping(const tdm_config_node *node);
bool tdm_config_is_sequence(const tdm_config_node *node);
/* Items of a sequence. */
int64_t tdm_config_count(const tdm_config_node *node);
const tdm_config_node *tdm_config_item(const tdm_config_node *node, int64_t index);

/* TDM_E_CONFIG with "file:line: key.path: " (or "command line: key.path: ") before the message. */
tdm_status tdm_config_fail(const tdm_config_node *node, const char *format, ...) TDM_PRINTF(2, 3);

/* ---- schemas --------------------------------------------------------------------------------- */

typedef enum tdm_config_type {
    TDM_CONFIG_BOOL,     /* bool: true or false */
    TDM_CONFIG_INT,      /* int64_t in [min, max]; 10_000 and 4k are not numbers */
    TDM_CONFIG_FLOAT,    /* double in [min, max], finite */
    TDM_CONFIG_STRING,   /* char *; NULL where the default is "~" */
    TDM_CONFIG_CHOICE,   /* int: the index in `choices` */
    TDM_CONFIG_SHARE,    /* tdm_share: "0.1%" or a count */
    TDM_CONFIG_STRINGS,  /* tdm_strings: a sequence, or one string */
    TDM_CONFIG_INTS,     /* tdm_ints: a sequence, or one number, each in [min, max] */
    TDM_CONFIG_FLOATS,   /* tdm_floats: likewise */
    TDM_CONFIG_SECTION,  /* a struct of its own, described by `section` */
    TDM_CONFIG_SECTIONS, /* tdm_sections: a sequence of such structs */
    TDM_CONFIG_NODE, /* const tdm_config_node *: bound by the module itself; NULL where absent */
} tdm_config_type;

typedef struct tdm_share {
    double value;
    bool is_share; /* of 1: 0.1% is 0.001 */
} tdm_share;

typedef struct tdm_strings {
    char **items;
    int64_t count;
} tdm_strings;

typedef struct tdm_ints {
    int64_t *items;
    int64_t count;
} tdm_ints;

typedef struct tdm_floats {
    double *items;
    int64_t count;
} tdm_floats;

typedef struct tdm_sections {
    void *items; /* structs of section->size bytes */
    int64_t count;
} tdm_sections;

typedef struct tdm_config_schema tdm_config_schema;

typedef struct tdm_config_key {
    const char *name;
    tdm_config_type type;
    size_t offset;                    /* in the struct */
    const char *fallback;             /* the default, as YAML; NULL: the key must be there */
    double min, max;                  /* numbers; both 0: any */
    const char *const *choices;       /* CHOICE: ended by NULL */
    const tdm_config_schema *section; /* SECTION, SECTIONS */
    const char *help;                 /* one line */
} tdm_config_key;

struct tdm_config_schema {
    size_t size; /* of the struct */
    const tdm_config_key *keys;
    int count;
};

/* Fills the struct `out` (schema->size bytes) from a mapping; NULL stands for an empty one. Keys
 * that the schema lacks are errors with a did-you-mean and the list of keys. A section that is
 * absent is filled with its defaults. On failure nothing is left to free. */
TDM_MUST_CHECK tdm_status tdm_config_bind(const tdm_config_node *node,
                                          const tdm_config_schema *schema, void *out);

/* Frees what bind allocated inside the struct and sets it to zero. */
void tdm_config_unbind(const tdm_config_schema *schema, void *values);

/* A node that a module binds itself (TDM_CONFIG_NODE), as a list of strings: freed by
 * tdm_strings_free(). */
TDM_MUST_CHECK tdm_status tdm_config_bind_strings(const tdm_config_node *node, tdm_strings *out);
void tdm_strings_free(tdm_strings *strings);

/* ---- the resolved recipe --------------------------------------------------------------------- */

/* Text that grows; *text is zero-ended and freed with tdm_free(). */
typedef struct tdm_text {
    char *bytes;
    size_t length;
    size_t capacity;
} tdm_text;

TDM_MUST_CHECK tdm_status tdm_text_printf(tdm_text *text, const char *format, ...) TDM_PRINTF(2, 3);
void tdm_text_free(tdm_text *text);

/* Appends the bound struct as YAML, every key with its value in force, at `indent` blanks, so that
 * loading the text binds the same values (floats are printed to the last bit). */
TDM_MUST_CHECK tdm_status tdm_config_emit(const tdm_config_schema *schema, const void *values,
                                          int indent, tdm_text *text);

/* Appends the reference of a schema: a line "path.key  default  help (what is expected)" for each
 * key. `path` is "" at the top. */
TDM_MUST_CHECK tdm_status tdm_config_describe(const tdm_config_schema *schema, const char *path,
                                              tdm_text *text);

/* Calls differ(context, "key.path", text in a, text in b) for every leaf that is not the same in
 * both trees; a text is NULL where the leaf is absent, and a sequence is one leaf. */
TDM_MUST_CHECK tdm_status tdm_config_diff(const tdm_config_node *a, const tdm_config_node *b,
                                          tdm_status (*differ)(void *context, const char *key,
                                                               const char *in_a, const char *in_b),
                                          void *context);

/* The index of `name` in `names`, which NULL ends, or -1. */
int tdm_name_find(const char *const *names, const char *name);

/* The candidate nearest to `word` by edit distance, or NULL where none is near enough to suggest.
 */
const char *tdm_nearest(const char *word, const char *const *candidates, int count);

/* What to put behind "there is no WORD" in a message: "; did you mean NEAREST?", or "". Written
 * into `advice`, which is returned. */
#define TDM_ADVICE_BYTES 96
const char *tdm_did_you_mean(const char *word, const char *const *candidates, int count,
                             char advice[TDM_ADVICE_BYTES]);

#endif
