#include "text/word_piece.h"

#include "core/memory.h"
#include "data/utf8.h"

#include <stdlib.h>
#include <string.h>

/* Two tries: of the tokens that begin a word, from node 0, and of those that continue one, without
 * their "##", from node 1. Nodes are numbered by depth, and the children of one lie side by side,
 * their bytes rising. */
#define ROOT   0u
#define SUFFIX 1u
#define NONE   UINT32_MAX /* no node, no pieces */

/* So deep are tries and ropes at most. */
#define PIECE_BYTES_MAX 4096

/* Pieces are a rope: one piece, or those of two other ropes. So all failure pops take memory linear
 * in the vocabulary. */
#define PIECE 0x80000000u /* the rest is an id; else an index of pairs */

typedef struct rope_pair {
    uint32_t left, right;
} rope_pair;

struct tdm_word_piece {
    int max_word_chars;
    size_t node_count;
    uint32_t *children;   /* [node_count + 1]: those of n are [children[n], children[n + 1]) */
    unsigned char *bytes; /* [node_count]: that lead to the node */
    uint32_t *failure;    /* [node_count]: where matching goes on when pops have been given out */
    uint32_t *pops;       /* [node_count]: a rope */
    size_t children_capacity, bytes_capacity;
    rope_pair *pairs;
    size_t pair_count, pair_capacity;
};

static inline uint32_t follow(const tdm_word_piece *trie, uint32_t node, unsigned char byte)
{
    uint32_t low = trie->children[node], high = trie->children[node + 1];
    while (high - low > 8) {
        uint32_t middle = low + (high - low) / 2;
        if (trie->bytes[middle] <= byte)
            low = middle;
        else
            high = middle;
    }
    for (; low < high; low++) {
        if (trie->bytes[low] == byte)
            return low;
    }
    return NONE;
}

/* ---- tokens in order ------------------------------------------------------------------------- */

/* A token without its "##". */
typedef struct token_item {
    uint64_t key; /* its first eight bytes, the first one on top; behind a shorter one zeros */
    const char *text;
    uint32_t bytes;
    uint32_t id;
} token_item;

static token_item make_item(const char *text, size_t bytes, uint32_t id)
{
    token_item item = {.text = text, .bytes = (uint32_t)bytes, .id = id};
    for (size_t i = 0; i < 8; i++)
        item.key = item.key << 8 | (i < bytes ? (unsigned char)text[i] : 0);
    return item;
}

static int by_text(const void *a, const void *b)
{
    const token_item *left = a, *right = b;
    size_t common = left->bytes < right->bytes ? left->bytes : right->bytes;
    int order = memcmp(left->text, right->text, common);
    return order != 0 ? order : (left->bytes > right->bytes) - (left->bytes < right->bytes);
}

/* By key, a byte at a time from the last one on, and what is equal then by the rest. */
static void sort_items(token_item *items, token_item *other, size_t count)
{
    token_item *from = items, *to = other;
    for (int shift = 0; shift < 64; shift += 8) {
        size_t places[257] = {0};
        for (size_t i = 0; i < count; i++)
            places[(from[i].key >> shift & 255) + 1]++;
        for (int i = 0; i < 256; i++)
            places[i + 1] += places[i];
        for (size_t i = 0; i < count; i++)
            to[places[from[i].key >> shift & 255]++] = from[i];
        token_item *swap = from;
        from = to;
        to = swap;
    }
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && items[end].key == items[i].key;)
            end++;
        if (end - i > 1)
            qsort(items + i, end - i, sizeof *items, by_text);
    }
}

static bool continues_word(const char *token, size_t bytes)
{
    return bytes > TDM_CONTINUATION_BYTES &&
           memcmp(token, TDM_CONTINUATION, TDM_CONTINUATION_BYTES) == 0;
}

/* The items of one of the tries, sorted, behind the `*count` that are there. */
static tdm_status collect_items(const tdm_vocabulary *vocabulary, bool continuations,
                                size_t longest, token_item *items, token_item *other, size_t *count)
{
    size_t first = *count, skip = continuations ? TDM_CONTINUATION_BYTES : 0;
    for (int64_t id = 0; id < vocabulary->size; id++) {
        size_t bytes = vocabulary->bytes[id];
        const char *token = vocabulary->text + vocabulary->begins[id];
        if (bytes == 0 || bytes > longest || continues_word(token, bytes) != continuations)
            continue;
        TDM_FAIL_IF(bytes > PIECE_BYTES_MAX, TDM_E_UNSUPPORTED,
                    "the token of id %lld has %zu bytes: a piece has at most %d", (long long)id,
                    bytes, PIECE_BYTES_MAX);
        items[(*count)++] = make_item(token + skip, bytes - skip, (uint32_t)id);
    }
    sort_items(items + first, other, *count - first);
    return TDM_OK;
}

