/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The ARMCI paper: figures 6 to 12, and concurrent registration on both sides. MB/s; fences:
 * speedup over sequential questions. */
#include <math.h>

#include "perf/sim/fence.h"
#include "perf/sim/figures.h"
#include "perf/sim/machines.h"

/** Bytes of the server's streaming buffer (section 3); VIA: the longest message. */
#define GM_BUFFER  (400U << 10)
#define VIA_BUFFER (64U << 10)
/** The fast protocol copies segments of at least this many bytes (section 4). */
#define FAST_SEGMENT 2048
/** Bytes of a row of the matrix, for strided transfers. */
#define ROW_BYTES 8192

static double rate(double bytes, double time)
{
    return 1000 * bytes / time;
}

/** The time of a get's question until the server looks at it. */
static double question(const sim_machine_t *m)
{
    return m->overhead + m->latency + m->wake;
}

/** The extra cost of copying short segments: the same again. */
static double slow_copies(const sim_machine_t *m, double bytes, bool strided)
{
    return strided && sqrt(bytes) < FAST_SEGMENT ? bytes / sim_copy_speed(m, bytes) : 0;
}

static double stream(const sim_machine_t *m, double bytes, double chunk, unsigned buffers,
                     uint32_t buffer, bool strided)
{
    sim_transfer_t t = {.machine = m,
                        .bytes = (uint64_t)bytes,
                        .buffers = buffers,
                        .buffer_bytes = buffer,
                        .gather_here = slow_copies(m, bytes, strided),
                        .gather_there = slow_copies(m, bytes, strided)};

    onic_schedule_growing(&t.schedule, fmin(chunk, buffer), 1, 1, buffer);
    return sim_transfer(&t).time;
}

/** An adaptive size leads to equation (3) of the superpipeline paper. */
static double adaptive(const sim_machine_t *m, double bytes)
{
    return fmin(bytes, fmax(1024, sqrt(bytes * m->gap * sim_copy_speed(m, bytes) / 2)));
}

static uint32_t buffer_of(const sim_machine_t *m)
{
    return m == &sim_clan ? VIA_BUFFER : GM_BUFFER;
}

static double get_baseline(const sim_machine_t *m, double bytes)
{
    return question(m) + stream(m, bytes, bytes, 1, buffer_of(m), false);
}

/** The server's one buffer is used in parts. */
static double get_pipelined(const sim_machine_t *m, double bytes, bool strided)
{
    const double chunk = fmin(adaptive(m, bytes), buffer_of(m) / 4);

    return question(m) + stream(m, bytes, chunk, 8, (uint32_t)ceil(chunk), strided);
}

/** Both sides register; the client does so while the server is being asked. */
static double get_zero_copy(const sim_machine_t *m, double bytes, bool overlapped)
{
    const double pin = m->pin + bytes * m->pin_byte;
    const double client = overlapped ? fmax(0, pin + m->latency - question(m) - pin) : pin;

    return question(m) + pin + client + sim_raw(m, bytes) + m->unpin + bytes * m->unpin_byte;
}

/** Two buffers on each side. Here they are four of the receiver's, since a sender packs when its
 *  receiver has room. Nobody has to be woken for the sender to continue. */
static double put(const sim_machine_t *m, double bytes, bool strided)
{
    const double chunk = fmin(adaptive(m, bytes), buffer_of(m) / 4);

    return m->overhead + stream(m, bytes, chunk, 4, (uint32_t)ceil(chunk), strided);
}

/* ---- figures --------------------------------------------------------------------------------- */

static void gets(FILE *to, const sim_machine_t *m)
{
    fprintf(to, "bytes\traw\tzero copy\tzero copy, one after the other\tbaseline streaming\t"
                "pipelined\n");
    for (double b = 256; b <= (4 << 20) * 1.001; b *= SIM_SIZE_STEP)
        fprintf(to, "%.0f\t%.5g\t%.5g\t%.5g\t%.5g\t%.5g\n", b, rate(b, sim_raw(m, b)),
                rate(b, get_zero_copy(m, b, true)), rate(b, get_zero_copy(m, b, false)),
                rate(b, get_baseline(m, b)), rate(b, get_pipelined(m, b, false)));
}

static void operations(FILE *to, const sim_machine_t *m)
{
    fprintf(to, "bytes\traw\tput\tput, strided\tget\tget, strided\n");
    for (double b = 256; b <= (4 << 20) * 1.001; b *= SIM_SIZE_STEP)
        fprintf(to, "%.0f\t%.5g\t%.5g\t%.5g\t%.5g\t%.5g\n", b, rate(b, sim_raw(m, b)),
                rate(b, put(m, b, false)), rate(b, put(m, b, true)),
                rate(b, get_pipelined(m, b, false)), rate(b, get_pipelined(m, b, true)));
}

static void figure_6(FILE *to, const sim_options_t *o)
{
    (void)o;
    gets(to, &sim_clan);
}

static void figure_7(FILE *to, const sim_options_t *o)
{
    (void)o;
    gets(to, &sim_myrinet);
}

static void figures_8_9(FILE *to, const sim_options_t *o)
{
    (void)o;
    operations(to, &sim_clan);
}

static void figures_10_11(FILE *to, const sim_options_t *o)
{
    (void)o;
    operations(to, &sim_myrinet);
}

static double fence(unsigned processes, unsigned callers, unsigned outstanding,
                    sim_fence_order_t order, uint64_t seed)
{
    const sim_machine_t *m = &sim_myrinet;

    return sim_fence(&(sim_fence_t){.processes = processes,
                                    .callers = callers,
                                    .outstanding = outstanding,
                                    .order = order,
                                    .overhead = m->overhead,
                                    .latency = m->latency,
                                    .server = m->wake,
                                    .seed = seed});
}

static void figure_12(FILE *to, const sim_options_t *o)
{
    static const unsigned outstanding[] = {3, 5, 7};

    fprintf(to, "processes\tone, 3\tone, 5\tone, 7\tall, 3\tall, 5\tall, 7\tall, 7, in order\t"
                "all, all at once\n");
    for (unsigned n = 4; n <= 64; n *= 2) {
        const double one = fence(n, 1, 1, SIM_IN_ORDER, 0),
                     all = fence(n, n, 1, SIM_IN_ORDER, o->seed);

        fprintf(to, "%u", n);
        for (int i = 0; i < 3; i++)
            fprintf(to, "\t%.4g", one / fence(n, 1, outstanding[i], SIM_RANDOM, o->seed));
        for (int i = 0; i < 3; i++)
            fprintf(to, "\t%.4g", all / fence(n, n, outstanding[i], SIM_RANDOM, o->seed));
        fprintf(to, "\t%.4g\t%.4g\n", all / fence(n, n, 7, SIM_IN_ORDER, o->seed),
                all / fence(n, n, n, SIM_RANDOM, o->seed));
    }
}

const sim_figure_t sim_figures_armci[] = {
    {"armci-6", figure_6},          {"armci-7", figure_7},   {"armci-8-9", figures_8_9},
    {"armci-10-11", figures_10_11}, {"armci-12", figure_12}, {NULL, NULL}};
