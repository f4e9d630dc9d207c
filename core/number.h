/* Numbers in text that users wrote. */
#ifndef TDM_CORE_NUMBER_H
#define TDM_CORE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

#define TDM_MAX_NUMBER_BYTES 127

/* Parses [+-] digits [. digits] [e [+-] digits], all of the text, at most
 * TDM_MAX_NUMBER_BYTES of it, correctly rounded, in no locale. Digits may be missing on one
 * side of the point. False for anything else, and for what is not finite ("nan", "inf", 1e999). */
bool tdm_parse_number(const char *text, size_t bytes, double *out);

#endif
