/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Times the steps of a program: the first ones, then batches in the steady state. Nothing aligns
 * the ranks within a batch. Received data is checked after each batch, before any other
 * synchronisation, so that late data is detected.
 */
#pragma once

#include "perf/bench.h"

/** The number of first steps, whose mean is reported separately, and the most steps of a batch. */
enum { STEPS_FIRST = 20, STEPS_MOST = 1 << 20 };

/** What is timed, and the results. All functions are collective. */
typedef struct steps {
    MPI_Comm comm;
    void (*step)(void *arg);
    long (*wrong)(void *arg); /**< number of wrong words after the last step */
    void *arg;
    int milliseconds;     /**< time for the steady state */
    int batch;            /**< steps of a batch; 0: as many as the time allows */
    double first, steady; /**< seconds of a step on the slowest rank */
    long errors;          /**< wrong words on this rank */
} steps_t;

/**
 * The last of the steps 1 .. `steps` whose number modulo `n` is `at`; 0 if there is none. Used with
 * data of which each step changes one place.
 */
int steps_last_at(int steps, int at, int n);

/** Runs `n` steps. Returns the seconds per step on the slowest rank, on all ranks. */
double steps_run(steps_t *s, int n);

/** Runs and times the first steps and the steady state; also sets `batch`. */
void steps_measure(steps_t *s);

/** Checks many more times, for half of the time, since data may be late only now and then. */
void steps_check_often(steps_t *s);
