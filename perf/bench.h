/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Shared by the benchmarks: clock, option lists, medians, JSON, cache-line latency, windows.
 *
 * Everything here uses the public MPI API only, so the programs measure any MPI library. None of
 * it is thread-safe; functions marked collective are called by all ranks of the communicator.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <mpi.h>

/** Most entries of a list given on the command line. */
#define BENCH_LIST_MAX 32

/** Exit codes of the benchmark programs. */
enum {
    BENCH_EXIT_OK = 0,
    BENCH_EXIT_WRONG_DATA = 1,
    BENCH_EXIT_USAGE = 2, /* also if a result file cannot be written */
    BENCH_EXIT_NO_CASE = 3,
    BENCH_EXIT_NO_MEMORY = 4
};

/** A list from the command line: sizes in bytes, or indexes into a table of names. */
typedef struct bench_list {
    size_t v[BENCH_LIST_MAX];
    int n;
} bench_list_t;

/** Seconds of a monotonic clock with an arbitrary origin. */
double bench_now(void);

/** Busy-waits for `seconds` without a call into MPI, as a computing process does. */
void bench_compute(double seconds);

/** Median of `n` >= 1 values; reorders them. */
double bench_median(double *v, int n);

/** The value below which the share `part` (0..1) of `n` >= 1 values lies; reorders them. */
double bench_percentile(double *v, int n, double part);

/** Parses "64k", "1M", "4096" (powers of 1024). Returns 0, or -1 if the text is not a size > 0. */
int bench_parse_size(const char *text, size_t *size_p);

/**
 * Parses a comma-separated list of sizes; `zero_name`, if not NULL, is a word for the entry 0.
 * Returns 0, or -1 with a message on stderr.
 */
int bench_parse_sizes(const char *text, const char *zero_name, bench_list_t *list_p);

/**
 * Parses a comma-separated list of words out of the `n` `names` into their indexes. Returns 0, or
 * -1 with a message on stderr that lists the names.
 */
int bench_parse_names(const char *text, const char *const *names, int n, bench_list_t *list_p);

/** Parses a decimal integer in [min, max]. Returns 0, or -1 with a message on stderr. */
int bench_parse_int(const char *what, const char *text, long min, long max, int *value_p);

/** "64K", "1M" or plain bytes into `text`, which is returned. */
const char *bench_size_text(size_t bytes, char text[24]);

/* ---- JSON: {"program": ..., "results": [ one object for each line ]} ------------------------ */

/** A JSON file being written. A null pointer discards everything. */
typedef struct bench_json bench_json_t;

/**
 * Starts a file; a null `path` gives a null handle. Returns 0, or -1 with a message on stderr. Each
 * result is written out when it ends, so the lines before a crash are kept.
 */
int bench_json_open(const char *path, const char *program, bench_json_t **json_p);

void bench_json_begin(bench_json_t *j);
void bench_json_str(bench_json_t *j, const char *key, const char *value);
void bench_json_bool(bench_json_t *j, const char *key, bool value);
/** Not-a-number and infinities are written as null. */
void bench_json_num(bench_json_t *j, const char *key, double value);
void bench_json_end(bench_json_t *j);

/** Ends the file. Returns 0, or -1 with a message on stderr if not everything could be written. */
int bench_json_close(bench_json_t *j);

/* ---- Cache-line latency ---------------------------------------------------------------------- */

/** A cache line shared by ranks 0 and 1 of a communicator. */
typedef struct bench_line bench_line_t;

/**
 * Collective. Maps a page shared by ranks 0 and 1. If they share no memory (two hosts, one rank)
 * the handle is valid, but every measurement is not-a-number.
 */
bench_line_t *bench_line_open(MPI_Comm comm);

/**
 * Called by ranks 0 and 1 together (others return at once): nanoseconds that a cache line takes one
 * way between their cores, half of the median round trip. Takes well under a millisecond if the
 * ranks are on different cores, and waits up to 50 ms for that. Not-a-number if unknown.
 */
double bench_line_ns(bench_line_t *line);

void bench_line_close(bench_line_t *line);

/* ---- Runs ------------------------------------------------------------------------------------ */

/** State of a program over all its cases. */
typedef struct bench_run {
    MPI_Comm comm;
    bench_json_t *json; /**< on rank 0 */
    bench_line_t *line;
    int measured, wrong; /**< numbers of cases, counted by the program, the same on all ranks */
} bench_run_t;

/** Collective. Returns 0, or -1 on all ranks if rank 0 cannot make the result file. */
int bench_run_open(bench_run_t *run, MPI_Comm comm, const char *json, const char *program);

/** Collective. Returns the program's exit code, the same on all ranks. */
int bench_run_close(bench_run_t *run);

/* ---- Windows --------------------------------------------------------------------------------- */

/** How a window's memory is allocated. */
typedef enum bench_window_kind {
    BENCH_WIN_CREATE,
    BENCH_WIN_ALLOCATE,
    BENCH_WIN_DYNAMIC,
    BENCH_WIN_SHARED,
    BENCH_WIN_KINDS
} bench_window_kind_t;

extern const char *const bench_window_names[BENCH_WIN_KINDS];

typedef struct bench_window {
    bench_window_kind_t kind;
    MPI_Win win;
    char *base;          /**< this rank's memory, page-aligned if the kind allows it */
    size_t bytes;        /**< size of that memory */
    MPI_Aint *disp;      /**< for each rank the displacement, in bytes, of its first byte */
    double make_seconds; /**< time in which this rank made the window and attached memory */
} bench_window_t;

/**
 * Collective. Makes a window of `bytes` on each rank, displacement unit 1, memory touched and
 * zeroed. The communicator's error handler must be MPI_ERRORS_RETURN. Returns 0, or -1 on all ranks
 * if any rank could not make it, with the reason on rank 0's stderr.
 */
int bench_window_open(bench_window_kind_t kind, size_t bytes, MPI_Comm comm, bench_window_t *w_p);

/** Collective. */
void bench_window_close(bench_window_t *w);

/**
 * Page-aligned private memory, touched and zeroed. If there is none, prints that on stderr and ends
 * all ranks with BENCH_EXIT_NO_MEMORY.
 */
void *bench_alloc(size_t bytes);

/** The same directly from the system, zeroed and never touched; freed with munmap. */
void *bench_map(size_t bytes);
