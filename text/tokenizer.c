#include "text/tokenizer.h"

#include "core/memory.h"
#include "data/source.h"
#include "text/added_tokens.h"
#include "text/tokenizer_json.h"
#include "text/vocabulary_file.h"

#include <string.h>

#define FILE_LIMIT ((size_t)1 << 30)
#define READ_BYTES ((size_t)64 << 10)

const char *const tdm_special_names[TDM_SPECIALS] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
const char *const tdm_unicode_mode_names[] = {"huggingface", "google", "unicode", NULL};
const char *const tdm_unicode_form_names[] = {"none", "nfc", "nfkc", NULL};

tdm_tokenizer_settings tdm_tokenizer_default_settings(void)
{
    return (tdm_tokenizer_settings){.clean_text = true,
                                    .handle_chinese_chars = true,
                                    .lowercase = true,
                                    .strip_accents = -1,
                                    .max_word_chars = 100,
                                    .cleanup = true};
}

/* ---- parts ----------------------------------------------------------------------------------- */

tdm_status tdm_tokenizer_add_token(tdm_tokenizer *parts, uint32_t id, const char *content,
                                   size_t bytes, tdm_added_token **added)
{
    TDM_TRY(tdm_grow(&parts->added, &parts->added_capacity, (size_t)parts->added_count + 1,
                     sizeof *parts->added));
    char *copy;
    TDM_TRY(tdm_strndup(content, bytes, &copy));
    *added = &parts->added[parts->added_count++];
    **added = (tdm_added_token){.id = id, .content = copy, .bytes = bytes};
    return TDM_OK;
}

static bool is_added(const tdm_tokenizer *parts, int64_t id)
{
    for (int64_t i = 0; i < parts->added_count; i++) {
        if (parts->added[i].id == id)
            return true;
    }
    return false;
}

tdm_status tdm_tokenizer_add_specials(tdm_tokenizer *parts, const char *const *names, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const char *name = names[i];
        int64_t id = tdm_vocabulary_find(&parts->vocabulary, name, strlen(name));
        if (id < 0 || is_added(parts, id))
            continue;
        tdm_added_token *added;
        TDM_TRY(tdm_tokenizer_add_token(parts, (uint32_t)id, name, strlen(name), &added));
        added->special = true;
    }
    return TDM_OK;
}

void tdm_tokenizer_parts_free(tdm_tokenizer *parts)
{
    for (int64_t i = 0; i < parts->added_count; i++)
        tdm_free(parts->added[i].content);
    tdm_free(parts->added);
    tdm_free(parts->beside);
    tdm_added_matcher_destroy(parts->raw_matcher);
    tdm_added_matcher_destroy(parts->normalized_matcher);
    tdm_normalizer_destroy(parts->normalizer);
    tdm_word_piece_destroy(parts->word_piece);
    tdm_vocabulary_deinit(&parts->vocabulary);
    *parts = (tdm_tokenizer){0};
}

static bool is_in_range(int value, int least, int most)
{
    return value >= least && value <= most;
}

tdm_status tdm_tokenizer_resolve_settings(tdm_tokenizer_settings *settings)
{
    TDM_FAIL_IF(!is_in_range((int)settings->unicode, 0, TDM_UNICODE_CURRENT) ||
                    !is_in_range((int)settings->form, 0, TDM_FORM_NFKC) ||
                    !is_in_range(settings->strip_accents, -1, 1),
                TDM_E_ARG, "unicode, form or strip_accents of the settings has no such value");
    TDM_FAIL_IF(settings->max_word_chars < 1, TDM_E_ARG,
                "max_word_chars is %d: a word has 1 character at least", settings->max_word_chars);
    if (settings->strip_accents < 0)
        settings->strip_accents = settings->lowercase;
    return TDM_OK;
}

/* Tokens that are no pieces of words come into the vocabulary when its pieces are known. */
static tdm_status add_beside(tdm_tokenizer *parts)
{
    tdm_vocabulary *vocabulary = &parts->vocabulary;
    int64_t count = 0;
    for (int64_t i = 0; i < parts->added_count; i++) {
        const tdm_added_token *added = &parts->added[i];
        if (!added->beside)
            continue;
        TDM_TRY(tdm_vocabulary_add(vocabulary, added->id, added->content, added->bytes, NULL));
        count++;
    }
    if (count == 0)
        return TDM_OK;
    TDM_TRY(tdm_alloc((size_t)vocabulary->size, sizeof *parts->beside, &parts->beside));
    for (int64_t i = 0; i < parts->added_count; i++)
        parts->beside[parts->added[i].id] = parts->added[i].beside;
    return TDM_OK;
}

static tdm_status make_parts(tdm_tokenizer *parts, const char *const names[TDM_SPECIALS])
{
    TDM_TRY(tdm_tokenizer_resolve_settings(&parts->settings));
    TDM_TRY(tdm_word_piece_create(&parts->vocabulary, parts->settings.max_word_chars,
                                  &parts->word_piece));
    TDM_TRY(add_beside(parts));
    for (int i = 0; i < TDM_SPECIALS; i++) {
        const char *name = names[i] != NULL ? names[i] : tdm_special_names[i];
        parts->specials[i] = tdm_vocabulary_find(&parts->vocabulary, name, strlen(name));
        TDM_FAIL_IF(i == TDM_SPECIAL_UNK && parts->specials[i] < 0, TDM_E_DATA,
                    "the vocabulary of %lld tokens has no %s, which stands for words that cannot "
                    "be made of it: give it one",
                    (long long)parts->vocabulary.size, name);
    }
    TDM_TRY(tdm_normalizer_create(&parts->settings, &parts->normalizer));
    TDM_TRY(tdm_added_matcher_create(parts->added, parts->added_count, false, &parts->settings,
                                     &parts->raw_matcher));
    TDM_TRY(tdm_added_matcher_create(parts->added, parts->added_count, true, &parts->settings,
                                     &parts->normalized_matcher));
    parts->options = tdm_encode_default_options();
    return TDM_OK;
}

