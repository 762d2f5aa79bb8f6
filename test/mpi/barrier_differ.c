/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-5 */
/* engines: auto datagram */
/* apart: transport */
/**
 * @file
 * A rank whose parameters differ in what must be the same. With two ranks they differ in the call
 * that sets up the engine, with more in something else. It follows rank 0, as all do: nobody hangs,
 * the engine does the barriers, and whoever differs says so, once for each
 * node. With engine datagram it is rank 0 that differs, and all others follow it.
 */
#include "test/mpi/meet.h"

#include <stdlib.h>
#include <string.h>

enum { MANY = 40 };

static int number_of(const char *variable)
{
    const char *text = getenv(variable);
    return text != NULL ? atoi(text) : -1;
}

/** The last rank is the one that is different, or the first. False where nobody says which rank
 *  this is. */
static bool differ(bool first)
{
    static const struct {
        const char *variable, *value;
    } values[] = {{"OMPI_MCA_coll_nicbarrier_setup_call", "3"},
                  {"OMPI_MCA_coll_nicbarrier_priority", "5"},
                  {"OMPI_MCA_coll_nicbarrier_schedule", "gather"},
                  {"OMPI_MCA_coll_nicbarrier_engine", "put"}};
    int rank = number_of("OMPI_COMM_WORLD_RANK"), size = number_of("OMPI_COMM_WORLD_SIZE");
    if (rank < 0 || size < 2 || size > 5)
        return false;
    if (rank == (first ? 0 : size - 1))
        setenv(values[size - 2].variable, values[size - 2].value, 1);
    return true;
}

static void many(meet_t *m)
{
    for (int i = 0; i < MANY; i++) {
        MPI_Request request;
        meet_barrier(m, "blocking");
        long number = meet_ibarrier(m, &request);
        TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        meet_leave(m, number, "nonblocking");
    }
}

int main(int argc, char **argv)
{
    const char *priority = getenv("OMPI_MCA_coll_nicbarrier_priority");
    const char *engine = getenv("OMPI_MCA_coll_nicbarrier_engine");
    bool in_use = priority != NULL && atoi(priority) > 30;
    bool first = engine != NULL && strcmp(engine, "datagram") == 0, differs = differ(first);
    meet_errors_t errors = meet_catch_errors();
    int one = 1, sum = 0;
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    int says = meet_count_errors(&errors, "They use those of rank 0");
    meet_begin();
    if (!in_use || !differs)
        tl_skip("another component does the barriers, or the rank is not known in time");
    meet_t m = meet_new(MPI_COMM_WORLD);
    many(&m);
    TL_MPI(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    TL_CHECK(sum == tl_size(), "%d ranks", sum);
    /* Where rank 0 has not asked for this component nobody has. */
    int agreements = first && tl_size() == 3 ? 0 : 1;
    TL_CHECK(meet_counter("agreements") == agreements, "%lld agreements, not %d",
             meet_counter("agreements"), agreements);
    TL_CHECK(meet_counter("declined") == 0, "%lld declined", meet_counter("declined"));
    TL_CHECK(says >= 1 && says <= (first && !tl_one_host() ? tl_size() - 1 : 1),
             "%d texts say who differs", says);
    meet_free(&m);
    return meet_finish();
}
