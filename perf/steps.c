/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "perf/steps.h"

enum { BATCHES = 7, FEWEST_STEPS = 5, CHECKED_STEPS = 2, MOST_CHECKS = 64 };

int steps_last_at(int steps, int at, int n)
{
    int back = (steps - at) % n;
    int step = steps - (back < 0 ? back + n : back);
    return step > 0 ? step : 0;
}

double steps_run(steps_t *s, int n)
{
    MPI_Barrier(s->comm);
    double start = bench_now();
    for (int i = 0; i < n; i++)
        s->step(s->arg);
    double seconds = (bench_now() - start) / n;
    s->errors += s->wrong(s->arg);
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, s->comm);
    return seconds;
}

/** Determines how many steps make a batch. Runs them, too, which warms up. */
static int calibrate(steps_t *s)
{
    double budget = 1e-3 * s->milliseconds, seconds;
    if (s->batch > 0) {
        steps_run(s, s->batch);
        return s->batch;
    }
    int n = FEWEST_STEPS;
    while ((seconds = n * steps_run(s, n)) < budget / 10 && n < STEPS_MOST)
        n *= seconds < budget / 100 ? 8 : 2;
    double steps = budget / BATCHES * n / seconds;
    return steps < FEWEST_STEPS ? FEWEST_STEPS : steps > STEPS_MOST ? STEPS_MOST : (int)steps;
}

void steps_measure(steps_t *s)
{
    double seconds[BATCHES];
    s->first = steps_run(s, STEPS_FIRST);
    s->batch = calibrate(s);
    for (int i = 0; i < BATCHES; i++)
        seconds[i] = steps_run(s, s->batch);
    s->steady = bench_median(seconds, BATCHES);
}

void steps_check_often(steps_t *s)
{
    double spent = 0;
    for (int i = 0; i < MOST_CHECKS && spent < 0.5e-3 * s->milliseconds; i++)
        spent += CHECKED_STEPS * steps_run(s, CHECKED_STEPS);
}