/* ---- the tries ------------------------------------------------------------------------------- */

/* What only building needs: of each node, the items that begin with what leads to it. */
typedef struct trie_builder {
    tdm_word_piece *trie;
    const token_item *items;
    uint32_t *begins, *ends, *parents;
    uint32_t *tokens; /* the id that ends at the node, or NONE */
    size_t begins_capacity, ends_capacity, parents_capacity, tokens_capacity;
} trie_builder;

static tdm_status add_node(trie_builder *builder, uint32_t parent, unsigned char byte, size_t begin,
                           size_t end)
{
    tdm_word_piece *trie = builder->trie;
    size_t node = trie->node_count, count = node + 1;
    TDM_FAIL_IF(count >= PIECE, TDM_E_UNSUPPORTED, "the vocabulary is too large");
    TDM_TRY(tdm_grow(&builder->begins, &builder->begins_capacity, count, sizeof(uint32_t)));
    TDM_TRY(tdm_grow(&builder->ends, &builder->ends_capacity, count, sizeof(uint32_t)));
    TDM_TRY(tdm_grow(&builder->parents, &builder->parents_capacity, count, sizeof(uint32_t)));
    TDM_TRY(tdm_grow(&builder->tokens, &builder->tokens_capacity, count, sizeof(uint32_t)));
    TDM_TRY(tdm_grow(&trie->children, &trie->children_capacity, count + 1, sizeof(uint32_t)));
    TDM_TRY(tdm_grow(&trie->bytes, &trie->bytes_capacity, count, 1));
    builder->begins[node] = (uint32_t)begin;
    builder->ends[node] = (uint32_t)end;
    builder->parents[node] = parent;
    builder->tokens[node] = NONE;
    trie->bytes[node] = byte;
    trie->node_count = count;
    return TDM_OK;
}

static unsigned char byte_at(const token_item *item, uint32_t depth)
{
    if (depth >= 8)
        return (unsigned char)item->text[depth];
    return (unsigned char)(item->key >> (56 - 8 * depth));
}

/* A node for every byte that an item of `node` goes on with; one that ends here is its token. */
static tdm_status add_children(trie_builder *builder, uint32_t node, uint32_t depth)
{
    size_t end = builder->ends[node];
    for (size_t at = builder->begins[node], next; at < end; at = next) {
        next = at + 1;
        if (builder->items[at].bytes == depth) {
            builder->tokens[node] = builder->items[at].id;
            continue;
        }
        unsigned char byte = byte_at(&builder->items[at], depth);
        while (next < end && byte_at(&builder->items[next], depth) == byte)
            next++;
        TDM_TRY(add_node(builder, node, byte, at, next));
    }
    return TDM_OK;
}

static tdm_status add_nodes(trie_builder *builder, size_t words, size_t all)
{
    tdm_word_piece *trie = builder->trie;
    TDM_TRY(add_node(builder, ROOT, 0, 0, words));
    TDM_TRY(add_node(builder, SUFFIX, 0, words, all));
    size_t level_end = trie->node_count;
    uint32_t depth = 0;
    for (uint32_t node = 0; node < trie->node_count; node++) {
        if (node == level_end) {
            level_end = trie->node_count;
            depth++;
        }
        trie->children[node] = (uint32_t)trie->node_count;
        TDM_TRY(add_children(builder, node, depth));
    }
    trie->children[trie->node_count] = (uint32_t)trie->node_count;
    return TDM_OK;
}

static tdm_status join_ropes(tdm_word_piece *trie, uint32_t left, uint32_t right, uint32_t *rope)
{
    TDM_TRY(
        tdm_grow(&trie->pairs, &trie->pair_capacity, trie->pair_count + 1, sizeof *trie->pairs));
    *rope = (uint32_t)trie->pair_count;
    trie->pairs[trie->pair_count++] = (rope_pair){left, right};
    return TDM_OK;
}

