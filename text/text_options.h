/* The `text` section of a recipe: how text becomes sequences and what is masked in them. */
#ifndef TDM_TEXT_TEXT_OPTIONS_H
#define TDM_TEXT_TEXT_OPTIONS_H

#include "core/config.h"
#include "text/masking.h"
#include "text/sequences.h"

typedef enum tdm_text_batch {
    TDM_TEXT_UNPADDED = 0, /* sequences one behind the other */
    TDM_TEXT_PADDED = 1,
} tdm_text_batch;

typedef struct tdm_text_masking {
    double rate;
    int unit; /* tdm_mask_unit */
    tdm_floats replace;
    int count; /* tdm_mask_count */
    int64_t max_predictions;
    bool mask_unk;
    bool at_least_one;
} tdm_text_masking;

typedef struct tdm_text_options {
    char *tokenizer;
    /* 0: the tokenizer's own, or the default; else 1 + the value */
    int lowercase, strip_accents, unicode;
    int64_t max_length;
    int sequences; /* tdm_sequence_mode */
    bool cross_documents;
    int pairs; /* tdm_pair_task */
    double short_seq_prob;
    int batch; /* tdm_text_batch */
    tdm_text_masking masking;
} tdm_text_options;

extern const tdm_config_schema tdm_text_schema;
/* Of labelled text, without sequences and masking, whose rate is 0. */
extern const tdm_config_schema tdm_labelled_text_schema;

/* TDM_E_CONFIG with the place in `section` (NULL is allowed) for combinations that cannot be. */
TDM_MUST_CHECK tdm_status tdm_text_options_check(const tdm_text_options *options,
                                                 const tdm_config_node *section);

/* Of options that are checked. */
tdm_sequence_options tdm_text_sequence_options(const tdm_text_options *options);
tdm_masking_options tdm_text_masking_options(const tdm_text_options *options);

/* Opens the tokenizer with the settings that the section gives. TDM_E_CONFIG with the place in
 * `section` where it gives some that a tokenizer.json has itself, or where the vocabulary lacks
 * what sequences need: [UNK], [CLS], [SEP], [MASK] where there is masking, [PAD] for padded
 * batches. */
TDM_MUST_CHECK tdm_status tdm_text_open_tokenizer(const tdm_text_options *options,
                                                  const tdm_config_node *section,
                                                  tdm_tokenizer **out);

#endif
