/* What of a checkpoint goes where: made before anything is written. Private to this folder. */
#ifndef TDM_INTERCHANGE_PRETRAINED_PLAN_H
#define TDM_INTERCHANGE_PRETRAINED_PLAN_H

#include "interchange/pretrained.h"
#include "interchange/vocabulary_rows.h"

/* What a plan is made for; all of it is borrowed. */
typedef struct tdm_pretrained_target {
    const tdm_bert_options *options;
    const tdm_model_inputs *inputs;
    const tdm_tokenizer *tokenizer;
    const tdm_saved_tensor *parameters;
    int count;
} tdm_pretrained_target;

/* A tensor of theirs that becomes rows of a parameter. */
typedef struct tdm_pretrained_step {
    int tensor;
    int parameter;
    int64_t first; /* its first element of the parameter */
    int64_t rows, columns;
    bool transposed; /* theirs is [columns, rows] */
    bool by_token;   /* its rows are those of tokens */
} tdm_pretrained_step;

typedef struct tdm_pretrained_plan {
    const tdm_pretrained *from;
    tdm_pretrained_target to;
    tdm_weight_naming naming;
    tdm_pretrained_step *steps;
    size_t step_count, step_capacity;
    int *parts_found;         /* [parameters] */
    bool *used;               /* [tensors of theirs] */
    tdm_vocabulary_rows rows; /* count 0: every row is that of the same id */
    int64_t padding_rows;     /* of their tables, behind those of their tokens */
} tdm_pretrained_plan;

/* Errors as of tdm_pretrained_load(). On failure nothing is left to free. */
TDM_MUST_CHECK tdm_status tdm_pretrained_plan_create(const tdm_pretrained *from,
                                                     const tdm_pretrained_target *to,
                                                     tdm_pretrained_plan *out);
void tdm_pretrained_plan_free(tdm_pretrained_plan *plan);

#endif
