/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-7 */
/* windows: allocate */
/* methods: auto */
/* says: Not all processes of a window have the same version */
/**
 * @file
 * One process, of the same node as others, has other parameters, or must not use the component: all
 * find that out before they make a window together, also those that never ask for that process, and
 * another component makes it. Windows without the process are as ever. Which process differs, and
 * in what, depends on the number of ranks.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>

#include "test/mpi/counter.h"

enum { ROUNDS = 3 };

/** The rank that differs, from its number of ranks. */
static int odd_of(int size)
{
    const int odd[] = {1, 0, 3, 2, 5, 4};

    return odd[size - 2];
}

static int number_of(const char *variable)
{
    const char *text = getenv(variable);

    return text != NULL ? atoi(text) : -1;
}

/** Other components may make windows, too. False where nobody says which rank this is, or the
 *  component is not asked for. */
static bool differ(void)
{
    static const struct {
        const char *variable, *value;
    } others[] = {{"OMPI_MCA_osc_nicstride_node", "0"},
                  {"OMPI_MCA_osc_nicstride_priority", "201"},
                  {"OMPI_MCA_osc", "^nicstride,ucx,sm"}};
    const int rank = number_of("OMPI_COMM_WORLD_RANK"), size = number_of("OMPI_COMM_WORLD_SIZE");
    const char *osc = getenv("OMPI_MCA_osc");

    if (rank < 0 || size < 2 || size > 7 || osc == NULL || strcmp(osc, "nicstride") != 0)
        return false;
    setenv("OMPI_MCA_osc", "^ucx,sm", 1);
    setenv("OMPI_MCA_osc_nicstride_priority", "200", 1);
    if (rank == odd_of(size))
        setenv(others[size % 3].variable, others[size % 3].value, 1);
    return true;
}

/** Makes windows of the communicator and uses them; does our component? */
static void check(MPI_Comm comm, bool ours, const char *what)
{
    counter_t *made = counter_begin("osc_nicstride_collectives");
    int me, size;

    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < ROUNDS; i++) {
        int *base;
        MPI_Win win;

        TL_MPI(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &base, &win));
        *base = -1;
        TL_MPI(MPI_Win_fence(0, win));
        TL_MPI(MPI_Put(&me, 1, MPI_INT, (me + 1) % size, 0, 1, MPI_INT, win));
        TL_MPI(MPI_Win_fence(0, win));
        TL_CHECK(*base == (me + size - 1) % size, "%s: %d came", what, *base);
        TL_MPI(MPI_Win_free(&win));
    }
    /* One each where no window is made. */
    TL_CHECK(made == NULL || (counter_read(made) > ROUNDS) == ours, "%s: %llu collectives", what,
             counter_read(made));
    counter_end(made);
}

int main(int argc, char **argv)
{
    const bool differs = differ();
    MPI_Comm rest, reversed;
    int provided;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    TL_MPI(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    if (!differs)
        tl_skip("another component makes windows, or the rank is not known in time");
    const int odd = odd_of(tl_size());

    TL_MPI(MPI_Comm_split(MPI_COMM_WORLD, tl_rank() == odd ? MPI_UNDEFINED : 0, 0, &rest));
    TL_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, -tl_rank(), &reversed));
    check(MPI_COMM_WORLD, false, "all");
    if (rest != MPI_COMM_NULL) {
        check(rest, true, "the rest");
        TL_MPI(MPI_Comm_free(&rest));
    }
    check(reversed, false, "all in reverse");
    TL_MPI(MPI_Comm_free(&reversed));
    TL_MPI(MPI_T_finalize());
    return tl_finish();
}
