/* The fast normaliser's table: what each code point becomes, for given settings. It is made of what
 * tdm_normalize() says, a page of code points at a time, when it is first needed. */
#ifndef TDM_TEXT_NORMALIZER_H
#define TDM_TEXT_NORMALIZER_H

#include "text/unicode.h"

#include <stdatomic.h>

typedef enum tdm_char_kind {
    TDM_CHAR_WORD = 0,      /* goes on with a word; no bytes: it is deleted */
    TDM_CHAR_APART = 1,     /* a word of its own */
    TDM_CHAR_IDEOGRAPH = 2, /* likewise, and nothing before it has to do with what comes behind */
    TDM_CHAR_SPACE = 3,     /* ends a word; likewise */
    TDM_CHAR_CONTEXT = 4,   /* depends on what stands around it: tdm_normalize() knows */
} tdm_char_kind;

#define TDM_CHAR_RULE_BYTES 14

typedef struct tdm_char_rule {
    uint8_t kind; /* of tdm_char_kind */
    uint8_t bytes;
    char text[TDM_CHAR_RULE_BYTES]; /* what it becomes */
} tdm_char_rule;

#define TDM_RULE_PAGE  256
#define TDM_RULE_PAGES (0x110000 / TDM_RULE_PAGE)

/* Pages may be made by any thread. */
typedef struct tdm_normalizer {
    tdm_tokenizer_settings settings; /* strip_accents is 0 or 1 */
    _Atomic(tdm_char_rule *) pages[TDM_RULE_PAGES];
} tdm_normalizer;

/* settings->strip_accents is 0 or 1. */
TDM_MUST_CHECK tdm_status tdm_normalizer_create(const tdm_tokenizer_settings *settings,
                                                tdm_normalizer **out);
/* NULL is allowed. */
void tdm_normalizer_destroy(tdm_normalizer *normalizer);

/* The rules of the page that holds a code point, made if need be; a rule's index is
 * code_point % TDM_RULE_PAGE. */
TDM_MUST_CHECK tdm_status tdm_normalizer_page(tdm_normalizer *normalizer, uint32_t code_point,
                                              const tdm_char_rule **out);

#endif
