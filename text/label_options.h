/* The `labels` section of a recipe: what a record's label is, and where it and the text stand. */
#ifndef TDM_TEXT_LABEL_OPTIONS_H
#define TDM_TEXT_LABEL_OPTIONS_H

#include "core/config.h"
#include "data/options.h"

/* What labels.type says, in order. */
typedef enum tdm_label_type {
    TDM_LABEL_CLASSES = 0,    /* one class of a text */
    TDM_LABEL_MULTIPLE = 1,   /* any number of them, none too */
    TDM_LABEL_REGRESSION = 2, /* a number */
    TDM_LABEL_TOKENS = 3,     /* a class of each word */
} tdm_label_type;

typedef struct tdm_label_options {
    int type;            /* tdm_label_type */
    char *column;        /* that holds the label */
    char *text;          /* that holds the text */
    char *text_pair;     /* that holds a second text; NULL: there is none */
    tdm_strings classes; /* their names, in the order of their numbers; or "auto" alone */
    char *separator;     /* between labels; NULL: see tdm_label_separator() */
} tdm_label_options;

extern const tdm_config_schema tdm_label_schema;

#define TDM_MAX_CLASSES 65536

/* Whether the classes are those that training data has; false where there are none. */
bool tdm_label_classes_are_auto(const tdm_label_options *options);

/* Between the labels of a cell; 0: white space. Of options that are checked. */
char tdm_label_separator(const tdm_label_options *options);

/* TDM_E_CONFIG with the place in `section` (NULL is allowed) for combinations that cannot be. */
TDM_MUST_CHECK tdm_status tdm_label_options_check(const tdm_label_options *options,
                                                  const tdm_data_options *data,
                                                  const tdm_config_node *section);

#endif
