/* The metrics of classes, over a training window (progressive: each row is predicted before it is
 * trained on) or over an evaluation:
 *
 *   loss       mean cross-entropy, in nats
 *   accuracy   share of the rows, of the tokens, or where a row has any number of classes of its
 *              yes and no's, that are right
 *   auc        of two classes, see auc.h; auc_error: it is off by at most this
 *   f1         of two classes, of the second: 2 · right / (predicted + labelled)
 *   macro_f1   of more, the mean of the same over the classes that were predicted or labelled
 *   micro_f1   of classes of tokens, and of any number of classes: the same with the counts of all
 *              classes summed first. Of tokens, without the class that stands for none ("O")
 *   labels     tokens that have one, and weight
 *
 * What is predicted is the class with the largest logit, the label first where several are; of any
 * number of classes those with a probability above 1/2. What is not defined is NaN, and where the
 * loss is NaN all is.
 *
 * An accumulator belongs to one thread at a time; it is used through metrics.h but for adding. */
#ifndef TDM_TRAINER_CLASS_METRICS_H
#define TDM_TRAINER_CLASS_METRICS_H

#include "core/ops.h"
#include "trainer/auc.h"

typedef struct tdm_class_set {
    int64_t count;
    int64_t none; /* the class of a token that is none; -1: there is no such class */
} tdm_class_set;

/* Weights of the rows that are labelled with a class, for which it is predicted, and both. */
typedef struct tdm_class_counts {
    double labelled, predicted, right;
} tdm_class_counts;

typedef struct tdm_class_metrics {
    int64_t rows;
    int64_t labels;
    tdm_loss_scalars loss;
    tdm_class_set classes;
    tdm_class_counts *counts; /* [classes] */
    bool has_auc;             /* two classes */
    tdm_auc auc;
} tdm_class_metrics;

/* What a step tells, in host memory. */
typedef struct tdm_class_step {
    int64_t rows;
    int64_t count;           /* of labels: rows, or tokens */
    const float *outputs;    /* [count, classes]: logits; of any number of classes probabilities */
    const uint32_t *labels;  /* [count], TDM_NO_LABEL leaves one out; NULL: any number of classes */
    const float *label_sets; /* those: [count, classes], 0 or 1; else NULL */
    const float *weights;    /* [count]; NULL: all 1 */
    tdm_loss_scalars loss;
} tdm_class_step;

/* Never allocates where the AUC is not exact. */
TDM_MUST_CHECK tdm_status tdm_class_metrics_add(tdm_class_metrics *metrics,
                                                const tdm_class_step *step);

#endif
