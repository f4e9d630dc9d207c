#include "interchange/export_huggingface.h"

#include "core/file.h"
#include "core/log.h"
#include "core/memory.h"
#include "interchange/export_parts.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

static const char *const file_names[] = {
    "config.json",           "model.safetensors",       "vocab.txt", "tokenizer.json",
    "tokenizer_config.json", "special_tokens_map.json", NULL};

/* ---- the place ------------------------------------------------------------------------------- */

/* Nothing is overwritten that an export has not written. */
static tdm_status check_entries(DIR *folder, const char *path, bool force, bool *is_empty)
{
    *is_empty = true;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        TDM_FAIL_IF(!force, TDM_E_ARG, "%s is there already: --force overwrites it", path);
        TDM_FAIL_IF(tdm_name_find(file_names, name) < 0, TDM_E_ARG,
                    "%s holds %s, which is no file of an export: write to another folder", path,
                    name);
        *is_empty = false;
    }
    return TDM_OK;
}

static tdm_status check_place(const char *path, bool force, bool *is_empty)
{
    *is_empty = true;
    if (!tdm_file_exists(path))
        return TDM_OK;
    DIR *folder = opendir(path);
    TDM_FAIL_IF(folder == NULL, TDM_E_ARG, "%s: cannot become a folder: %s", path,
                tdm_io_error_text(errno));
    tdm_status status = check_entries(folder, path, force, is_empty);
    closedir(folder);
    return status;
}

/* Puts the new folder in the place of the old one. */
static tdm_status replace(const char *temporary, const char *path, bool is_empty)
{
    if (is_empty)
        return tdm_file_rename(temporary, path);
    char *old;
    TDM_TRY(tdm_format(&old, "%s.replaced", path));
    tdm_status status;
    TDM_TRY_GOTO(tdm_folder_remove(old), done);
    TDM_TRY_GOTO(tdm_file_rename(path, old), done);
    TDM_TRY_GOTO(tdm_file_rename(temporary, path), done);
    status = tdm_folder_remove(old);
done:
    tdm_free(old);
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void warn_of_unicode(const tdm_export *from)
{
    tdm_tokenizer_settings settings = tdm_tokenizer_get_settings(from->tokenizer);
    if (settings.unicode != TDM_UNICODE_HUGGINGFACE)
        tdm_warn("text.unicode: Transformers knows its own rules only: some words with rare "
                 "characters will be other tokens there");
}

static tdm_status write_files(const tdm_export *from, const tdm_export_class *is,
                              const char *folder)
{
    TDM_TRY(tdm_folder_remove(folder));
    TDM_TRY(tdm_folder_create(folder));
    TDM_TRY(tdm_export_config(from, is, folder));
    TDM_TRY(tdm_export_tokenizer(from, is, folder));
    TDM_TRY(tdm_export_weights(from, is, folder));
    return tdm_folder_sync(folder);
}

static tdm_status export_to(const tdm_export *from, const tdm_export_class *is, const char *path,
                            bool force)
{
    bool is_empty;
    char *temporary;
    TDM_TRY(check_place(path, force, &is_empty));
    TDM_TRY(tdm_format(&temporary, "%s.tmp", path));
    tdm_status status = write_files(from, is, temporary);
    if (status == TDM_OK)
        status = replace(temporary, path, is_empty);
    if (status != TDM_OK) {
        tdm_error error = {0};
        tdm_error_keep(&error, status);
        if (tdm_folder_remove(temporary) != TDM_OK)
            tdm_warn("%s could not be removed", temporary);
        status = tdm_error_raise(&error);
    }
    tdm_free(temporary);
    return status;
}

tdm_status tdm_export_huggingface(const tdm_export *from, const char *folder, bool force)
{
    tdm_export_class is;
    char *path;
    TDM_FAIL_IF(tdm_tokenizer_size(from->tokenizer) != from->inputs->vocabulary, TDM_E_ARG,
                "the tokenizer has %lld tokens, the model %lld",
                (long long)tdm_tokenizer_size(from->tokenizer),
                (long long)from->inputs->vocabulary);
    TDM_TRY(tdm_export_class_find(from, &is));
    warn_of_unicode(from);
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    TDM_TRY(tdm_strndup(folder, length, &path));
    tdm_status status = export_to(from, &is, path, force);
    tdm_free(path);
    return status;
}
