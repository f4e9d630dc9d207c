#include "core/config.h"
#include "core/log.h"
#include "core/memory.h"
#include "text/json_vocab.h"
#include "text/tokenizer_json.h"
#include "text/tokenizer_json_reading.h"

#include <limits.h>
#include <string.h>

/* ---- fields ---------------------------------------------------------------------------------- */

bool tdm_json_is_kind(const json_t *json, const char *type)
{
    return strcmp(tdm_json_kind(json), type) == 0;
}

tdm_status tdm_json_damaged(const tdm_json_reading *read, const char *field, const char *why)
{
    return tdm_fail(TDM_E_FORMAT, "%s: %s %s", read->name, field, why);
}

const char *tdm_json_kind(const json_t *json)
{
    const char *type = json_string_value(json_object_get(json, "type"));
    if (type != NULL)
        return type;
    if (json == NULL || json_is_null(json))
        return "nothing";
    return json_is_object(json) ? "an object without type" : "not an object";
}

tdm_status tdm_json_foreign(const tdm_json_reading *read, const char *field, const char *found,
                            const char *supported)
{
    return tdm_fail(TDM_E_FORMAT,
                    "%s: %s is %s, which tandem does not know: tokenizers of BERT's kind have %s",
                    read->name, field, found, supported);
}

tdm_status tdm_json_read_bool(const tdm_json_reading *read, const json_t *object, const char *key,
                              const char *field, bool *out)
{
    const json_t *json = json_object_get(object, key);
    if (!json_is_boolean(json))
        return tdm_json_damaged(read, field, "is not true or false");
    *out = json_is_true(json);
    return TDM_OK;
}

tdm_status tdm_json_read_int(const tdm_json_reading *read, const json_t *json, const char *field,
                             int64_t most, int64_t *out)
{
    if (!json_is_integer(json) || json_integer_value(json) < 0 || json_integer_value(json) > most)
        return tdm_fail(TDM_E_FORMAT, "%s: %s is not a whole number from 0 to %lld", read->name,
                        field, (long long)most);
    *out = json_integer_value(json);
    return TDM_OK;
}

int tdm_json_choice(const char *const *names, const json_t *json)
{
    const char *text = json_string_value(json);
    return text == NULL ? -1 : tdm_name_find(names, text);
}

/* ---- normalizer and pre-tokenizer ------------------------------------------------------------ */

static tdm_status read_mode(tdm_json_reading *read, const json_t *extension)
{
    if (extension == NULL)
        return TDM_OK;
    int mode = tdm_json_choice(tdm_unicode_mode_names, json_object_get(extension, "unicode"));
    if (mode < 0)
        return tdm_json_damaged(read, "normalizer.tandem.unicode",
                                "is not huggingface, google or unicode");
    read->parts.settings.unicode = (tdm_unicode_mode)mode;
    return TDM_OK;
}

static tdm_status read_bert_normalizer(tdm_json_reading *read, const json_t *json)
{
    tdm_tokenizer_settings *settings = &read->parts.settings;
    const json_t *strip = json_object_get(json, "strip_accents");
    bool strip_accents = false;
    TDM_TRY(tdm_json_read_bool(read, json, "clean_text", "normalizer.clean_text",
                               &settings->clean_text));
    TDM_TRY(tdm_json_read_bool(read, json, "handle_chinese_chars",
                               "normalizer.handle_chinese_chars", &settings->handle_chinese_chars));
    TDM_TRY(
        tdm_json_read_bool(read, json, "lowercase", "normalizer.lowercase", &settings->lowercase));
    if (strip != NULL && !json_is_null(strip))
        TDM_TRY(tdm_json_read_bool(read, json, "strip_accents", "normalizer.strip_accents",
                                   &strip_accents));
    settings->strip_accents = json_is_boolean(strip) ? strip_accents : -1;
    return read_mode(read, json_object_get(json, "tandem"));
}

