#include "text/unicode.h"

#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/uscript.h>
#include <unicode/ustring.h>

typedef struct code_point_range {
    uint32_t first, last;
} code_point_range;

static bool is_in(uint32_t code_point, const code_point_range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (code_point >= ranges[i].first && code_point <= ranges[i].last)
            return true;
    return false;
}

#define IS_IN(code_point, ranges) is_in(code_point, ranges, sizeof(ranges) / sizeof((ranges)[0]))

/* ---- versions -------------------------------------------------------------------------------- */

/* Hugging Face's tables are of Unicode 8 (categories) and 9 (normalisation); the exceptions below
 * are code points whose category has changed since, or that its table has wrong. */
#define HUGGINGFACE_CATEGORIES 8
#define HUGGINGFACE_NFD        9

static bool is_known(tdm_unicode_mode mode, uint32_t code_point, int version)
{
    if (mode != TDM_UNICODE_HUGGINGFACE)
        return true;
    UVersionInfo age;
    u_charAge((UChar32)code_point, age);
    return age[0] < version || (age[0] == version && age[1] == 0);
}

static uint32_t category_of(tdm_unicode_mode mode, uint32_t code_point)
{
    return is_known(mode, code_point, HUGGINGFACE_CATEGORIES)
               ? U_MASK(u_charType((UChar32)code_point))
               : U_GC_CN_MASK;
}

/* ---- classes --------------------------------------------------------------------------------- */

const char *tdm_unicode_version(void)
{
    return U_UNICODE_VERSION;
}

bool tdm_unicode_is_control(tdm_unicode_mode mode, uint32_t code_point)
{
    if (code_point == '\t' || code_point == '\n' || code_point == '\r')
        return false;
    if (code_point == 0xfffd)
        return true;
    if (u_charType((UChar32)code_point) == U_PRIVATE_USE_CHAR)
        return mode != TDM_UNICODE_GOOGLE;
    return (category_of(mode, code_point) & (U_GC_CC_MASK | U_GC_CF_MASK)) != 0;
}

bool tdm_unicode_is_space(tdm_unicode_mode mode, uint32_t code_point)
{
    /* What Python's str.split() splits at beyond White_Space. */
    if (mode == TDM_UNICODE_GOOGLE && code_point >= 0x1c && code_point <= 0x1f)
        return true;
    return u_isUWhiteSpace((UChar32)code_point);
}

bool tdm_unicode_is_punctuation(tdm_unicode_mode mode, uint32_t code_point)
{
    static const code_point_range ascii[] = {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}};
    if (code_point < 0x80)
        return IS_IN(code_point, ascii);
    if (mode == TDM_UNICODE_HUGGINGFACE && (code_point == 0x166d || code_point == 0x111c9))
        return true;
    return (category_of(mode, code_point) & U_GC_P_MASK) != 0;
}

bool tdm_unicode_is_chinese(tdm_unicode_mode mode, uint32_t code_point)
{
    static const code_point_range google[] = {
        {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},   {0x20000, 0x2a6df},
        {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b820, 0x2ceaf}, {0x2f800, 0x2fa1f}};
    switch (mode) {
    case TDM_UNICODE_HUGGINGFACE:
        /* Its range of extension E begins with 2B920: a typing error that its vocabularies and ids
         * have come to depend on. */
        return IS_IN(code_point, google) && !(code_point >= 0x2b820 && code_point < 0x2b920);
    case TDM_UNICODE_GOOGLE:
        return IS_IN(code_point, google);
    case TDM_UNICODE_CURRENT:
        break;
    }
    return u_charType((UChar32)code_point) == U_OTHER_LETTER &&
           u_getIntPropertyValue((UChar32)code_point, UCHAR_SCRIPT) == USCRIPT_HAN;
}

bool tdm_unicode_is_mark(tdm_unicode_mode mode, uint32_t code_point)
{
    if (mode == TDM_UNICODE_HUGGINGFACE) {
        if (code_point == 0x1734)
            return true;
        if (code_point == 0x1885 || code_point == 0x1886 || code_point == 0xa9bd ||
            code_point == 0x111c9)
            return false;
    }
    return category_of(mode, code_point) == U_GC_MN_MASK;
}

/* ---- normalisation and case ------------------------------------------------------------------ */

uint8_t tdm_unicode_combining_class(tdm_unicode_mode mode, uint32_t code_point)
{
    return is_known(mode, code_point, HUGGINGFACE_NFD) ? u_getCombiningClass((UChar32)code_point)
                                                       : 0;
}

/* The code points of UTF-16, or `code_point` itself where there are none. `capacity` is enough for
 * whatever ICU's data holds. */
static int code_points_of(const UChar *units, int32_t length, uint32_t code_point, uint32_t *out,
                          int32_t capacity)
{
    UErrorCode error = U_ZERO_ERROR;
    int32_t count = 0;
    if (length > 0)
        u_strToUTF32((UChar32 *)out, capacity, &count, units, length, &error);
    if (U_SUCCESS(error) && count > 0)
        return (int)count;
    out[0] = code_point;
    return 1;
}

