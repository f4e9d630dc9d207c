#include "text/word_piece.h"

#include "core/memory.h"

#include <string.h>

/* Nodes of the trie of all tokens. Tokens that continue a word lie under the node of "##", where
 * matching goes on behind a piece. */
#define NONE UINT32_MAX /* no node, no pieces */
#define ROOT 0u

/* An edge of the trie, in a hash table; child 0 is an empty slot, for the root is no child. */
typedef struct edge {
    uint32_t key; /* node << 8 | byte */
    uint32_t child;
} edge;

/* Pieces are a rope: one piece, or those of two other ropes. So all failure pops take memory linear
 * in the vocabulary. */
#define PIECE 0x80000000u /* the rest is an id; else an index of pairs */

typedef struct rope_pair {
    uint32_t left, right;
} rope_pair;

struct tdm_word_piece {
    int max_word_chars;
    edge *edges; /* [edge_count], a power of two */
    int edge_shift;
    size_t edge_count, used_edges;
    uint32_t suffix;   /* the node of "##" */
    uint32_t *failure; /* [nodes]: where matching goes on when pops have been given out */
    uint32_t *pops;    /* [nodes]: a rope */
    rope_pair *pairs;
    size_t node_count, failure_capacity, pops_capacity;
    size_t pair_count, pair_capacity;
};

/* ---- edges ----------------------------------------------------------------------------------- */

static size_t first_slot(const tdm_word_piece *trie, uint32_t key)
{
    return (size_t)((uint64_t)key * 0x9E3779B97F4A7C15u >> trie->edge_shift);
}

static inline uint32_t follow(const tdm_word_piece *trie, uint32_t node, unsigned char byte)
{
    uint32_t key = node << 8 | byte;
    for (size_t slot = first_slot(trie, key);; slot = (slot + 1) & (trie->edge_count - 1)) {
        if (trie->edges[slot].child == 0)
            return NONE;
        if (trie->edges[slot].key == key)
            return trie->edges[slot].child;
    }
}

static void put_edge(tdm_word_piece *trie, edge new_edge)
{
    size_t slot = first_slot(trie, new_edge.key);
    while (trie->edges[slot].child != 0)
        slot = (slot + 1) & (trie->edge_count - 1);
    trie->edges[slot] = new_edge;
}

static tdm_status reserve_edges(tdm_word_piece *trie, size_t count)
{
    if (2 * count <= trie->edge_count)
        return TDM_OK;
    edge *old = trie->edges;
    size_t old_count = trie->edge_count;
    size_t new_count = old_count == 0 ? 1024 : old_count;
    while (new_count < 2 * count)
        new_count *= 2;
    TDM_TRY(tdm_alloc(new_count, sizeof *trie->edges, &trie->edges));
    trie->edge_count = new_count;
    trie->edge_shift = 64 - __builtin_ctzll(new_count);
    for (size_t i = 0; i < old_count; i++) {
        if (old[i].child != 0)
            put_edge(trie, old[i]);
    }
    tdm_free(old);
    return TDM_OK;
}

/* ---- building -------------------------------------------------------------------------------- */

/* What only building needs, a node each. */
typedef struct trie_builder {
    tdm_word_piece *trie;
    uint32_t *parents;
    uint32_t *depths; /* of nodes under "##": from there */
    unsigned char *bytes;
    uint32_t *tokens; /* the id whose token ends here, or NONE */
    size_t parents_capacity, depths_capacity, bytes_capacity, tokens_capacity;
    uint32_t deepest;
} trie_builder;

static tdm_status add_node(trie_builder *builder, uint32_t parent, unsigned char byte,
                           uint32_t depth, uint32_t *node)
{
    tdm_word_piece *trie = builder->trie;
    size_t count = trie->node_count + 1;
    TDM_FAIL_IF(count >= (size_t)1 << 24, TDM_E_UNSUPPORTED,
                "the vocabulary is too large: its tokens make more than 16 million prefixes");
    TDM_TRY(tdm_grow(&builder->parents, &builder->parents_capacity, count, sizeof(uint32_t)));
    TDM_TRY(tdm_grow(&builder->depths, &builder->depths_capacity, count, sizeof(uint32_t)));
    TDM_TRY(tdm_grow(&builder->bytes, &builder->bytes_capacity, count, 1));
    TDM_TRY(tdm_grow(&builder->tokens, &builder->tokens_capacity, count, sizeof(uint32_t)));
    *node = (uint32_t)trie->node_count++;
    builder->parents[*node] = parent;
    builder->depths[*node] = depth;
    builder->bytes[*node] = byte;
    builder->tokens[*node] = NONE;
    if (depth > builder->deepest)
        builder->deepest = depth;
    if (*node == ROOT)
        return TDM_OK;
    TDM_TRY(reserve_edges(trie, ++trie->used_edges));
    put_edge(trie, (edge){parent << 8 | byte, *node});
    return TDM_OK;
}

