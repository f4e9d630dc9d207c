#include "core/log.h"
#include "core/memory.h"
#include "text/tokenizer_json.h"

#include <jansson.h>
#include <limits.h>
#include <string.h>

/* A file being read. Texts are borrowed from the JSON. */
typedef struct reading {
    const char *name;
    tdm_tokenizer parts;
    const char *specials[TDM_SPECIALS];
    bool no_template;
    uint8_t pad_type;
    tdm_encode_options options;
} reading;

/* ---- fields ---------------------------------------------------------------------------------- */

static tdm_status damaged(const reading *read, const char *field, const char *why)
{
    return tdm_fail(TDM_E_FORMAT, "%s: %s %s", read->name, field, why);
}

/* The name of what stands at a field: its type, or what kind of value it is. */
static const char *kind_of(const json_t *json)
{
    const char *type = json_string_value(json_object_get(json, "type"));
    if (type != NULL)
        return type;
    if (json == NULL || json_is_null(json))
        return "nothing";
    return json_is_object(json) ? "an object without type" : "not an object";
}

static bool is_kind(const json_t *json, const char *type)
{
    return strcmp(kind_of(json), type) == 0;
}

static tdm_status foreign(const reading *read, const char *field, const char *found,
                          const char *supported)
{
    return tdm_fail(TDM_E_FORMAT,
                    "%s: %s is %s, which tandem does not know: tokenizers of BERT's kind have %s",
                    read->name, field, found, supported);
}

static tdm_status read_bool(const reading *read, const json_t *object, const char *key,
                            const char *field, bool *out)
{
    const json_t *json = json_object_get(object, key);
    if (!json_is_boolean(json))
        return damaged(read, field, "is not true or false");
    *out = json_is_true(json);
    return TDM_OK;
}

static tdm_status read_int(const reading *read, const json_t *json, const char *field, int64_t most,
                           int64_t *out)
{
    if (!json_is_integer(json) || json_integer_value(json) < 0 || json_integer_value(json) > most)
        return tdm_fail(TDM_E_FORMAT, "%s: %s is not a whole number from 0 to %lld", read->name,
                        field, (long long)most);
    *out = json_integer_value(json);
    return TDM_OK;
}

/* The index in `names`, which NULL ends, of a text; -1. */
static int find_name(const char *const *names, const json_t *json)
{
    const char *text = json_string_value(json);
    for (int i = 0; text != NULL && names[i] != NULL; i++) {
        if (strcmp(names[i], text) == 0)
            return i;
    }
    return -1;
}

/* ---- normalizer and pre-tokenizer ------------------------------------------------------------ */

static tdm_status read_mode(reading *read, const json_t *extension)
{
    if (extension == NULL)
        return TDM_OK;
    int mode = find_name(tdm_unicode_mode_names, json_object_get(extension, "unicode"));
    if (mode < 0)
        return damaged(read, "normalizer.tandem.unicode", "is not huggingface, google or unicode");
    read->parts.settings.unicode = (tdm_unicode_mode)mode;
    return TDM_OK;
}

static tdm_status read_bert_normalizer(reading *read, const json_t *json)
{
    tdm_tokenizer_settings *settings = &read->parts.settings;
    const json_t *strip = json_object_get(json, "strip_accents");
    bool strip_accents = false;
    TDM_TRY(read_bool(read, json, "clean_text", "normalizer.clean_text", &settings->clean_text));
    TDM_TRY(read_bool(read, json, "handle_chinese_chars", "normalizer.handle_chinese_chars",
                      &settings->handle_chinese_chars));
    TDM_TRY(read_bool(read, json, "lowercase", "normalizer.lowercase", &settings->lowercase));
    if (strip != NULL && !json_is_null(strip))
        TDM_TRY(read_bool(read, json, "strip_accents", "normalizer.strip_accents", &strip_accents));
    settings->strip_accents = json_is_boolean(strip) ? strip_accents : -1;
    return read_mode(read, json_object_get(json, "tandem"));
}

