/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef TDM_DATA_UTF8_H
#define TDM_DATA_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The offset of the first byte that begins no valid character; `bytes` where all is valid. */
size_t tdm_utf8_error(const char *text, size_t bytes);

/* Copies the text with U+FFFD for each byte that begins no valid character, and returns how many
 * bytes that takes; `to` has room for 3 * bytes. */
size_t tdm_utf8_replace(const char *text, size_t bytes, char *to);

static inline bool tdm_utf8_valid(const char *text, size_t bytes)
{
    return tdm_utf8_error(text, bytes) == bytes;
}

/* Bytes of the byte order mark that a text begins with: 0 or 3. */
static inline size_t tdm_byte_order_mark(const char *text, size_t bytes)
{
    return bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

/* Whether valid UTF-8 has more than `most` characters. */
static inline bool tdm_utf8_is_longer(const char *text, size_t bytes, size_t most)
{
    if (bytes <= most)
        return false;
    size_t chars = 0;
    for (size_t i = 0; i < bytes; i++)
        chars += ((unsigned char)text[i] & 0xc0) != 0x80;
    return chars > most;
}

#endif
