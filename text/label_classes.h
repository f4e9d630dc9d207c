/* The classes that labelled records have. */
#ifndef TDM_TEXT_LABEL_CLASSES_H
#define TDM_TEXT_LABEL_CLASSES_H

#include "core/pool.h"
#include "data/input.h"
#include "text/label_spec.h"

/* Reads all records of the input once and returns their labels: numbers first, by size, then other
 * texts by their bytes. Records that are no use are passed over, as in extraction. TDM_E_DATA for
 * fewer than two labels (one, of multiple), more than TDM_MAX_CLASSES, and where a label is the
 * name of its column in files that have no header; TDM_E_CONFIG for standard input, which cannot be
 * read a second time; TDM_E_CANCELLED where the input's `cancel` became true. *out is freed with
 * tdm_strings_free(). */
TDM_MUST_CHECK tdm_status tdm_label_classes_find(const tdm_label_spec *spec, tdm_input *input,
                                                 tdm_pool *pool, tdm_strings *out);

#endif
