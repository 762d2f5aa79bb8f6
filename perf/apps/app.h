/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What the applications share: options, three times of a step, a check of its numbers, and by which
 * methods osc_nicstride has moved the data, where it has.
 *
 * A step is timed as the program does it, with what it overlaps; its computing by itself; its
 * communication by itself. Batches of the three take turns, and the medians count. The numbers are
 * compared after each batch of whole steps, which therefore differ from one step to the next.
 */
#pragma once

#include "perf/bench.h"

/** Most bytes of what says how data was moved. */
#define APP_MOVED_TEXT 256

/** What is measured at a time: one entry of each list of the command line. */
typedef struct app_case {
    MPI_Comm comm;
    int rank, ranks;
    int n;    /**< of -n; what it is the program says */
    int sync; /**< index into the program's `syncs` */
    bench_window_kind_t window;
} app_case_t;

/** A program. Its functions are collective. */
typedef struct app {
    const char *name;
    const char *n_is;         /**< what -n means, for the usage */
    const char *n_default;    /**< a list */
    const char *const *syncs; /**< names of what -s chooses from; the first one is the default */
    int nsyncs;
    /**
     * Makes a case: the caller's state for the functions below, and in `bytes_p` what this rank
     * puts or gets in a step. NULL on all ranks where no window could be made.
     */
    void *(*open)(const app_case_t *c, size_t *bytes_p);
    void (*close)(void *state);
    /** A step as it is, with data that differs from the last one's. */
    void (*whole)(void *state);
    /** All computing of a step without communication, and the other way round. Both leave alone
     * what the next whole step needs of the last one. */
    void (*compute)(void *state);
    void (*communicate)(void *state);
    /** How many numbers on this rank are wrong after the last whole step. */
    long (*wrong)(void *state);
} app_t;

/** All of a program but MPI_Init and MPI_Finalize, which are in it, too. Returns the exit code. */
int app_main(const app_t *app, int argc, char **argv);

/* ---- What osc_nicstride has counted ---------------------------------------------------------- */

typedef struct app_moved app_moved_t;

/** Starts counting; other components give a valid handle that counts nothing. */
app_moved_t *app_moved_open(void);

/**
 * Collective. Writes into `text` on rank 0 the methods by their part of the bytes moved since the
 * start on all ranks, such as "pipeline 90%, pack 10%"; empty where nothing was counted.
 */
void app_moved_text(const app_moved_t *m, MPI_Comm comm, char text[APP_MOVED_TEXT]);

void app_moved_close(app_moved_t *m);
