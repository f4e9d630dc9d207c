#include "core/file.h"
#include "core/memory.h"
#include "interchange/export_parts.h"
#include "text/tokenizer.h"

#include <jansson.h>
#include <string.h>

static const char *const special_keys[TDM_SPECIALS] = {"pad_token", "unk_token", "cls_token",
                                                       "sep_token", "mask_token"};

/* Adds "cls_token": "[CLS]" and so on. */
static int add_specials(const tdm_tokenizer *tokenizer, json_t *json)
{
    int failed = 0;
    for (int i = 0; i < TDM_SPECIALS; i++) {
        size_t bytes;
        const char *token =
            tokenizer->specials[i] < 0
                ? NULL
                : tdm_tokenizer_token(tokenizer, (uint32_t)tokenizer->specials[i], &bytes);
        if (token != NULL)
            failed |= json_object_set_new(json, special_keys[i], json_stringn(token, bytes));
    }
    return failed;
}

/* BertTokenizer makes itself anew of vocab.txt and these three settings. What it cannot be told
 * stands in tokenizer.json, which PreTrainedTokenizerFast takes as it is. */
static bool is_plain(const tdm_tokenizer *tokenizer)
{
    const tdm_tokenizer_settings *settings = &tokenizer->settings;
    bool is_bert = settings->clean_text && settings->form == TDM_FORM_NONE &&
                   settings->max_word_chars == 100 && !tokenizer->no_template;
    for (int i = 0; i < TDM_SPECIALS; i++)
        is_bert = is_bert && tokenizer->specials[i] >= 0;
    return is_bert && tokenizer->added_count == TDM_SPECIALS;
}

static json_t *config_json(const tdm_export *from, const tdm_export_class *is)
{
    const tdm_tokenizer *tokenizer = from->tokenizer;
    const tdm_tokenizer_settings *settings = &tokenizer->settings;
    json_t *strip = settings->strip_accents == (int)settings->lowercase
                        ? json_null()
                        : json_boolean(settings->strip_accents);
    json_t *inputs = is->family == TDM_FAMILY_MODERN_BERT
                         ? json_pack("[s, s]", "input_ids", "attention_mask")
                         : json_pack("[s, s, s]", "input_ids", "token_type_ids", "attention_mask");
    json_t *json = json_pack("{s:s, s:b, s:o, s:b, s:b, s:I, s:o}", "tokenizer_class",
                             is_plain(tokenizer) ? "BertTokenizer" : "PreTrainedTokenizerFast",
                             "do_lower_case", settings->lowercase, "strip_accents", strip,
                             "tokenize_chinese_chars", settings->handle_chinese_chars,
                             "clean_up_tokenization_spaces", settings->cleanup, "model_max_length",
                             (json_int_t)tdm_export_positions(from), "model_input_names", inputs);
    if (add_specials(tokenizer, json) == 0)
        return json;
    json_decref(json);
    return NULL;
}

static json_t *specials_json(const tdm_tokenizer *tokenizer)
{
    json_t *json = json_object();
    if (add_specials(tokenizer, json) == 0)
        return json;
    json_decref(json);
    return NULL;
}

static tdm_status save(const tdm_tokenizer *tokenizer, const char *folder, const char *name)
{
    char *path;
    TDM_TRY(tdm_path_join(folder, name, &path));
    tdm_status status = tdm_tokenizer_save(tokenizer, path);
    tdm_free(path);
    return status;
}

tdm_status tdm_export_tokenizer(const tdm_export *from, const tdm_export_class *is,
                                const char *folder)
{
    TDM_TRY(save(from->tokenizer, folder, "vocab.txt"));
    TDM_TRY(save(from->tokenizer, folder, "tokenizer.json"));
    TDM_TRY(tdm_export_json(config_json(from, is), folder, "tokenizer_config.json"));
    return tdm_export_json(specials_json(from->tokenizer), folder, "special_tokens_map.json");
}