/* NFC or NFKC, and BertNormalizer behind it. */
static tdm_status read_normalizers(reading *read, const json_t *list)
{
    static const char supported[] = "BertNormalizer, alone or behind NFC or NFKC";
    const json_t *first = json_array_get(list, 0), *second = json_array_get(list, 1);
    bool is_nfc = is_kind(first, "NFC");
    if (json_array_size(list) == 2 && (is_nfc || is_kind(first, "NFKC"))) {
        read->parts.settings.form = is_nfc ? TDM_FORM_NFC : TDM_FORM_NFKC;
        first = second;
    } else if (json_array_size(list) != 1) {
        return foreign(read, "normalizer", "another sequence", supported);
    }
    if (!is_kind(first, "BertNormalizer"))
        return foreign(read, "a normalizer of the sequence", kind_of(first), supported);
    return read_bert_normalizer(read, first);
}

static tdm_status read_normalizer(reading *read, const json_t *json)
{
    read->parts.settings = (tdm_tokenizer_settings){.max_word_chars = 100, .cleanup = true};
    if (json == NULL || json_is_null(json))
        return TDM_OK;
    if (is_kind(json, "Sequence"))
        return read_normalizers(read, json_object_get(json, "normalizers"));
    if (!is_kind(json, "BertNormalizer"))
        return foreign(read, "normalizer", kind_of(json),
                       "BertNormalizer, alone or behind NFC or NFKC");
    return read_bert_normalizer(read, json);
}

/* ---- model ----------------------------------------------------------------------------------- */

static tdm_status add_token(reading *read, const char *token, const json_t *json)
{
    int64_t id;
    tdm_vocabulary *vocabulary = &read->parts.vocabulary;
    char field[128];
    snprintf(field, sizeof field, "the id of \"%.80s\" in model.vocab", token);
    TDM_TRY(read_int(read, json, field, TDM_MAX_VOCABULARY - 1, &id));
    if (id < vocabulary->size && vocabulary->bytes[id] > 0)
        return tdm_fail(TDM_E_FORMAT, "%s: model.vocab gives id %lld to \"%.*s\" and to \"%.80s\"",
                        read->name, (long long)id, (int)vocabulary->bytes[id],
                        vocabulary->text + vocabulary->begins[id], token);
    return tdm_vocabulary_add(vocabulary, (uint32_t)id, token, strlen(token), NULL);
}

static tdm_status read_vocabulary(reading *read, json_t *vocab)
{
    const char *token;
    json_t *id;
    json_object_foreach(vocab, token, id) TDM_TRY(add_token(read, token, id));
    return TDM_OK;
}

/* Old files do not say the type; the kinds of model are told by their fields then. */
static const char *model_type(const json_t *model)
{
    const char *type = json_string_value(json_object_get(model, "type"));
    if (type != NULL)
        return type;
    if (json_object_get(model, "merges") != NULL)
        return "BPE";
    return json_is_array(json_object_get(model, "vocab")) ? "Unigram" : "WordPiece";
}

static tdm_status read_model(reading *read, const json_t *model)
{
    if (!json_is_object(model))
        return damaged(read, "model", "is missing");
    const char *type = model_type(model);
    if (strcmp(type, "WordPiece") != 0)
        return foreign(read, "the model", type, "WordPiece");
    read->specials[TDM_SPECIAL_UNK] = json_string_value(json_object_get(model, "unk_token"));
    if (read->specials[TDM_SPECIAL_UNK] == NULL)
        return damaged(read, "model.unk_token", "is missing, or no text");
    const json_t *prefix = json_object_get(model, "continuing_subword_prefix");
    if (prefix != NULL &&
        (!json_is_string(prefix) || strcmp(json_string_value(prefix), TDM_CONTINUATION) != 0))
        return foreign(read, "model.continuing_subword_prefix",
                       json_is_string(prefix) ? json_string_value(prefix) : "no text",
                       "\"" TDM_CONTINUATION "\"");
    const json_t *most = json_object_get(model, "max_input_chars_per_word");
    int64_t max_word_chars = read->parts.settings.max_word_chars;
    if (most != NULL)
        TDM_TRY(read_int(read, most, "model.max_input_chars_per_word", INT_MAX, &max_word_chars));
    read->parts.settings.max_word_chars = (int)max_word_chars;
    json_t *vocab = json_object_get(model, "vocab");
    if (!json_is_object(vocab))
        return damaged(read, "model.vocab", "is missing, or no object");
    return read_vocabulary(read, vocab);
}

