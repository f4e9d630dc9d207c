/* Stands in for the MPI module in a build without MPI. */
#include "core/comm.h"

tdm_status tdm_mpi_create(tdm_comm **out)
{
    *out = NULL;
    return tdm_fail(TDM_E_UNSUPPORTED, "this tandem was built without MPI: start a single process");
}
