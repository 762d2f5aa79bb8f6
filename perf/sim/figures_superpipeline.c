/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The superpipeline paper: figures 2, 4 and 6, and the number of gaps. MB/s. */
#include <math.h>

#include "common/model/pipeline.h"
#include "perf/sim/figures.h"
#include "perf/sim/machines.h"
#include "perf/sim/optimal.h"

#define LEAST  1024.0
#define MOST   (16.0 * 1024 * 1024)
#define BLOCK  4096
#define BUFFER (4U << 20)
/** A page that UCX or an adapter writes is announced after a flush: a round trip, and a message. */
#define FLUSHED(m) (2 * (m)->latency + (m)->overhead)

static double rate(double bytes, double time)
{
    return 1000 * bytes / time;
}

static onic_link_t link_of(const sim_machine_t *m, double bytes)
{
    onic_link_t link = onic_links_default("other").adapter;

    link.latency = m->latency;
    link.gap = m->gap;
    link.bnet = m->bnet;
    link.bcopy = sim_copy_speed(m, bytes);
    return link;
}

/** A transfer with these chunks, published in blocks. */
static sim_transferred_t move(const sim_machine_t *m, double bytes, const onic_schedule_t *s)
{
    return sim_transfer(&(sim_transfer_t){.machine = m,
                                          .bytes = (uint64_t)bytes,
                                          .schedule = *s,
                                          .buffers = 16,
                                          .buffer_bytes = BUFFER,
                                          .block = BLOCK});
}

static sim_transferred_t superpipe(const sim_machine_t *m, double bytes)
{
    onic_schedule_t s;

    onic_schedule_growing(&s, SIM_C0, SIM_Q, 1, BUFFER);
    return move(m, bytes, &s);
}

/** C_0 and q from the link's numbers, by equation (5); nothing is copied during a handshake. */
static sim_transferred_t equations(const sim_machine_t *m, double bytes)
{
    const onic_link_t link = link_of(m, bytes);
    const onic_chunks_t c = onic_superpipeline_chunks(&link, BLOCK, BUFFER);
    onic_schedule_t s;

    onic_schedule_growing(&s, c.first, fmax(1, c.ratio), 1, BUFFER);
    return move(m, bytes, &s);
}

static sim_transferred_t optimal(const sim_machine_t *m, double bytes)
{
    const onic_link_t link = link_of(m, bytes);
    uint32_t size[SIM_OPTIMAL_MAX];
    const unsigned n = sim_chunks_optimal(&link, bytes, 64, BUFFER, 0, BLOCK, size);
    onic_schedule_t s;

    sim_schedule_listed(&s, size, n, 1, BUFFER);
    return move(m, bytes, &s);
}

/** Buffers of 32 KiB, with chunks announced by messages. */
static sim_transferred_t announced(const sim_machine_t *m, double bytes)
{
    sim_transfer_t t = {.machine = m,
                        .bytes = (uint64_t)bytes,
                        .buffers = 16,
                        .buffer_bytes = 32768,
                        .announce = FLUSHED(m)};

    onic_schedule_growing(&t.schedule, SIM_C0, SIM_Q, 1, t.buffer_bytes);
    return sim_transfer(&t);
}

/** Equation (3), at least one chunk. */
static double best_chunk(const sim_machine_t *m, double bytes)
{
    return fmin(bytes, sqrt(bytes * m->gap * sim_copy_speed(m, bytes) / 2));
}

static sim_transferred_t pipeline(const sim_machine_t *m, double bytes)
{
    onic_schedule_t s;

    onic_schedule_growing(&s, best_chunk(m, bytes), 1, 1, BUFFER);
    return sim_transfer(&(sim_transfer_t){.machine = m,
                                          .bytes = (uint64_t)bytes,
                                          .schedule = s,
                                          .buffers = 16,
                                          .buffer_bytes = BUFFER});
}

/** Equation (1). */
static double pipeline_time(const sim_machine_t *m, double bytes)
{
    const double chunk = best_chunk(m, bytes);

    return 2 * chunk / sim_copy_speed(m, bytes) + bytes / chunk * m->gap + m->latency +
           bytes / m->bnet;
}

/* ---- figures --------------------------------------------------------------------------------- */

static void figure_2(FILE *to, const sim_options_t *o)
{
    const sim_machine_t *m = &sim_graphene;

    (void)o;
    fprintf(to, "bytes\traw\tregistered\tcopied\n");
    for (double b = LEAST; b <= MOST * 1.001; b *= SIM_SIZE_STEP)
        fprintf(to, "%.0f\t%.5g\t%.5g\t%.5g\n", b, rate(b, sim_raw(m, b)),
                rate(b, sim_registered(m, b, true)), rate(b, sim_copied(m, b)));
}

static void figure_4(FILE *to, const sim_options_t *o)
{
    const sim_machine_t *m = &sim_graphene;

    (void)o;
    fprintf(to, "bytes\traw\tregistered\tcopied\tequation 1\tpipeline\tchunk\n");
    for (double b = LEAST; b <= MOST * 1.001; b *= SIM_SIZE_STEP)
        fprintf(to, "%.0f\t%.5g\t%.5g\t%.5g\t%.5g\t%.5g\t%.0f\n", b, rate(b, sim_raw(m, b)),
                rate(b, sim_registered(m, b, true)), rate(b, sim_copied(m, b)),
                rate(b, pipeline_time(m, b)), rate(b, pipeline(m, b).time), best_chunk(m, b));
}

static void figure_6(FILE *to, const sim_machine_t *m)
{
    fprintf(to, "bytes\traw\tregistered\tcopied\tsuperpipe 12 KiB 1.5\tby the equations\toptimal\t"
                "32 KiB announced\n");
    for (double b = LEAST; b <= MOST * 1.001; b *= SIM_SIZE_STEP)
        fprintf(to, "%.0f\t%.5g\t%.5g\t%.5g\t%.5g\t%.5g\t%.5g\t%.5g\n", b, rate(b, sim_raw(m, b)),
                rate(b, sim_registered(m, b, true)), rate(b, sim_copied(m, b)),
                rate(b, superpipe(m, b).time), rate(b, equations(m, b).time),
                rate(b, optimal(m, b).time), rate(b, announced(m, b).time));
}

static void figure_6_graphene(FILE *to, const sim_options_t *o)
{
    (void)o;
    figure_6(to, &sim_graphene);
}

static void figure_6_infini(FILE *to, const sim_options_t *o)
{
    (void)o;
    figure_6(to, &sim_infini);
}

static void gaps(FILE *to, const sim_options_t *o)
{
    const sim_machine_t *m = &sim_graphene;

    (void)o;
    fprintf(to, "bytes\t32 KiB announced\tpipeline\tsuperpipe 12 KiB 1.5\toptimal\tequation 7\n");
    for (double b = 16384; b <= MOST * 1.001; b *= 2)
        fprintf(to, "%.0f\t%u\t%u\t%u\t%u\t%.3g\n", b, announced(m, b).chunks,
                pipeline(m, b).chunks, superpipe(m, b).chunks, optimal(m, b).chunks,
                log1p(b / 12288 * 0.5) / log(1.5));
}

const sim_figure_t sim_figures_superpipeline[] = {{"superpipeline-2", figure_2},
                                                  {"superpipeline-4", figure_4},
                                                  {"superpipeline-6-graphene", figure_6_graphene},
                                                  {"superpipeline-6-infini", figure_6_infini},
                                                  {"superpipeline-gaps", gaps},
                                                  {NULL, NULL}};
