/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What the tests of barriers share: a board in shared memory, on which each rank of a communicator
 * writes how many barriers it has entered, so that whoever leaves one can see whether all others
 * had entered it; random delays; and the component's counters.
 *
 * One machine only, but possibly several hosts that are namespaces on it.
 */
#pragma once

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "test/mpi/testlib.h"

/** Collective. Call meet_begin after tl_init, since counters count from then on, and end by
 *  meet_finish in place of tl_finish. */
void meet_begin(void);
int meet_finish(void);

/** The class of the errors of what a dead process was to do. */
#ifdef MPI_ERR_PROC_FAILED
#define GONE MPI_ERR_PROC_FAILED
#else
#define GONE MPI_ERR_OTHER
#endif

/** Before tl_init: the process that was launched stays behind and ends as this one, its child,
 *  does, but well where that is killed. So a rank can die without the launcher's ending the job. */
void meet_begin_as_child(void);

/** Entries of a directory whose names begin so. */
int meet_entries(const char *path, const char *prefix);
/** Mappings of this process. */
int meet_mappings(void);

typedef struct meet {
    MPI_Comm comm;
    int rank;
    int size;
    _Atomic long *entered; /**< of each rank */
    long mine;
    void *memory;
    size_t bytes;
} meet_t;

/** Collective over `comm`, without barriers: a board with zeros. */
meet_t meet_new(MPI_Comm comm);
/** Local. */
void meet_free(meet_t *m);

/** I am about to enter the next barrier; returns its number, from 1. */
long meet_enter(meet_t *m);
/** How many a rank has entered. */
long meet_entered(const meet_t *m, int rank);
/** I have left barrier `n`: checks that everybody has entered it. */
void meet_leave(const meet_t *m, long n, const char *what);

/** A barrier between meet_enter and meet_leave. */
void meet_barrier(meet_t *m, const char *what);
/** An ibarrier after meet_enter. */
long meet_ibarrier(meet_t *m, MPI_Request *request);

/** Nothing most of the time, otherwise up to `usec` microseconds, asleep or computing. */
void meet_delay(tl_rng_t *rng, int usec);

/** A performance variable of the component, such as "barriers_shm", since meet_begin; -1 where
 *  the component is not loaded. A name that it does not have is a failed check. */
long long meet_counter(const char *name);

/** The engine that the runner has forced: "auto", "shm", "put" or "datagram"; NULL where the
 *  component is not in use. */
const char *meet_engine(void);

/** Standard error goes to a file for a while, so that the component's lines can be counted. Made
 *  before files run out. */
typedef struct meet_errors {
    int file;
    int old;
} meet_errors_t;

/** Local, also before tl_init. */
meet_errors_t meet_catch_errors(void);
/** Collective: ends it; returns how often all ranks have written this text. */
int meet_count_errors(meet_errors_t *errors, const char *what);

/** How many barriers of this process were carried by the forced engine, any of them for auto. Only
 *  where meet_engine is not NULL. */
long long meet_carried(void);

/** Checks that at least `least` barriers of this process were carried by the forced engine (any of
 *  them for auto), and that no agreement was declined. */
void meet_check_engine(long long least);
