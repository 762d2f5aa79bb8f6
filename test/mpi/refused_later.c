/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-3 */
/* windows: create dynamic */
/* methods: auto cma sieve pack mover */
/* p2p: */
/**
 * @file
 * Processes that forbid themselves to copy, by a filter of system calls, after MPI has done so for
 * a while, each with an error of its own: messages and windows go on, those made before and those
 * made after, and the kernel is asked once for each peer and each window that knew better.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test/mpi/refused.h"

/** All threads of the process. False where the kernel or its user does not have that. */
static bool forbid(int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

int main(int argc, char **argv)
{
    static const int errors[] = {EPERM, ENOSYS, EACCES};
    void *from = tl_alloc(REFUSED_BYTES), *to = tl_alloc(REFUSED_BYTES);
    void *first = tl_alloc(REFUSED_BYTES), *second = tl_alloc(REFUSED_BYTES);

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t before = refused_window(kind, first), after;
        int all;

        refused_message(from, to, 0);
        refused_accesses(&before);
        all = forbid(errors[tl_rank()]);
        TL_MPI(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD));
        if (!all)
            tl_skip("system calls cannot be filtered here");
        const int calls = refused_calls();
        for (int i = 0; i < 4; i++)
            refused_message(from, to, i);
        refused_accesses(&before);
        refused_accesses(&before);
        after = refused_window(kind, second);
        refused_accesses(&after);
        /* By the receiver of messages, by the put and by the get in the window of before; one more
         * of each where none had needed it before. */
        TL_CHECK(refused_calls() - calls <= 4, "window %s: the kernel was asked %d times",
                 tl_kind_name(kind), refused_calls() - calls);
        refused_window_free(&before, first);
        refused_window_free(&after, second);
    }
    free(from);
    free(to);
    free(first);
    free(second);
    return tl_finish();
}
