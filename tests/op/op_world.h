/* The world of one op test: device memory for all arguments of an op, and a mirror of it in double
 * precision on which the reference runs. Every float in device memory has its place in the mirror,
 * so a reference takes the same arguments as the op. */
#ifndef TDM_TESTS_OP_WORLD_H
#define TDM_TESTS_OP_WORLD_H

#include "core/backend.h"
#include "core/ops.h"

#define OP_MAX_FIELDS  8
#define OP_MAX_REGIONS 64

/* What memory holds at first. NaN is poison: what an op must not read, or must overwrite; each has
 * bits of its own, so that moving one shows. A total is what an op adds to: it has no poison, which
 * would hide poison that is added. */
typedef enum op_fill { OP_RANDOM, OP_POSITIVE, OP_TOTAL, OP_NAN } op_fill;

typedef struct op_region {
    const char *name;
    int64_t first, count; /* floats from the start of the memory */
} op_region;

typedef struct op_world {
    tdm_backend *backend; /* borrowed */
    unsigned char *device, *host, *initial;
    size_t used, capacity;
    double *values;     /* the mirror */
    double *magnitudes; /* of the terms of a value that is a sum; 0: the value itself */
    op_region regions[OP_MAX_REGIONS];
    int region_count;
    tdm_step_scalars *scalars; /* on the device */
    tdm_step_scalars expected; /* what the reference makes of them */
    tdm_embedding_field fields[OP_MAX_FIELDS];
    uint64_t draws;
} op_world;

void op_world_create(tdm_backend *backend, size_t capacity, op_world *world);
void op_world_destroy(op_world *world);
/* Forgets all arguments; the same calls then give the same values again. */
void op_world_reset(op_world *world, uint64_t seed);

/* Memory for arguments; the pointers are the device's. */
void *op_bytes(op_world *world, size_t bytes);
float *op_floats(op_world *world, const char *name, int64_t count, op_fill fill);
/* Row-major, `gap` elements between rows; the gaps and the rows at and behind `valid` are NaN
 * but in a total. */
tdm_matrix op_matrix(op_world *world, const char *name, int64_t rows, int64_t columns,
                     int64_t valid, int64_t gap, op_fill fill);
/* A count of valid rows in device memory; NULL for -1. */
const int64_t *op_rows(op_world *world, int64_t valid);
/* A whole number in [0, below). */
int64_t op_draw(op_world *world, int64_t below);

/* The staging memory of a device pointer: what the device gets, then what it gave back. */
void *op_host(const op_world *world, const void *device);

/* The places of a float in the mirror. */
double *op_value(const op_world *world, const float *device);
double *op_magnitude(const op_world *world, const float *device);
double *op_at(const op_world *world, const tdm_matrix *matrix, int64_t row, int64_t column);
int64_t op_valid(const op_world *world, const int64_t *rows, int64_t all);

/* Copies the arguments to the device and sets up the mirror; then the op and the reference may run.
 */
void op_world_upload(op_world *world);
/* Puts the device memory back to what was uploaded, to run the op again, maybe on another backend
 * that uses the same memory. */
void op_world_restart(op_world *world, tdm_backend *backend);
void op_world_download(op_world *world);
/* The device memory is as it was uploaded. Reads it directly: for backends with host memory. */
bool op_world_untouched(const op_world *world);
/* What was downloaded agrees with the mirror: ‖got − ref‖₂ ≤ 1e-5 ‖magnitudes‖₂ in every region,
 * and everything that the reference left alone, poison included, is as it was. */
void op_world_compare(const op_world *world, const char *label);

#endif
