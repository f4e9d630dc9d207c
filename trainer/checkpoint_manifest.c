#include "trainer/checkpoint_manifest.h"

#include "core/file.h"
#include "core/json.h"
#include "core/memory.h"
#include "trainer/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MANIFEST_LIMIT ((size_t)1 << 20)
#define HEX_DIGITS     16

static bool is_plain_name(const char *name)
{
    return name[0] != '\0' && strchr(name, '/') == NULL && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0 && strcmp(name, TDM_MANIFEST_NAME) != 0;
}

tdm_status tdm_manifest_add(tdm_manifest *manifest, const char *name, uint64_t hash, int64_t bytes)
{
    TDM_FAIL_IF(!is_plain_name(name), TDM_E_ARG, "\"%s\" cannot be the name of a checkpoint's file",
                name);
    for (size_t i = 0; i < manifest->count; i++) {
        TDM_FAIL_IF(strcmp(manifest->files[i].name, name) == 0, TDM_E_ARG,
                    "the checkpoint has a file \"%s\" already", name);
    }
    TDM_TRY(tdm_grow(&manifest->files, &manifest->capacity, manifest->count + 1,
                     sizeof *manifest->files));
    tdm_manifest_file *file = &manifest->files[manifest->count];
    TDM_TRY(tdm_strdup(name, &file->name));
    file->bytes = bytes;
    file->hash = hash;
    manifest->count++;
    return TDM_OK;
}

void tdm_manifest_free(tdm_manifest *manifest)
{
    for (size_t i = 0; i < manifest->count; i++)
        tdm_free(manifest->files[i].name);
    tdm_free(manifest->files);
    *manifest = (tdm_manifest){0};
}

/* ---- writing --------------------------------------------------------------------------------- */

static void format_hash(uint64_t hash, char text[HEX_DIGITS + 1])
{
    snprintf(text, HEX_DIGITS + 1, "%016" PRIx64, hash);
}

/* NULL for want of memory or where a name is no UTF-8. */
static json_t *manifest_json(const tdm_manifest *manifest)
{
    json_t *files = json_object();
    int failed = 0;
    for (size_t i = 0; i < manifest->count; i++) {
        const tdm_manifest_file *file = &manifest->files[i];
        char hash[HEX_DIGITS + 1];
        format_hash(file->hash, hash);
        json_t *entry = json_pack("{s:I, s:s}", "bytes", (json_int_t)file->bytes, "xxh3", hash);
        failed |= json_object_set_new(files, file->name, entry);
    }
    json_t *root =
        json_pack("{s:i, s:o}", "format_version", TDM_CHECKPOINT_VERSION, "files", files);
    if (failed == 0)
        return root;
    json_decref(root);
    return NULL;
}

static tdm_status write_json(const json_t *root, const char *path)
{
    size_t bytes = json_dumpb(root, NULL, 0, JSON_INDENT(2));
    TDM_FAIL_IF(bytes == 0, TDM_E_NOMEM, "%s: out of memory, or a name that is not UTF-8", path);
    char *text;
    TDM_TRY(tdm_alloc(bytes + 1, 1, &text));
    json_dumpb(root, text, bytes, JSON_INDENT(2));
    text[bytes] = '\n';
    tdm_status status = tdm_file_put(path, text, bytes + 1, NULL);
    tdm_free(text);
    return status;
}

tdm_status tdm_manifest_write(const tdm_manifest *manifest, const char *folder)
{
    char *path;
    TDM_TRY(tdm_path_join(folder, TDM_MANIFEST_NAME, &path));
    json_t *root = manifest_json(manifest);
    tdm_status status = write_json(root, path);
    json_decref(root);
    tdm_free(path);
    return status;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The hash in exactly the form that is written, so that any changed byte is seen. */
static bool parse_hash(const char *text, uint64_t *hash)
{
    char again[HEX_DIGITS + 1];
    if (text == NULL || sscanf(text, "%16" SCNx64, hash) != 1)
        return false;
    format_hash(*hash, again);
    return strcmp(text, again) == 0;
}

static tdm_status parse_file(tdm_manifest *manifest, const char *path, const char *name,
                             const json_t *entry)
{
    const json_t *bytes = json_object_get(entry, "bytes");
    uint64_t hash;
    TDM_FAIL_IF(!is_plain_name(name) || !json_is_integer(bytes) || json_integer_value(bytes) < 0 ||
                    !parse_hash(json_string_value(json_object_get(entry, "xxh3")), &hash),
                TDM_E_FORMAT, "%s: damaged: the entry of \"%s\"", path, name);
    return tdm_manifest_add(manifest, name, hash, json_integer_value(bytes));
}

static tdm_status parse_manifest(tdm_manifest *manifest, const char *path, const json_t *root)
{
    const json_t *version = json_object_get(root, "format_version");
    TDM_FAIL_IF(!json_is_integer(version) || json_integer_value(version) < 1, TDM_E_FORMAT,
                "%s: damaged: it has no format_version", path);
    TDM_FAIL_IF(json_integer_value(version) > TDM_CHECKPOINT_VERSION, TDM_E_VERSION,
                "%s: a newer tandem wrote it (format %lld, this one reads up to %d): use that one",
                path, (long long)json_integer_value(version), TDM_CHECKPOINT_VERSION);
    json_t *files = json_object_get(root, "files");
    TDM_FAIL_IF(!json_is_object(files), TDM_E_FORMAT, "%s: damaged: it has no files", path);
    const char *name;
    json_t *entry;
    json_object_foreach(files, name, entry) TDM_TRY(parse_file(manifest, path, name, entry));
    return TDM_OK;
}

static tdm_status read_json(const char *path, json_t **out)
{
    TDM_FAIL_IF(!tdm_file_exists(path), TDM_E_FORMAT,
                "%s: missing: the checkpoint was not written to its end, or is half deleted", path);
    return tdm_json_file_get(path, MANIFEST_LIMIT, out);
}

tdm_status tdm_manifest_read(const char *folder, tdm_manifest *out)
{
    *out = (tdm_manifest){0};
    json_t *root = NULL;
    char *path;
    TDM_TRY(tdm_path_join(folder, TDM_MANIFEST_NAME, &path));
    tdm_status status = read_json(path, &root);
    if (status == TDM_OK)
        status = parse_manifest(out, path, root);
    if (status != TDM_OK)
        tdm_manifest_free(out);
    json_decref(root);
    tdm_free(path);
    return status;
}
