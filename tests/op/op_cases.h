/* The arguments with which every op is tested: case_<op>(world, n, args) fills the world and *args
 * with case n, and answers false where there is none. */
#ifndef TDM_TESTS_OP_CASES_H
#define TDM_TESTS_OP_CASES_H

#include "tests/op/op_world.h"

#define OP_CASE(name, kind) bool case_##name(op_world *world, int n, tdm_##name##_args *args);
TDM_OPS_LIST(OP_CASE)
#undef OP_CASE

/* Both directions of case n of the embeddings, on the same ids. */
bool op_embedding_pair(op_world *world, int n, tdm_embedding_fwd_args *forward,
                       tdm_embedding_bwd_args *backward);

/* What case n of an op with `rows` rows of a batch draws its dropout from, but for the rate. */
tdm_dropout_draws op_draws(op_world *world, int n, int64_t rows, int64_t valid);

/* Update rules; where the last is used, a gradient was not finite and nothing may change. */
#define OP_RULES 6
tdm_update_rule op_rule(int n);
/* The moments that the rule uses; NULL for others. */
void op_moments(op_world *world, const tdm_update_rule *rule, int64_t count, float **moment1,
                float **moment2);
void op_set_found_inf(op_world *world, bool found);

#endif
