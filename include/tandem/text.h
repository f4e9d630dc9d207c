/* WordPiece tokenization, exact and fast: text to the ids that BERT's models were trained on, and
 * back.
 *
 * Stands on include/tandem/tandem.h for statuses: every fallible function returns a tdm_status, and
 * tdm_error_message() has the detail. Texts are UTF-8 of a given length, without terminator; bytes
 * that are not UTF-8 count as U+FFFD each. */
#ifndef TANDEM_TEXT_H
#define TANDEM_TEXT_H

#include "tandem/tandem.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a tokenizer ----------------------------------------------------------------------------- */

/* Whose rules text is normalised and split by. They differ in Unicode's version and in quirks. */
typedef enum tdm_unicode_mode {
    TDM_UNICODE_HUGGINGFACE = 0, /* bit-exact with BertNormalizer and BertPreTokenizer, 0.x */
    TDM_UNICODE_GOOGLE = 1,      /* google-research/bert, tokenization.py */
    TDM_UNICODE_CURRENT = 2,     /* "unicode": the ICU that tandem was built with; case folding */
} tdm_unicode_mode;

typedef enum tdm_unicode_form {
    TDM_FORM_NONE = 0,
    TDM_FORM_NFC = 1, /* before everything else */
    TDM_FORM_NFKC = 2,
} tdm_unicode_form;

/* What becomes of "[MASK]" and other special tokens that stand in a text. */
typedef enum tdm_special_tokens {
    TDM_SPECIALS_MATCH = 0, /* they are that token, as with Hugging Face */
    TDM_SPECIALS_PLAIN = 1, /* text like any other: what corpora want */
    TDM_SPECIALS_ERROR = 2, /* TDM_E_DATA */
} tdm_special_tokens;

typedef struct tdm_tokenizer_settings {
    tdm_unicode_mode unicode;
    tdm_unicode_form form;
    bool clean_text;           /* deletes control characters, makes all white space blanks */
    bool handle_chinese_chars; /* ideographs are words of their own */
    bool lowercase;
    int strip_accents;  /* 0, 1; -1: as `lowercase` */
    int max_word_chars; /* a longer word is [UNK]; code points */
    bool cleanup;       /* decoding removes blanks before punctuation */
} tdm_tokenizer_settings;

/* huggingface, clean, Chinese characters apart, lower case, accents as that, 100, cleanup. */
TDM_API tdm_tokenizer_settings tdm_tokenizer_default_settings(void);

/* Never changes once it is open: any number of threads may use it. */
typedef struct tdm_tokenizer tdm_tokenizer;

/* Opens a vocabulary (one token a line, "vocab.txt") with `settings` (NULL: the defaults), or a
 * tokenizer.json of BERT's kind, whose own settings hold (`settings` must be NULL). What it is, its
 * first bytes tell. */
TDM_API TDM_MUST_CHECK tdm_status tdm_tokenizer_open(const char *path,
                                                     const tdm_tokenizer_settings *settings,
                                                     tdm_tokenizer **tokenizer);

/* Writes a tokenizer.json where `path` ends with ".json", else a vocabulary. Replaces the file as a
 * whole or not at all. */
TDM_API TDM_MUST_CHECK tdm_status tdm_tokenizer_save(const tdm_tokenizer *tokenizer,
                                                     const char *path);

/* NULL is allowed. */
TDM_API void tdm_tokenizer_close(tdm_tokenizer *tokenizer);

/* With strip_accents 0 or 1. */
TDM_API tdm_tokenizer_settings tdm_tokenizer_get_settings(const tdm_tokenizer *tokenizer);

/* One more than the largest id. */
TDM_API int64_t tdm_tokenizer_size(const tdm_tokenizer *tokenizer);

/* The id of a token, or -1. */
TDM_API int64_t tdm_tokenizer_find(const tdm_tokenizer *tokenizer, const char *token, size_t bytes);

/* The token of an id, borrowed and not terminated; NULL where there is none. */
TDM_API const char *tdm_tokenizer_token(const tdm_tokenizer *tokenizer, uint32_t id, size_t *bytes);

/* ---- encoding -------------------------------------------------------------------------------- */

/* What encoding needs beside the tokenizer: threads, word caches, buffers. Use one from one thread
 * at a time. The tokenizer must outlive it. */
typedef struct tdm_encoder tdm_encoder;

/* `threads` work on a call with many inputs; 1: the caller alone, 0: one a core. */
TDM_API TDM_MUST_CHECK tdm_status tdm_encoder_create(const tdm_tokenizer *tokenizer, int threads,
                                                     tdm_encoder **encoder);
/* NULL is allowed. */
TDM_API void tdm_encoder_destroy(tdm_encoder *encoder);

/* The fastest way: the ids of a text as it stands, with special tokens in it as plain text, and
 * none added. *ids is borrowed and holds until the next call with this encoder. TDM_E_DATA for more
 * than 2 GiB without white space. */
TDM_API TDM_MUST_CHECK tdm_status tdm_encoder_ids(tdm_encoder *encoder, const char *text,
                                                  size_t bytes, const uint32_t **ids,
                                                  int64_t *count);

typedef struct tdm_text_input {
    const char *text;
    size_t bytes;
    const char *pair; /* the second text; NULL: there is none */
    size_t pair_bytes;
} tdm_text_input;

typedef enum tdm_truncation {
    TDM_TRUNCATE_LONGEST_FIRST = 0,
    TDM_TRUNCATE_ONLY_FIRST = 1,
    TDM_TRUNCATE_ONLY_SECOND = 2,
} tdm_truncation;

