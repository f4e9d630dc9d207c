/* References of backward ops against central differences of the references of forward ops. With the
 * op tests, which compare ops and references, this checks the ops' gradients. */
#ifndef TDM_TESTS_OP_GRADIENTS_H
#define TDM_TESTS_OP_GRADIENTS_H

#include "tests/op/op_cases.h"
#include "tests/op/reference_ops.h"

/* A world of one thread on a CPU backend of its own. */
void op_small_world_create(op_world *world);
void op_small_world_destroy(op_world *world);

tdm_matrix op_random_matrix(op_world *world, const char *name, int64_t rows, int64_t columns);

/* Σ over the elements of y of dy · y: the loss whose gradient with respect to y is dy. */
double op_weighted_sum(const op_world *world, const tdm_matrix *dy, const tdm_matrix *y);

/* Checks gradient[i] = d loss / d x[i] for `count` elements that lie one after the other. */
void op_check_gradient(const char *name, double *x, const double *gradient, int64_t count,
                       double (*loss)(const void *args), const void *args);

/* The same for all elements of x, which, like the gradient, has no gaps. */
void op_check_matrix(const op_world *world, const char *name, const tdm_matrix *x,
                     const tdm_matrix *gradient, double (*loss)(const void *args),
                     const void *args);

#endif
