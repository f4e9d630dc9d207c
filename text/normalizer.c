#include "text/normalizer.h"

#include "core/memory.h"
#include "text/normalize.h"

#include <stdatomic.h>
#include <string.h>
#include <unicode/unorm2.h>
#include <unicode/ustring.h>

/* A code point is asked about between two letters, a line each. */
#define PROBE_BYTES 7

/* What the normaliser made of a page's probes. */
typedef struct page_probe {
    char text[TDM_RULE_PAGE * PROBE_BYTES];
    uint32_t begins[TDM_RULE_PAGE + 1]; /* of each probe in text */
    tdm_normalized result;
} page_probe;

tdm_status tdm_normalizer_create(const tdm_tokenizer_settings *settings, tdm_normalizer **out)
{
    TDM_TRY(tdm_alloc(1, sizeof **out, out));
    (*out)->settings = *settings;
    return TDM_OK;
}

void tdm_normalizer_destroy(tdm_normalizer *normalizer)
{
    for (int i = 0; normalizer != NULL && i < TDM_RULE_PAGES; i++)
        tdm_free(atomic_load_explicit(&normalizer->pages[i], memory_order_relaxed));
    tdm_free(normalizer);
}

/* ---- what depends on the characters around --------------------------------------------------- */

/* A form leaves it as it is whatever stands beside it, marks apart. */
static bool is_normal(tdm_unicode_form form, uint32_t code_point)
{
    UErrorCode error = U_ZERO_ERROR;
    const UNormalizer2 *normalizer =
        form == TDM_FORM_NFC ? unorm2_getNFCInstance(&error) : unorm2_getNFKCInstance(&error);
    UChar units[2];
    int32_t length = 0;
    UBool too_long = 0;
    U16_APPEND(units, length, 2, (UChar32)code_point, too_long);
    return !U_FAILURE(error) && !too_long &&
           unorm2_quickCheck(normalizer, units, length, &error) == UNORM_YES &&
           unorm2_getCombiningClass(normalizer, (UChar32)code_point) == 0;
}

/* Some mark is left behind that the canonical order may move. */
static bool leaves_mark(tdm_unicode_mode mode, uint32_t code_point)
{
    uint32_t parts[TDM_MAX_DECOMPOSITION];
    int count = tdm_unicode_decompose(mode, code_point, parts);
    for (int i = 0; i < count; i++) {
        if (tdm_unicode_combining_class(mode, parts[i]) != 0 &&
            !tdm_unicode_is_mark(mode, parts[i]))
            return true;
    }
    return false;
}

#define GREEK_CAPITAL_SIGMA 0x3a3

static bool needs_context(const tdm_tokenizer_settings *settings, uint32_t code_point)
{
    if (settings->form != TDM_FORM_NONE && !is_normal(settings->form, code_point))
        return true;
    if (settings->unicode == TDM_UNICODE_GOOGLE && settings->lowercase &&
        code_point == GREEK_CAPITAL_SIGMA)
        return true;
    return settings->strip_accents != 0 && leaves_mark(settings->unicode, code_point);
}

/* ---- pages ----------------------------------------------------------------------------------- */

static bool is_surrogate(uint32_t code_point)
{
    return code_point >= 0xd800 && code_point <= 0xdfff;
}

static void write_probes(page_probe *probe, uint32_t first)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < TDM_RULE_PAGE; i++) {
        probe->begins[i] = at;
        if (is_surrogate(first + i))
            continue;
        probe->text[at++] = 'a';
        at += (uint32_t)tdm_utf8_write(first + i, probe->text + at);
        probe->text[at++] = 'b';
        probe->text[at++] = '\n';
    }
    probe->begins[TDM_RULE_PAGE] = at;
}

static size_t word_bytes(tdm_span word)
{
    return word.end - word.begin;
}

