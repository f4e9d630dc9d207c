/* YAML to nodes, by libyaml's events: its document tree would hide where an alias stands and be
 * built whole before limits could be judged. */
#include "core/config_internal.h"

#include "core/memory.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

/* A mapping or sequence that has begun. */
typedef struct open_node {
    tdm_config_node *node;
    size_t first;    /* where its children begin in builder->pending */
    const char *key; /* read, and waiting for its value */
    int key_line;
} open_node;

typedef struct yaml_builder {
    tdm_config *config;
    const tdm_config_source *source;
    yaml_parser_t parser;
    const char *file;
    open_node open[TDM_CONFIG_MAX_DEPTH];
    int depth;
    int outer_depth;           /* of what will hold the value */
    tdm_config_node **pending; /* nodes whose parent has not ended */
    size_t pending_count, pending_capacity;
    tdm_config_node *root;
} yaml_builder;

static int line_of(const yaml_builder *builder, yaml_mark_t mark)
{
    return builder->source->has_lines ? (int)mark.line + 1 : 0;
}

/* Where the builder is: the key whose value comes next, or what it is in. */
static void current_place(const yaml_builder *builder, int line, char place[TDM_CONFIG_PLACE_BYTES])
{
    if (builder->depth > 0) {
        const open_node *innermost = &builder->open[builder->depth - 1];
        tdm_config_place(innermost->node, line, innermost->key, place);
        return;
    }
    tdm_config_node stand_in = {.file = builder->file,
                                .line = line,
                                .key = builder->source->key,
                                .parent = builder->source->parent};
    tdm_config_place(&stand_in, 0, NULL, place);
}

#define FAIL(builder, line, ...)                                                                   \
    do {                                                                                           \
        char place_[TDM_CONFIG_PLACE_BYTES];                                                       \
        current_place((builder), (line), place_);                                                  \
        return tdm_config_fail_at(place_, __VA_ARGS__);                                            \
    } while (0)

/* ---- syntax errors --------------------------------------------------------------------------- */

static int line_of_byte(const tdm_config_source *source, size_t offset)
{
    int line = 1;
    for (size_t i = 0; i < offset && i < source->bytes; i++)
        line += source->text[i] == '\n';
    return source->has_lines ? line : 0;
}

