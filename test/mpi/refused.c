/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-3 */
/* windows: create dynamic */
/* methods: auto cma sieve pack pipeline rdma */
/* p2p: auto copy pipeline */
/* arguments: later */
/* arguments: writes */
/* arguments: memory */
/* arguments: user */
/* arguments: one_way */
/* timeout: 120 */
/**
 * @file
 * The kernel refuses to copy between processes: messages and windows are right all the same,
 * nothing is an error, and the kernel is not asked again for what it has refused. What the library
 * asks of it passes functions here, which it finds by name.
 *
 *  later    processes forbid themselves to copy, by a filter of system calls, after MPI has done so
 *           for a while, each with an error of its own
 *  writes   they forbid themselves to write, and still may read: that costs neither gets nor the
 *           single copy of messages
 *  memory   windows and messages in memory that the kernel does not copy, all of it or the end:
 *           secret memory (memfd_secret), as that of devices. Usual memory is not concerned
 *  user     rank 1 becomes another user, of the same group, after MPI_Init, and rank 2 lets nobody
 *           look into it: they cannot open the files of others then
 *  one_way  rank 1 has a user namespace of its own, and into rank 2 nobody may look: memory of the
 *           one is mapped and copied by the other, and none the other way
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "test/mpi/counter.h"
#include "test/mpi/p2p.h"

/** Of one message, and of what is put and got at most. */
#define REFUSED_BYTES ((size_t)1 << 19)
/** Gets of refused_accesses. */
#define REFUSED_GETS 14
/** Not root; it has nothing on the machine. */
#define USER 65534

/** Whole words, which are what the kernel is asked for. What may be locked is little for most
 *  users. */
enum { TAG = 9, ROW = 1024, BEGIN = 8, END = 1 << 16 };

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif

/* ---- what the kernel is asked ---------------------------------------------------------------- */

/** Else libraries would not find it here. */
#define VISIBLE __attribute__((visibility("default")))

static atomic_int failures;

static ssize_t copy(long call, pid_t pid, const struct iovec *here, unsigned long nhere,
                    const struct iovec *there, unsigned long nthere, unsigned long flags)
{
    const ssize_t n = syscall(call, pid, here, nhere, there, nthere, flags);
    const int error = errno;
    size_t bytes = 0;

    for (unsigned long i = 0; i < nhere; i++)
        bytes += here[i].iov_len;
    if (n < 0 || (size_t)n < bytes)
        atomic_fetch_add(&failures, 1);
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

/** Calls of this process that copied less than they were asked for. */
static int refused_calls(void)
{
    return atomic_load(&failures);
}

/** Forbids this process, all its threads, to write to others by process_vm_writev, and to read,
 * too, where `reads`: those fail with this error from now on. Skips where a process cannot do that.
 */
static void refused_forbid(bool reads, int error)
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
    int all =
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
    TL_MPI(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD));
    if (!all)
        tl_skip("system calls cannot be filtered here");
}

/* ---- traffic --------------------------------------------------------------------------------- */

static int neighbour(int by)
{
    return (tl_rank() + tl_size() + by) % tl_size();
}

/** Each process sends one to the next; both have one piece of memory for it. */
static void refused_message(void *from, void *to, int number)
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

/** A window over `memory` of each process, by all of MPI_COMM_WORLD. */
static tl_window_t refused_window(tl_kind_t kind, void *memory)
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

static void refused_window_free(tl_window_t *w, void *memory)
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

/** Each process puts to the next and gets that again: some bytes and many, rows and all. */
static void refused_accesses(const tl_window_t *w)
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

static void refused_messages(void *from, void *to, int n)
{
    for (int i = 0; i < n; i++)
        refused_message(from, to, i);
}

/** Memory of each process. */
static void *from, *to, *first, *second;

/* ---- later ----------------------------------------------------------------------------------- */

static void run_later(tl_kind_t kind)
{
    static const int errors[] = {EPERM, ENOSYS, EACCES};
    tl_window_t before = refused_window(kind, first), after;

    refused_message(from, to, 0);
    refused_accesses(&before);
    refused_forbid(true, errors[tl_rank()]);
    const int calls = refused_calls();
    refused_messages(from, to, 4);
    refused_accesses(&before);
    refused_accesses(&before);
    after = refused_window(kind, second);
    refused_accesses(&after);
    /* By the receiver of messages, and by a put and a get in each window. */
    TL_CHECK(refused_calls() - calls <= 5, "window %s: the kernel was asked %d times",
             tl_kind_name(kind), refused_calls() - calls);
    refused_window_free(&before, first);
    refused_window_free(&after, second);
}

/* ---- writes ---------------------------------------------------------------------------------- */

/** A counter of what must go so where that is forced; else NULL. */
static counter_t *forced(const char *variable, const char *value, const char *name)
{
    const char *set = getenv(variable);

    return set != NULL && strcmp(set, value) == 0 ? counter_begin(name) : NULL;
}

/** Accesses, whose gets go by single copy where that is forced. */
static void accesses(const tl_window_t *w, const char *when)
{
    counter_t *c = forced("OMPI_MCA_osc_nicstride_method", "cma", "osc_nicstride_ops_cma");

    refused_accesses(w);
    TL_CHECK(c == NULL || counter_read(c) >= REFUSED_GETS, "window %s, made %s: %llu of %d gets",
             tl_kind_name(w->kind), when, counter_read(c), REFUSED_GETS);
    counter_end(c);
}

