/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include "test/mpi/refused.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "test/mpi/p2p.h"

/** Whole words, which are what the kernel is asked for. */
enum { TAG = 9, ROW = 1024, BEGIN = 8 };

/* ---- what the kernel is asked ---------------------------------------------------------------- */

/** Else libraries would not find it here. */
#define VISIBLE __attribute__((visibility("default")))

static atomic_int calls;

static ssize_t copy(long call, pid_t pid, const struct iovec *here, unsigned long nhere,
                    const struct iovec *there, unsigned long nthere, unsigned long flags)
{
    const ssize_t n = syscall(call, pid, here, nhere, there, nthere, flags);
    const int error = errno;
    size_t bytes = 0;

    for (unsigned long i = 0; i < nhere; i++)
        bytes += here[i].iov_len;
    if (n < 0 || (size_t)n < bytes)
        atomic_fetch_add(&calls, 1);
    errno = error;
    return n;
}

/* In place of the C library's. */
VISIBLE ssize_t process_vm_readv(pid_t pid, const struct iovec *here, unsigned long nhere,
                                 const struct iovec *there, unsigned long nthere,
                                 unsigned long flags)
{
    return copy(SYS_process_vm_readv, pid, here, nhere, there, nthere, flags);
}

VISIBLE ssize_t process_vm_writev(pid_t pid, const struct iovec *here, unsigned long nhere,
                                  const struct iovec *there, unsigned long nthere,
                                  unsigned long flags)
{
    return copy(SYS_process_vm_writev, pid, here, nhere, there, nthere, flags);
}

int refused_calls(void)
{
    return atomic_load(&calls);
}

bool refused_forbid(bool reads, int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};

    /* Allowed, as any other. */
    if (!reads)
        code[2].jt = 1;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

/* ---- traffic --------------------------------------------------------------------------------- */

static int neighbour(int by)
{
    return (tl_rank() + tl_size() + by) % tl_size();
}

void refused_message(void *from, void *to, int number)
{
    const int next = neighbour(1), before = neighbour(-1);

    p2p_fill(from, REFUSED_BYTES, p2p_seed(tl_rank(), TAG, number));
    memset(to, 0, REFUSED_BYTES);
    TL_MPI(MPI_Sendrecv(from, (int)REFUSED_BYTES, MPI_BYTE, next, TAG, to, (int)REFUSED_BYTES,
                        MPI_BYTE, before, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    TL_CHECK(p2p_holds(to, REFUSED_BYTES, p2p_seed(before, TAG, number)), "message %d", number);
    /* Its memory is free for the next one. */
    MPI_Barrier(MPI_COMM_WORLD);
}

tl_window_t refused_window(tl_kind_t kind, void *memory)
{
    const MPI_Aint bytes = (MPI_Aint)REFUSED_BYTES;
    tl_window_t w = {.comm = MPI_COMM_WORLD,
                     .kind = kind,
                     .rank = tl_rank(),
                     .size = tl_size(),
                     .base = memory,
                     .bytes = bytes};
    MPI_Aint at = 0;

    w.peer_base = tl_alloc((size_t)w.size * sizeof(*w.peer_base));
    if (kind == TL_DYNAMIC) {
        TL_MPI(MPI_Win_create_dynamic(MPI_INFO_NULL, w.comm, &w.win));
        TL_MPI(MPI_Win_attach(w.win, memory, bytes));
        TL_MPI(MPI_Get_address(memory, &at));
    } else {
        TL_MPI(MPI_Win_create(memory, bytes, 1, MPI_INFO_NULL, w.comm, &w.win));
    }
    TL_MPI(MPI_Win_set_errhandler(w.win, MPI_ERRORS_RETURN));
    TL_MPI(MPI_Allgather(&at, 1, MPI_AINT, w.peer_base, 1, MPI_AINT, w.comm));
    return w;
}

void refused_window_free(tl_window_t *w, void *memory)
{
    MPI_Barrier(w->comm);
    if (w->kind == TL_DYNAMIC)
        TL_MPI(MPI_Win_detach(w->win, memory));
    TL_MPI(MPI_Win_free(&w->win));
    free(w->peer_base);
}

/** Epochs of both kinds. */
static void begin(const tl_window_t *w, int target, int number)
{
    if (number % 2 == 0)
        TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win));
    else
        TL_MPI(MPI_Win_fence(MPI_MODE_NOPRECEDE, w->win));
}

static void end(const tl_window_t *w, int target, int number)
{
    if (number % 2 == 0)
        TL_MPI(MPI_Win_unlock(target, w->win));
    else
        TL_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win));
}

static void access_one(const tl_window_t *w, bool rows, int bytes, int number)
{
    const int next = neighbour(1), before = neighbour(-1), blocks = rows ? bytes / ROW : 1;
    const int block = rows ? ROW / 2 : bytes;
    const size_t last = (size_t)(blocks - 1) * ROW + (size_t)block;
    const MPI_Aint there = w->peer_base[next] + BEGIN;
    unsigned char *here = tl_alloc(last), *back = tl_alloc(last);
    MPI_Datatype type;

    MPI_Type_vector(blocks, block, ROW, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    p2p_fill(here, last, p2p_seed(tl_rank(), TAG, number));
    memset(w->base, 0, (size_t)w->bytes);
    MPI_Barrier(w->comm);
    begin(w, next, number);
    TL_MPI(MPI_Put(here, 1, type, next, there, 1, type, w->win));
    end(w, next, number);
    begin(w, next, number);
    TL_MPI(MPI_Get(back, 1, type, next, there, 1, type, w->win));
    end(w, next, number);
    MPI_Barrier(w->comm);
    for (int i = 0; i < blocks; i++)
        TL_BYTES(back + (size_t)i * ROW, here + (size_t)i * ROW, (size_t)block,
                 "got back, block %d of %d", i, blocks);
    p2p_fill(here, last, p2p_seed(before, TAG, number));
    for (int i = 0; i < blocks; i++)
        TL_BYTES(w->base + BEGIN + (size_t)i * ROW, here + (size_t)i * ROW, (size_t)block,
                 "put, block %d of %d", i, blocks);
    MPI_Barrier(w->comm);
    MPI_Type_free(&type);
    free(here);
    free(back);
}

void refused_accesses(const tl_window_t *w)
{
    static const int sizes[] = {8, 3072, 61440, (int)REFUSED_BYTES - BEGIN};

    for (int i = 0; i < 4; i++) {
        access_one(w, false, sizes[i], i);
        access_one(w, false, sizes[i], i + 1);
        if (sizes[i] > 2 * ROW) {
            access_one(w, true, sizes[i], i);
            access_one(w, true, sizes[i], i + 1);
        }
    }
}
