#include "core/config_internal.h"

#include "core/memory.h"

#include <stdio.h>
#include <string.h>

#define CHUNK_BYTES 4096

struct tdm_config_chunk {
    tdm_config_chunk *next;
    size_t used, capacity; /* bytes behind the header */
    _Alignas(max_align_t) unsigned char bytes[];
};

/* ---- the recipe's memory --------------------------------------------------------------------- */

tdm_status tdm_config_create(tdm_config **out)
{
    return tdm_alloc(1, sizeof **out, out);
}

void tdm_config_free(tdm_config *config)
{
    if (config == NULL)
        return;
    for (tdm_config_chunk *chunk = config->chunks, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        tdm_free(chunk);
    }
    tdm_free(config);
}

tdm_status tdm_config_reserve(tdm_config *config, size_t bytes, void *out)
{
    bytes = (bytes + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t);
    tdm_config_chunk *chunk = config->chunks;
    if (chunk == NULL || chunk->capacity - chunk->used < bytes) {
        size_t capacity = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
        TDM_TRY(tdm_alloc(1, sizeof *chunk + capacity, &chunk));
        chunk->capacity = capacity;
        chunk->next = config->chunks;
        config->chunks = chunk;
    }
    void *memory = chunk->bytes + chunk->used;
    chunk->used += bytes;
    memcpy(out, &memory, sizeof memory);
    return TDM_OK;
}

tdm_status tdm_config_copy(tdm_config *config, const char *text, size_t bytes, const char **out)
{
    char *copy;
    TDM_TRY(tdm_config_reserve(config, bytes + 1, &copy));
    memcpy(copy, text, bytes);
    *out = copy;
    return TDM_OK;
}

/* ---- reading nodes --------------------------------------------------------------------------- */

const tdm_config_node *tdm_config_root(const tdm_config *config)
{
    return config->root;
}

tdm_config_node *tdm_config_find(const tdm_config_node *node, const char *key)
{
    for (int64_t i = 0; i < node->count; i++) {
        if (strcmp(node->children[i]->key, key) == 0)
            return node->children[i];
    }
    return NULL;
}

const tdm_config_node *tdm_config_get(const tdm_config_node *node, const char *key)
{
    if (!tdm_config_is_mapping(node))
        return NULL;
    const tdm_config_node *value = tdm_config_find(node, key);
    return value == NULL || value->kind == TDM_NODE_NULL ? NULL : value;
}

const char *tdm_config_text(const tdm_config_node *node)
{
    return node != NULL && node->kind == TDM_NODE_SCALAR ? node->text : NULL;
}

bool tdm_config_is_mapping(const tdm_config_node *node)
{
    return node != NULL && node->kind == TDM_NODE_MAPPING;
}

bool tdm_config_is_sequence(const tdm_config_node *node)
{
    return node != NULL && node->kind == TDM_NODE_SEQUENCE;
}

int64_t tdm_config_count(const tdm_config_node *node)
{
    return tdm_config_is_sequence(node) ? node->count : 0;
}

const tdm_config_node *tdm_config_item(const tdm_config_node *node, int64_t index)
{
    return index >= 0 && index < tdm_config_count(node) ? node->children[index] : NULL;
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void append(char place[TDM_CONFIG_PLACE_BYTES], const char *format, ...) TDM_PRINTF(2, 3);

static void append(char place[TDM_CONFIG_PLACE_BYTES], const char *format, ...)
{
    size_t length = strlen(place);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(place + length, TDM_CONFIG_PLACE_BYTES - length, format, arguments);
    va_end(arguments);
}

static void append_path(const tdm_config_node *node, char place[TDM_CONFIG_PLACE_BYTES])
{
    if (node->parent != NULL)
        append_path(node->parent, place);
    bool first = node->parent == NULL || node->parent->parent == NULL;
    if (node->key != NULL)
        append(place, "%s%s", first ? ": " : ".", node->key);
    else if (node->parent != NULL)
        append(place, "[%lld]", (long long)node->index);
}

void tdm_config_place(const tdm_config_node *node, int line, const char *below,
                      char place[TDM_CONFIG_PLACE_BYTES])
{
    snprintf(place, TDM_CONFIG_PLACE_BYTES, "%s", node->file);
    if (node->line > 0)
        append(place, ":%d", line > 0 ? line : node->line);
    append_path(node, place);
    if (below != NULL)
        append(place, "%s%s", node->parent == NULL ? ": " : ".", below);
}

static tdm_status fail_with(const char *place, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

static tdm_status fail_with(const char *place, const char *format, va_list arguments)
{
    char message[TDM_ERROR_BYTES];
    vsnprintf(message, sizeof message, format, arguments);
    return tdm_fail(TDM_E_CONFIG, "%s: %s", place, message);
}

tdm_status tdm_config_fail_at(const char *place, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tdm_status status = fail_with(place, format, arguments);
    va_end(arguments);
    return status;
}

tdm_status tdm_config_fail(const tdm_config_node *node, const char *format, ...)
{
    char place[TDM_CONFIG_PLACE_BYTES] = "recipe";
    if (node != NULL)
        tdm_config_place(node, 0, NULL, place);
    va_list arguments;
    va_start(arguments, format);
    tdm_status status = fail_with(place, format, arguments);
    va_end(arguments);
    return status;
}
