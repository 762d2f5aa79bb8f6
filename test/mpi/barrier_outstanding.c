/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-3,8 */
/* engines: auto shm put put2 datagram datagram2 lossy */
/**
 * @file
 * Many nonblocking barriers at once, on communicators that have set up no engine yet and on others
 * that have: completed in any order, by every call that completes; with blocking barriers and other
 * nonblocking collectives started in between, at other moments on each rank.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/mpi/meet.h"

enum { MANY = 40 };

/** Takes one more request to its end; false where none is left. */
static bool complete_one(MPI_Request *requests, const long *numbers, const meet_t *m, tl_rng_t *rng)
{
    int index = MPI_UNDEFINED, flag = 0;
    int how = (int)tl_range(rng, 0, 2);
    if (how == 0) {
        TL_MPI(MPI_Waitany(MANY, requests, &index, MPI_STATUS_IGNORE));
        flag = index != MPI_UNDEFINED;
    } else if (how == 1) {
        do {
            TL_MPI(MPI_Testany(MANY, requests, &index, &flag, MPI_STATUS_IGNORE));
        } while (!flag);
        flag = index != MPI_UNDEFINED;
    } else {
        /* The one of a random number, if it is not through. */
        index = (int)tl_range(rng, 0, MANY - 1);
        if (requests[index] == MPI_REQUEST_NULL)
            return true;
        while (!flag)
            TL_MPI(MPI_Test(&requests[index], &flag, MPI_STATUS_IGNORE));
    }
    if (flag)
        meet_leave(m, numbers[index], "one of many");
    return index != MPI_UNDEFINED;
}

static void many_at_once(meet_t *m, tl_rng_t *rng)
{
    MPI_Request requests[MANY];
    long numbers[MANY];
    for (int i = 0; i < MANY; i++) {
        meet_delay(rng, 100);
        numbers[i] = meet_ibarrier(m, &requests[i]);
    }
    while (complete_one(requests, numbers, m, rng)) {
    }
}

/** Collectives of other kinds go to the module below, whose order must not be disturbed. */
static void among_others(meet_t *m, tl_rng_t *rng)
{
    MPI_Request requests[3 * MANY];
    long numbers[MANY];
    int sums[MANY], data[MANY], one = 1;
    for (int i = 0; i < MANY; i++) {
        data[i] = m->rank == i % m->size ? i : -1;
        numbers[i] = meet_ibarrier(m, &requests[3 * i]);
        meet_delay(rng, 100);
        if (tl_range(rng, 0, 3) == 0) {
            int flag;
            TL_MPI(MPI_Test(&requests[3 * i], &flag, MPI_STATUS_IGNORE));
        }
        TL_MPI(MPI_Ibcast(&data[i], 1, MPI_INT, i % m->size, m->comm, &requests[3 * i + 1]));
        TL_MPI(MPI_Iallreduce(&one, &sums[i], 1, MPI_INT, MPI_SUM, m->comm, &requests[3 * i + 2]));
    }
    TL_MPI(MPI_Waitall(3 * MANY, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < MANY; i++) {
        meet_leave(m, numbers[i], "among others");
        TL_CHECK(data[i] == i && sums[i] == m->size, "round %d: %d, sum %d", i, data[i], sums[i]);
    }
}

/** Blocking ones in between wait for the outstanding, too, since these were called before. */
static void mixed(meet_t *m, tl_rng_t *rng)
{
    for (int i = 0; i < 30; i++) {
        MPI_Request requests[5];
        long numbers[5];
        for (int k = 0; k < 5; k++) {
            numbers[k] = meet_ibarrier(m, &requests[k]);
            meet_delay(rng, 50);
            if ((i + k) % 3 == 0)
                meet_barrier(m, "blocking, mixed");
        }
        for (int k = 4; k >= 0; k--) {
            TL_MPI(MPI_Wait(&requests[k], MPI_STATUS_IGNORE));
            meet_leave(m, numbers[k], "mixed");
        }
    }
}

/** Outstanding when its communicator is freed. */
static void freed_meanwhile(tl_rng_t *rng)
{
    for (int i = 0; i < 5; i++) {
        MPI_Comm dup;
        MPI_Request requests[12];
        TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
        /* Without an engine coll/libnbc does them, which in some versions of Open MPI forgets that
         * it still needs the communicator. */
        for (int k = 0; k < 12; k++)
            TL_MPI(MPI_Barrier(dup));
        for (int k = 0; k < 12; k++)
            TL_MPI(MPI_Ibarrier(dup, &requests[k]));
        meet_delay(rng, 200);
        TL_MPI(MPI_Comm_free(&dup));
        TL_MPI(MPI_Waitall(12, requests, MPI_STATUSES_IGNORE));
    }
}

/** Very many at once, by ranks that begin at very different times. */
static void very_many(tl_rng_t *rng)
{
    const int n = tl_slow() || tl_size() > 3 ? 5000 : 66000;
    MPI_Request *requests = tl_alloc((size_t)n * sizeof(MPI_Request)), last;
    MPI_Comm comm;
    TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    meet_t m = meet_new(comm);
    for (int i = 0; i < 10; i++)
        meet_barrier(&m, "before very many");
    meet_delay(rng, 1000);
    if (tl_rank() == tl_size() - 1)
        usleep(300000);
    for (int i = 0; i < n; i++)
        TL_MPI(MPI_Ibarrier(comm, &requests[i]));
    meet_barrier(&m, "behind very many");
    long number = meet_ibarrier(&m, &last);
    TL_MPI(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
    TL_MPI(MPI_Wait(&last, MPI_STATUS_IGNORE));
    meet_leave(&m, number, "last of very many");
    meet_free(&m);
    TL_MPI(MPI_Comm_free(&comm));
    free(requests);
}

int main(int argc, char **argv)
{
    void (*const cases[])(meet_t *, tl_rng_t *) = {many_at_once, among_others, mixed};
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_begin();
    tl_rng_t rng = tl_rng(tl_seed(), (uint64_t)tl_rank());
    for (int i = 0; i < 6; i++) {
        MPI_Comm comm;
        TL_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 ? -tl_rank() : 0, &comm));
        meet_t m = meet_new(comm);
        for (int k = 0; k < 3; k++)
            cases[(i + k) % 3](&m, &rng);
        meet_free(&m);
        TL_MPI(MPI_Comm_free(&comm));
        if (i == 0 && tl_rank() == 0) {
            /* For who wants to disturb what follows. */
            puts("ready");
            fflush(stdout);
        }
    }
    freed_meanwhile(&rng);
    very_many(&rng);
    meet_check_engine(1000);
    return meet_finish();
}
