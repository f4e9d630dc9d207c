#include "interchange/pretrained_tensors.h"

#include "core/file.h"
#include "core/json.h"
#include "core/memory.h"
#include "core/safetensors.h"
#include "interchange/tensor_bundle.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SHARDS_LIMIT  ((size_t)64 << 20) /* bytes of the list of files */
#define INDEX_ENDING  ".index"
#define READ_ELEMENTS 4096

typedef struct place {
    tdm_pretrained_tensor tensor;
    int file; /* -1: the bundle */
    int index;
} place;

struct tdm_pretrained_tensors {
    char *path;
    tdm_tensor_bundle *bundle; /* or */
    tdm_safetensors **files;   /* [file_count] */
    char **file_names;
    int file_count;
    size_t files_capacity, names_capacity;
    json_t *weight_map; /* owns the names of the tensors in several files */
    place *places;
    int count;
};

static bool has_ending(const char *text, const char *ending)
{
    size_t length = strlen(text), bytes = strlen(ending);
    return length >= bytes && strcmp(text + length - bytes, ending) == 0;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static int compare_places(const void *a, const void *b)
{
    return strcmp(((const place *)a)->tensor.name, ((const place *)b)->tensor.name);
}

static tdm_status list_bundle(tdm_pretrained_tensors *tensors)
{
    tensors->count = tdm_tensor_bundle_count(tensors->bundle);
    TDM_TRY(tdm_alloc((size_t)tensors->count + 1, sizeof *tensors->places, &tensors->places));
    for (int i = 0; i < tensors->count; i++) {
        const tdm_bundle_tensor *tensor = tdm_tensor_bundle_get(tensors->bundle, i);
        tensors->places[i] = (place){{tensor->name, tensor->dtype, tensor->shape}, -1, i};
    }
    return TDM_OK;
}

static place place_in_file(const tdm_pretrained_tensors *tensors, int file, int index)
{
    const tdm_safetensors_tensor *tensor = tdm_safetensors_get(tensors->files[file], index);
    return (place){{tensor->name, tensor->dtype, tensor->shape}, file, index};
}

static tdm_status list_file(tdm_pretrained_tensors *tensors)
{
    tensors->count = tdm_safetensors_count(tensors->files[0]);
    TDM_TRY(tdm_alloc((size_t)tensors->count + 1, sizeof *tensors->places, &tensors->places));
    for (int i = 0; i < tensors->count; i++)
        tensors->places[i] = place_in_file(tensors, 0, i);
    return TDM_OK;
}

/* ---- several files --------------------------------------------------------------------------- */

static tdm_status add_file(tdm_pretrained_tensors *tensors, const char *folder, const char *name)
{
    size_t count = (size_t)tensors->file_count;
    char *path;
    TDM_TRY(tdm_grow(&tensors->files, &tensors->files_capacity, count + 1, sizeof *tensors->files));
    TDM_TRY(tdm_grow(&tensors->file_names, &tensors->names_capacity, count + 1,
                     sizeof *tensors->file_names));
    TDM_TRY(tdm_path_join(folder, name, &path));
    tdm_status status = tdm_safetensors_open(path, &tensors->files[count]);
    tdm_free(path);
    TDM_TRY(status);
    tensors->file_names[count] = NULL;
    tensors->file_count++;
    return tdm_strdup(name, &tensors->file_names[count]);
}

/* The index of the file called `name`, opened when it is first needed. */
static tdm_status find_file(tdm_pretrained_tensors *tensors, const char *folder, const char *name,
                            int *out)
{
    for (*out = 0; *out < tensors->file_count; (*out)++) {
        if (strcmp(tensors->file_names[*out], name) == 0)
            return TDM_OK;
    }
    TDM_FAIL_IF(name[0] == '\0' || strchr(name, '/') != NULL, TDM_E_FORMAT,
                "%s: \"%s\" is not a file of the same folder", tensors->path, name);
    return add_file(tensors, folder, name);
}

static tdm_status open_several(tdm_pretrained_tensors *tensors, const char *folder)
{
    json_t *root;
    TDM_TRY(tdm_json_file_get(tensors->path, SHARDS_LIMIT, &root));
    tensors->weight_map = json_incref(json_object_get(root, "weight_map"));
    json_decref(root);
    TDM_FAIL_IF(!json_is_object(tensors->weight_map), TDM_E_FORMAT,
                "%s: has no \"weight_map\", which says what tensor lies in what file",
                tensors->path);
    TDM_TRY(tdm_alloc(json_object_size(tensors->weight_map) + 1, sizeof *tensors->places,
                      &tensors->places));
    const char *name;
    json_t *value;
    json_object_foreach(tensors->weight_map, name, value)
    {
        TDM_FAIL_IF(!json_is_string(value), TDM_E_FORMAT, "%s: \"%s\" has no file", tensors->path,
                    name);
        int file;
        TDM_TRY(find_file(tensors, folder, json_string_value(value), &file));
        int index = tdm_safetensors_find(tensors->files[file], name);
        TDM_FAIL_IF(index < 0, TDM_E_FORMAT, "%s: tensor \"%s\" is not in %s, where it is to be",
                    tensors->path, name, tensors->file_names[file]);
        tensors->places[tensors->count++] = place_in_file(tensors, file, index);
    }
    qsort(tensors->places, (size_t)tensors->count, sizeof *tensors->places, compare_places);
    return TDM_OK;
}

/* ---- what there is --------------------------------------------------------------------------- */

static tdm_status pickle_refused(const char *path)
{
    return tdm_fail(TDM_E_UNSUPPORTED,
                    "%s: is a Python pickle, which only Python can read: convert it, in its "
                    "folder, with: python -c \"import torch, safetensors.torch as s; "
                    "s.save_file({k: v.clone() for k, v in torch.load('pytorch_model.bin', "
                    "weights_only=True).items()}, 'model.safetensors')\"",
                    path);
}

/* The name of the one entry of the folder that ends with `ending`; NULL: there is none. */
static tdm_status find_one(DIR *folder, const char *path, const char *ending, char **name)
{
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (!has_ending(entry->d_name, ending))
            continue;
        TDM_FAIL_IF(*name != NULL, TDM_E_DATA,
                    "%s: holds several checkpoints, %s and %s among them: name the one to read",
                    path, *name, entry->d_name);
        TDM_TRY(tdm_strdup(entry->d_name, name));
    }
    return TDM_OK;
}

