/* What the parts of the recipe reader share. Not for other folders. */
#ifndef TDM_CORE_CONFIG_INTERNAL_H
#define TDM_CORE_CONFIG_INTERNAL_H

#include "core/config.h"

#define TDM_CONFIG_MAX_BYTES   (4u << 20)
#define TDM_CONFIG_MAX_DEPTH   64     /* mappings and sequences in one another */
#define TDM_CONFIG_MAX_NODES   100000 /* keys and values of a recipe and all that it extends */
#define TDM_CONFIG_MAX_FILES   32     /* that extend one another */
#define TDM_CONFIG_MAX_KEY     200    /* bytes: quoted and escaped, YAML reads no key above 1024 */
#define TDM_CONFIG_PLACE_BYTES 512

/* ---- nodes ----------------------------------------------------------------------------------- */

typedef enum tdm_config_kind {
    TDM_NODE_NULL, /* ~, null or nothing: stands for an absent value */
    TDM_NODE_SCALAR,
    TDM_NODE_SEQUENCE,
    TDM_NODE_MAPPING,
} tdm_config_kind;

struct tdm_config_node {
    tdm_config_kind kind;
    bool quoted;                   /* SCALAR: not plain, so a text and nothing else */
    int line;                      /* from 1; 0 where the source has no lines */
    int key_line;                  /* of `key` */
    const char *file;              /* or "command line" */
    const char *key;               /* of the value of a mapping, else NULL */
    int64_t index;                 /* of an item of a sequence */
    const tdm_config_node *parent; /* NULL: a root */
    const char *text;              /* SCALAR */
    tdm_config_node **children;    /* SEQUENCE and MAPPING, in the order of the file */
    int64_t count;
};

typedef struct tdm_config_chunk tdm_config_chunk;

/* Nodes and their texts live in chunks until the recipe is freed, also those that were replaced. */
struct tdm_config {
    tdm_config_chunk *chunks; /* the newest first */
    tdm_config_node *root;
    int64_t node_count;
};

/* `bytes` zero bytes of the recipe's own memory. */
TDM_MUST_CHECK tdm_status tdm_config_reserve(tdm_config *config, size_t bytes, void *out);
TDM_MUST_CHECK tdm_status tdm_config_copy(tdm_config *config, const char *text, size_t bytes,
                                          const char **out);

/* The value at `key` of a mapping, a null too; NULL where there is none. */
tdm_config_node *tdm_config_find(const tdm_config_node *node, const char *key);

/* Writes "file:line: key.path" of `node`, with `.below` unless NULL, and `line` in place of its own
 * unless 0; cut where it is too long. */
void tdm_config_place(const tdm_config_node *node, int line, const char *below,
                      char place[TDM_CONFIG_PLACE_BYTES]);

/* TDM_E_CONFIG with "place: " before the message. */
tdm_status tdm_config_fail_at(const char *place, const char *format, ...) TDM_PRINTF(2, 3);

/* ---- YAML ------------------------------------------------------------------------------------ */

typedef struct tdm_config_source {
    const char *text;
    size_t bytes;
    const char *name;              /* the file in errors; copied */
    bool has_lines;                /* false: one value, not a file; places name no line */
    const tdm_config_node *parent; /* what will hold the value; NULL: nothing */
    const char *key;               /* in `parent`; in the recipe's memory */
} tdm_config_source;

/* Reads one YAML document into nodes; an empty one is a null. */
TDM_MUST_CHECK tdm_status tdm_config_read(tdm_config *config, const tdm_config_source *source,
                                          tdm_config_node **out);

TDM_MUST_CHECK tdm_status tdm_config_create(tdm_config **out);

/* ---- numbers --------------------------------------------------------------------------------- */

typedef enum tdm_number_result {
    TDM_NUMBER_OK,
    TDM_NUMBER_MALFORMED,
    TDM_NUMBER_TOO_LARGE, /* or, for floats, so small that it would be 0 */
} tdm_number_result;

#define TDM_NUMBER_BYTES 48

/* Decimal, the whole text, in any locale. No leading zeros: YAML 1.1 takes 010 for 8. */
tdm_number_result tdm_number_parse_int(const char *text, int64_t *out);
tdm_number_result tdm_number_parse_float(const char *text, double *out);
/* "0.1%" is 0.001, rounded once. */
tdm_number_result tdm_number_parse_percent(const char *text, double *out);

/* The fewest digits that parse to the same number. */
void tdm_number_format(double value, char text[TDM_NUMBER_BYTES]);
void tdm_number_format_percent(double value, char text[TDM_NUMBER_BYTES]);

/* ---- words ----------------------------------------------------------------------------------- */

/* What a value of this key must be: "a whole number from 1 to 10". */
TDM_MUST_CHECK tdm_status tdm_config_expected(const tdm_config_key *key, tdm_text *text);

#endif
