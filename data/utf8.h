/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef TDM_DATA_UTF8_H
#define TDM_DATA_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The offset of the first byte that begins no valid character; `bytes` where all is valid. */
size_t tdm_utf8_error(const char *text, size_t bytes);

static inline bool tdm_utf8_valid(const char *text, size_t bytes)
{
    return tdm_utf8_error(text, bytes) == bytes;
}

#endif
