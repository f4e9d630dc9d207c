/* Tokenizers for tests. Whatever is wrong fails the test. */
#ifndef TDM_TESTS_TOKENIZER_RIG_H
#define TDM_TESTS_TOKENIZER_RIG_H

#include "tandem/text.h"

/* Writes a file and returns its path: name in a new folder, in a static buffer that the next call
 * reuses. */
const char *tdm_test_write(const char *name, const void *data, size_t bytes);

/* A tokenizer of a vocabulary's text; `settings` NULL: the defaults. */
tdm_tokenizer *tdm_test_tokenizer(const char *vocabulary, const tdm_tokenizer_settings *settings);

/* A vocabulary of the test data, "bert-base-uncased", with its case. NULL where there is no test
 * data; the test is skipped then. */
tdm_tokenizer *tdm_test_bert(const char *name, bool lowercase);

/* The tokens of encoding `index`, joined by blanks; "-" stands for an id without token. In a static
 * buffer. */
const char *tdm_test_tokens(const tdm_tokenizer *tokenizer, const tdm_encodings *encodings,
                            int64_t index);

/* "0,0 3,7": the offsets of an encoding, in code points or bytes. In a static buffer. */
const char *tdm_test_offsets(const tdm_encodings *encodings, int64_t index, bool bytes);

#endif
