#include "core/config_internal.h"

#include "core/file.h"
#include "core/memory.h"

#include <string.h>
#include <sys/stat.h>

#define COMMAND_LINE "command line"

/* ---- mappings -------------------------------------------------------------------------------- */

/* Puts `child` in the place of its key, or behind the others. */
static tdm_status set_child(tdm_config *config, tdm_config_node *mapping, tdm_config_node *child)
{
    child->parent = mapping;
    for (int64_t i = 0; i < mapping->count; i++) {
        if (strcmp(mapping->children[i]->key, child->key) == 0) {
            mapping->children[i] = child;
            return TDM_OK;
        }
    }
    tdm_config_node **children;
    TDM_TRY(tdm_config_reserve(config, (size_t)(mapping->count + 1) * sizeof *children, &children));
    if (mapping->count > 0)
        memcpy(children, mapping->children, (size_t)mapping->count * sizeof *children);
    children[mapping->count++] = child;
    mapping->children = children;
    return TDM_OK;
}

/* Moves into `over` what only `base` has. */
static tdm_status merge(tdm_config *config, tdm_config_node *base, tdm_config_node *over)
{
    if (base->count == 0)
        return TDM_OK;
    tdm_config_node **children;
    TDM_TRY(tdm_config_reserve(config, (size_t)(base->count + over->count) * sizeof *children,
                               &children));
    int64_t count = 0;
    for (int64_t i = 0; i < base->count; i++) {
        tdm_config_node *inherited = base->children[i];
        tdm_config_node *own = tdm_config_find(over, inherited->key);
        if (own == NULL) {
            inherited->parent = over;
            children[count++] = inherited;
        } else if (own->kind == TDM_NODE_MAPPING && inherited->kind == TDM_NODE_MAPPING) {
            TDM_TRY(merge(config, inherited, own));
        }
    }
    if (over->count > 0)
        memcpy(children + count, over->children, (size_t)over->count * sizeof *children);
    over->children = children;
    over->count += count;
    return TDM_OK;
}

/* ---- extends --------------------------------------------------------------------------------- */

/* The files being loaded, each because the next one extends it. */
typedef struct extends_chain {
    const struct extends_chain *extended_by;
    struct stat file;
    bool is_file; /* false: a text in memory that has no file */
} extends_chain;

static bool is_same_file(const extends_chain *a, const extends_chain *b)
{
    return a->is_file && b->is_file && a->file.st_dev == b->file.st_dev &&
           a->file.st_ino == b->file.st_ino;
}

static tdm_status check_chain(const extends_chain *link, const char *path,
                              const tdm_config_node *extends)
{
    int length = 1;
    for (const extends_chain *other = link->extended_by; other != NULL; length++) {
        if (is_same_file(link, other))
            return tdm_config_fail(extends, "%s extends this file, so this file cannot extend it",
                                   path);
        other = other->extended_by;
    }
    if (length > TDM_CONFIG_MAX_FILES)
        return tdm_config_fail(extends, "more than %d files in a row", TDM_CONFIG_MAX_FILES);
    return TDM_OK;
}

/* Takes the root's `extends` out; *extends is NULL where there is none. */
static tdm_status take_extends(tdm_config_node *root, const tdm_config_node **extends)
{
    *extends = NULL;
    for (int64_t i = 0; i < root->count; i++) {
        if (strcmp(root->children[i]->key, "extends") != 0)
            continue;
        *extends = root->children[i];
        root->count--;
        memmove(root->children + i, root->children + i + 1,
                (size_t)(root->count - i) * sizeof *root->children);
        break;
    }
    if (*extends != NULL && (*extends)->kind == TDM_NODE_NULL)
        *extends = NULL;
    if (*extends == NULL)
        return TDM_OK;
    const char *text = tdm_config_text(*extends);
    if (text == NULL || text[0] == '\0')
        return tdm_config_fail(*extends, "expected the path of one recipe");
    return TDM_OK;
}

/* The path that `target` means in the file `name`. */
static tdm_status resolve_path(const char *name, const char *target, char **out)
{
    const char *slash = strrchr(name, '/');
    if (target[0] == '/' || slash == NULL)
        return tdm_strdup(target, out);
    return tdm_format(out, "%.*s/%s", (int)(slash - name), name, target);
}

static tdm_status read_recipe(tdm_config *config, const char *text, size_t bytes, const char *name,
                              const extends_chain *extended_by, tdm_config_node **out);

static tdm_status read_recipe_file(tdm_config *config, const char *path,
                                   const extends_chain *extended_by, tdm_config_node **out)
{
    char *text;
    size_t bytes;
    tdm_status status = tdm_file_get(path, TDM_CONFIG_MAX_BYTES, &text, &bytes);
    if (status == TDM_E_FORMAT)
        return tdm_config_fail_at(path, "longer than %u bytes", TDM_CONFIG_MAX_BYTES);
    TDM_TRY(status);
    status = read_recipe(config, text, bytes, path, extended_by, out);
    tdm_free(text);
    return status;
}