/* NFC or NFKC, and BertNormalizer behind it. */
static tdm_status read_normalizers(tdm_json_reading *read, const json_t *list)
{
    static const char supported[] = "BertNormalizer, alone or behind NFC or NFKC";
    const json_t *first = json_array_get(list, 0), *second = json_array_get(list, 1);
    bool is_nfc = tdm_json_is_kind(first, "NFC");
    if (json_array_size(list) == 2 && (is_nfc || tdm_json_is_kind(first, "NFKC"))) {
        read->parts.settings.form = is_nfc ? TDM_FORM_NFC : TDM_FORM_NFKC;
        first = second;
    } else if (json_array_size(list) != 1) {
        return tdm_json_foreign(read, "normalizer", "another sequence", supported);
    }
    if (!tdm_json_is_kind(first, "BertNormalizer"))
        return tdm_json_foreign(read, "a normalizer of the sequence", tdm_json_kind(first),
                                supported);
    return read_bert_normalizer(read, first);
}

static tdm_status read_normalizer(tdm_json_reading *read, const json_t *json)
{
    read->parts.settings = (tdm_tokenizer_settings){.max_word_chars = 100, .cleanup = true};
    if (json == NULL || json_is_null(json))
        return TDM_OK;
    if (tdm_json_is_kind(json, "Sequence"))
        return read_normalizers(read, json_object_get(json, "normalizers"));
    if (!tdm_json_is_kind(json, "BertNormalizer"))
        return tdm_json_foreign(read, "normalizer", tdm_json_kind(json),
                                "BertNormalizer, alone or behind NFC or NFKC");
    return read_bert_normalizer(read, json);
}

/* ---- model ----------------------------------------------------------------------------------- */

static tdm_status add_token(tdm_json_reading *read, const char *token, const json_t *json)
{
    tdm_vocabulary *vocabulary = &read->parts.vocabulary;
    int64_t id = json_is_integer(json) ? json_integer_value(json) : -1;
    if (id < 0 || id >= TDM_MAX_VOCABULARY)
        return tdm_fail(
            TDM_E_FORMAT,
            "%s: the id of \"%.80s\" in model.vocab is not a whole number from 0 to %lld",
            read->name, token, (long long)TDM_MAX_VOCABULARY - 1);
    if (id < vocabulary->size && vocabulary->bytes[id] > 0)
        return tdm_fail(TDM_E_FORMAT, "%s: model.vocab gives id %lld to \"%.*s\" and to \"%.80s\"",
                        read->name, (long long)id, (int)vocabulary->bytes[id],
                        vocabulary->text + vocabulary->begins[id], token);
    return tdm_vocabulary_add(vocabulary, (uint32_t)id, token, strlen(token), NULL);
}

static tdm_status read_vocabulary(tdm_json_reading *read, json_t *vocab)
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