/* ---- added tokens ---------------------------------------------------------------------------- */

/* Absent flags are off, as for a token that is added without options. */
static void read_flags(const json_t *json, tdm_added_token *added)
{
    added->special = json_is_true(json_object_get(json, "special"));
    added->single_word = json_is_true(json_object_get(json, "single_word"));
    added->lstrip = json_is_true(json_object_get(json, "lstrip"));
    added->rstrip = json_is_true(json_object_get(json, "rstrip"));
    const json_t *normalized = json_object_get(json, "normalized");
    added->normalized = normalized != NULL ? json_is_true(normalized) : !added->special;
}

/* `seen` has the added tokens so far. A token of the model keeps the model's id, as with Hugging
 * Face. */
static tdm_status read_added_token(reading *read, const json_t *json, tdm_vocabulary *seen)
{
    const char *content = json_string_value(json_object_get(json, "content"));
    if (content == NULL || content[0] == '\0')
        return damaged(read, "added_tokens", "has an entry without content");
    size_t bytes = strlen(content);
    int64_t id, taken;
    TDM_TRY(read_int(read, json_object_get(json, "id"), "an id of added_tokens",
                     TDM_MAX_VOCABULARY - 1, &id));
    const tdm_vocabulary *model = &read->parts.vocabulary;
    int64_t model_id = tdm_vocabulary_find(model, content, bytes);
    if (model_id >= 0 && model_id != id)
        tdm_warn("%s: the added token \"%s\" has id %lld in the model, which holds, and %lld in "
                 "added_tokens",
                 read->name, content, (long long)model_id, (long long)id);
    if (model_id >= 0)
        id = model_id;
    else if (id < model->size && model->bytes[id] > 0)
        return tdm_fail(TDM_E_FORMAT,
                        "%s: the added token \"%s\" has id %lld, which is that of \"%.*s\"",
                        read->name, content, (long long)id, (int)model->bytes[id],
                        model->text + model->begins[id]);
    bool is_used = id < seen->size && seen->bytes[id] > 0;
    TDM_TRY(tdm_vocabulary_add(seen, (uint32_t)id, content, bytes, &taken));
    if (is_used || taken >= 0)
        return tdm_fail(TDM_E_FORMAT, "%s: added_tokens has \"%s\" or its id %lld twice",
                        read->name, content, (long long)id);
    tdm_added_token *added;
    TDM_TRY(tdm_tokenizer_add_token(&read->parts, (uint32_t)id, content, bytes, &added));
    read_flags(json, added);
    added->beside = model_id < 0;
    return TDM_OK;
}

static tdm_status read_added_tokens(reading *read, const json_t *list)
{
    if (list != NULL && !json_is_null(list) && !json_is_array(list))
        return damaged(read, "added_tokens", "is no list");
    tdm_vocabulary seen = {0};
    tdm_status status = TDM_OK;
    for (size_t i = 0; i < json_array_size(list) && status == TDM_OK; i++)
        status = read_added_token(read, json_array_get(list, i), &seen);
    tdm_vocabulary_deinit(&seen);
    return status;
}

/* ---- post-processor -------------------------------------------------------------------------- */

