#include "core/file.h"
#include "core/memory.h"
#include "text/tokenizer_json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* jansson takes NULL for a value that could not be made and fails then itself; the end of all is
 * that a NULL comes out. */

static json_t *token_text(const tdm_tokenizer *tokenizer, int64_t id)
{
    size_t bytes;
    const char *token = tdm_tokenizer_token(tokenizer, (uint32_t)id, &bytes);
    return json_stringn(token, bytes);
}

static json_t *truncation_json(const tdm_encode_options *options)
{
    static const char *const strategies[] = {"LongestFirst", "OnlyFirst", "OnlySecond"};
    if (options->max_length < 0)
        return json_null();
    return json_pack("{s:s, s:I, s:s, s:I}", "direction", options->truncate_left ? "Left" : "Right",
                     "max_length", (json_int_t)options->max_length, "strategy",
                     strategies[options->truncation], "stride", (json_int_t)options->stride);
}

static json_t *padding_json(const tdm_tokenizer *tokenizer)
{
    const tdm_encode_options *options = &tokenizer->options;
    int64_t pad = tokenizer->specials[TDM_SPECIAL_PAD];
    if (options->padding == TDM_PADDING_NONE || pad < 0)
        return json_null();
    json_t *strategy = options->padding == TDM_PADDING_LONGEST
                           ? json_string("BatchLongest")
                           : json_pack("{s:I}", "Fixed", (json_int_t)options->pad_length);
    json_t *multiple =
        options->pad_multiple > 0 ? json_integer(options->pad_multiple) : json_null();
    return json_pack("{s:o, s:s, s:o, s:I, s:i, s:o}", "strategy", strategy, "direction",
                     options->pad_left ? "Left" : "Right", "pad_to_multiple_of", multiple, "pad_id",
                     (json_int_t)pad, "pad_type_id", tokenizer->pad_type, "pad_token",
                     token_text(tokenizer, pad));
}

static int compare_ids(const void *left, const void *right)
{
    const tdm_added_token *a = *(const tdm_added_token *const *)left;
    const tdm_added_token *b = *(const tdm_added_token *const *)right;
    return (a->id > b->id) - (a->id < b->id);
}

static tdm_status added_tokens_json(const tdm_tokenizer *tokenizer, json_t **out)
{
    size_t count = (size_t)tokenizer->added_count;
    const tdm_added_token **sorted;
    TDM_TRY(tdm_alloc(count + 1, sizeof *sorted, &sorted));
    *out = json_array();
    for (size_t i = 0; i < count; i++)
        sorted[i] = &tokenizer->added[i];
    qsort(sorted, count, sizeof *sorted, compare_ids);
    for (size_t i = 0; i < count; i++) {
        const tdm_added_token *added = sorted[i];
        json_array_append_new(
            *out, json_pack("{s:I, s:s#, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)added->id,
                            "content", added->content, (int)added->bytes, "single_word",
                            added->single_word, "lstrip", added->lstrip, "rstrip", added->rstrip,
                            "normalized", added->normalized, "special", added->special));
    }
    tdm_free(sorted);
    return TDM_OK;
}

static json_t *normalizer_json(const tdm_tokenizer_settings *settings)
{
    static const char *const forms[] = {NULL, "NFC", "NFKC"};
    json_t *strip = settings->strip_accents == (int)settings->lowercase
                        ? json_null()
                        : json_boolean(settings->strip_accents);
    json_t *json =
        json_pack("{s:s, s:b, s:b, s:o, s:b}", "type", "BertNormalizer", "clean_text",
                  settings->clean_text, "handle_chinese_chars", settings->handle_chinese_chars,
                  "strip_accents", strip, "lowercase", settings->lowercase);
    if (settings->unicode != TDM_UNICODE_HUGGINGFACE)
        json_object_set_new(
            json, "tandem",
            json_pack("{s:s}", "unicode", tdm_unicode_mode_names[settings->unicode]));
    if (settings->form == TDM_FORM_NONE)
        return json;
    return json_pack("{s:s, s:[{s:s}, o]}", "type", "Sequence", "normalizers", "type",
                     forms[settings->form], json);
}

static json_t *special_json(const tdm_tokenizer *tokenizer, tdm_special special)
{
    int64_t id = tokenizer->specials[special];
    return json_pack("{s:o, s:[I], s:[o]}", "id", token_text(tokenizer, id), "ids", (json_int_t)id,
                     "tokens", token_text(tokenizer, id));
}