static tdm_status find_ending(const char *path, const char *ending, char **name)
{
    *name = NULL;
    DIR *folder = opendir(path);
    TDM_FAIL_IF(folder == NULL, TDM_E_IO, "%s: cannot open: %s", path, tdm_io_error_text(errno));
    tdm_status status = find_one(folder, path, ending, name);
    closedir(folder);
    if (status != TDM_OK) {
        tdm_free(*name);
        *name = NULL;
    }
    return status;
}

/* The path of the checkpoint in a folder. */
static tdm_status find_checkpoint(const char *folder, char **out)
{
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json", NULL,
                                        "pytorch_model.bin", "pytorch_model.bin.index.json"};
    char *name;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i] == NULL)
            TDM_TRY(find_ending(folder, INDEX_ENDING, &name));
        else
            TDM_TRY(tdm_strdup(names[i], &name));
        if (name == NULL)
            continue;
        tdm_status status = tdm_path_join(folder, name, out);
        tdm_free(name);
        TDM_TRY(status);
        if (tdm_file_exists(*out))
            return TDM_OK;
        tdm_free(*out);
        *out = NULL;
    }
    return tdm_fail(TDM_E_DATA,
                    "%s: holds no checkpoint: model.safetensors, model.safetensors.index.json or "
                    "NAME.ckpt.index is looked for",
                    folder);
}

static tdm_status open_bundle(tdm_pretrained_tensors *tensors)
{
    char *prefix;
    size_t bytes = strlen(tensors->path);
    if (has_ending(tensors->path, INDEX_ENDING))
        bytes -= strlen(INDEX_ENDING);
    TDM_TRY(tdm_strndup(tensors->path, bytes, &prefix));
    tdm_status status = tdm_tensor_bundle_open(prefix, &tensors->bundle);
    tdm_free(prefix);
    TDM_TRY(status);
    return list_bundle(tensors);
}

static tdm_status open_path(tdm_pretrained_tensors *tensors)
{
    const char *path = tensors->path;
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    if (strncmp(name, "pytorch_model", 13) == 0 || has_ending(name, ".bin") ||
        has_ending(name, ".pt"))
        return pickle_refused(path);
    char *folder;
    TDM_TRY(slash == NULL ? tdm_strdup(".", &folder)
                          : tdm_strndup(path, (size_t)(name - path), &folder));
    tdm_status status;
    if (has_ending(name, ".safetensors.index.json")) {
        status = open_several(tensors, folder);
    } else if (has_ending(name, INDEX_ENDING) || has_ending(name, ".ckpt")) {
        status = open_bundle(tensors);
    } else {
        status = add_file(tensors, folder, name);
        if (status == TDM_OK)
            status = list_file(tensors);
    }
    tdm_free(folder);
    return status;
}

