#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/text_data.h"
#include "text/unicode.h"

#include <stdio.h>
#include <string.h>
#include <unicode/uchar.h>
#include <unicode/uscript.h>
#include <unicode/ustring.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define CODE_POINTS 0x110000
#define MODES       3

static const char *const mode_names[MODES] = {"huggingface", "google", "unicode"};

/* ck_assert() for loops over all code points, where it would take seconds. */
static void require(bool condition, uint32_t code_point)
{
    if (!condition)
        ck_abort_msg("U+%04X", code_point);
}

/* ---- what all code points are ---------------------------------------------------------------- */

typedef bool is_class(tdm_unicode_mode mode, uint32_t code_point);
typedef int map(tdm_unicode_mode mode, uint32_t code_point, uint32_t *out);

static uint64_t hash_class(is_class *is, tdm_unicode_mode mode)
{
    static unsigned char answers[CODE_POINTS];
    for (uint32_t i = 0; i < CODE_POINTS; i++)
        answers[i] = is(mode, i);
    return XXH3_64bits(answers, sizeof answers);
}

static uint64_t hash_combining_classes(tdm_unicode_mode mode)
{
    static unsigned char answers[CODE_POINTS];
    for (uint32_t i = 0; i < CODE_POINTS; i++)
        answers[i] = tdm_unicode_combining_class(mode, i);
    return XXH3_64bits(answers, sizeof answers);
}

static uint64_t hash_map(map *apply, tdm_unicode_mode mode)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < CODE_POINTS; i++) {
        uint32_t out[TDM_MAX_DECOMPOSITION + 1] = {i};
        int count = apply(mode, i, out + 1);
        if (count > 1 || out[1] != i)
            hash = XXH3_64bits_withSeed(out, (1 + (size_t)count) * sizeof out[0], hash);
    }
    return hash;
}

static int decompose(tdm_unicode_mode mode, uint32_t code_point, uint32_t *out)
{
    return tdm_unicode_decompose(mode, code_point, out);
}

static int lowercase(tdm_unicode_mode mode, uint32_t code_point, uint32_t *out)
{
    return tdm_unicode_lowercase(mode, code_point, out);
}

static int decompose_compatibly(tdm_unicode_mode mode, uint32_t code_point, uint32_t *out)
{
    (void)mode;
    return tdm_unicode_decompose_compatibly(code_point, out);
}

/* Hashes of the answers that ICU 72 (Unicode 15) gives. Where another ICU changes one, look at what
 * it says now: `huggingface` must stay as it is, whatever ICU's version. */
static const struct {
    const char *what;
    uint64_t hashes[MODES];
} pinned[] = {
    {"control", {0xe5f2aef3ee6030d8, 0x8ac9c7140871dddf, 0x5fb0ce09beca562b}},
    {"space", {0x76151ed503e2742d, 0xa697f9b2e06bd2c8, 0x76151ed503e2742d}},
    {"punctuation", {0xeceaa128f5a227d9, 0x88b68cdbb839802, 0x88b68cdbb839802}},
    {"chinese", {0xb3fcc0369a48786a, 0x6911c3265f6f38af, 0x97c449ec2f3384df}},
    {"mark", {0x2ef785371405493c, 0xba607e88516e3a9f, 0xba607e88516e3a9f}},
    {"combining_class", {0xf314edbc55d3c526, 0x3d9e39a95fd08c60, 0x3d9e39a95fd08c60}},
    {"decompose", {0x81bdb9199054fd9, 0xb57107d5063e61a4, 0xb57107d5063e61a4}},
    {"lowercase", {0xb8ae56a029ef6d2, 0x7ace8b2499437e43, 0x3745535cc8a21c3}},
    {"decompose_compatibly", {0x8986fc304fb0fdae, 0x8986fc304fb0fdae, 0x8986fc304fb0fdae}},
};

static void hash_all(tdm_unicode_mode mode, uint64_t *hashes)
{
    static is_class *const classes[] = {tdm_unicode_is_control, tdm_unicode_is_space,
                                        tdm_unicode_is_punctuation, tdm_unicode_is_chinese,
                                        tdm_unicode_is_mark};
    static map *const maps[] = {decompose, lowercase, decompose_compatibly};
    for (int i = 0; i < 5; i++)
        *hashes++ = hash_class(classes[i], mode);
    *hashes++ = hash_combining_classes(mode);
    for (int i = 0; i < 3; i++)
        *hashes++ = hash_map(maps[i], mode);
}