static json_t *piece_json(const tdm_tokenizer *tokenizer, tdm_special special, int type_id)
{
    return json_pack("{s:{s:o, s:i}}", "SpecialToken", "id",
                     token_text(tokenizer, tokenizer->specials[special]), "type_id", type_id);
}

static json_t *template_json(const tdm_tokenizer *tokenizer, bool is_pair)
{
    json_t *json =
        json_pack("[o, {s:{s:s, s:i}}, o]", piece_json(tokenizer, TDM_SPECIAL_CLS, 0), "Sequence",
                  "id", "A", "type_id", 0, piece_json(tokenizer, TDM_SPECIAL_SEP, 0));
    if (is_pair) {
        json_array_append_new(json,
                              json_pack("{s:{s:s, s:i}}", "Sequence", "id", "B", "type_id", 1));
        json_array_append_new(json, piece_json(tokenizer, TDM_SPECIAL_SEP, 1));
    }
    return json;
}

static json_t *post_processor_json(const tdm_tokenizer *tokenizer)
{
    int64_t cls = tokenizer->specials[TDM_SPECIAL_CLS], sep = tokenizer->specials[TDM_SPECIAL_SEP];
    if (tokenizer->no_template || cls < 0 || sep < 0)
        return json_null();
    json_t *tokens = json_object();
    const tdm_vocabulary *vocabulary = &tokenizer->vocabulary;
    json_object_setn_new(tokens, vocabulary->text + vocabulary->begins[cls], vocabulary->bytes[cls],
                         special_json(tokenizer, TDM_SPECIAL_CLS));
    json_object_setn_new(tokens, vocabulary->text + vocabulary->begins[sep], vocabulary->bytes[sep],
                         special_json(tokenizer, TDM_SPECIAL_SEP));
    return json_pack("{s:s, s:o, s:o, s:o}", "type", "TemplateProcessing", "single",
                     template_json(tokenizer, false), "pair", template_json(tokenizer, true),
                     "special_tokens", tokens);
}

/* Tokens that are only added are no part of the model. */
static json_t *vocab_json(const tdm_tokenizer *tokenizer)
{
    const tdm_vocabulary *vocabulary = &tokenizer->vocabulary;
    const bool *beside = tokenizer->beside;
    json_t *json = json_object();
    for (int64_t id = 0; id < vocabulary->size; id++) {
        if (vocabulary->bytes[id] > 0 && (beside == NULL || !beside[id]))
            json_object_setn_new(json, vocabulary->text + vocabulary->begins[id],
                                 vocabulary->bytes[id], json_integer(id));
    }
    return json;
}

static tdm_status tokenizer_json(const tdm_tokenizer *tokenizer, json_t **out)
{
    const tdm_tokenizer_settings *settings = &tokenizer->settings;
    json_t *added;
    TDM_TRY(added_tokens_json(tokenizer, &added));
    json_t *model =
        json_pack("{s:s, s:o, s:s, s:i, s:o}", "type", "WordPiece", "unk_token",
                  token_text(tokenizer, tokenizer->specials[TDM_SPECIAL_UNK]),
                  "continuing_subword_prefix", TDM_CONTINUATION, "max_input_chars_per_word",
                  settings->max_word_chars, "vocab", vocab_json(tokenizer));
    *out = json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:{s:s}, s:o, s:{s:s, s:s, s:b}, s:o}", "version", "1.0",
        "truncation", truncation_json(&tokenizer->options), "padding", padding_json(tokenizer),
        "added_tokens", added, "normalizer", normalizer_json(settings), "pre_tokenizer", "type",
        "BertPreTokenizer", "post_processor", post_processor_json(tokenizer), "decoder", "type",
        "WordPiece", "prefix", TDM_CONTINUATION, "cleanup", settings->cleanup, "model", model);
    return TDM_OK;
}

tdm_status tdm_tokenizer_json_save(const tdm_tokenizer *tokenizer, const char *path)
{
    json_t *json = NULL;
    TDM_TRY(tokenizer_json(tokenizer, &json));
    char *text = json == NULL ? NULL : json_dumps(json, JSON_INDENT(2));
    json_decref(json);
    TDM_FAIL_IF(text == NULL, TDM_E_NOMEM, "out of memory while describing the tokenizer");
    tdm_status status = tdm_file_put(path, text, strlen(text), NULL);
    free(text);
    return status;
}