static void run_writes(tl_kind_t kind)
{
    tl_window_t before = refused_window(kind, first), after;

    refused_accesses(&before);
    refused_forbid(false, EPERM);
    accesses(&before, "before");
    after = refused_window(kind, second);
    accesses(&after, "after");
    counter_t *c = forced("OMPI_MCA_pml_superpipe_protocol", "copy", "pml_superpipe_messages_copy");
    refused_message(from, to, 0);
    TL_CHECK(c == NULL || counter_read(c) == 1, "a message went without single copy");
    counter_end(c);
    refused_window_free(&before, first);
    refused_window_free(&after, second);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/** In place of what is at `at`, where that is given. NULL where the kernel has no such memory. */
static unsigned char *secret(void *at, size_t bytes)
{
    const int fd = (int)syscall(SYS_memfd_secret, 0);
    unsigned char *memory = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
        memory = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (at != NULL ? MAP_FIXED : 0),
                      fd, 0);
    if (fd >= 0)
        close(fd);
    return memory != MAP_FAILED ? memory : NULL;
}

/** Usual memory, the last `bytes` of which are secret. NULL as above. */
static unsigned char *usual(size_t bytes)
{
    unsigned char *memory =
        mmap(NULL, REFUSED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        tl_die("no memory");
    return bytes == 0 || secret(memory + REFUSED_BYTES - bytes, bytes) != NULL ? memory : NULL;
}

/** Does the kernel refuse it? */
static bool is_refused(const unsigned char *at)
{
    unsigned char word[8];
    const struct iovec here = {word, sizeof(word)};
    const struct iovec there = {(void *)(uintptr_t)at, sizeof(word)};

    return syscall(SYS_process_vm_readv, getpid(), &here, 1, &there, 1, 0) != sizeof(word);
}

static void few_calls(unsigned char *source, unsigned char *sink)
{
    const int before = refused_calls();

    refused_messages(source, sink, 4);
    TL_CHECK(refused_calls() - before <= 1, "the kernel was asked %d times",
             refused_calls() - before);
}

static void window(tl_kind_t kind, unsigned char *memory, int most)
{
    tl_window_t w = refused_window(kind, memory);
    const int before = refused_calls();

    refused_accesses(&w);
    refused_accesses(&w);
    TL_CHECK(refused_calls() - before <= most, "window %s: the kernel was asked %d times",
             tl_kind_name(kind), refused_calls() - before);
    refused_window_free(&w, memory);
}

static void run_memory(tl_kind_t kind)
{
    unsigned char *plain, *end, *all, *sink;
    int have;

    plain = usual(0);
    sink = usual(0);
    end = usual(END);
    all = secret(NULL, REFUSED_BYTES);
    have = end != NULL && is_refused(end + REFUSED_BYTES - END);
    TL_MPI(MPI_Allreduce(MPI_IN_PLACE, &have, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD));
    if (!have)
        tl_skip("there is no memory that the kernel does not copy");
    /* It is more than some may lock. */
    have = all != NULL;
    TL_MPI(MPI_Allreduce(MPI_IN_PLACE, &have, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD));
    few_calls(end, sink);
    few_calls(plain, end);
    window(kind, end, 2);
    if (have)
        window(kind, all, 2);
    window(kind, plain, 0);
    if (have)
        few_calls(all, sink);
}

/* ---- user, one way --------------------------------------------------------------------------- */

static void run_apart(tl_kind_t kind)
{
    tl_window_t w = refused_window(kind, first);

    refused_messages(from, to, 4);
    refused_accesses(&w);
    const int calls = refused_calls();
    refused_accesses(&w);
    refused_messages(from, to, 4);
    TL_CHECK(refused_calls() == calls, "the kernel was asked %d times more",
             refused_calls() - calls);
    refused_window_free(&w, first);
}

static bool write_file(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY);
    const bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0)
        close(fd);
    return written;
}

/** With the same user and group, or the launcher takes it for another's. */
static bool enter_namespace(void)
{
    char users[64], groups[64];

    snprintf(users, sizeof(users), "%u %u 1", (unsigned)getuid(), (unsigned)getuid());
    snprintf(groups, sizeof(groups), "%u %u 1", (unsigned)getgid(), (unsigned)getgid());
    return unshare(CLONE_NEWUSER) == 0 && write_file("/proc/self/setgroups", "deny") &&
           write_file("/proc/self/uid_map", users) && write_file("/proc/self/gid_map", groups);
}

static const struct {
    const char *name;
    void (*run)(tl_kind_t);
} cases[] = {{"later", run_later},
             {"writes", run_writes},
             {"memory", run_memory},
             {"user", run_apart},
             {"one_way", run_apart}};

int main(int argc, char **argv)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    const int me = rank != NULL ? atoi(rank) : 0;
    const bool user = argc > 1 && tl_asked_for("user", argc, argv),
               one_way = argc > 1 && tl_asked_for("one_way", argc, argv);
    int all = 1;

    /* Before MPI_Init, which maps memory of others. */
    if (one_way && me == 1)
        all = enter_namespace();
    else if (one_way && me == 2)
        tl_closed(true);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    TL_MPI(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD));
    if (!all)
        tl_skip("no user namespace can be made here");
    if (user && geteuid() != 0)
        tl_skip("only root can become another user");
    if (user && me == 1)
        TL_CHECK(setresuid(USER, USER, USER) == 0, "setresuid");
    else if (user && me == 2)
        tl_closed(true);
    from = tl_alloc(REFUSED_BYTES);
    to = tl_alloc(REFUSED_BYTES);
    first = tl_alloc(REFUSED_BYTES);
    second = tl_alloc(REFUSED_BYTES);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind))
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
            if (argc > 1 && tl_asked_for(cases[i].name, argc, argv))
                cases[i].run(kind);
    free(from);
    free(to);
    free(first);
    free(second);
    return tl_finish();
}
