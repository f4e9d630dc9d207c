/* Reads the reference files under tests/golden (safetensors). Whatever is wrong fails the test. */
#ifndef TDM_TESTS_GOLDEN_H
#define TDM_TESTS_GOLDEN_H

#include "core/tensor.h"

#include <stdbool.h>

typedef struct tdm_golden tdm_golden;

/* `path` counts from tests/golden. */
tdm_golden *tdm_golden_open(const char *path);
void tdm_golden_close(tdm_golden *golden);

/* The elements of a tensor, which must be there and of this type. Borrowed. */
const void *tdm_golden_get(const tdm_golden *golden, const char *name, tdm_dtype dtype,
                           int64_t *elements);

bool tdm_golden_has(const tdm_golden *golden, const char *name);
/* Tensors whose names begin with `prefix`. */
int tdm_golden_count(const tdm_golden *golden, const char *prefix);

/* A text of the file's metadata, which must be there. Borrowed. */
const char *tdm_golden_text(const tdm_golden *golden, const char *key);

/* Fails unless ‖values − reference‖₂ ≤ tolerance ‖reference‖₂. */
void tdm_golden_close_to(const char *name, const double *values, const double *reference,
                         int64_t count, double tolerance);

#endif