static tdm_status check_special(const reading *read, const char *token, const json_t *json)
{
    if (token == NULL || !json_is_integer(json))
        return damaged(read, "post_processor", "has a special token without text or id");
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

static tdm_status read_bert_processing(reading *read, const json_t *json, const char *key,
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

/* True for `[CLS] $A [SEP]` and `[CLS] $A [SEP] $B:1 [SEP]:1` with one text for each special token. */
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

static tdm_status read_template_special(reading *read, const json_t *tokens, const char *key,
                                        tdm_special special)
{
    const json_t *entry = json_object_get(tokens, key);
    const json_t *ids = json_object_get(entry, "ids"), *texts = json_object_get(entry, "tokens");
    if (json_array_size(ids) != 1 || json_array_size(texts) != 1)
        return foreign(read, "a special token of post_processor", "of several tokens or none",
                       "one token for each");
    read->specials[special] = json_string_value(json_array_get(texts, 0));
    return check_special(read, read->specials[special], json_array_get(ids, 0));
}

static tdm_status read_template(reading *read, const json_t *json)
{
    const json_t *single = json_object_get(json, "single");
    const char *cls = piece_of(json_array_get(single, 0), "SpecialToken", 0);
    const char *sep = piece_of(json_array_get(single, 2), "SpecialToken", 0);
    if (!is_bert_template(single, false, cls, sep) ||
        !is_bert_template(json_object_get(json, "pair"), true, cls, sep))
        return foreign(read, "the template of post_processor", "another one",
                       "[CLS] $A [SEP], and for pairs [CLS] $A [SEP] $B:1 [SEP]:1");
    const json_t *tokens = json_object_get(json, "special_tokens");
    TDM_TRY(read_template_special(read, tokens, cls, TDM_SPECIAL_CLS));
    return read_template_special(read, tokens, sep, TDM_SPECIAL_SEP);
}

static tdm_status read_post_processor(reading *read, const json_t *json)
{
    read->no_template = json == NULL || json_is_null(json);
    if (read->no_template)
        return TDM_OK;
    if (is_kind(json, "TemplateProcessing"))
        return read_template(read, json);
    if (!is_kind(json, "BertProcessing"))
        return foreign(read, "post_processor", kind_of(json),
                       "TemplateProcessing or BertProcessing");
    TDM_TRY(read_bert_processing(read, json, "sep", TDM_SPECIAL_SEP));
    return read_bert_processing(read, json, "cls", TDM_SPECIAL_CLS);
}

/* ---- decoder, truncation, padding ------------------------------------------------------------ */

/* Without a decoder pieces are glued as with BERT's. */
static tdm_status read_decoder(reading *read, const json_t *json)
{
    if (json == NULL || json_is_null(json))
        return TDM_OK;
    if (!is_kind(json, "WordPiece"))
        return foreign(read, "decoder", kind_of(json), "WordPiece");
    const char *prefix = json_string_value(json_object_get(json, "prefix"));
    if (prefix == NULL || strcmp(prefix, TDM_CONTINUATION) != 0)
        return foreign(read, "decoder.prefix", prefix != NULL ? prefix : "missing",
                       "\"" TDM_CONTINUATION "\"");
    return read_bool(read, json, "cleanup", "decoder.cleanup", &read->parts.settings.cleanup);
}

/* "Right" where it is absent. */
static tdm_status read_direction(const reading *read, const json_t *section, const char *field,
                                 bool *is_left)
{
    static const char *const names[] = {"Right", "Left", NULL};
    const json_t *json = json_object_get(section, "direction");
    int direction = json == NULL ? 0 : find_name(names, json);
    if (direction < 0)
        return damaged(read, field, "is not Right or Left");
    *is_left = direction == 1;
    return TDM_OK;
}

static tdm_status read_truncation(reading *read, const json_t *json)
{
    static const char *const strategies[] = {"LongestFirst", "OnlyFirst", "OnlySecond", NULL};
    tdm_encode_options *options = &read->options;
    if (json == NULL || json_is_null(json))
        return TDM_OK;
    TDM_TRY(read_int(read, json_object_get(json, "max_length"), "truncation.max_length", INT_MAX,
                     &options->max_length));
    TDM_TRY(read_int(read, json_object_get(json, "stride"), "truncation.stride", INT_MAX,
                     &options->stride));
    TDM_TRY(read_direction(read, json, "truncation.direction", &options->truncate_left));
    int strategy = find_name(strategies, json_object_get(json, "strategy"));
    if (strategy < 0)
        return damaged(read, "truncation.strategy", "is not LongestFirst, OnlyFirst or OnlySecond");
    options->truncation = (tdm_truncation)strategy;
    return TDM_OK;
}

static tdm_status read_padding(reading *read, const json_t *json)
{
    tdm_encode_options *options = &read->options;
    if (json == NULL || json_is_null(json))
        return TDM_OK;
    const json_t *strategy = json_object_get(json, "strategy");
    const json_t *fixed = json_object_get(strategy, "Fixed");
    if (fixed != NULL) {
        TDM_TRY(read_int(read, fixed, "padding.strategy.Fixed", INT_MAX, &options->pad_length));
    } else if (!json_is_string(strategy) ||
               strcmp(json_string_value(strategy), "BatchLongest") != 0) {
        return damaged(read, "padding.strategy", "is not BatchLongest or Fixed");
    }
    options->padding = fixed != NULL ? TDM_PADDING_FIXED : TDM_PADDING_LONGEST;
    TDM_TRY(read_direction(read, json, "padding.direction", &options->pad_left));
    const json_t *multiple = json_object_get(json, "pad_to_multiple_of");
    if (multiple != NULL && !json_is_null(multiple))
        TDM_TRY(read_int(read, multiple, "padding.pad_to_multiple_of", INT_MAX,
                         &options->pad_multiple));
    int64_t type;
    TDM_TRY(read_int(read, json_object_get(json, "pad_type_id"), "padding.pad_type_id", UINT8_MAX,
                     &type));
    read->pad_type = (uint8_t)type;
    read->specials[TDM_SPECIAL_PAD] = json_string_value(json_object_get(json, "pad_token"));
    return check_special(read, read->specials[TDM_SPECIAL_PAD], json_object_get(json, "pad_id"));
}

/* ---- the file -------------------------------------------------------------------------------- */

static tdm_status read_file(reading *read, const json_t *root)
{
    const json_t *version = json_object_get(root, "version");
    TDM_FAIL_IF(version != NULL &&
                    !(json_is_string(version) && strcmp(json_string_value(version), "1.0") == 0),
                TDM_E_VERSION, "%s: version is %s: tandem knows tokenizer.json of version 1.0",
                read->name, json_is_string(version) ? json_string_value(version) : "no text");
    TDM_TRY(read_normalizer(read, json_object_get(root, "normalizer")));
    TDM_TRY(read_model(read, json_object_get(root, "model")));
    const json_t *pre_tokenizer = json_object_get(root, "pre_tokenizer");
    if (!is_kind(pre_tokenizer, "BertPreTokenizer"))
        return foreign(read, "pre_tokenizer", kind_of(pre_tokenizer), "BertPreTokenizer");
    TDM_TRY(read_added_tokens(read, json_object_get(root, "added_tokens")));
    TDM_TRY(read_post_processor(read, json_object_get(root, "post_processor")));
    TDM_TRY(read_decoder(read, json_object_get(root, "decoder")));
    TDM_TRY(read_truncation(read, json_object_get(root, "truncation")));
    return read_padding(read, json_object_get(root, "padding"));
}

tdm_status tdm_tokenizer_json_parse(const char *text, size_t bytes, const char *name,
                                    tdm_tokenizer **out)
{
    json_error_t error;
    *out = NULL;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    TDM_FAIL_IF(root == NULL, TDM_E_FORMAT, "%s:%d: is not JSON: %s (column %d)", name, error.line,
                error.text, error.column);
    reading read = {.name = name, .options = tdm_encode_default_options()};
    tdm_status status = read_file(&read, root);
    if (status != TDM_OK) {
        tdm_tokenizer_parts_free(&read.parts);
    } else {
        status = tdm_tokenizer_create_named(&read.parts, read.specials, out);
        if (status != TDM_OK)
            status = tdm_fail_context(status, "%s", name);
    }
    json_decref(root);
    if (status != TDM_OK)
        return status;
    (*out)->no_template = read.no_template;
    (*out)->pad_type = read.pad_type;
    (*out)->options = read.options;
    return TDM_OK;
}
