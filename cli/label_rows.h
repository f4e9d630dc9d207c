/* What the labels of a batch say, in words. */
#ifndef TDM_CLI_LABEL_ROWS_H
#define TDM_CLI_LABEL_ROWS_H

#include "core/json.h"
#include "text/label_spec.h"
#include "text/masked_batch.h"

/* Appends a row's label: "label pos", "labels a, b", "label 0.5"; nothing where words have
 * labels. */
TDM_MUST_CHECK tdm_status tdm_label_row_text(const tdm_label_spec *spec,
                                             const tdm_masked_batch *batch, int64_t row,
                                             tdm_text *text);

/* Sets "label" of an object to a class or a number, or "labels" to a list of classes. */
void tdm_label_row_json(const tdm_label_spec *spec, const tdm_masked_batch *batch, int64_t row,
                        json_t *object);

/* The class of the word that begins with a token, borrowed and not terminated; NULL where none
 * does. */
const char *tdm_label_token_class(const tdm_label_spec *spec, const tdm_masked_batch *batch,
                                  int64_t token, size_t *bytes);

#endif