START_TEST(test_pinned)
{
    char message[4096] = "";
    size_t length = 0;
    for (int mode = 0; mode < MODES; mode++) {
        uint64_t hashes[sizeof pinned / sizeof pinned[0]];
        hash_all((tdm_unicode_mode)mode, hashes);
        for (size_t i = 0; i < sizeof pinned / sizeof pinned[0]; i++)
            if (hashes[i] != pinned[i].hashes[mode])
                length += (size_t)snprintf(message + length, sizeof message - length,
                                           "\n%s, mode %s: %#llx", pinned[i].what, mode_names[mode],
                                           (unsigned long long)hashes[i]);
    }
    UVersionInfo icu;
    u_getVersion(icu);
    ck_assert_msg(length == 0, "with ICU %d some code points are something else:%s", icu[0],
                  message);
}
END_TEST

/* ---- against ICU's other functions and Unicode's files --------------------------------------- */

START_TEST(test_lowercase_is_icus)
{
    for (uint32_t i = 0; i < CODE_POINTS; i++) {
        UChar source[2], lower[8];
        uint32_t expected[8], out[TDM_MAX_LOWERCASE];
        int32_t length = 0, count;
        UErrorCode error = U_ZERO_ERROR;
        if (U_IS_SURROGATE(i))
            continue;
        U16_APPEND_UNSAFE(source, length, (UChar32)i);
        length = u_strToLower(lower, 8, source, length, "", &error);
        u_strToUTF32((UChar32 *)expected, 8, &count, lower, length, &error);
        require(U_SUCCESS(error) && tdm_unicode_lowercase(TDM_UNICODE_GOOGLE, i, out) == count &&
                    memcmp(out, expected, (size_t)count * sizeof out[0]) == 0,
                i);
    }
}
END_TEST

START_TEST(test_chinese_is_ideographs)
{
    for (uint32_t i = 0; i < CODE_POINTS; i++) {
        bool compatibility = ((i >= 0xf900 && i <= 0xfaff) || (i >= 0x2f800 && i <= 0x2fa1f)) &&
                             u_isdefined((UChar32)i);
        bool unified = u_hasBinaryProperty((UChar32)i, UCHAR_UNIFIED_IDEOGRAPH);
        require(tdm_unicode_is_chinese(TDM_UNICODE_CURRENT, i) == (unified || compatibility), i);
    }
}
END_TEST

/* The fields of a line of Unicode's files, "0041 0300; C; …": code points of one field. */
static int read_code_points(const char **line, uint32_t *out)
{
    int count = 0;
    const char *at = *line;
    while (*at != ';') {
        char *end;
        out[count++] = (uint32_t)strtoul(at, &end, 16);
        ck_assert_ptr_ne(at, end);
        at = end + strspn(end, " ");
    }
    *line = at + 1;
    return count;
}

START_TEST(test_case_folding)
{
    size_t bytes, at = 0, line_bytes;
    char *text = tdm_text_data("unicode/CaseFolding.txt.gz", &bytes);
    if (text == NULL)
        return;
    static uint32_t expected[CODE_POINTS][TDM_MAX_LOWERCASE];
    static int counts[CODE_POINTS];
    for (const char *line; (line = tdm_next_line(text, bytes, &at, &line_bytes)) != NULL;) {
        uint32_t source[4];
        if (line_bytes == 0 || line[0] == '#')
            continue;
        ck_assert_int_eq(read_code_points(&line, source), 1);
        line += strspn(line, " ");
        bool full = line[0] == 'C' || line[0] == 'F';
        line += 2;
        line += strspn(line, " ");
        if (full)
            counts[source[0]] = read_code_points(&line, expected[source[0]]);
    }
    tdm_free(text);
    for (uint32_t i = 0; i < CODE_POINTS; i++) {
        uint32_t out[TDM_MAX_LOWERCASE];
        if (counts[i] == 0)
            expected[i][counts[i]++] = i;
        require(tdm_unicode_lowercase(TDM_UNICODE_CURRENT, i, out) == counts[i] &&
                    memcmp(out, expected[i], (size_t)counts[i] * sizeof out[0]) == 0,
                i);
    }
}
END_TEST

/* ---- how the modes differ -------------------------------------------------------------------- */