static tdm_status fail_syntax(const yaml_builder *builder)
{
    const yaml_parser_t *parser = &builder->parser;
    if (parser->error == YAML_MEMORY_ERROR)
        return tdm_fail(TDM_E_NOMEM, "out of memory while reading %s", builder->file);
    if (parser->error == YAML_READER_ERROR)
        FAIL(builder, line_of_byte(builder->source, parser->problem_offset),
             "not YAML in UTF-8: %s (0x%x)", parser->problem, (unsigned)parser->problem_value);
    yaml_mark_t mark = parser->problem_mark;
    FAIL(builder, line_of(builder, mark), "not YAML: %s%s%s, in column %zu", parser->problem,
         parser->context != NULL ? " " : "", parser->context != NULL ? parser->context : "",
         (builder->source->has_lines ? mark.column : mark.index) + 1);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static tdm_status count_node(yaml_builder *builder, int line)
{
    if (builder->config->node_count++ >= TDM_CONFIG_MAX_NODES)
        FAIL(builder, line, "more than %d keys and values", TDM_CONFIG_MAX_NODES);
    return TDM_OK;
}

static tdm_status add_node(yaml_builder *builder, tdm_config_kind kind, yaml_mark_t mark,
                           tdm_config_node **out)
{
    open_node *inside = builder->depth > 0 ? &builder->open[builder->depth - 1] : NULL;
    int line = line_of(builder, mark);
    TDM_TRY(count_node(builder, line));
    if (inside != NULL && inside->node->kind == TDM_NODE_MAPPING && inside->key == NULL)
        FAIL(builder, line, "a key must be a text, not a mapping or a list");
    tdm_config_node *node;
    TDM_TRY(tdm_grow(&builder->pending, &builder->pending_capacity, builder->pending_count + 1,
                     sizeof(tdm_config_node *)));
    TDM_TRY(tdm_config_reserve(builder->config, sizeof *node, &node));
    *node = (tdm_config_node){.kind = kind,
                              .line = line,
                              .key_line = line,
                              .file = builder->file,
                              .key = builder->source->key,
                              .parent = builder->source->parent};
    if (inside == NULL) {
        builder->root = node;
    } else {
        node->parent = inside->node;
        node->key = inside->key;
        if (inside->key != NULL)
            node->key_line = inside->key_line;
        node->index = (int64_t)(builder->pending_count - inside->first);
        inside->key = NULL;
        builder->pending[builder->pending_count++] = node;
    }
    *out = node;
    return TDM_OK;
}

static tdm_status begin(yaml_builder *builder, tdm_config_kind kind, yaml_mark_t mark)
{
    if (builder->outer_depth + builder->depth >= TDM_CONFIG_MAX_DEPTH)
        FAIL(builder, line_of(builder, mark), "nested deeper than %d levels", TDM_CONFIG_MAX_DEPTH);
    tdm_config_node *node;
    TDM_TRY(add_node(builder, kind, mark, &node));
    builder->open[builder->depth++] = (open_node){.node = node, .first = builder->pending_count};
    return TDM_OK;
}

static int compare_keys(const void *left, const void *right)
{
    const tdm_config_node *a = *(tdm_config_node *const *)left;
    const tdm_config_node *b = *(tdm_config_node *const *)right;
    int order = strcmp(a->key, b->key);
    return order != 0 ? order : (a->key_line > b->key_line) - (a->key_line < b->key_line);
}

/* Sorts the children by key. */
static tdm_status check_duplicates(tdm_config_node **children, size_t count)
{
    qsort(children, count, sizeof *children, compare_keys);
    for (size_t i = 1; i < count; i++) {
        const tdm_config_node *first = children[i - 1], *second = children[i];
        if (strcmp(first->key, second->key) != 0)
            continue;
        char place[TDM_CONFIG_PLACE_BYTES];
        tdm_config_place(second, second->key_line, NULL, place);
        if (first->key_line == 0)
            return tdm_config_fail_at(place, "the same key twice");
        return tdm_config_fail_at(place, "the same key twice, first in line %d", first->key_line);
    }
    return TDM_OK;
}

static tdm_status end(yaml_builder *builder)
{
    open_node *ended = &builder->open[builder->depth - 1];
    tdm_config_node *node = ended->node;
    size_t count = builder->pending_count - ended->first;
    builder->depth--;
    builder->pending_count = ended->first;
    if (count == 0)
        return TDM_OK;
    tdm_config_node **children = builder->pending + ended->first;
    TDM_TRY(tdm_config_reserve(builder->config, count * sizeof *children, &node->children));
    memcpy(node->children, children, count * sizeof *children);
    node->count = (int64_t)count;
    return node->kind == TDM_NODE_MAPPING ? check_duplicates(children, count) : TDM_OK;
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool is_null(const char *text)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    for (size_t i = 0; i < sizeof nulls / sizeof nulls[0]; i++) {
        if (strcmp(text, nulls[i]) == 0)
            return true;
    }
    return false;
}

static tdm_status add_key(yaml_builder *builder, open_node *mapping, const char *text,
                          size_t length, int line)
{
    TDM_TRY(count_node(builder, line));
    if (length == 0)
        FAIL(builder, line, "a key must not be empty");
    if (length > TDM_CONFIG_MAX_KEY)
        FAIL(builder, line, "the key \"%.40s…\" is longer than %d bytes", text, TDM_CONFIG_MAX_KEY);
    mapping->key_line = line;
    return tdm_config_copy(builder->config, text, length, &mapping->key);
}

static tdm_status add_scalar(yaml_builder *builder, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    int line = line_of(builder, event->start_mark);
    if (strlen(text) != length)
        FAIL(builder, line, "a text must not hold the character \\0");
    open_node *inside = builder->depth > 0 ? &builder->open[builder->depth - 1] : NULL;
    if (inside != NULL && inside->node->kind == TDM_NODE_MAPPING && inside->key == NULL)
        return add_key(builder, inside, text, length, line);
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    bool null = plain && is_null(text);
    tdm_config_node *node;
    TDM_TRY(add_node(builder, null ? TDM_NODE_NULL : TDM_NODE_SCALAR, event->start_mark, &node));
    if (null)
        return TDM_OK;
    node->quoted = !plain;
    return tdm_config_copy(builder->config, text, length, &node->text);
}

/* What YAML has and recipes do without: it would read texts that begin with * & or ! as something
 * else, and aliases can make a few lines grow to billions of values. */
static tdm_status refuse_extras(const yaml_builder *builder, const yaml_event_t *event,
                                const yaml_char_t *anchor, const yaml_char_t *tag)
{
    int line = line_of(builder, event->start_mark);
    if (anchor != NULL)
        FAIL(builder, line,
             "anchors and aliases are not allowed; quote a text that begins with "
             "& or *: \"%s%s\"",
             event->type == YAML_ALIAS_EVENT ? "*" : "&", (const char *)anchor);
    if (tag != NULL)
        FAIL(builder, line, "tags are not allowed; quote a text that begins with !: \"%s\"",
             (const char *)tag);
    return TDM_OK;
}

static tdm_status handle(yaml_builder *builder, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (builder->root != NULL)
            FAIL(builder, line_of(builder, event->start_mark),
                 "a second YAML document begins here; a recipe is one");
        return TDM_OK;
    case YAML_ALIAS_EVENT:
        return refuse_extras(builder, event, event->data.alias.anchor, NULL);
    case YAML_SCALAR_EVENT:
        TDM_TRY(refuse_extras(builder, event, event->data.scalar.anchor, event->data.scalar.tag));
        return add_scalar(builder, event);
    case YAML_SEQUENCE_START_EVENT:
        TDM_TRY(refuse_extras(builder, event, event->data.sequence_start.anchor,
                              event->data.sequence_start.tag));
        return begin(builder, TDM_NODE_SEQUENCE, event->start_mark);
    case YAML_MAPPING_START_EVENT:
        TDM_TRY(refuse_extras(builder, event, event->data.mapping_start.anchor,
                              event->data.mapping_start.tag));
        return begin(builder, TDM_NODE_MAPPING, event->start_mark);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return end(builder);
    default:
        return TDM_OK;
    }
}

