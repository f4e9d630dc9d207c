/* Vectors as a file: of NumPy where its name ends with ".npy", else text, a line a vector. */
#ifndef TDM_CLI_VECTOR_OUTPUT_H
#define TDM_CLI_VECTOR_OUTPUT_H

#include "cli/output.h"
#include "core/pool.h"

/* NumPy's format, version 1.0 (numpy.lib.format): little-endian floats [vectors, columns], C order.
 * Its header tells how many there are and is completed at the end. Text has a number behind the
 * other, with tabs between them, or in JSON a list. */
typedef struct tdm_vector_output tdm_vector_output;

/* `path` NULL or "-": text on standard output. TDM_E_ARG as of tdm_output_open(), for JSON in a
 * .npy, and for a .npy that is no file. */
TDM_MUST_CHECK tdm_status tdm_vector_output_open(const char *path, bool force, bool json,
                                                 tdm_vector_output **out);

/* Appends vectors [count, columns]; all calls have the same columns. Text is made on the pool. One
 * whose first number is NaN stands for none: an empty line, null, or NaN as it is. */
TDM_MUST_CHECK tdm_status tdm_vector_output_write(tdm_vector_output *output, tdm_pool *pool,
                                                  const float *vectors, int64_t count,
                                                  int64_t columns);

/* Lets a reader see what there is. */
TDM_MUST_CHECK tdm_status tdm_vector_output_flush(tdm_vector_output *output);
/* `columns` of a file without vectors. */
TDM_MUST_CHECK tdm_status tdm_vector_output_commit(tdm_vector_output *output, int64_t columns);

bool tdm_vector_output_is_stdout(const tdm_vector_output *output);

/* NULL is allowed. */
void tdm_vector_output_close(tdm_vector_output *output);

#endif