static tdm_status add_token(trie_builder *builder, const char *token, size_t bytes, uint32_t *node)
{
    tdm_word_piece *trie = builder->trie;
    *node = ROOT;
    for (size_t i = 0; i < bytes; i++) {
        unsigned char byte = (unsigned char)token[i];
        uint32_t child = follow(trie, *node, byte);
        if (child == NONE) {
            uint32_t depth = *node == trie->suffix ? 1 : builder->depths[*node] + 1;
            TDM_TRY(add_node(builder, *node, byte, depth, &child));
        }
        *node = child;
    }
    return TDM_OK;
}

static tdm_status add_tokens(trie_builder *builder, const tdm_vocabulary *vocabulary)
{
    tdm_word_piece *trie = builder->trie;
    uint32_t node;
    trie->suffix = NONE;
    TDM_TRY(reserve_edges(trie, vocabulary->text_bytes / 2));
    TDM_TRY(add_node(builder, ROOT, 0, 0, &node));
    TDM_TRY(add_token(builder, TDM_CONTINUATION, TDM_CONTINUATION_BYTES, &trie->suffix));
    size_t longest = 4 * (size_t)trie->max_word_chars + TDM_CONTINUATION_BYTES;
    for (int64_t id = 0; id < vocabulary->size; id++) {
        size_t bytes = vocabulary->bytes[id];
        const char *token = vocabulary->text + vocabulary->begins[id];
        if (bytes == 0 || bytes > longest)
            continue;
        TDM_TRY(add_token(builder, token, bytes, &node));
        builder->tokens[node] = (uint32_t)id;
    }
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

/* Failure link and pops of a node, those of shorter ones being known. */
static tdm_status link_node(const trie_builder *builder, uint32_t node)
{
    tdm_word_piece *trie = builder->trie;
    trie->failure[node] = trie->pops[node] = NONE;
    if (node == ROOT || node == trie->suffix)
        return TDM_OK;
    if (builder->tokens[node] != NONE) {
        trie->failure[node] = trie->suffix;
        trie->pops[node] = PIECE | builder->tokens[node];
        return TDM_OK;
    }
    uint32_t parent = builder->parents[node];
    uint32_t from = trie->failure[parent], next = NONE;
    uint32_t rope = trie->pops[parent];
    while (from != NONE && (next = follow(trie, from, builder->bytes[node])) == NONE) {
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

/* Links all nodes, the shallow ones first. */
static tdm_status link_nodes(const trie_builder *builder)
{
    tdm_word_piece *trie = builder->trie;
    size_t count = trie->node_count;
    uint32_t *starts, *order = NULL;
    TDM_TRY(tdm_alloc((size_t)builder->deepest + 2, sizeof *starts, &starts));
    tdm_status status;
    TDM_TRY_GOTO(tdm_alloc(count, sizeof *order, &order), done);
    TDM_TRY_GOTO(tdm_alloc(count, sizeof *trie->failure, &trie->failure), done);
    TDM_TRY_GOTO(tdm_alloc(count, sizeof *trie->pops, &trie->pops), done);
    for (size_t i = 0; i < count; i++)
        starts[builder->depths[i] + 1]++;
    for (size_t i = 1; i <= (size_t)builder->deepest + 1; i++)
        starts[i] += starts[i - 1];
    for (size_t i = 0; i < count; i++)
        order[starts[builder->depths[i]]++] = (uint32_t)i;
    for (size_t i = 0; i < count; i++)
        TDM_TRY_GOTO(link_node(builder, order[i]), done);
done:
    tdm_free(order);
    tdm_free(starts);
    return status;
}

tdm_status tdm_word_piece_create(const tdm_vocabulary *vocabulary, int max_word_chars,
                                 tdm_word_piece **out)
{
    *out = NULL;
    trie_builder builder = {0};
    TDM_TRY(tdm_alloc(1, sizeof *builder.trie, &builder.trie));
    builder.trie->max_word_chars = max_word_chars;
    tdm_status status;
    TDM_TRY_GOTO(add_tokens(&builder, vocabulary), done);
    TDM_TRY_GOTO(link_nodes(&builder), done);
    *out = builder.trie;
done:
    tdm_free(builder.parents);
    tdm_free(builder.depths);
    tdm_free(builder.bytes);
    tdm_free(builder.tokens);
    if (status != TDM_OK)
        tdm_word_piece_destroy(builder.trie);
    return status;
}

void tdm_word_piece_destroy(tdm_word_piece *word_piece)
{
    if (word_piece == NULL)
        return;
    tdm_free(word_piece->edges);
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

static bool is_too_long(const tdm_word_piece *trie, const char *word, size_t bytes)
{
    if (bytes <= (size_t)trie->max_word_chars)
        return false;
    size_t chars = 0;
    for (size_t i = 0; i < bytes; i++)
        chars += ((unsigned char)word[i] & 0xc0) != 0x80;
    return chars > (size_t)trie->max_word_chars;
}

int64_t tdm_word_piece_split(const tdm_word_piece *word_piece, const char *word, size_t bytes,
                             uint32_t *ids)
{
    if (is_too_long(word_piece, word, bytes))
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
    while (node != word_piece->suffix) {
        if (word_piece->failure[node] == NONE)
            return 0;
        end = write_pieces(word_piece, word_piece->pops[node], end);
        node = word_piece->failure[node];
    }
    return end - ids;
}
