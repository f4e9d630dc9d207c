#include "interchange/pretrained.h"

#include "core/file.h"
#include "core/json.h"
#include "core/memory.h"

#include <string.h>
#include <sys/stat.h>

#define CONFIG_LIMIT ((size_t)16 << 20)

/* The folder that `path` is or lies in. */
static tdm_status folder_of(const char *path, char **out)
{
    struct stat info;
    const char *slash = strrchr(path, '/');
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return tdm_strdup(path, out);
    if (slash == NULL)
        return tdm_strdup(".", out);
    return tdm_strndup(path, (size_t)(slash - path) + 1, out);
}

/* ---- the tokenizer --------------------------------------------------------------------------- */

/* Sets what tokenizer_config.json says of them. */
static tdm_status read_settings(const char *folder, tdm_tokenizer_settings *settings)
{
    char *path;
    json_t *root = NULL;
    TDM_TRY(tdm_path_join(folder, "tokenizer_config.json", &path));
    tdm_status status =
        tdm_file_exists(path) ? tdm_json_file_get(path, CONFIG_LIMIT, &root) : TDM_OK;
    tdm_free(path);
    TDM_TRY(status);
    const json_t *lowercase = json_object_get(root, "do_lower_case");
    const json_t *accents = json_object_get(root, "strip_accents");
    const json_t *chinese = json_object_get(root, "tokenize_chinese_chars");
    if (json_is_boolean(lowercase)) {
        settings->lowercase = json_is_true(lowercase);
        settings->strip_accents = -1;
    }
    if (json_is_boolean(accents))
        settings->strip_accents = json_is_true(accents);
    if (json_is_boolean(chinese))
        settings->handle_chinese_chars = json_is_true(chinese);
    json_decref(root);
    return TDM_OK;
}

static tdm_status open_tokenizer(const char *folder, tdm_tokenizer_settings settings,
                                 tdm_pretrained *out)
{
    char *vocabulary = NULL, *json = NULL;
    tdm_status status;
    TDM_TRY_GOTO(tdm_path_join(folder, "vocab.txt", &vocabulary), done);
    TDM_TRY_GOTO(tdm_path_join(folder, "tokenizer.json", &json), done);
    if (tdm_file_exists(vocabulary)) {
        TDM_TRY_GOTO(read_settings(folder, &settings), done);
        TDM_TRY_GOTO(tdm_tokenizer_open(vocabulary, &settings, &out->tokenizer), done);
        status = tdm_strdup(vocabulary, &out->tokenizer_path);
    } else if (tdm_file_exists(json)) {
        TDM_TRY_GOTO(tdm_tokenizer_open(json, NULL, &out->tokenizer), done);
        status = tdm_strdup(json, &out->tokenizer_path);
    }
done:
    tdm_free(vocabulary);
    tdm_free(json);
    return status;
}

/* ---- open and close -------------------------------------------------------------------------- */

static tdm_status find_file(const char *folder, const char *name, bool *found)
{
    char *path;
    TDM_TRY(tdm_path_join(folder, name, &path));
    *found = tdm_file_exists(path);
    tdm_free(path);
    return TDM_OK;
}

tdm_status tdm_pretrained_find(const char *path, bool *found)
{
    char *folder;
    *found = false;
    TDM_TRY(folder_of(path, &folder));
    tdm_status status = find_file(folder, "config.json", found);
    if (status == TDM_OK && !*found)
        status = find_file(folder, "bert_config.json", found);
    tdm_free(folder);
    return status;
}

static tdm_status open_parts(const char *path, const tdm_tokenizer_settings *settings,
                             bool with_weights, tdm_pretrained *out)
{
    const tdm_tokenizer_settings fallback = tdm_tokenizer_default_settings();
    char *folder;
    *out = (tdm_pretrained){0};
    TDM_TRY(folder_of(path, &folder));
    tdm_status status = tdm_pretrained_config_read(folder, &out->config);
    if (status == TDM_OK && with_weights)
        status = tdm_pretrained_tensors_open(path, &out->tensors);
    if (status == TDM_OK)
        status = open_tokenizer(folder, settings != NULL ? *settings : fallback, out);
    tdm_free(folder);
    if (status != TDM_OK)
        tdm_pretrained_close(out);
    return status;
}

tdm_status tdm_pretrained_open(const char *path, const tdm_tokenizer_settings *settings,
                               tdm_pretrained *out)
{
    return open_parts(path, settings, true, out);
}

tdm_status tdm_pretrained_open_settings(const char *path, const tdm_tokenizer_settings *settings,
                                        tdm_pretrained *out)
{
    return open_parts(path, settings, false, out);
}

void tdm_pretrained_close(tdm_pretrained *pretrained)
{
    tdm_pretrained_config_free(&pretrained->config);
    tdm_pretrained_tensors_close(pretrained->tensors);
    tdm_tokenizer_close(pretrained->tokenizer);
    tdm_free(pretrained->tokenizer_path);
    *pretrained = (tdm_pretrained){0};
}
