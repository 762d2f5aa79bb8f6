/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Shared by the applications: options, three times of a step, a check of its numbers, and the
 * methods by which osc_nicstride has moved data, if it has.
 *
 * Three times are measured: a whole step with all overlap, its computing alone, and its
 * communication alone. Batches of the three alternate, and the medians count. The numbers are
 * checked after each batch of whole steps, so they differ from step to step.
 */
#pragma once

#include "perf/bench.h"

/** Most bytes of the text about methods. */
#define APP_MOVED_TEXT 256

/** One measurement: an entry of each list of the command line. */
typedef struct app_case {
    MPI_Comm comm;
    int rank, ranks;
    int n;    /**< from -n; the program defines its meaning */
    int sync; /**< index into the program's `syncs` */
    bench_window_kind_t window;
} app_case_t;

/** A program. Its functions are collective. */
typedef struct app {
    const char *name;
    const char *n_is;         /**< the meaning of -n, for the usage text */
    const char *n_default;    /**< a list */
    const char *const *syncs; /**< the names for -s; the first one is the default */
    int nsyncs;
    /** Makes a case: the caller's state for the functions below; `bytes_p` gets the bytes that this
     *  rank puts or gets in a step. NULL on all ranks if no window could be made. */
    void *(*open)(const app_case_t *c, size_t *bytes_p);
    void (*close)(void *state);
    /** A whole step, with other data than the last one. */
    void (*whole)(void *state);
    /** All computing of a step without communication, and the reverse. Neither changes what the
     *  next whole step needs. */
    void (*compute)(void *state);
    void (*communicate)(void *state);
    /** The number of wrong numbers on this rank after the last whole step. */
    long (*wrong)(void *state);
} app_t;

/** Runs the whole program, including MPI_Init and MPI_Finalize. Returns the exit code. */
int app_main(const app_t *app, int argc, char **argv);

/* ---- Counters of osc_nicstride ---------------------------------------------------------- */

typedef struct app_moved app_moved_t;

/** Starts counting. With other components the handle is valid, but counts nothing. */
app_moved_t *app_moved_open(void);

/**
 * Collective. Writes into `text` on rank 0 the methods with their share of the bytes moved by all
 * ranks since the start, such as "pipeline 90%, pack 10%"; empty if nothing was counted.
 */
void app_moved_text(const app_moved_t *m, MPI_Comm comm, char text[APP_MOVED_TEXT]);

void app_moved_close(app_moved_t *m);
