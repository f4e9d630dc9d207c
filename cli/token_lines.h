/* How tandem tokenize writes encodings: one line for each input. */
#ifndef TDM_CLI_TOKEN_LINES_H
#define TDM_CLI_TOKEN_LINES_H

#include "cli/output.h"
#include "tandem/text.h"

typedef struct tdm_token_format {
    bool json;    /* everything, as an object */
    bool tokens;  /* tokens instead of ids */
    bool offsets; /* ":begin:end" behind each, */
    bool bytes;   /* in bytes instead of code points */
} tdm_token_format;

/* Lines being made; zero to begin with. */
typedef struct tdm_token_lines {
    char *text;
    size_t bytes, capacity;
} tdm_token_lines;

/* Writes a line for each input; what overflowed of it stands behind it, after tabs, or in the
 * object's "overflow". */
TDM_MUST_CHECK tdm_status tdm_token_lines_write(tdm_token_lines *lines,
                                                const tdm_token_format *format,
                                                const tdm_tokenizer *tokenizer,
                                                const tdm_encodings *encodings, tdm_output *output);

void tdm_token_lines_deinit(tdm_token_lines *lines);

#endif