static tdm_status inherit(tdm_config *config, const char *name, const extends_chain *link,
                          const tdm_config_node *extends, tdm_config_node *root)
{
    char *path;
    TDM_TRY(resolve_path(name, extends->text, &path));
    tdm_config_node *base;
    tdm_status status;
    extends_chain next = {.extended_by = link};
    next.is_file = stat(path, &next.file) == 0;
    TDM_TRY_GOTO(check_chain(&next, path, extends), done);
    status = read_recipe_file(config, path, &next, &base);
    if (status != TDM_OK && status != TDM_E_CONFIG && status != TDM_E_NOMEM) {
        char place[TDM_CONFIG_PLACE_BYTES];
        tdm_config_place(extends, 0, NULL, place);
        status = tdm_fail_context(status, "%s", place);
    }
    TDM_TRY_GOTO(status, done);
    status = merge(config, base, root);
done:
    tdm_free(path);
    return status;
}

static tdm_status read_recipe(tdm_config *config, const char *text, size_t bytes, const char *name,
                              const extends_chain *link, tdm_config_node **out)
{
    tdm_config_source source = {.text = text, .bytes = bytes, .name = name, .has_lines = true};
    tdm_config_node *root;
    TDM_TRY(tdm_config_read(config, &source, &root));
    if (root->kind == TDM_NODE_NULL)
        return tdm_config_fail(root, "the recipe is empty");
    if (root->kind != TDM_NODE_MAPPING)
        return tdm_config_fail(root, "a recipe is a mapping such as \"task: ctr\", not %s",
                               root->kind == TDM_NODE_SEQUENCE ? "a list" : "a text");
    const tdm_config_node *extends;
    TDM_TRY(take_extends(root, &extends));
    if (extends != NULL)
        TDM_TRY(inherit(config, name, link, extends, root));
    *out = root;
    return TDM_OK;
}

/* ---- overrides ------------------------------------------------------------------------------- */

static tdm_status fail_override(const char *override)
{
    return tdm_config_fail_at(COMMAND_LINE, "expected key.path=value, not \"%.100s\"", override);
}

static tdm_status add_mapping(tdm_config *config, tdm_config_node *parent, const char *key,
                              tdm_config_node **out)
{
    tdm_config_node *mapping;
    TDM_TRY(tdm_config_reserve(config, sizeof *mapping, &mapping));
    *mapping = (tdm_config_node){.kind = TDM_NODE_MAPPING, .file = COMMAND_LINE, .key = key};
    TDM_TRY(set_child(config, parent, mapping));
    *out = mapping;
    return TDM_OK;
}

static tdm_status apply_override(tdm_config *config, const char *override)
{
    const char *equals = strchr(override, '=');
    if (equals == NULL)
        return fail_override(override);
    tdm_config_node *node = config->root;
    const char *key;
    int depth = 1;
    for (const char *part = override;; depth++) {
        size_t length = strcspn(part, ".=");
        if (length == 0 || length > TDM_CONFIG_MAX_KEY || depth > TDM_CONFIG_MAX_DEPTH)
            return fail_override(override);
        TDM_TRY(tdm_config_copy(config, part, length, &key));
        part += length + 1;
        if (part > equals)
            break;
        tdm_config_node *inner = tdm_config_find(node, key);
        if (inner == NULL || inner->kind != TDM_NODE_MAPPING)
            TDM_TRY(add_mapping(config, node, key, &inner));
        node = inner;
    }
    tdm_config_source source = {.text = equals + 1,
                                .bytes = strlen(equals + 1),
                                .name = COMMAND_LINE,
                                .parent = node,
                                .key = key};
    tdm_config_node *value;
    TDM_TRY(tdm_config_read(config, &source, &value));
    return set_child(config, node, value);
}

static tdm_status finish(tdm_status status, tdm_config *config, const char *const *overrides,
                         int override_count, tdm_config **out)
{
    for (int i = 0; i < override_count && status == TDM_OK; i++)
        status = apply_override(config, overrides[i]);
    if (status == TDM_OK)
        *out = config;
    else
        tdm_config_free(config);
    return status;
}

tdm_status tdm_config_load(const char *path, const char *const *overrides, int override_count,
                           tdm_config **out)
{
    *out = NULL;
    tdm_config *config;
    TDM_TRY(tdm_config_create(&config));
    extends_chain link = {.extended_by = NULL};
    link.is_file = stat(path, &link.file) == 0;
    tdm_status status = read_recipe_file(config, path, &link, &config->root);
    return finish(status, config, overrides, override_count, out);
}

tdm_status tdm_config_parse(const char *text, size_t bytes, const char *name,
                            const char *const *overrides, int override_count, tdm_config **out)
{
    *out = NULL;
    tdm_config *config;
    TDM_TRY(tdm_config_create(&config));
    extends_chain link = {.extended_by = NULL};
    link.is_file = stat(name, &link.file) == 0;
    tdm_status status = read_recipe(config, text, bytes, name, &link, &config->root);
    return finish(status, config, overrides, override_count, out);
}