/* The rule that makes these words of "a", the character, "b". */
static tdm_char_rule rule_of_words(const char *text, const tdm_span *words, int64_t count)
{
    tdm_char_rule rule = {.kind = TDM_CHAR_CONTEXT};
    const char *made = text + words[0].begin;
    size_t bytes = 0;
    if (count == 1) {
        rule.kind = TDM_CHAR_WORD;
        made++;
        bytes = word_bytes(words[0]) - 2;
    } else if (word_bytes(words[0]) == 1 && word_bytes(words[count - 1]) == 1) {
        if (count == 2) {
            rule.kind = TDM_CHAR_SPACE;
        } else if (count == 3) {
            rule.kind = TDM_CHAR_APART;
            made = text + words[1].begin;
            bytes = word_bytes(words[1]);
        }
    }
    if (bytes > TDM_CHAR_RULE_BYTES)
        return (tdm_char_rule){.kind = TDM_CHAR_CONTEXT};
    rule.bytes = (uint8_t)bytes;
    memcpy(rule.text, made, bytes);
    return rule;
}

static void read_rules(const tdm_tokenizer_settings *settings, const page_probe *probe,
                       uint32_t first, tdm_char_rule *rules)
{
    const tdm_normalized *result = &probe->result;
    int64_t word = 0;
    for (uint32_t i = 0; i < TDM_RULE_PAGE; i++) {
        int64_t from = word;
        while (word < result->word_count &&
               result->from[result->words[word].begin] < probe->begins[i + 1])
            word++;
        rules[i] = (tdm_char_rule){.kind = TDM_CHAR_CONTEXT};
        if (word == from || needs_context(settings, first + i))
            continue;
        rules[i] = rule_of_words(result->text, result->words + from, word - from);
        if (rules[i].kind == TDM_CHAR_APART && settings->handle_chinese_chars &&
            tdm_unicode_is_chinese(settings->unicode, first + i))
            rules[i].kind = TDM_CHAR_IDEOGRAPH;
    }
}

static tdm_status make_page(const tdm_tokenizer_settings *settings, uint32_t first,
                            tdm_char_rule *rules)
{
    page_probe *probe;
    TDM_TRY(tdm_alloc(1, sizeof *probe, &probe));
    write_probes(probe, first);
    tdm_status status =
        tdm_normalize(settings, probe->text, probe->begins[TDM_RULE_PAGE], &probe->result);
    if (status == TDM_OK)
        read_rules(settings, probe, first, rules);
    tdm_normalized_deinit(&probe->result);
    tdm_free(probe);
    return status;
}

/* Pages of nothing but unified ideographs, which no step changes, need not be asked about: Chinese
 * text comes upon most of them at once. */
static bool is_ideograph_page(const tdm_tokenizer_settings *settings, uint32_t first)
{
    return settings->handle_chinese_chars && first >= 0x4e00 && first < 0x9f00;
}

static void make_ideograph_page(uint32_t first, tdm_char_rule *rules)
{
    for (uint32_t i = 0; i < TDM_RULE_PAGE; i++) {
        rules[i].kind = TDM_CHAR_IDEOGRAPH;
        rules[i].bytes = (uint8_t)tdm_utf8_write(first + i, rules[i].text);
    }
}

tdm_status tdm_normalizer_page(tdm_normalizer *normalizer, uint32_t code_point,
                               const tdm_char_rule **out)
{
    _Atomic(tdm_char_rule *) *page = &normalizer->pages[code_point / TDM_RULE_PAGE];
    *out = atomic_load_explicit(page, memory_order_acquire);
    if (*out != NULL)
        return TDM_OK;
    tdm_char_rule *rules, *before = NULL;
    TDM_TRY(tdm_alloc(TDM_RULE_PAGE, sizeof *rules, &rules));
    uint32_t first = code_point - code_point % TDM_RULE_PAGE;
    tdm_status status = TDM_OK;
    if (is_ideograph_page(&normalizer->settings, first))
        make_ideograph_page(first, rules);
    else
        status = make_page(&normalizer->settings, first, rules);
    if (status != TDM_OK) {
        tdm_free(rules);
        return status;
    }
    if (!atomic_compare_exchange_strong(page, &before, rules)) {
        tdm_free(rules);
        rules = before;
    }
    *out = rules;
    return TDM_OK;
}
