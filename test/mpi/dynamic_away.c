/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-3 */
/* methods: auto cma */
/* mpirun: --mca osc_nicstride_server 0 */
/**
 * @file
 * Puts to a dynamic window whose target is away from MPI, with nobody to answer for it: a put must
 * not wait. That the memory is attached is shown to all of the node, so that each put can go by
 * single copy, without the target.
 */
#define _GNU_SOURCE
#include "test/mpi/meet.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "test/mpi/counter.h"

enum { BYTES = 65536, ROUNDS = 3 };

/** Away from MPI until a rank's put of this round has returned. */
static void stay_away(const meet_t *board, int who, int round)
{
    for (int ms = 0; meet_entered(board, who) <= round && ms < TL_PATIENCE * 1000; ms++)
        usleep(1000);
    TL_CHECK(meet_entered(board, who) > round, "a put waits for its target");
}

/** Does the kernel let this process read another one of the job? */
static bool can_copy(pid_t pid, MPI_Aint address)
{
    char byte;
    const struct iovec local = {&byte, 1}, remote = {(void *)address, 1};

    return process_vm_readv(pid, &local, 1, &remote, 1, 0) == 1;
}

int main(int argc, char **argv)
{
    const char *method = getenv("OMPI_MCA_osc_nicstride_method");
    int provided;
    MPI_Win win;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    const int rank = tl_rank(), size = tl_size(), from = (rank + size - 1) % size;
    char *memory = tl_alloc(BYTES), *data = tl_alloc(BYTES);
    counter_t *copies = counter_begin("osc_nicstride_ops_cma");
    meet_t board = meet_new(MPI_COMM_WORLD);
    MPI_Aint mine, addresses[8];
    pid_t pid = getpid(), pids[8];

    TL_MPI(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    TL_MPI(MPI_Win_attach(win, memory, BYTES));
    TL_MPI(MPI_Get_address(memory, &mine));
    TL_MPI(MPI_Allgather(&mine, 1, MPI_AINT, addresses, 1, MPI_AINT, MPI_COMM_WORLD));
    TL_MPI(MPI_Allgather(&pid, sizeof(pid), MPI_BYTE, pids, sizeof(pid), MPI_BYTE, MPI_COMM_WORLD));
    TL_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    for (int round = 0; round < ROUNDS; round++) {
        memset(data, 16 * round + rank, BYTES);
        TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
        /* One puts while all others are away. */
        for (int who = 0; who < size; who++) {
            const int to = (who + 1) % size;

            if (who == rank) {
                TL_MPI(MPI_Put(data, BYTES, MPI_BYTE, to, addresses[to], BYTES, MPI_BYTE, win));
                (void)meet_enter(&board);
                TL_MPI(MPI_Win_flush(to, win));
            } else {
                stay_away(&board, who, round);
            }
            TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
        }
        for (int i = 0; i < BYTES; i += BYTES - 1) {
            TL_CHECK(memory[i] == 16 * round + from, "round %d: byte %d is %d", round, i,
                     memory[i]);
        }
        TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    }
    TL_CHECK(copies == NULL || method == NULL || strcmp(method, "cma") != 0 || !tl_one_host() ||
                 !can_copy(pids[(rank + 1) % size], addresses[(rank + 1) % size]) ||
                 counter_read(copies) == ROUNDS,
             "%llu of %d puts have gone by single copy", counter_read(copies), ROUNDS);
    TL_MPI(MPI_Win_unlock_all(win));
    TL_MPI(MPI_Win_free(&win));
    counter_end(copies);
    meet_free(&board);
    MPI_T_finalize();
    free(memory);
    free(data);
    return tl_finish();
}
