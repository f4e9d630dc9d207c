#include "data/utf8.h"

#include <stdint.h>
#include <string.h>

/* Behind the ASCII that the text begins with. */
static const unsigned char *skip_ascii(const unsigned char *at, const unsigned char *end)
{
    const uint64_t high = UINT64_C(0x8080808080808080);
    uint64_t words[4];
    while (end - at >= (ptrdiff_t)sizeof words) {
        memcpy(words, at, sizeof words);
        if (((words[0] | words[1] | words[2] | words[3]) & high) != 0)
            break;
        at += sizeof words;
    }
    while (at < end && *at < 0x80)
        at++;
    return at;
}

/* Bytes of the character at `at`, which is not ASCII; 0 where there is none. */
static int character_bytes(const unsigned char *at, const unsigned char *end)
{
    unsigned char lead = *at;
    int length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || end - at < length)
        return 0;
    unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (at[1] < low || at[1] > high)
        return 0;
    for (int i = 2; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    }
    return length;
}

size_t tdm_utf8_error(const char *text, size_t bytes)
{
    const unsigned char *begin = (const unsigned char *)text;
    const unsigned char *end = begin + bytes;
    const unsigned char *at = begin;
    while (at < end) {
        if (*at < 0x80) {
            at = skip_ascii(at, end);
            continue;
        }
        int length = character_bytes(at, end);
        if (length == 0)
            break;
        at += length;
    }
    return (size_t)(at - begin);
}

size_t tdm_utf8_replace(const char *text, size_t bytes, char *to)
{
    static const char replacement[] = "\xef\xbf\xbd";
    char *begin = to;
    for (size_t at = 0; at < bytes; at++) {
        size_t valid = tdm_utf8_error(text + at, bytes - at);
        to = mempcpy(to, text + at, valid);
        at += valid;
        if (at < bytes)
            to = mempcpy(to, replacement, 3);
    }
    return (size_t)(to - begin);
}
