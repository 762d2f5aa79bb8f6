/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Times the steps of a program that goes on and on: the first ones, then batches in the steady
 * state. Nothing lines the ranks up within a batch. What arrived is compared after each batch,
 * before anything else is synchronised: data that comes too late is found.
 */
#pragma once

#include "perf/bench.h"

/** The first steps, whose mean counts by itself, and the most of a batch. */
enum { STEPS_FIRST = 20, STEPS_MOST = 1 << 20 };

/** What is timed, and what has been found. All functions are collective. */
typedef struct steps {
    MPI_Comm comm;
    void (*step)(void *arg);
    long (*wrong)(void *arg); /**< words that are wrong after the step done last */
    void *arg;
    int milliseconds;     /**< for the steady state */
    int batch;            /**< steps of a batch; 0: as many as the time allows */
    double first, steady; /**< seconds of a step on the slowest rank */
    long errors;          /**< words of this rank */
} steps_t;

/**
 * Of the first `steps` steps, which begin with number 1, the last whose number leaves the remainder
 * `at` when divided by `n`; 0 where there is none. For data of which each step changes one place.
 */
int steps_last_at(int steps, int at, int n);

/** Seconds for each of `n` steps on the slowest rank, known to all ranks. */
double steps_run(steps_t *s, int n);

/** Does and times the first steps and the steady state; sets `batch`, too. */
void steps_measure(steps_t *s);

/** Data that comes too late does so now and then: many more looks, for half of the time. */
void steps_check_often(steps_t *s);
