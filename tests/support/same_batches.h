/* What holds of every pipeline: its batches are the same ones, bit for bit, on any number of
 * threads, with and without the cache and after a resume anywhere; it reuses its memory, and says
 * so where there is none. Whatever does not hold, fails the test. */
#ifndef TDM_TESTS_SAME_BATCHES_H
#define TDM_TESTS_SAME_BATCHES_H

#include "tests/support/data_rig.h"

/* On 1, 2 and 4 threads, without a cache, writing one to `folder`, and reading it. */
void tdm_check_same_batches(tdm_data_rig_options options, const char *folder);

/* From every delivery on, on several threads. */
void tdm_check_resumes(tdm_data_rig_options options);

/* From the 15th epoch to the 22nd nothing is allocated; options->epochs is 24 at least. */
void tdm_check_reuse(const tdm_data_rig_options *options);

/* Every allocation fails once: it is told, and nothing leaks. */
void tdm_check_out_of_memory(const tdm_data_rig_options *options);

#endif
