/* Trains a WordPiece vocabulary on counted words, by the rule of Hugging Face's WordPiece trainer,
 * which is byte-pair encoding (Sennrich et al., "Neural machine translation of rare words with
 * subword units", 2016) with "##" before what continues a word:
 *
 *   The vocabulary begins with the special tokens, the initial ones, each character of the
 * alphabet, and each with "##". Words are sequences of characters. While there is room, the pair of
 *   neighbours that occurs most often becomes a token, everywhere; of pairs that occur as often the
 *   one with the smaller left token, then right token, by their bytes.
 *
 * Unlike Hugging Face's, it is the same for the same counts, has both forms of every character,
 * never exceeds its size, and does not drop characters out of words: a word with a character that
 * is not in the alphabet, which will be [UNK] as a whole, trains nothing. */
#ifndef TDM_TEXT_VOCAB_TRAINER_H
#define TDM_TEXT_VOCAB_TRAINER_H

#include "core/config.h"
#include "text/vocabulary.h"
#include "text/word_counts.h"

typedef struct tdm_vocab_options {
    int64_t size;                /* tokens at most */
    int64_t min_frequency;       /* a pair that occurs less often becomes no token */
    int64_t limit_alphabet;      /* characters at most: the most frequent ones, then the smallest */
    const tdm_strings *specials; /* the first tokens */
    const tdm_strings *initial;  /* in the vocabulary whatever the words; one that is a single */
                                 /* character, bare or behind "##", is in the alphabet */
    const atomic_bool *cancel;   /* may be NULL */
    void (*progress)(void *context, int64_t tokens); /* now and then; may be NULL */
    void *progress_context;
} tdm_vocab_options;

typedef struct tdm_vocab_report {
    int64_t characters;    /* distinct ones in the words */
    int64_t alphabet;      /* characters in the vocabulary */
    int64_t unknown_words; /* distinct words with a character that is not */
    int64_t unknown_total; /* their counts */
    int64_t merges;        /* pairs that became tokens, or were one already */
    int64_t last_count;    /* how often the last of them occurred; 0: there was none */
} tdm_vocab_report;

/* Fills an empty vocabulary. TDM_E_ARG where it has no room for specials, initial tokens and
 * alphabet: the message names the least size; and for tokens that are empty or not UTF-8.
 * TDM_E_DATA where there are no words. The vocabulary is empty on failure. */
TDM_MUST_CHECK tdm_status tdm_vocab_train(const tdm_word_list *words,
                                          const tdm_vocab_options *options,
                                          tdm_vocabulary *vocabulary, tdm_vocab_report *report);

#endif
