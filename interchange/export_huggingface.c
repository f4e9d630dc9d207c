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

/* Or one that was being written (core/file.h) when an export was ended. */
static bool is_of_export(const char *name)
{
    static const char ending[] = ".tmp";
    char whole[64];
    size_t bytes = strlen(name), cut = sizeof ending - 1;
    if (bytes >= sizeof whole)
        return false;
    memcpy(whole, name, bytes + 1);
    if (bytes > cut && strcmp(whole + bytes - cut, ending) == 0)
        whole[bytes - cut] = '\0';
    return tdm_name_find(file_names, whole) >= 0;
}

/* Nothing is overwritten that an export has not written. */
static tdm_status check_entries(DIR *folder, const char *path, bool force, bool *is_empty)
{
    *is_empty = true;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        TDM_FAIL_IF(!force, TDM_E_ARG, "%s is there already: --force overwrites it", path);
        TDM_FAIL_IF(!is_of_export(name), TDM_E_ARG,
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

/* The folders that an export needs. */
typedef struct places {
    char *path;
    char *temporary; /* is written, then renamed */
    char *replaced;  /* what was at `path` until that is done */
    bool is_empty;   /* there was nothing */
} places;

static tdm_status find_places(const char *path, bool force, places *out)
{
    bool is_empty;
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    TDM_TRY(tdm_strndup(path, length, &out->path));
    TDM_TRY(tdm_format(&out->temporary, "%s.tmp", out->path));
    TDM_TRY(tdm_format(&out->replaced, "%s.replaced", out->path));
    TDM_TRY(check_place(out->path, force, &out->is_empty));
    TDM_TRY(check_place(out->temporary, true, &is_empty));
    return out->is_empty ? TDM_OK : check_place(out->replaced, true, &is_empty);
}

static void free_places(places *to)
{
    tdm_free(to->path);
    tdm_free(to->temporary);
    tdm_free(to->replaced);
}

/* Puts the new folder in the place of the old one, which comes back where that fails. */
static tdm_status replace(const places *to)
{
    if (to->is_empty)
        return tdm_file_rename(to->temporary, to->path);
    TDM_TRY(tdm_folder_remove(to->replaced));
    tdm_status status = tdm_file_rename(to->path, to->replaced);
    if (status == TDM_OK)
        status = tdm_file_rename(to->temporary, to->path);
    if (status == TDM_OK)
        return tdm_folder_remove(to->replaced);
    tdm_error error = {0};
    tdm_error_keep(&error, status);
    if (!tdm_file_exists(to->path) && tdm_file_rename(to->replaced, to->path) != TDM_OK)
        tdm_warn("%s could not be put back: look for it in %s", to->path, to->replaced);
    return tdm_error_raise(&error);
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

static tdm_status export_to(const tdm_export *from, const tdm_export_class *is, const places *to)
{
    tdm_status status = write_files(from, is, to->temporary);
    if (status == TDM_OK)
        status = replace(to);
    if (status == TDM_OK)
        return TDM_OK;
    tdm_error error = {0};
    tdm_error_keep(&error, status);
    if (tdm_folder_remove(to->temporary) != TDM_OK)
        tdm_warn("%s could not be removed", to->temporary);
    return tdm_error_raise(&error);
}

tdm_status tdm_export_huggingface(const tdm_export *from, const char *folder, bool force)
{
    tdm_export_class is;
    places to = {0};
    TDM_FAIL_IF(tdm_tokenizer_size(from->tokenizer) != from->inputs->vocabulary, TDM_E_ARG,
                "the tokenizer has %lld tokens, the model %lld",
                (long long)tdm_tokenizer_size(from->tokenizer),
                (long long)from->inputs->vocabulary);
    TDM_TRY(tdm_export_class_find(from, &is));
    warn_of_unicode(from);
    tdm_status status = find_places(folder, force, &to);
    if (status == TDM_OK)
        status = export_to(from, &is, &to);
    free_places(&to);
    return status;
}
