/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1 */
/* internal */
/* mpirun: --mca osc_nicstride_verbose 1 */
/* says: ompi-nic: /\S+\.txt is not used, and what is built in holds: line 3 of that is wrong */
/* says: osc_nicstride: window \d+ of */
/**
 * @file
 * A file of measured numbers that is broken: a line says which and where, and what is built in is
 * used. So it is where the user gives a number.
 */
#include "test/mpi/testlib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/model/link.h"
#include "common/transport/shm/node.h"

int main(int argc, char **argv)
{
    const onic_processor_t here = onic_processor();
    char home[] = "/tmp/onic-measured-XXXXXX", from[ONIC_LINKS_FROM];
    char dir[64], folder[80], file[160];
    onic_links_t links, built_in;
    MPI_Win win = MPI_WIN_NULL;
    int memory = 0;

    if (mkdtemp(home) == NULL)
        return TL_EXIT_FAILED;
    snprintf(dir, sizeof(dir), "%s/.openmpi", home);
    snprintf(folder, sizeof(folder), "%s/ompi-nic", dir);
    snprintf(file, sizeof(file), "%s/%s-%d-%d.txt", folder, here.vendor, here.family, here.model);
    if (mkdir(dir, 0700) != 0 || mkdir(folder, 0700) != 0)
        return TL_EXIT_FAILED;
    FILE *f = fopen(file, "w");
    if (f == NULL || fputs("# measured\nnode: gap=77\nnode: gap=\n", f) < 0 || fclose(f) != 0 ||
        setenv("HOME", home, 1) != 0)
        return TL_EXIT_FAILED;
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    const int rc = MPI_Win_create(&memory, sizeof(memory), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    TL_CHECK(rc == MPI_SUCCESS, "making a window: %d", rc);
    if (rc == MPI_SUCCESS)
        TL_MPI(MPI_Win_free(&win));

    built_in = onic_links_default(onic_processor_name(here.vendor, here.family, here.model));
    TL_CHECK(onic_links_given(&links, "default", from, "none.txt"), "a broken file is fatal");
    TL_CHECK(strncmp(from, "built in", 8) == 0, "the numbers are %s", from);
    TL_CHECK(links.node.gap == built_in.node.gap, "a gap of %g", links.node.gap);
    TL_CHECK(onic_links_given(&links, "net: gap=5", from, "none.txt"), "with cost it is fatal");
    TL_CHECK(links.net.gap == 5 && links.node.gap == built_in.node.gap, "gaps of %g and %g",
             links.net.gap, links.node.gap);

    TL_CHECK(unlink(file) == 0 && rmdir(folder) == 0 && rmdir(dir) == 0 && rmdir(home) == 0,
             "%s is not removed", home);
    return tl_finish();
}
