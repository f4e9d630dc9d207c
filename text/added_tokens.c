#include "text/added_tokens.h"

#include "core/memory.h"
#include "text/normalize.h"

#include <string.h>
#include <unicode/uchar.h>

#define NONE (-1)

/* A byte of the tokens; the bytes that may follow it are its child and that one's siblings. */
typedef struct node {
    int32_t child, sibling;
    int32_t token; /* that ends here; NONE */
    unsigned char byte;
} node;

struct tdm_added_matcher {
    const tdm_added_token *tokens;
    int32_t first[256]; /* nodes of first bytes */
    int only_byte;      /* all tokens begin with it; NONE */
    node *nodes;
    size_t node_count, node_capacity;
};

/* ---- the trie -------------------------------------------------------------------------------- */

static tdm_status new_node(tdm_added_matcher *matcher, unsigned char byte, int32_t sibling,
                           int32_t *out)
{
    TDM_TRY(tdm_grow(&matcher->nodes, &matcher->node_capacity, matcher->node_count + 1,
                     sizeof *matcher->nodes));
    *out = (int32_t)matcher->node_count;
    matcher->nodes[matcher->node_count++] =
        (node){.child = NONE, .sibling = sibling, .token = NONE, .byte = byte};
    return TDM_OK;
}

static int32_t find_child(const tdm_added_matcher *matcher, int32_t parent, unsigned char byte)
{
    int32_t child = matcher->nodes[parent].child;
    while (child != NONE && matcher->nodes[child].byte != byte)
        child = matcher->nodes[child].sibling;
    return child;
}

/* Of tokens with the same text the first one counts. */
static tdm_status add_pattern(tdm_added_matcher *matcher, const char *pattern, size_t bytes,
                              int32_t token)
{
    if (bytes == 0)
        return TDM_OK;
    unsigned char byte = (unsigned char)pattern[0];
    if (matcher->first[byte] == NONE)
        TDM_TRY(new_node(matcher, byte, NONE, &matcher->first[byte]));
    int32_t at = matcher->first[byte];
    for (size_t i = 1; i < bytes; i++) {
        byte = (unsigned char)pattern[i];
        int32_t child = find_child(matcher, at, byte);
        if (child == NONE) {
            TDM_TRY(new_node(matcher, byte, matcher->nodes[at].child, &child));
            matcher->nodes[at].child = child;
        }
        at = child;
    }
    if (matcher->nodes[at].token == NONE)
        matcher->nodes[at].token = token;
    return TDM_OK;
}

static tdm_status add_token(tdm_added_matcher *matcher, int32_t index,
                            const tdm_tokenizer_settings *settings)
{
    const tdm_added_token *token = &matcher->tokens[index];
    if (!token->normalized)
        return add_pattern(matcher, token->content, token->bytes, index);
    tdm_normalized normalized = {0};
    tdm_status status = tdm_normalize(settings, token->content, token->bytes, &normalized);
    if (status == TDM_OK)
        status = add_pattern(matcher, normalized.text, normalized.bytes, index);
    tdm_normalized_deinit(&normalized);
    return status;
}

static void find_only_byte(tdm_added_matcher *matcher)
{
    int count = 0;
    for (int byte = 0; byte < 256; byte++) {
        if (matcher->first[byte] != NONE) {
            matcher->only_byte = byte;
            count++;
        }
    }
    if (count > 1)
        matcher->only_byte = NONE;
}

static tdm_status fill(tdm_added_matcher *matcher, int64_t count, bool normalized,
                       const tdm_tokenizer_settings *settings)
{
    for (int special = 1; special >= 0; special--) {
        for (int64_t i = 0; i < count; i++) {
            const tdm_added_token *token = &matcher->tokens[i];
            if (token->normalized == normalized && token->special == (special != 0))
                TDM_TRY(add_token(matcher, (int32_t)i, settings));
        }
    }
    find_only_byte(matcher);
    return TDM_OK;
}

tdm_status tdm_added_matcher_create(const tdm_added_token *tokens, int64_t count, bool normalized,
                                    const tdm_tokenizer_settings *settings, tdm_added_matcher **out)
{
    tdm_added_matcher *matcher;
    *out = NULL;
    TDM_TRY(tdm_alloc(1, sizeof *matcher, &matcher));
    matcher->tokens = tokens;
    for (int byte = 0; byte < 256; byte++)
        matcher->first[byte] = NONE;
    tdm_status status = fill(matcher, count, normalized, settings);
    if (status == TDM_OK && matcher->node_count > 0) {
        *out = matcher;
        return TDM_OK;
    }
    tdm_added_matcher_destroy(matcher);
    return status;
}

