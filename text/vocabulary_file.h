/* Vocabulary files, "vocab.txt": one token a line, its id the number of the line from 0. */
#ifndef TDM_TEXT_VOCABULARY_FILE_H
#define TDM_TEXT_VOCABULARY_FILE_H

#include "text/vocabulary.h"

/* Fills an empty vocabulary from the text of a file; `name` stands for the file in messages. Lines
 * end at LF only, and lose one CR before it; blanks stay. A blank line takes an id and has no
 * token. A byte order mark at the front is dropped with a warning. TDM_E_DATA with the line for
 * what is not UTF-8, for NUL, and for a token that stands in two lines. */
TDM_MUST_CHECK tdm_status tdm_vocabulary_parse(const char *text, size_t bytes, const char *name,
                                               tdm_vocabulary *out);

/* Writes a vocabulary such that it is read as it is. TDM_E_ARG for tokens that a line cannot
 * hold. */
TDM_MUST_CHECK tdm_status tdm_vocabulary_save(const tdm_vocabulary *vocabulary, const char *path);

#endif
