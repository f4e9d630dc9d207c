/* The `labels` section of a recipe, resolved against the columns of records. */
#ifndef TDM_TEXT_LABEL_SPEC_H
#define TDM_TEXT_LABEL_SPEC_H

#include "text/label_options.h"
#include "text/vocabulary.h"

typedef enum tdm_label_use {
    TDM_LABEL_TRAINING = 0,   /* training and evaluating: a record without a label is a bad one */
    TDM_LABEL_PREDICTION = 1, /* labels are not looked at, and need not be there */
} tdm_label_use;

/* Cells are columns of a record; or, where labels are of tokens and the record is a text of lines
 * (CoNLL), columns of each of its lines, which is a word with its label. */
typedef struct tdm_label_spec {
    tdm_label_type type;
    tdm_label_use use;
    bool lines;             /* the latter */
    char line_separator;    /* then: between the cells of a line; 0: white space */
    int32_t line_columns;   /* then: how many there are */
    int32_t text;           /* column */
    int32_t pair;           /* column; -1: none */
    int32_t label;          /* column; -1 for predictions */
    char *label_name;       /* of that column */
    char separator;         /* between the labels of a cell; 0: white space */
    tdm_vocabulary classes; /* names and numbers; empty for regression and before they are found */
} tdm_label_spec;

/* Finds the columns by name; `columns` are data.columns, which name those of lines (none: text and
 * label). For predictions a format of one column has the text there, whatever its name. Classes are
 * left out where they are auto. TDM_E_CONFIG with the place in `section` (NULL is allowed). */
TDM_MUST_CHECK tdm_status tdm_label_spec_create(const tdm_label_options *options,
                                                const tdm_config_node *section,
                                                const tdm_record_format *format,
                                                const tdm_strings *columns, tdm_label_use use,
                                                tdm_label_spec **out);
/* NULL is allowed. */
void tdm_label_spec_destroy(tdm_label_spec *spec);

/* The name of a class, borrowed and not terminated. */
static inline const char *tdm_class_name(const tdm_label_spec *spec, int64_t number, size_t *bytes)
{
    *bytes = spec->classes.bytes[number];
    return spec->classes.text + spec->classes.begins[number];
}

/* Of all that decides what a record becomes. */
uint64_t tdm_label_spec_hash(const tdm_label_spec *spec, const tdm_record_format *format);

#endif