void tdm_added_matcher_destroy(tdm_added_matcher *matcher)
{
    if (matcher == NULL)
        return;
    tdm_free(matcher->nodes);
    tdm_free(matcher);
}

/* ---- matching -------------------------------------------------------------------------------- */

/* The first byte at or behind `at` that a token begins with; the end where there is none. */
static size_t find_first_byte(const tdm_added_search *search, size_t at)
{
    const tdm_added_matcher *matcher = search->matcher;
    if (at >= search->bytes)
        return search->bytes;
    if (matcher->only_byte != NONE) {
        const char *found = memchr(search->text + at, matcher->only_byte, search->bytes - at);
        return found != NULL ? (size_t)(found - search->text) : search->bytes;
    }
    while (at < search->bytes && matcher->first[(unsigned char)search->text[at]] == NONE)
        at++;
    return at;
}

/* The longest token at `begin`, or NONE. */
static int32_t longest_match(const tdm_added_search *search, size_t begin, size_t *end)
{
    const tdm_added_matcher *matcher = search->matcher;
    int32_t at = matcher->first[(unsigned char)search->text[begin]];
    int32_t token = NONE;
    for (size_t i = begin; at != NONE;) {
        i++;
        if (matcher->nodes[at].token != NONE) {
            token = matcher->nodes[at].token;
            *end = i;
        }
        at = i < search->bytes ? find_child(matcher, at, (unsigned char)search->text[i]) : NONE;
    }
    return token;
}

/* ---- what stands beside a match -------------------------------------------------------------- */

/* The code point that ends at `end` > 0, and where it begins. */
static uint32_t code_point_before(const tdm_added_search *search, size_t end, size_t *begin)
{
    uint32_t code_point;
    bool valid;
    for (size_t back = 1; back <= 4 && back <= end; back++) {
        int used = tdm_utf8_read(search->text, end, end - back, &code_point, &valid);
        if (valid && (size_t)used == back) {
            *begin = end - back;
            return code_point;
        }
    }
    *begin = end - 1;
    return 0xfffd;
}

/* \w of regular expressions by Unicode's rules (UTS 18, annex C). */
static bool is_word_character(uint32_t code_point)
{
    UChar32 c = (UChar32)code_point;
    return u_isUAlphabetic(c) ||
           (U_GET_GC_MASK(c) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0 ||
           u_hasBinaryProperty(c, UCHAR_JOIN_CONTROL);
}

static bool is_single_word(const tdm_added_search *search, size_t begin, size_t end)
{
    size_t before;
    bool valid;
    uint32_t code_point;
    if (begin > 0 && is_word_character(code_point_before(search, begin, &before)))
        return false;
    if (end == search->bytes)
        return true;
    tdm_utf8_read(search->text, search->bytes, end, &code_point, &valid);
    return !is_word_character(code_point);
}

static size_t skip_space_left(const tdm_added_search *search, size_t begin)
{
    size_t before;
    while (begin > search->taken &&
           u_isUWhiteSpace((UChar32)code_point_before(search, begin, &before)))
        begin = before;
    return begin;
}

static size_t skip_space_right(const tdm_added_search *search, size_t end)
{
    uint32_t code_point;
    bool valid;
    while (end < search->bytes) {
        int used = tdm_utf8_read(search->text, search->bytes, end, &code_point, &valid);
        if (!u_isUWhiteSpace((UChar32)code_point))
            break;
        end += (size_t)used;
    }
    return end;
}

tdm_status tdm_added_search_next(tdm_added_search *search, tdm_added_match *match, bool *found)
{
    *found = false;
    for (;;) {
        size_t begin = find_first_byte(search, search->at), end;
        if (begin >= search->bytes)
            return TDM_OK;
        int32_t index = longest_match(search, begin, &end);
        search->at = index == NONE ? begin + 1 : end;
        if (index == NONE)
            continue;
        const tdm_added_token *token = &search->matcher->tokens[index];
        if (token->special && search->specials == TDM_SPECIALS_PLAIN)
            continue;
        if (token->single_word && !is_single_word(search, begin, end))
            continue;
        TDM_FAIL_IF(token->special && search->specials == TDM_SPECIALS_ERROR, TDM_E_DATA,
                    "the text holds the special token \"%s\" at byte %zu", token->content, begin);
        if (token->lstrip)
            begin = skip_space_left(search, begin);
        if (token->rstrip)
            end = skip_space_right(search, end);
        search->at = search->taken = end;
        *match = (tdm_added_match){.begin = begin, .end = end, .token = token};
        *found = true;
        return TDM_OK;
    }
}