typedef enum tdm_padding {
    TDM_PADDING_NONE = 0,
    TDM_PADDING_LONGEST = 1, /* to the longest of the call */
    TDM_PADDING_FIXED = 2,   /* to pad_length; longer ones stay as they are */
} tdm_padding;

typedef struct tdm_encode_options {
    bool add_special_tokens; /* [CLS] and [SEP] */
    tdm_special_tokens specials;
    int64_t max_length; /* tokens, added ones included; -1: no limit */
    tdm_truncation truncation;
    bool truncate_left;
    bool overflow;  /* what truncation cuts off comes as further encodings, */
    int64_t stride; /* which overlap by so many tokens */
    tdm_padding padding;
    bool pad_left;
    int64_t pad_length;
    int64_t pad_multiple; /* 0 and 1: any length */
    bool offsets;         /* wanted? They cost time. */
} tdm_encode_options;

/* Special tokens added and matched, no limit, longest_first, no padding, with offsets. */
TDM_API tdm_encode_options tdm_encode_default_options(void);

typedef struct tdm_text_range {
    uint32_t begin, end;
} tdm_text_range;

/* One sequence of tokens; all arrays are [count]. Added tokens and padding have offsets 0, 0. */
typedef struct tdm_encoding {
    int64_t input; /* of the call that it is of, from 0 */
    int64_t count;
    const uint32_t *ids;
    const uint8_t *type_ids;            /* 1 for the second text and its [SEP] */
    const uint8_t *attention;           /* 0 for padding */
    const uint8_t *special;             /* 1 for what was added, padding included */
    const int8_t *sequences;            /* 0 first text, 1 second, -1 what was added */
    const int32_t *words;               /* within the text, -1 for what was added */
    const tdm_text_range *byte_offsets; /* in the original text; NULL where they were not wanted */
    const tdm_text_range *char_offsets; /* the same in code points */
} tdm_encoding;

typedef struct tdm_encodings tdm_encodings;

TDM_API TDM_MUST_CHECK tdm_status tdm_encodings_create(tdm_encodings **encodings);
/* NULL is allowed. */
TDM_API void tdm_encodings_destroy(tdm_encodings *encodings);

/* Encodes `count` inputs; *encodings is filled anew: for each input, in order, its encoding and
 * then what overflowed. `options` NULL: the defaults. TDM_E_ARG for options that cannot be:
 * max_length below the added tokens, a stride that is not below what a sequence holds. TDM_E_DATA
 * for a text that TDM_SPECIALS_ERROR or TDM_TRUNCATE_ONLY_* refuse. */
TDM_API TDM_MUST_CHECK tdm_status tdm_encoder_encode(tdm_encoder *encoder,
                                                     const tdm_text_input *inputs, int64_t count,
                                                     const tdm_encode_options *options,
                                                     tdm_encodings *encodings);

TDM_API int64_t tdm_encodings_count(const tdm_encodings *encodings);

/* `index` from 0 to tdm_encodings_count() - 1. Borrowed; holds until the encodings are filled
 * anew. */
TDM_API tdm_encoding tdm_encodings_get(const tdm_encodings *encodings, int64_t index);

/* ---- decoding -------------------------------------------------------------------------------- */

/* The text of ids, as Hugging Face's WordPiece decoder writes it; pieces are glued to what they
 * continue. In new memory with a terminator, which the caller frees with tdm_string_free().
 * TDM_E_ARG for an id that is not in the vocabulary; one whose line is blank is nothing. */
TDM_API TDM_MUST_CHECK tdm_status tdm_tokenizer_decode(const tdm_tokenizer *tokenizer,
                                                       const uint32_t *ids, int64_t count,
                                                       bool skip_special_tokens, char **text);

/* NULL is allowed. */
TDM_API void tdm_string_free(char *text);

/* ---- training a vocabulary ------------------------------------------------------------------- */

typedef struct tdm_vocabulary_options {
    tdm_tokenizer_settings settings; /* how texts are split into words */
    int64_t size;                    /* tokens at most */
    int64_t min_frequency;           /* a pair of pieces that came less often becomes no token */
    int64_t limit_alphabet;          /* characters at most, the most frequent ones */
    const char *const *special;      /* [special_count]: behind [PAD] [UNK] [CLS] [SEP] [MASK] */
    int64_t special_count;
    const char *const *initial; /* [initial_count]: tokens that are always in */
    int64_t initial_count;
    const char *counts_path; /* a file of word counts to add to; NULL: none */
    int64_t memory_bytes;    /* to use, about; beyond it words go to temporary files */
    int threads;             /* 0: one a core */
} tdm_vocabulary_options;

/* The tokenizer's default settings, 30,000 tokens, frequency 2, 1,000 characters, 2 GiB. */
TDM_API tdm_vocabulary_options tdm_vocabulary_default_options(void);

/* Trains a WordPiece vocabulary on files (plain, .gz, .zst; globs), by the merge rule of Hugging
 * Face's trainer. The same texts give the same tokenizer, whatever their order and the number of
 * threads. `options` may be NULL. TDM_E_ARG for options that cannot be, TDM_E_DATA for texts
 * without a word. tdm_tokenizer_save() writes it. */
TDM_API TDM_MUST_CHECK tdm_status tdm_train_vocabulary(const char *const *files, int64_t file_count,
                                                       const tdm_vocabulary_options *options,
                                                       tdm_tokenizer **tokenizer);

#ifdef __cplusplus
}
#endif
#endif
