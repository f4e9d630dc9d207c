/* Reading tokenizer.json, from the inside: what its two files share. */
#ifndef TDM_TEXT_TOKENIZER_JSON_READING_H
#define TDM_TEXT_TOKENIZER_JSON_READING_H

#include "text/tokenizer.h"

#include <jansson.h>

/* A file being read. Texts are borrowed from the JSON. */
typedef struct tdm_json_reading {
    const char *name;
    tdm_tokenizer parts;
    const char *specials[TDM_SPECIALS];
    bool has_vocabulary; /* read already */
    bool no_template;
    uint8_t pad_type;
    tdm_encode_options options;
} tdm_json_reading;

/* The name of what stands at a field: its type, or what kind of value it is. */
const char *tdm_json_kind(const json_t *json);

bool tdm_json_is_kind(const json_t *json, const char *type);

/* The index in `names`, which NULL ends, of a text; -1. */
int tdm_json_choice(const char *const *names, const json_t *json);

/* TDM_E_FORMAT: "file: field why". */
tdm_status tdm_json_damaged(const tdm_json_reading *read, const char *field, const char *why);

/* TDM_E_FORMAT that names what was found and what there may be. */
tdm_status tdm_json_foreign(const tdm_json_reading *read, const char *field, const char *found,
                            const char *supported);

TDM_MUST_CHECK tdm_status tdm_json_read_bool(const tdm_json_reading *read, const json_t *object,
                                             const char *key, const char *field, bool *out);

/* A whole number from 0 to `most`. */
TDM_MUST_CHECK tdm_status tdm_json_read_int(const tdm_json_reading *read, const json_t *json,
                                            const char *field, int64_t most, int64_t *out);

/* What comes behind the words, in `read`; vocabulary and added tokens are known. */
TDM_MUST_CHECK tdm_status tdm_json_read_post_processor(tdm_json_reading *read, const json_t *json);
TDM_MUST_CHECK tdm_status tdm_json_read_decoder(tdm_json_reading *read, const json_t *json);
TDM_MUST_CHECK tdm_status tdm_json_read_truncation(tdm_json_reading *read, const json_t *json);
TDM_MUST_CHECK tdm_status tdm_json_read_padding(tdm_json_reading *read, const json_t *json);

#endif
