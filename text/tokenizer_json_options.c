#include "text/tokenizer_json_reading.h"

#include <limits.h>
#include <string.h>

/* ---- post-processor -------------------------------------------------------------------------- */

static tdm_status check_special(const tdm_json_reading *read, const char *token, const json_t *json)
{
    if (token == NULL || !json_is_integer(json))
        return tdm_json_damaged(read, "post_processor", "has a special token without text or id");
    int64_t id = tdm_vocabulary_find(&read->parts.vocabulary, token, strlen(token));
    for (int64_t i = 0; id < 0 && i < read->parts.added_count; i++) {
        if (strcmp(read->parts.added[i].content, token) == 0)
            id = read->parts.added[i].id;
    }
    TDM_FAIL_IF(id != json_integer_value(json), TDM_E_FORMAT,
                "%s: post_processor has \"%s\" with id %lld, the vocabulary with id %lld",
                read->name, token, (long long)json_integer_value(json), (long long)id);
    return TDM_OK;
}

static tdm_status read_bert_processing(tdm_json_reading *read, const json_t *json, const char *key,
                                       tdm_special special)
{
    const json_t *pair = json_object_get(json, key);
    read->specials[special] = json_string_value(json_array_get(pair, 0));
    return check_special(read, read->specials[special], json_array_get(pair, 1));
}

/* The key in special_tokens of a template's piece, or "A" or "B" for the texts; NULL where it is
 * another piece or type id. */
static const char *piece_of(const json_t *piece, const char *kind, int type_id)
{
    const json_t *inner = json_object_get(piece, kind);
    if (json_integer_value(json_object_get(inner, "type_id")) != type_id)
        return NULL;
    return json_string_value(json_object_get(inner, "id"));
}

static bool is_sequence(const json_t *piece, const char *name, int type_id)
{
    const char *id = piece_of(piece, "Sequence", type_id);
    return id != NULL && strcmp(id, name) == 0;
}

/* True for `[CLS] $A [SEP]` and `[CLS] $A [SEP] $B:1 [SEP]:1` with one text for each special
 * token. */
static bool is_bert_template(const json_t *template, bool is_pair, const char *cls, const char *sep)
{
    static const int types[] = {0, 0, 0, 1, 1};
    if (json_array_size(template) != (is_pair ? 5 : 3) || cls == NULL || sep == NULL)
        return false;
    for (size_t i = 0; i < json_array_size(template); i++) {
        const json_t *piece = json_array_get(template, i);
        const char *special = piece_of(piece, "SpecialToken", types[i]);
        bool is_text = i == 1 || i == 3;
        if (is_text ? !is_sequence(piece, i == 1 ? "A" : "B", types[i])
                    : special == NULL || strcmp(special, i == 0 ? cls : sep) != 0)
            return false;
    }
    return true;
}

static tdm_status read_template_special(tdm_json_reading *read, const json_t *tokens,
                                        const char *key, tdm_special special)
{
    const json_t *entry = json_object_get(tokens, key);
    const json_t *ids = json_object_get(entry, "ids"), *texts = json_object_get(entry, "tokens");
    if (json_array_size(ids) != 1 || json_array_size(texts) != 1)
        return tdm_json_foreign(read, "a special token of post_processor",
                                "of several tokens or none", "one token for each");
    read->specials[special] = json_string_value(json_array_get(texts, 0));
    return check_special(read, read->specials[special], json_array_get(ids, 0));
}

static tdm_status read_template(tdm_json_reading *read, const json_t *json)
{
    const json_t *single = json_object_get(json, "single");
    const char *cls = piece_of(json_array_get(single, 0), "SpecialToken", 0);
    const char *sep = piece_of(json_array_get(single, 2), "SpecialToken", 0);
    if (!is_bert_template(single, false, cls, sep) ||
        !is_bert_template(json_object_get(json, "pair"), true, cls, sep))
        return tdm_json_foreign(read, "the template of post_processor", "another one",
                                "[CLS] $A [SEP], and for pairs [CLS] $A [SEP] $B:1 [SEP]:1");
    const json_t *tokens = json_object_get(json, "special_tokens");
    TDM_TRY(read_template_special(read, tokens, cls, TDM_SPECIAL_CLS));
    return read_template_special(read, tokens, sep, TDM_SPECIAL_SEP);
}