tdm_status tdm_pretrained_tensors_open(const char *path, tdm_pretrained_tensors **out)
{
    struct stat info;
    *out = NULL;
    tdm_pretrained_tensors *tensors;
    TDM_TRY(tdm_alloc(1, sizeof *tensors, &tensors));
    tdm_status status;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        TDM_TRY_GOTO(find_checkpoint(path, &tensors->path), fail);
    else
        TDM_TRY_GOTO(tdm_strdup(path, &tensors->path), fail);
    TDM_TRY_GOTO(open_path(tensors), fail);
    *out = tensors;
    return TDM_OK;
fail:
    tdm_pretrained_tensors_close(tensors);
    return status;
}

void tdm_pretrained_tensors_close(tdm_pretrained_tensors *tensors)
{
    if (tensors == NULL)
        return;
    tdm_tensor_bundle_close(tensors->bundle);
    for (int i = 0; i < tensors->file_count; i++) {
        tdm_safetensors_close(tensors->files[i]);
        tdm_free(tensors->file_names[i]);
    }
    tdm_free(tensors->files);
    tdm_free(tensors->file_names);
    json_decref(tensors->weight_map);
    tdm_free(tensors->places);
    tdm_free(tensors->path);
    tdm_free(tensors);
}

const char *tdm_pretrained_tensors_path(const tdm_pretrained_tensors *tensors)
{
    return tensors->path;
}

bool tdm_pretrained_tensors_are_tensorflow(const tdm_pretrained_tensors *tensors)
{
    return tensors->bundle != NULL;
}

int tdm_pretrained_tensors_count(const tdm_pretrained_tensors *tensors)
{
    return tensors->count;
}

const tdm_pretrained_tensor *tdm_pretrained_tensors_get(const tdm_pretrained_tensors *tensors,
                                                        int index)
{
    return &tensors->places[index].tensor;
}

int tdm_pretrained_tensors_find(const tdm_pretrained_tensors *tensors, const char *name)
{
    const place key = {.tensor = {.name = name}};
    const place *found = bsearch(&key, tensors->places, (size_t)tensors->count,
                                 sizeof *tensors->places, compare_places);
    return found == NULL ? -1 : (int)(found - tensors->places);
}

/* ---- elements -------------------------------------------------------------------------------- */

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float float_of_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 0x1f;
    uint32_t mantissa = half & 0x3ff;
    if (exponent == 0x1f)
        return float_of_bits(sign | 0x7f800000 | mantissa << 13);
    if (exponent != 0)
        return float_of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
    float magnitude = (float)mantissa * 0x1p-24f;
    return sign == 0 ? magnitude : -magnitude;
}

static void to_floats(tdm_dtype dtype, const void *from, float *out, int64_t count)
{
    const uint16_t *halves = from;
    const double *doubles = from;
    for (int64_t i = 0; i < count; i++) {
        if (dtype == TDM_F64)
            out[i] = (float)doubles[i];
        else if (dtype == TDM_BF16)
            out[i] = float_of_bits((uint32_t)halves[i] << 16);
        else
            out[i] = float_of_half(halves[i]);
    }
}

static tdm_status read_raw(tdm_pretrained_tensors *tensors, const place *from, int64_t first,
                           void *buffer, int64_t count)
{
    int64_t size = (int64_t)tdm_dtype_size(from->tensor.dtype);
    if (from->file < 0)
        return tdm_tensor_bundle_read(tensors->bundle, from->index, first * size, buffer,
                                      (size_t)(count * size));
    return tdm_safetensors_read(tensors->files[from->file], from->index, first * size, buffer,
                                (size_t)(count * size));
}

tdm_status tdm_pretrained_tensors_read(tdm_pretrained_tensors *tensors, int index, int64_t first,
                                       float *out, int64_t count)
{
    const place *from = &tensors->places[index];
    tdm_dtype dtype = from->tensor.dtype;
    int64_t elements = tdm_shape_elements(&from->tensor.shape);
    TDM_FAIL_IF(dtype != TDM_F32 && dtype != TDM_F64 && dtype != TDM_F16 && dtype != TDM_BF16,
                TDM_E_UNSUPPORTED,
                "%s: tensor \"%s\" has elements of type %s, which are no weights", tensors->path,
                from->tensor.name, tdm_dtype_name(dtype));
    TDM_FAIL_IF(first < 0 || first > elements || count < 0 || count > elements - first, TDM_E_ARG,
                "%s: tensor \"%s\" has %lld elements: %lld from %lld on are asked for",
                tensors->path, from->tensor.name, (long long)elements, (long long)count,
                (long long)first);
    if (dtype == TDM_F32)
        return read_raw(tensors, from, first, out, count);
    double raw[READ_ELEMENTS];
    for (int64_t at = 0, some; at < count; at += some) {
        some = count - at < READ_ELEMENTS ? count - at : READ_ELEMENTS;
        TDM_TRY(read_raw(tensors, from, first + at, raw, some));
        to_floats(dtype, raw, out + at, some);
    }
    return TDM_OK;
}