tdm_status tdm_tokenizer_create_named(tdm_tokenizer *parts, const char *const names[TDM_SPECIALS],
                                      tdm_tokenizer **out)
{
    tdm_tokenizer *tokenizer = NULL;
    *out = NULL;
    tdm_status status = make_parts(parts, names);
    if (status == TDM_OK)
        status = tdm_alloc(1, sizeof *tokenizer, &tokenizer);
    if (status != TDM_OK) {
        tdm_tokenizer_parts_free(parts);
        return status;
    }
    *tokenizer = *parts;
    *parts = (tdm_tokenizer){0};
    *out = tokenizer;
    return TDM_OK;
}

tdm_status tdm_tokenizer_create(tdm_tokenizer *parts, tdm_tokenizer **out)
{
    return tdm_tokenizer_create_named(parts, tdm_special_names, out);
}

void tdm_tokenizer_close(tdm_tokenizer *tokenizer)
{
    if (tokenizer == NULL)
        return;
    tdm_tokenizer_parts_free(tokenizer);
    tdm_free(tokenizer);
}

/* ---- files ----------------------------------------------------------------------------------- */

static tdm_status read_source(tdm_source *source, const char *path, char **text, size_t *bytes)
{
    size_t capacity = 0, got = 0;
    do {
        TDM_FAIL_IF(*bytes >= FILE_LIMIT, TDM_E_DATA,
                    "%s: has more than %zu bytes: that is no vocabulary", path, FILE_LIMIT);
        TDM_TRY(tdm_grow(text, &capacity, *bytes + READ_BYTES, 1));
        TDM_TRY(tdm_source_read(source, *text + *bytes, capacity - *bytes, &got));
        *bytes += got;
    } while (got > 0);
    return TDM_OK;
}

/* The whole file, plain or compressed. */
static tdm_status read_file(const char *path, char **text, size_t *bytes)
{
    tdm_source *source;
    TDM_TRY(tdm_source_open(path, NULL, &source));
    tdm_status status = read_source(source, path, text, bytes);
    tdm_source_close(source);
    return status;
}

/* An object begins with a brace and the quote of its first key. */
static bool is_json(const char *text, size_t bytes)
{
    static const char space[] = " \t\r\n";
    size_t at = 0;
    while (at < bytes && memchr(space, text[at], sizeof space - 1) != NULL)
        at++;
    if (at == bytes || text[at++] != '{')
        return false;
    while (at < bytes && memchr(space, text[at], sizeof space - 1) != NULL)
        at++;
    return at < bytes && (text[at] == '"' || text[at] == '}');
}

static tdm_status open_vocabulary(const char *text, size_t bytes, const char *path,
                                  const tdm_tokenizer_settings *settings, tdm_tokenizer **out)
{
    tdm_tokenizer parts = {.settings =
                               settings != NULL ? *settings : tdm_tokenizer_default_settings()};
    tdm_status status = tdm_vocabulary_parse(text, bytes, path, &parts.vocabulary);
    if (status == TDM_OK)
        status = tdm_tokenizer_add_specials(&parts, tdm_special_names, TDM_SPECIALS);
    if (status != TDM_OK) {
        tdm_tokenizer_parts_free(&parts);
        return status;
    }
    status = tdm_tokenizer_create(&parts, out);
    return status == TDM_OK ? TDM_OK : tdm_fail_context(status, "%s", path);
}

tdm_status tdm_tokenizer_open(const char *path, const tdm_tokenizer_settings *settings,
                              tdm_tokenizer **tokenizer)
{
    char *text = NULL;
    size_t bytes = 0;
    *tokenizer = NULL;
    tdm_status status;
    TDM_TRY_GOTO(read_file(path, &text, &bytes), done);
    if (!is_json(text, bytes))
        status = open_vocabulary(text, bytes, path, settings, tokenizer);
    else if (settings == NULL)
        status = tdm_tokenizer_json_parse(text, bytes, path, tokenizer);
    else
        status =
            tdm_fail(TDM_E_ARG,
                     "%s: has settings of its own: others are for a vocabulary without them", path);
done:
    tdm_free(text);
    return status;
}

tdm_status tdm_tokenizer_save(const tdm_tokenizer *tokenizer, const char *path)
{
    size_t bytes = strlen(path);
    if (bytes >= 5 && strcmp(path + bytes - 5, ".json") == 0)
        return tdm_tokenizer_json_save(tokenizer, path);
    return tdm_vocabulary_save(&tokenizer->vocabulary, path);
}

/* ---- what it knows --------------------------------------------------------------------------- */

tdm_tokenizer_settings tdm_tokenizer_get_settings(const tdm_tokenizer *tokenizer)
{
    return tokenizer->settings;
}

int64_t tdm_tokenizer_size(const tdm_tokenizer *tokenizer)
{
    return tokenizer->vocabulary.size;
}

int64_t tdm_tokenizer_find(const tdm_tokenizer *tokenizer, const char *token, size_t bytes)
{
    return tdm_vocabulary_find(&tokenizer->vocabulary, token, bytes);
}

const char *tdm_tokenizer_token(const tdm_tokenizer *tokenizer, uint32_t id, size_t *bytes)
{
    const tdm_vocabulary *vocabulary = &tokenizer->vocabulary;
    bool is_token = id < vocabulary->size && vocabulary->bytes[id] > 0;
    *bytes = is_token ? vocabulary->bytes[id] : 0;
    return is_token ? vocabulary->text + vocabulary->begins[id] : NULL;
}
