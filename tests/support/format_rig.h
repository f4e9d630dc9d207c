/* A format's parser on its own: text becomes records that a test can read. Whatever fails, fails the
 * test, unless the name says `try`. */
#ifndef TDM_TESTS_FORMAT_RIG_H
#define TDM_TESTS_FORMAT_RIG_H

#include "data/record_format.h"

enum { TDM_PARSER_LINES = 4096 };

typedef struct tdm_parser {
    tdm_record_format *format;
    tdm_file_layout layout;
    int64_t max_record_bytes;
    char *refused[TDM_PARSER_LINES]; /* by line: what the format said */
    char *records[TDM_PARSER_LINES]; /* by line: "cell|cell|…" */
} tdm_parser;

/* For a file that begins with this line; whatever the status, the parser is closed afterwards. */
TDM_MUST_CHECK tdm_status tdm_parser_try_open(tdm_parser *p, const tdm_format_options *options,
                                              const char *first_line);
void tdm_parser_close(tdm_parser *p);

/* Parses the whole text behind its header line, where there is one. */
void tdm_parser_parse(tdm_parser *p, const char *text, size_t size);

/* `expected` has a line for each record or refusal: "line: cells" or "line! column: reason". */
void tdm_parser_check(const tdm_parser *p, const char *expected);

/* All of it for a text that is a file. */
void tdm_check_parsed(const tdm_format_options *options, const char *text, const char *expected);

#endif