static tdm_status read_events(yaml_builder *builder)
{
    bool done = false;
    while (!done) {
        yaml_event_t event;
        if (!yaml_parser_parse(&builder->parser, &event))
            return fail_syntax(builder);
        done = event.type == YAML_STREAM_END_EVENT;
        tdm_status status = handle(builder, &event);
        yaml_event_delete(&event);
        TDM_TRY(status);
    }
    if (builder->root != NULL)
        return TDM_OK;
    tdm_config_node *nothing;
    return add_node(builder, TDM_NODE_NULL, (yaml_mark_t){0}, &nothing);
}

tdm_status tdm_config_read(tdm_config *config, const tdm_config_source *source,
                           tdm_config_node **out)
{
    yaml_builder builder = {.config = config, .source = source};
    for (const tdm_config_node *node = source->parent; node != NULL; node = node->parent)
        builder.outer_depth++;
    TDM_TRY(tdm_config_copy(config, source->name, strlen(source->name), &builder.file));
    if (source->bytes > TDM_CONFIG_MAX_BYTES)
        FAIL(&builder, 0, "longer than %u bytes", TDM_CONFIG_MAX_BYTES);
    TDM_FAIL_IF(!yaml_parser_initialize(&builder.parser), TDM_E_NOMEM,
                "out of memory while reading %s", builder.file);
    yaml_parser_set_encoding(&builder.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&builder.parser, (const unsigned char *)source->text,
                                 source->bytes);
    tdm_status status = read_events(&builder);
    yaml_parser_delete(&builder.parser);
    tdm_free(builder.pending);
    if (status == TDM_OK)
        *out = builder.root;
    return status;
}
