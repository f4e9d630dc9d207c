/* Ranks that train together. One process alone is a communicator of size 1, whose collectives do
 * nothing; mpi/ supplies more. All calls are collective: every rank makes them in the same order.
 */
#ifndef TDM_CORE_COMM_H
#define TDM_CORE_COMM_H

#include "core/backend.h"

typedef struct tdm_comm tdm_comm;

typedef struct tdm_comm_type {
    const char *name;
    void (*destroy)(tdm_comm *comm);
    /* Sums `count` values over all ranks in place, in rank order. */
    tdm_status (*all_reduce_f32)(tdm_comm *comm, float *values, int64_t count, tdm_stream *stream);
    tdm_status (*all_reduce_f64)(tdm_comm *comm, double *values, int64_t count, tdm_stream *stream);
    tdm_status (*barrier)(tdm_comm *comm);
} tdm_comm_type;

struct tdm_comm {
    const tdm_comm_type *type;
    int rank;
    int size;
};

/* Several processes under MPI; TDM_E_UNSUPPORTED in a build without it. */
TDM_MUST_CHECK tdm_status tdm_mpi_create(tdm_comm **out);

#endif