static int decompose(const UNormalizer2 *form, uint32_t code_point, uint32_t *out)
{
    UErrorCode error = U_ZERO_ERROR;
    UChar units[2 * TDM_MAX_DECOMPOSITION];
    int32_t length = unorm2_getDecomposition(form, (UChar32)code_point, units,
                                             (int32_t)(sizeof units / sizeof units[0]), &error);
    return code_points_of(units, length, code_point, out, TDM_MAX_DECOMPOSITION);
}

int tdm_unicode_decompose(tdm_unicode_mode mode, uint32_t code_point,
                          uint32_t out[TDM_MAX_DECOMPOSITION])
{
    UErrorCode error = U_ZERO_ERROR;
    out[0] = code_point;
    if (!is_known(mode, code_point, HUGGINGFACE_NFD))
        return 1;
    return decompose(unorm2_getNFDInstance(&error), code_point, out);
}

int tdm_unicode_decompose_compatibly(uint32_t code_point, uint32_t out[TDM_MAX_DECOMPOSITION])
{
    UErrorCode error = U_ZERO_ERROR;
    return decompose(unorm2_getNFKDInstance(&error), code_point, out);
}

/* Lower case that came into Unicode behind the version that ICU 72 has: Hugging Face lowercases by
 * Unicode 17. */
static uint32_t newer_lowercase(uint32_t code_point)
{
    static const struct {
        uint32_t first, last, lower;
    } pairs[] = {{0x1c89, 0x1c89, 0x1c8a},   {0xa7cb, 0xa7cb, 0x0264}, {0xa7cc, 0xa7cc, 0xa7cd},
                 {0xa7ce, 0xa7ce, 0xa7cf},   {0xa7d2, 0xa7d2, 0xa7d3}, {0xa7d4, 0xa7d4, 0xa7d5},
                 {0xa7da, 0xa7da, 0xa7db},   {0xa7dc, 0xa7dc, 0x019b}, {0x10d50, 0x10d65, 0x10d70},
                 {0x16ea0, 0x16eb8, 0x16ebb}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (code_point >= pairs[i].first && code_point <= pairs[i].last)
            return pairs[i].lower + (code_point - pairs[i].first);
    return code_point;
}

static int fold(uint32_t code_point, uint32_t out[TDM_MAX_LOWERCASE])
{
    UErrorCode error = U_ZERO_ERROR;
    UChar source[2], folded[2 * TDM_MAX_LOWERCASE];
    int32_t length = 0;
    U16_APPEND_UNSAFE(source, length, (UChar32)code_point);
    length = u_strFoldCase(folded, (int32_t)(sizeof folded / sizeof folded[0]), source, length,
                           U_FOLD_CASE_DEFAULT, &error);
    return code_points_of(folded, length, code_point, out, TDM_MAX_LOWERCASE);
}

int tdm_unicode_lowercase(tdm_unicode_mode mode, uint32_t code_point,
                          uint32_t out[TDM_MAX_LOWERCASE])
{
    if (mode == TDM_UNICODE_CURRENT)
        return fold(code_point, out);
    /* The one code point with a longer lower case that holds in every language. */
    if (code_point == 0x130) {
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    out[0] = (uint32_t)u_tolower((UChar32)code_point);
    if (mode == TDM_UNICODE_HUGGINGFACE && out[0] == code_point)
        out[0] = newer_lowercase(code_point);
    return 1;
}

/* ---- UTF-8 ----------------------------------------------------------------------------------- */

static bool is_continuation(const char *text, size_t bytes, size_t at)
{
    return at < bytes && ((unsigned char)text[at] & 0xc0) == 0x80;
}

int tdm_utf8_read(const char *text, size_t bytes, size_t at, uint32_t *code_point, bool *valid)
{
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char lead = (unsigned char)text[at];
    int length = lead < 0x80 ? 1 : lead < 0xc0 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    uint32_t value = lead;
    *valid = lead < 0xf8 && length > 0;
    if (length > 1) {
        value = lead & (0x7fU >> length);
        for (size_t i = 1; i < (size_t)length && *valid; i++) {
            *valid = is_continuation(text, bytes, at + i);
            if (*valid)
                value = value << 6 | ((unsigned char)text[at + i] & 0x3f);
        }
    }
    *valid = *valid && value >= smallest[length] && value <= 0x10ffff && !U_IS_SURROGATE(value);
    *code_point = *valid ? value : 0xfffd;
    return *valid ? length : 1;
}

int tdm_utf8_write(uint32_t code_point, char out[4])
{
    if (code_point < 0x80) {
        out[0] = (char)code_point;
        return 1;
    }
    int length = code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
    for (int i = length - 1; i > 0; i--, code_point >>= 6)
        out[i] = (char)(0x80 | (code_point & 0x3f));
    out[0] = (char)((0xf00 >> length & 0xff) | code_point);
    return length;
}
