/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * How long processes are in calls of MPI, by kind of call: what `ompi-nic-info run` preloads, to
 * compare the components with Open MPI's own. In MPI_Finalize each process prints one line.
 *
 * All arguments of these functions are integers and pointers, each of which is a register or a word
 * of the stack. So they are handed on as words, and those of C and of Fortran are wrapped alike.
 * MPI's libraries are not linked, since what is preloaded is preloaded into mpirun, too.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* MPI_Rget_accumulate of Fortran has 14 arguments. */
#define PARAMETERS                                                                                 \
    intptr_t a, intptr_t b, intptr_t c, intptr_t d, intptr_t e, intptr_t f, intptr_t g,            \
        intptr_t h, intptr_t i, intptr_t j, intptr_t k, intptr_t l, intptr_t m, intptr_t n
#define ARGUMENTS a, b, c, d, e, f, g, h, i, j, k, l, m, n

typedef int call_t(PARAMETERS);

typedef enum kind { OPERATIONS, SYNCHRONISATION, MESSAGES, WAITS, BARRIERS, KINDS } kind_t;

static const char *const names[KINDS] = {"operations", "synchronisation", "messages", "waits",
                                         "barriers"};
static atomic_uint_fast64_t calls[KINDS], nsec[KINDS];

/** The next function of that name, a tool's or MPI's own; where a program has loaded MPI's library
 *  for itself, as Python does, MPI's by its other name. */
static void find(_Atomic(call_t *) *function, const char *next, const char *library,
                 const char *name)
{
    void *handle;
    call_t *found = NULL;

    *(void **)&found = dlsym(RTLD_NEXT, next);
    if (found == NULL && (handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD)) != NULL)
        *(void **)&found = dlsym(handle, name);
    if (found == NULL) {
        fprintf(stderr, "ompi-nic-info run: there is no %s in %s\n", name, library);
        exit(1);
    }
    atomic_store(function, found);
}

static uint64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int timed(call_t *function, kind_t kind, PARAMETERS)
{
    const uint64_t began = now();
    const int code = function(ARGUMENTS);

    atomic_fetch_add_explicit(&nsec[kind], now() - began, memory_order_relaxed);
    atomic_fetch_add_explicit(&calls[kind], 1, memory_order_relaxed);
    return code;
}

static void say(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    char line[512];
    int at = 0;

    for (int kind = 0; kind < KINDS; kind++)
        at += snprintf(line + at, sizeof(line) - (size_t)at, " %s %llu %llu", names[kind],
                       (unsigned long long)calls[kind], (unsigned long long)nsec[kind]);
    fprintf(stderr, "ompi_nic_times: rank %s%s\n", rank != NULL ? rank : "0", line);
}

/** Of Fortran, a function returns nothing; what is handed on then nobody reads. */
#define WRAP(name, library, own, body)                                                             \
    __attribute__((visibility("default"))) int name(PARAMETERS);                                   \
    int name(PARAMETERS)                                                                           \
    {                                                                                              \
        static _Atomic(call_t *) function;                                                         \
                                                                                                   \
        if (atomic_load(&function) == NULL)                                                        \
            find(&function, #name, library, own);                                                  \
        body                                                                                       \
    }

/* Three names: of C, of mpif.h and module mpi, and what module mpi_f08 calls. */
#define EACH(Name, name, body)                                                                     \
    WRAP(MPI_##Name, "libmpi.so.40", "PMPI_" #Name, body)                                          \
    WRAP(mpi_##name##_, "libmpi_mpifh.so.40", "pmpi_" #name "_", body)                             \
    WRAP(ompi_##name##_f, "libmpi_mpifh.so.40", "pmpi_" #name "_", body)

#define TIMED(kind, Name, name) EACH(Name, name, return timed(function, kind, ARGUMENTS);)

TIMED(OPERATIONS, Put, put)
TIMED(OPERATIONS, Get, get)
TIMED(OPERATIONS, Accumulate, accumulate)
TIMED(OPERATIONS, Get_accumulate, get_accumulate)
TIMED(OPERATIONS, Fetch_and_op, fetch_and_op)
TIMED(OPERATIONS, Compare_and_swap, compare_and_swap)
TIMED(OPERATIONS, Rput, rput)
TIMED(OPERATIONS, Rget, rget)
TIMED(OPERATIONS, Raccumulate, raccumulate)
TIMED(OPERATIONS, Rget_accumulate, rget_accumulate)
TIMED(SYNCHRONISATION, Win_fence, win_fence)
TIMED(SYNCHRONISATION, Win_post, win_post)
TIMED(SYNCHRONISATION, Win_start, win_start)
TIMED(SYNCHRONISATION, Win_complete, win_complete)
TIMED(SYNCHRONISATION, Win_wait, win_wait)
TIMED(SYNCHRONISATION, Win_test, win_test)
TIMED(SYNCHRONISATION, Win_lock, win_lock)
TIMED(SYNCHRONISATION, Win_unlock, win_unlock)
TIMED(SYNCHRONISATION, Win_lock_all, win_lock_all)
TIMED(SYNCHRONISATION, Win_unlock_all, win_unlock_all)
TIMED(SYNCHRONISATION, Win_flush, win_flush)
TIMED(SYNCHRONISATION, Win_flush_all, win_flush_all)
TIMED(SYNCHRONISATION, Win_flush_local, win_flush_local)
TIMED(SYNCHRONISATION, Win_flush_local_all, win_flush_local_all)
TIMED(SYNCHRONISATION, Win_sync, win_sync)
TIMED(MESSAGES, Send, send)
TIMED(MESSAGES, Ssend, ssend)
TIMED(MESSAGES, Bsend, bsend)
TIMED(MESSAGES, Rsend, rsend)
TIMED(MESSAGES, Isend, isend)
TIMED(MESSAGES, Issend, issend)
TIMED(MESSAGES, Ibsend, ibsend)
TIMED(MESSAGES, Irsend, irsend)
TIMED(MESSAGES, Recv, recv)
TIMED(MESSAGES, Irecv, irecv)
TIMED(MESSAGES, Mrecv, mrecv)
TIMED(MESSAGES, Sendrecv, sendrecv)
TIMED(MESSAGES, Sendrecv_replace, sendrecv_replace)
TIMED(MESSAGES, Start, start)
TIMED(MESSAGES, Startall, startall)
TIMED(MESSAGES, Probe, probe)
TIMED(MESSAGES, Iprobe, iprobe)
TIMED(WAITS, Wait, wait)
TIMED(WAITS, Waitall, waitall)
TIMED(WAITS, Waitany, waitany)
TIMED(WAITS, Waitsome, waitsome)
TIMED(WAITS, Test, test)
TIMED(WAITS, Testall, testall)
TIMED(WAITS, Testany, testany)
TIMED(WAITS, Testsome, testsome)
TIMED(BARRIERS, Barrier, barrier)
TIMED(BARRIERS, Ibarrier, ibarrier)

EACH(Finalize, finalize, say(); return atomic_load(&function)(ARGUMENTS);)
