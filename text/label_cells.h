/* The labels and words of a record, as they stand in its cells. Not for other folders. */
#ifndef TDM_TEXT_LABEL_CELLS_H
#define TDM_TEXT_LABEL_CELLS_H

#include "tandem/plugin.h"
#include "text/label_spec.h"

typedef struct tdm_slice {
    const char *text;
    size_t bytes;
} tdm_slice;

tdm_slice tdm_cell_of(const tdm_records *records, int64_t record, int32_t column);

/* Without blanks of ASCII at both ends. */
tdm_slice tdm_trimmed(tdm_slice slice);

/* The items of a cell. One that ends with a line feed was a list of its own (jsonl): its items are
 * lines. Else they stand between separators, or white space where that is 0. */
typedef struct tdm_item_list {
    tdm_slice rest;
    char separator;
} tdm_item_list;

tdm_item_list tdm_items_of(tdm_slice cell, char separator);
/* The next item, trimmed; false at the end. Between separators one may be empty. */
bool tdm_next_item(tdm_item_list *list, tdm_slice *item);

#define TDM_LABEL_REASON_BYTES 384

/* Why a record cannot be used; "" where it can. */
typedef struct tdm_label_reason {
    char text[TDM_LABEL_REASON_BYTES];
} tdm_label_reason;

/* Says that the label is none of the classes. */
void tdm_refuse_label(const tdm_label_spec *spec, tdm_slice label, tdm_label_reason *reason);

/* The words of a record whose labels are of tokens. */
typedef struct tdm_labelled_words {
    const tdm_label_spec *spec;
    tdm_item_list words, labels; /* `words` are the lines where spec->lines */
    int64_t count;               /* words, or lines, so far */
} tdm_labelled_words;

tdm_labelled_words tdm_words_of(const tdm_label_spec *spec, const tdm_records *records,
                                int64_t record);
/* The next word with its label, {0} for predictions; false at the end, or where the reason is
 * set. */
bool tdm_next_word(tdm_labelled_words *words, tdm_slice *word, tdm_slice *label,
                   tdm_label_reason *reason);
/* As tdm_refuse_label, of the word that came last. */
void tdm_refuse_word_label(const tdm_labelled_words *words, tdm_slice label,
                           tdm_label_reason *reason);

#endif