/* Failure link and pops of a node, those of shallower ones being known. */
static tdm_status link_node(const trie_builder *builder, uint32_t node)
{
    tdm_word_piece *trie = builder->trie;
    uint32_t token = builder->tokens[node];
    trie->failure[node] = trie->pops[node] = NONE;
    if (node == ROOT || node == SUFFIX)
        return TDM_OK;
    if (token != NONE) {
        trie->failure[node] = SUFFIX;
        trie->pops[node] = PIECE | token;
        return TDM_OK;
    }
    uint32_t parent = builder->parents[node];
    uint32_t from = trie->failure[parent], next = NONE;
    uint32_t rope = trie->pops[parent];
    while (from != NONE && (next = follow(trie, from, trie->bytes[node])) == NONE) {
        if (trie->failure[from] == NONE)
            return TDM_OK;
        TDM_TRY(join_ropes(trie, rope, trie->pops[from], &rope));
        from = trie->failure[from];
    }
    if (from != NONE) {
        trie->failure[node] = next;
        trie->pops[node] = rope;
    }
    return TDM_OK;
}

static tdm_status build(trie_builder *builder, const tdm_vocabulary *vocabulary)
{
    tdm_word_piece *trie = builder->trie;
    size_t longest = 4 * (size_t)trie->max_word_chars + TDM_CONTINUATION_BYTES;
    size_t words = 0;
    token_item *items, *other = NULL;
    TDM_TRY(tdm_alloc((size_t)vocabulary->size, sizeof *items, &items));
    tdm_status status;
    TDM_TRY_GOTO(tdm_alloc((size_t)vocabulary->size, sizeof *other, &other), done);
    TDM_TRY_GOTO(collect_items(vocabulary, false, longest, items, other, &words), done);
    size_t all = words;
    TDM_TRY_GOTO(collect_items(vocabulary, true, longest, items, other, &all), done);
    builder->items = items;
    TDM_TRY_GOTO(add_nodes(builder, words, all), done);
    TDM_TRY_GOTO(tdm_alloc(trie->node_count, sizeof *trie->failure, &trie->failure), done);
    TDM_TRY_GOTO(tdm_alloc(trie->node_count, sizeof *trie->pops, &trie->pops), done);
    for (uint32_t node = 0; node < trie->node_count; node++)
        TDM_TRY_GOTO(link_node(builder, node), done);
done:
    tdm_free(items);
    tdm_free(other);
    return status;
}

tdm_status tdm_word_piece_create(const tdm_vocabulary *vocabulary, int max_word_chars,
                                 tdm_word_piece **out)
{
    *out = NULL;
    trie_builder builder = {0};
    TDM_TRY(tdm_alloc(1, sizeof *builder.trie, &builder.trie));
    builder.trie->max_word_chars = max_word_chars;
    tdm_status status = build(&builder, vocabulary);
    tdm_free(builder.begins);
    tdm_free(builder.ends);
    tdm_free(builder.parents);
    tdm_free(builder.tokens);
    if (status != TDM_OK)
        tdm_word_piece_destroy(builder.trie);
    else
        *out = builder.trie;
    return status;
}

void tdm_word_piece_destroy(tdm_word_piece *word_piece)
{
    if (word_piece == NULL)
        return;
    tdm_free(word_piece->children);
    tdm_free(word_piece->bytes);
    tdm_free(word_piece->failure);
    tdm_free(word_piece->pops);
    tdm_free(word_piece->pairs);
    tdm_free(word_piece);
}

/* ---- matching -------------------------------------------------------------------------------- */

static uint32_t *write_pieces(const tdm_word_piece *trie, uint32_t rope, uint32_t *ids)
{
    while ((rope & PIECE) == 0) {
        ids = write_pieces(trie, trie->pairs[rope].left, ids);
        rope = trie->pairs[rope].right;
    }
    *ids = rope & ~PIECE;
    return ids + 1;
}

int64_t tdm_word_piece_split(const tdm_word_piece *word_piece, const char *word, size_t bytes,
                             uint32_t *ids)
{
    if (tdm_utf8_is_longer(word, bytes, (size_t)word_piece->max_word_chars))
        return 0;
    uint32_t *end = ids;
    uint32_t node = ROOT;
    for (size_t i = 0; i < bytes; i++) {
        uint32_t next;
        while ((next = follow(word_piece, node, (unsigned char)word[i])) == NONE) {
            if (word_piece->failure[node] == NONE)
                return 0;
            end = write_pieces(word_piece, word_piece->pops[node], end);
            node = word_piece->failure[node];
        }
        node = next;
    }
    while (node != SUFFIX) {
        if (word_piece->failure[node] == NONE)
            return 0;
        end = write_pieces(word_piece, word_piece->pops[node], end);
        node = word_piece->failure[node];
    }
    return end - ids;
}
