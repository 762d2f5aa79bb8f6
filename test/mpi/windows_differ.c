/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 4 8 */
/* windows: allocate */
/* methods: auto */
/* sanitized: pairs */
/* says: Not all processes of a window have the same version */
/**
 * @file
 * Some processes, of the same node as others, have other parameters, or must not use the component,
 * each differs in something else: where one of them is among those that make a window all find that
 * out before, also those that never ask for that process, and another component makes it. Windows
 * without them are as ever.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>

#include "test/mpi/counter.h"

enum { ROUNDS = 2 };

/** Each rank with an odd number differs. */
static bool is_odd(int rank)
{
    return rank % 2 == 1;
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
                  {"OMPI_MCA_osc", "^nicstride,ucx,sm"},
                  {"OMPI_MCA_osc", "^ucx,sm,monitoring"}};
    const int rank = number_of("OMPI_COMM_WORLD_RANK"), size = number_of("OMPI_COMM_WORLD_SIZE");
    const char *osc = getenv("OMPI_MCA_osc");

    if (rank < 0 || size < 2 || size > 8 || osc == NULL || strcmp(osc, "nicstride") != 0)
        return false;
    setenv("OMPI_MCA_osc", "^ucx,sm", 1);
    setenv("OMPI_MCA_osc_nicstride_priority", "200", 1);
    if (is_odd(rank))
        setenv(others[rank / 2].variable, others[rank / 2].value, 1);
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

/** Those that are alike, and one more, which is the first or not. */
static void check_with(int odd, bool is_first)
{
    const bool joins = !is_odd(tl_rank()) || tl_rank() == odd;
    const int key = tl_rank() == odd && is_first ? -1 : tl_rank();
    MPI_Comm comm;

    TL_MPI(MPI_Comm_split(MPI_COMM_WORLD, joins ? 0 : MPI_UNDEFINED, key, &comm));
    if (comm == MPI_COMM_NULL)
        return;
    check(comm, false, is_first ? "a first one that differs" : "one that differs");
    TL_MPI(MPI_Comm_free(&comm));
}

int main(int argc, char **argv)
{
    const bool differs = differ();
    MPI_Comm alike;
    int provided;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    TL_MPI(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    if (!differs)
        tl_skip("another component makes windows, or the rank is not known in time");
    check(MPI_COMM_WORLD, false, "all");
    TL_MPI(MPI_Comm_split(MPI_COMM_WORLD, is_odd(tl_rank()), 0, &alike));
    if (!is_odd(tl_rank()))
        check(alike, true, "all that are alike");
    TL_MPI(MPI_Comm_free(&alike));
    for (int odd = 1; odd < tl_size(); odd += 2) {
        check_with(odd, false);
        check_with(odd, true);
    }
    TL_MPI(MPI_T_finalize());
    return tl_finish();
}
