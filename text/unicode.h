/* What tokenization asks of Unicode, in each of the named modes. ICU is the authority.
 *
 * These functions are literal and slow; the normaliser's table (text/normalizer.h) is made of them.
 * All are pure and may be called from any thread. Code points are 0 .. 0x10ffff. */
#ifndef TDM_TEXT_UNICODE_H
#define TDM_TEXT_UNICODE_H

#include "tandem/text.h"

#define TDM_MAX_DECOMPOSITION 18
#define TDM_MAX_LOWERCASE     3

/* Of Unicode, as ICU has it: "15.0". */
const char *tdm_unicode_version(void);

/* Deleted by clean_text: control, format and private-use characters, U+0000 and U+FFFD, as the mode
 * has it; never tab, line feed and carriage return. */
bool tdm_unicode_is_control(tdm_unicode_mode mode, uint32_t code_point);

/* White space: a blank after clean_text; words end at it. */
bool tdm_unicode_is_space(tdm_unicode_mode mode, uint32_t code_point);

/* A word of its own: ASCII symbols and category P. */
bool tdm_unicode_is_punctuation(tdm_unicode_mode mode, uint32_t code_point);

/* An ideograph that handle_chinese_chars sets apart. */
bool tdm_unicode_is_chinese(tdm_unicode_mode mode, uint32_t code_point);

/* Category Mn: what strip_accents drops. */
bool tdm_unicode_is_mark(tdm_unicode_mode mode, uint32_t code_point);

/* Canonical combining class, as the mode's NFD has it. */
uint8_t tdm_unicode_combining_class(tdm_unicode_mode mode, uint32_t code_point);

/* The full canonical decomposition; returns how many code points were written to `out`. */
int tdm_unicode_decompose(tdm_unicode_mode mode, uint32_t code_point,
                          uint32_t out[TDM_MAX_DECOMPOSITION]);

/* The full compatibility decomposition (NFKD), by ICU's current data; returns how many code points
 * were written to `out`. */
int tdm_unicode_decompose_compatibly(uint32_t code_point, uint32_t out[TDM_MAX_DECOMPOSITION]);

/* Lower case without context or language; case folding in TDM_UNICODE_CURRENT. Returns how many
 * code points were written to `out`. */
int tdm_unicode_lowercase(tdm_unicode_mode mode, uint32_t code_point,
                          uint32_t out[TDM_MAX_LOWERCASE]);

/* Reads a code point of text[at, bytes), at < bytes, and returns how many bytes it took. A byte
 * that begins no valid UTF-8 (RFC 3629: no overlong forms, no surrogates, nothing truncated) is
 * U+FFFD and takes one byte, and *valid is false. */
int tdm_utf8_read(const char *text, size_t bytes, size_t at, uint32_t *code_point, bool *valid);

/* Writes a code point and returns its 1 .. 4 bytes. */
int tdm_utf8_write(uint32_t code_point, char out[4]);

#endif
