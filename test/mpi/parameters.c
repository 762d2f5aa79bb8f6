/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* says: osc_nicstride_memory has the value "0". It must be a number\s+from 1 to 1048576 */
/* says: coll_nicbarrier_schedule has the value "none". It must be one of */
/* says: osc_nicstride_server has the value "maybe". It must be true or\s+false */
/* says: osc_nicstride has no parameter "methods": it is ignored */
/**
 * @file
 * A parameter with a bad value: the components refuse it with a text and do not serve, and the
 * program goes on without them. Where no other component may be used there are no windows. A name
 * that is misspelt is said.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Win win = MPI_WIN_NULL;
    int memory = 0;

    if (setenv("OMPI_MCA_osc_nicstride_memory", "0", 1) != 0 ||
        setenv("OMPI_MCA_osc_nicstride_server", "maybe", 1) != 0 ||
        setenv("OMPI_MCA_osc_nicstride_methods", "pack", 1) != 0 ||
        setenv("OMPI_MCA_coll_nicbarrier_schedule", "none", 1) != 0)
        return TL_EXIT_FAILED;
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    int class = MPI_SUCCESS;
    const int rc = MPI_Win_create(&memory, sizeof(memory), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Error_class(rc, &class);
    TL_CHECK(class == MPI_ERR_WIN, "making a window: class %d", class);
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    return tl_finish();
}