static tdm_status read_model(tdm_json_reading *read, const json_t *model)
{
    if (!json_is_object(model))
        return tdm_json_damaged(read, "model", "is missing");
    const char *type = model_type(model);
    if (strcmp(type, "WordPiece") != 0)
        return tdm_json_foreign(read, "the model", type, "WordPiece");
    read->specials[TDM_SPECIAL_UNK] = json_string_value(json_object_get(model, "unk_token"));
    if (read->specials[TDM_SPECIAL_UNK] == NULL)
        return tdm_json_damaged(read, "model.unk_token", "is missing, or no text");
    const json_t *prefix = json_object_get(model, "continuing_subword_prefix");
    if (prefix != NULL &&
        (!json_is_string(prefix) || strcmp(json_string_value(prefix), TDM_CONTINUATION) != 0))
        return tdm_json_foreign(read, "model.continuing_subword_prefix",
                                json_is_string(prefix) ? json_string_value(prefix) : "no text",
                                "\"" TDM_CONTINUATION "\"");
    const json_t *most = json_object_get(model, "max_input_chars_per_word");
    int64_t max_word_chars = read->parts.settings.max_word_chars;
    if (most != NULL)
        TDM_TRY(tdm_json_read_int(read, most, "model.max_input_chars_per_word", INT_MAX,
                                  &max_word_chars));
    read->parts.settings.max_word_chars = (int)max_word_chars;
    json_t *vocab = json_object_get(model, "vocab");
    if (!json_is_object(vocab))
        return tdm_json_damaged(read, "model.vocab", "is missing, or no object");
    return read->has_vocabulary ? TDM_OK : read_vocabulary(read, vocab);
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
static tdm_status read_added_token(tdm_json_reading *read, const json_t *json, tdm_vocabulary *seen)
{
    const char *content = json_string_value(json_object_get(json, "content"));
    if (content == NULL || content[0] == '\0')
        return tdm_json_damaged(read, "added_tokens", "has an entry without content");
    size_t bytes = strlen(content);
    int64_t id = 0, taken;
    TDM_TRY(tdm_json_read_int(read, json_object_get(json, "id"), "an id of added_tokens",
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

static tdm_status read_added_tokens(tdm_json_reading *read, const json_t *list)
{
    if (list != NULL && !json_is_null(list) && !json_is_array(list))
        return tdm_json_damaged(read, "added_tokens", "is no list");
    tdm_vocabulary seen = {0};
    tdm_status status = TDM_OK;
    for (size_t i = 0; i < json_array_size(list) && status == TDM_OK; i++)
        status = read_added_token(read, json_array_get(list, i), &seen);
    tdm_vocabulary_deinit(&seen);
    return status;
}

/* ---- the file -------------------------------------------------------------------------------- */

static tdm_status read_file(tdm_json_reading *read, const json_t *root)
{
    const json_t *version = json_object_get(root, "version");
    TDM_FAIL_IF(version != NULL &&
                    !(json_is_string(version) && strcmp(json_string_value(version), "1.0") == 0),
                TDM_E_VERSION, "%s: version is %s: tandem knows tokenizer.json of version 1.0",
                read->name, json_is_string(version) ? json_string_value(version) : "no text");
    TDM_TRY(read_normalizer(read, json_object_get(root, "normalizer")));
    TDM_TRY(read_model(read, json_object_get(root, "model")));
    const json_t *pre_tokenizer = json_object_get(root, "pre_tokenizer");
    if (!tdm_json_is_kind(pre_tokenizer, "BertPreTokenizer"))
        return tdm_json_foreign(read, "pre_tokenizer", tdm_json_kind(pre_tokenizer),
                                "BertPreTokenizer");
    TDM_TRY(read_added_tokens(read, json_object_get(root, "added_tokens")));
    TDM_TRY(tdm_json_read_post_processor(read, json_object_get(root, "post_processor")));
    TDM_TRY(tdm_json_read_decoder(read, json_object_get(root, "decoder")));
    TDM_TRY(tdm_json_read_truncation(read, json_object_get(root, "truncation")));
    return tdm_json_read_padding(read, json_object_get(root, "padding"));
}

static tdm_status load_text(const tdm_json_reading *read, const char *text, size_t bytes,
                            json_t **root)
{
    json_error_t error;
    *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    TDM_FAIL_IF(*root == NULL, TDM_E_FORMAT, "%s:%d: is not JSON: %s (column %d)", read->name,
                error.line, error.text, error.column);
    return TDM_OK;
}

/* The vocabulary by itself, and the rest with an empty one. */
static tdm_status load_parts(tdm_json_reading *read, const char *text, size_t bytes, json_t **root)
{
    size_t begin, end;
    char *rest;
    TDM_TRY(tdm_json_vocab_take(text, bytes, &read->parts.vocabulary, &begin, &end,
                                &read->has_vocabulary));
    if (!read->has_vocabulary)
        return TDM_OK;
    TDM_TRY(tdm_alloc(bytes, 1, &rest));
    memcpy(rest, text, begin);
    memcpy(rest + begin, "{}", 2);
    memcpy(rest + begin + 2, text + end, bytes - end);
    *root = json_loadb(rest, begin + 2 + bytes - end, JSON_REJECT_DUPLICATES, NULL);
    tdm_free(rest);
    return TDM_OK;
}

/* An error is that of the whole text, with its line. */
static tdm_status load(tdm_json_reading *read, const char *text, size_t bytes, json_t **root)
{
    *root = NULL;
    TDM_TRY(load_parts(read, text, bytes, root));
    return *root != NULL ? TDM_OK : load_text(read, text, bytes, root);
}

tdm_status tdm_tokenizer_json_parse(const char *text, size_t bytes, const char *name,
                                    tdm_tokenizer **out)
{
    tdm_json_reading read = {.name = name, .options = tdm_encode_default_options()};
    json_t *root;
    *out = NULL;
    tdm_status status = load(&read, text, bytes, &root);
    if (status == TDM_OK)
        status = read_file(&read, root);
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