START_TEST(test_controls)
{
    static const struct {
        uint32_t code_point;
        bool is[MODES];
    } cases[] = {
        {0, {true, true, true}},         {5, {true, true, true}},
        {'\t', {false, false, false}},   {'\n', {false, false, false}},
        {'\r', {false, false, false}},   {0x0b, {true, true, true}},
        {0x85, {true, true, true}},      {0xad, {true, true, true}},
        {0x180e, {true, true, true}},    {0x200b, {true, true, true}},
        {0x8e2, {false, true, true}},    {0xe000, {true, false, true}},
        {0x10fffd, {true, false, true}}, {0xfffd, {true, true, true}},
        {0xfe0f, {false, false, false}}, {0x378, {false, false, false}},
        {'A', {false, false, false}},    {0x1f4a9, {false, false, false}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int mode = 0; mode < MODES; mode++)
            ck_assert_msg(tdm_unicode_is_control((tdm_unicode_mode)mode, cases[i].code_point) ==
                              cases[i].is[mode],
                          "U+%04X, mode %s", cases[i].code_point, mode_names[mode]);
}
END_TEST

START_TEST(test_spaces)
{
    for (int mode = 0; mode < MODES; mode++) {
        static const uint32_t spaces[] = {'\t',   '\n',   0x0b,   0x0c,   '\r',   ' ',
                                          0x85,   0xa0,   0x1680, 0x2000, 0x200a, 0x2028,
                                          0x2029, 0x202f, 0x205f, 0x3000};
        static const uint32_t others[] = {'A', '-', 0, 0x180e, 0x200b, 0xfeff};
        for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
            ck_assert(tdm_unicode_is_space((tdm_unicode_mode)mode, spaces[i]));
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
            ck_assert(!tdm_unicode_is_space((tdm_unicode_mode)mode, others[i]));
        for (uint32_t i = 0x1c; i <= 0x1f; i++)
            ck_assert_int_eq(tdm_unicode_is_space((tdm_unicode_mode)mode, i),
                             mode == TDM_UNICODE_GOOGLE);
    }
}
END_TEST

START_TEST(test_punctuation)
{
    static const struct {
        uint32_t code_point;
        bool is[MODES];
    } cases[] = {
        {'-', {true, true, true}},       {'$', {true, true, true}},
        {'`', {true, true, true}},       {'~', {true, true, true}},
        {'A', {false, false, false}},    {'0', {false, false, false}},
        {' ', {false, false, false}},    {0x7f, {false, false, false}},
        {0xa1, {true, true, true}},      {0x20ac, {false, false, false}},
        {0xff5e, {false, false, false}}, {0x2014, {true, true, true}},
        {0x061d, {false, true, true}},   {0x2e5d, {false, true, true}},
        {0x166d, {true, false, false}},  {0x111c9, {true, false, false}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int mode = 0; mode < MODES; mode++)
            ck_assert_msg(tdm_unicode_is_punctuation((tdm_unicode_mode)mode, cases[i].code_point) ==
                              cases[i].is[mode],
                          "U+%04X, mode %s", cases[i].code_point, mode_names[mode]);
}
END_TEST

START_TEST(test_chinese)
{
    static const struct {
        uint32_t code_point;
        bool is[MODES];
    } cases[] = {
        {0x3400, {true, true, true}},    {0x4e00, {true, true, true}},
        {0x9fff, {true, true, true}},    {0xf900, {true, true, true}},
        {0xfaff, {true, true, false}},   {0x2b81f, {true, true, false}},
        {0x2b820, {false, true, true}},  {0x2b91f, {false, true, true}},
        {0x2b920, {true, true, true}},   {0x2ceaf, {true, true, false}},
        {0x2ceb0, {false, false, true}}, {0x31350, {false, false, true}},
        {0x3005, {false, false, false}}, {0x3007, {false, false, false}},
        {0x3042, {false, false, false}}, {0xac00, {false, false, false}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int mode = 0; mode < MODES; mode++)
            ck_assert_msg(tdm_unicode_is_chinese((tdm_unicode_mode)mode, cases[i].code_point) ==
                              cases[i].is[mode],
                          "U+%04X, mode %s", cases[i].code_point, mode_names[mode]);
}
END_TEST

START_TEST(test_marks)
{
    static const struct {
        uint32_t code_point;
        bool is[MODES];
    } cases[] = {
        {0x301, {true, true, true}},     {0x93f, {false, false, false}},
        {0x94d, {true, true, true}},     {0x898, {false, true, true}},
        {0x1734, {true, false, false}},  {0x1885, {false, true, true}},
        {0xa9bd, {false, true, true}},   {0x111c9, {false, true, true}},
        {0x20dd, {false, false, false}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int mode = 0; mode < MODES; mode++)
            ck_assert_msg(tdm_unicode_is_mark((tdm_unicode_mode)mode, cases[i].code_point) ==
                              cases[i].is[mode],
                          "U+%04X, mode %s", cases[i].code_point, mode_names[mode]);
}
END_TEST

START_TEST(test_decompositions)
{
    uint32_t out[TDM_MAX_DECOMPOSITION];
    ck_assert_int_eq(tdm_unicode_decompose(TDM_UNICODE_HUGGINGFACE, 0x1ed6, out), 3);
    ck_assert(out[0] == 'O' && out[1] == 0x302 && out[2] == 0x303);
    ck_assert_int_eq(tdm_unicode_decompose(TDM_UNICODE_HUGGINGFACE, 0xd55c, out), 3);
    ck_assert(out[0] == 0x1112 && out[1] == 0x1161 && out[2] == 0x11ab);
    /* Of Unicode 13: a decomposition, and a mark's class. */
    ck_assert_int_eq(tdm_unicode_decompose(TDM_UNICODE_CURRENT, 0x11938, out), 2);
    ck_assert_int_eq(tdm_unicode_decompose(TDM_UNICODE_HUGGINGFACE, 0x11938, out), 1);
    ck_assert_uint_eq(out[0], 0x11938);
    ck_assert_uint_eq(tdm_unicode_combining_class(TDM_UNICODE_CURRENT, 0x1abf), 220);
    ck_assert_uint_eq(tdm_unicode_combining_class(TDM_UNICODE_HUGGINGFACE, 0x1abf), 0);
    ck_assert_int_eq(tdm_unicode_decompose_compatibly(0xfdfa, out), 18);
    ck_assert_int_eq(tdm_unicode_decompose_compatibly('a', out), 1);
}
END_TEST

START_TEST(test_lowercase_modes)
{
    uint32_t out[TDM_MAX_LOWERCASE];
    for (int mode = 0; mode < MODES; mode++) {
        ck_assert_int_eq(tdm_unicode_lowercase((tdm_unicode_mode)mode, 0x130, out), 2);
        ck_assert(out[0] == 'i' && out[1] == 0x307);
        ck_assert_int_eq(tdm_unicode_lowercase((tdm_unicode_mode)mode, 0x3a3, out), 1);
        ck_assert_uint_eq(out[0], 0x3c3);
        int sharp_s = tdm_unicode_lowercase((tdm_unicode_mode)mode, 0x1e9e, out);
        ck_assert_int_eq(sharp_s, mode == TDM_UNICODE_CURRENT ? 2 : 1);
        ck_assert_uint_eq(out[0], mode == TDM_UNICODE_CURRENT ? 's' : 0xdf);
    }
    /* Of Unicode 17, at both ends of a range. */
    ck_assert_int_eq(tdm_unicode_lowercase(TDM_UNICODE_HUGGINGFACE, 0x16ea0, out), 1);
    ck_assert_uint_eq(out[0], 0x16ebb);
    ck_assert_int_eq(tdm_unicode_lowercase(TDM_UNICODE_HUGGINGFACE, 0x16eb8, out), 1);
    ck_assert_uint_eq(out[0], 0x16ed3);
    ck_assert_int_eq(tdm_unicode_lowercase(TDM_UNICODE_HUGGINGFACE, 0xa7dc, out), 1);
    ck_assert_uint_eq(out[0], 0x19b);
}
END_TEST

/* ---- UTF-8 ----------------------------------------------------------------------------------- */

START_TEST(test_utf8_round_trip)
{
    for (uint32_t i = 0; i < CODE_POINTS; i++) {
        char bytes[4];
        uint32_t again;
        bool valid, surrogate = i >= 0xd800 && i <= 0xdfff;
        int length = tdm_utf8_write(i, bytes);
        int read = tdm_utf8_read(bytes, (size_t)length, 0, &again, &valid);
        require(valid == !surrogate && read == (surrogate ? 1 : length) &&
                    again == (surrogate ? 0xfffd : i),
                i);
        for (int cut = 1; cut < length; cut++)
            require(tdm_utf8_read(bytes, (size_t)cut, 0, &again, &valid) == 1 && !valid &&
                        again == 0xfffd,
                    i);
    }
}
END_TEST

START_TEST(test_utf8_invalid)
{
    static const char *const cases[] = {"\x80",
                                        "\xbf",
                                        "\xc0\x80",
                                        "\xc1\xbf",
                                        "\xc2\x41",
                                        "\xe0\x80\x80",
                                        "\xe0\x9f\xbf",
                                        "\xed\xa0\x80",
                                        "\xe1\x80\xc0",
                                        "\xf0\x80\x80\x80",
                                        "\xf0\x8f\xbf\xbf",
                                        "\xf4\x90\x80\x80",
                                        "\xf5\x80\x80\x80",
                                        "\xf8\x88\x80\x80\x80",
                                        "\xfe",
                                        "\xff"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t code_point;
        bool valid;
        ck_assert_int_eq(tdm_utf8_read(cases[i], strlen(cases[i]), 0, &code_point, &valid), 1);
        ck_assert_msg(!valid && code_point == 0xfffd, "case %zu", i);
    }
}
END_TEST

TDM_CHECK_MAIN(test_pinned, test_lowercase_is_icus, test_chinese_is_ideographs, test_case_folding,
               test_controls, test_spaces, test_punctuation, test_chinese, test_marks,
               test_decompositions, test_lowercase_modes, test_utf8_round_trip, test_utf8_invalid)
