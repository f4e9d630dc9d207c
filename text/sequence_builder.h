/* What the files that build sequences share. Not for other files. */
#ifndef TDM_TEXT_SEQUENCE_BUILDER_H
#define TDM_TEXT_SEQUENCE_BUILDER_H

#include "core/rng.h"
#include "text/masking.h"
#include "text/sequences.h"
#include "text/token_loops.h"

/* A document of a window: tokens [first, end) of a block. */
typedef struct tdm_document {
    uint32_t block, first, end;
    uint32_t sentence_count;
    size_t sentence; /* its first one, in scratch->sentences */
} tdm_document;

struct tdm_sequence_scratch {
    const tdm_token_loops *loops;
    tdm_document *documents;
    uint32_t *order;     /* [document_count]: in which they are looked at */
    uint32_t *sentences; /* the tokens that begin them, document after document */
    size_t document_count, document_capacity, order_capacity;
    size_t sentence_count, sentence_capacity;
    size_t most_words, most_rows; /* of the windows that were built with it */
};

/* What is drawn with which layer. */
enum {
    TDM_LAYER_ROWS = 0,      /* of TDM_PURPOSE_ROW_ORDER */
    TDM_LAYER_DOCUMENTS = 1, /* of TDM_PURPOSE_ROW_ORDER */
    TDM_LAYER_PAIRS = 0,     /* of TDM_PURPOSE_SEQUENCES; the sample is the document */
    TDM_LAYER_LENGTHS = 1,   /* of TDM_PURPOSE_SEQUENCES */
};

typedef struct tdm_sequence_builder {
    const tdm_sequence_options *options;
    int marks; /* column */
    uint64_t seed;
    tdm_window *window;
    tdm_sequence_scratch *scratch;
    size_t used; /* words of window->details */
    size_t head; /* of the row that is being made */
    uint32_t segments;
    int64_t cut; /* tokens that are left out */
} tdm_sequence_builder;

/* Add the rows of all documents, in scratch->order (sequence_packing.c, sequence_pairs.c,
 * sequence_records.c). */
TDM_MUST_CHECK tdm_status tdm_pack_documents(tdm_sequence_builder *builder);
TDM_MUST_CHECK tdm_status tdm_pair_documents(tdm_sequence_builder *builder);
TDM_MUST_CHECK tdm_status tdm_take_records(tdm_sequence_builder *builder);

/* ---- sequences.c ----------------------------------------------------------------------------- */

const uint8_t *tdm_marks_of(const tdm_sequence_builder *builder, uint32_t block);
uint32_t tdm_epoch_of(const tdm_sequence_builder *builder);

/* The first token from `at` on that has one of the marks, or `end`. */
uint32_t tdm_find_mark(const uint8_t *marks, uint32_t at, uint32_t end, uint8_t wanted);

/* How many of the first `room` tokens are whole words, where a token follows them. */
uint32_t tdm_whole_words(const uint8_t *marks, int64_t room);

/* Where sentence s of a document begins; s = sentence_count is its end. */
static inline uint32_t tdm_sentence_begin(const tdm_sequence_builder *builder,
                                          const tdm_document *document, uint32_t s)
{
    return s == document->sentence_count ? document->end
                                         : builder->scratch->sentences[document->sentence + s];
}

/* A random length from 2 to `most`, where a short one is due; else `most`. */
int64_t tdm_draw_length(const tdm_sequence_builder *builder, tdm_random_stream *stream,
                        int64_t most);

/* A row is begun, gets its segments and is ended. */
TDM_MUST_CHECK tdm_status tdm_row_begin(tdm_sequence_builder *builder);
TDM_MUST_CHECK tdm_status tdm_row_add(tdm_sequence_builder *builder, const tdm_segment *segment);
/* Makes the last segment `count` tokens longer. */
void tdm_row_extend(tdm_sequence_builder *builder, uint32_t count);
void tdm_row_end(tdm_sequence_builder *builder, int64_t tokens, uint32_t pair_label);

#endif
