/* Texts and vocabularies of the test data. Whatever fails, fails the test. */
#ifndef TDM_TESTS_TEXT_DATA_H
#define TDM_TESTS_TEXT_DATA_H

#include "text/vocabulary.h"

/* A file of the test data, whole and uncompressed, with a zero byte behind its end; freed with
 * tdm_free(). NULL where there is no test data: that is counted as a skip. */
char *tdm_text_data(const char *name, size_t *bytes);

/* A file of a zip archive, with a zero byte behind its end; freed with tdm_free(). */
char *tdm_zip_member(const char *archive, size_t archive_bytes, const char *name, size_t *bytes);

/* The next line of text[0, bytes) from *at on, without its LF; *at goes behind it. NULL at the
 * end. */
const char *tdm_next_line(const char *text, size_t bytes, size_t *at, size_t *line_bytes);

#endif