tdm_status tdm_json_read_post_processor(tdm_json_reading *read, const json_t *json)
{
    read->no_template = json == NULL || json_is_null(json);
    if (read->no_template)
        return TDM_OK;
    if (tdm_json_is_kind(json, "TemplateProcessing"))
        return read_template(read, json);
    if (!tdm_json_is_kind(json, "BertProcessing"))
        return tdm_json_foreign(read, "post_processor", tdm_json_kind(json),
                                "TemplateProcessing or BertProcessing");
    TDM_TRY(read_bert_processing(read, json, "sep", TDM_SPECIAL_SEP));
    return read_bert_processing(read, json, "cls", TDM_SPECIAL_CLS);
}

/* ---- decoder, truncation, padding ------------------------------------------------------------ */

/* Without a decoder pieces are glued as with BERT's. */
tdm_status tdm_json_read_decoder(tdm_json_reading *read, const json_t *json)
{
    if (json == NULL || json_is_null(json))
        return TDM_OK;
    if (!tdm_json_is_kind(json, "WordPiece"))
        return tdm_json_foreign(read, "decoder", tdm_json_kind(json), "WordPiece");
    const char *prefix = json_string_value(json_object_get(json, "prefix"));
    if (prefix == NULL || strcmp(prefix, TDM_CONTINUATION) != 0)
        return tdm_json_foreign(read, "decoder.prefix", prefix != NULL ? prefix : "missing",
                                "\"" TDM_CONTINUATION "\"");
    return tdm_json_read_bool(read, json, "cleanup", "decoder.cleanup",
                              &read->parts.settings.cleanup);
}

/* "Right" where it is absent. */
static tdm_status read_direction(const tdm_json_reading *read, const json_t *section,
                                 const char *field, bool *is_left)
{
    static const char *const names[] = {"Right", "Left", NULL};
    const json_t *json = json_object_get(section, "direction");
    int direction = json == NULL ? 0 : tdm_json_choice(names, json);
    if (direction < 0)
        return tdm_json_damaged(read, field, "is not Right or Left");
    *is_left = direction == 1;
    return TDM_OK;
}

tdm_status tdm_json_read_truncation(tdm_json_reading *read, const json_t *json)
{
    static const char *const strategies[] = {"LongestFirst", "OnlyFirst", "OnlySecond", NULL};
    tdm_encode_options *options = &read->options;
    if (json == NULL || json_is_null(json))
        return TDM_OK;
    TDM_TRY(tdm_json_read_int(read, json_object_get(json, "max_length"), "truncation.max_length",
                              INT_MAX, &options->max_length));
    TDM_TRY(tdm_json_read_int(read, json_object_get(json, "stride"), "truncation.stride", INT_MAX,
                              &options->stride));
    TDM_TRY(read_direction(read, json, "truncation.direction", &options->truncate_left));
    int strategy = tdm_json_choice(strategies, json_object_get(json, "strategy"));
    if (strategy < 0)
        return tdm_json_damaged(read, "truncation.strategy",
                                "is not LongestFirst, OnlyFirst or OnlySecond");
    options->truncation = (tdm_truncation)strategy;
    return TDM_OK;
}

tdm_status tdm_json_read_padding(tdm_json_reading *read, const json_t *json)
{
    tdm_encode_options *options = &read->options;
    if (json == NULL || json_is_null(json))
        return TDM_OK;
    const json_t *strategy = json_object_get(json, "strategy");
    const json_t *fixed = json_object_get(strategy, "Fixed");
    if (fixed != NULL) {
        TDM_TRY(tdm_json_read_int(read, fixed, "padding.strategy.Fixed", INT_MAX,
                                  &options->pad_length));
    } else if (!json_is_string(strategy) ||
               strcmp(json_string_value(strategy), "BatchLongest") != 0) {
        return tdm_json_damaged(read, "padding.strategy", "is not BatchLongest or Fixed");
    }
    options->padding = fixed != NULL ? TDM_PADDING_FIXED : TDM_PADDING_LONGEST;
    TDM_TRY(read_direction(read, json, "padding.direction", &options->pad_left));
    const json_t *multiple = json_object_get(json, "pad_to_multiple_of");
    if (multiple != NULL && !json_is_null(multiple))
        TDM_TRY(tdm_json_read_int(read, multiple, "padding.pad_to_multiple_of", INT_MAX,
                                  &options->pad_multiple));
    int64_t type;
    TDM_TRY(tdm_json_read_int(read, json_object_get(json, "pad_type_id"), "padding.pad_type_id",
                              UINT8_MAX, &type));
    read->pad_type = (uint8_t)type;
    read->specials[TDM_SPECIAL_PAD] = json_string_value(json_object_get(json, "pad_token"));
    return check_special(read, read->specials[TDM_SPECIAL_PAD], json_object_get(json, "pad_id"));
}
