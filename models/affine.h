/* y = x Wᵀ + b with its gradients: what the layers with a weight matrix share. */
#ifndef TDM_MODELS_AFFINE_H
#define TDM_MODELS_AFFINE_H

#include "models/plan.h"

typedef struct tdm_affine {
    int weight; /* "weight" [outputs, inputs] */
    int bias;   /* "bias" [outputs], zero; -1: none */
    int64_t inputs, outputs;
    tdm_axis axis; /* of x and y */
} tdm_affine;

/* Declares the parameters of the layer called `name`. Weights begin Xavier uniform (Glorot and
 * Bengio, 2010), or where `initializer` is not 0 normal, truncated at twice this standard
 * deviation. */
TDM_MUST_CHECK tdm_status tdm_affine_plan(tdm_plan *plan, const char *name, tdm_axis axis,
                                          int64_t inputs, int64_t outputs, bool bias,
                                          double initializer, tdm_affine *out);

/* *preactivation gets x Wᵀ + b; NULL: it is not kept. */
TDM_MUST_CHECK tdm_status tdm_affine_forward(const tdm_affine *affine, const tdm_step *step,
                                             tdm_matrix x, tdm_matrix y, tdm_activation activation,
                                             const tdm_matrix *preactivation);

/* The gradient of W from dy, and dx (+)= dy W unless dx.data is NULL. The bias is the caller's. */
TDM_MUST_CHECK tdm_status tdm_affine_backward(const tdm_affine *affine, const tdm_step *step,
                                              tdm_matrix x, tdm_matrix dy, tdm_matrix dx,
                                              bool accumulate_dx);

/* NULL where there is no bias. */
float *tdm_affine_bias_gradient(const tdm_affine *affine, const tdm_step *step);

/* The products of forward and backward; that of dx only with `has_dx`. */
void tdm_affine_products(const tdm_affine *affine, bool has_dx, bool accumulate_dx,
                         tdm_product_list *list);

#endif
