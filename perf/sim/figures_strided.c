/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The strided-RMA paper: figures 6 and 7, and gets done by puts of the other side. MB/s. */
#include <math.h>
#include <stdlib.h>

#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/methods/plan.h"
#include "perf/sim/figures.h"
#include "perf/sim/requests.h"
#include "perf/sim/transfer.h"

/** Doubles in a row of the matrix whose sections are put. */
#define ROW 2000
/** Bytes of a buffer: the paper does not give the length. */
#define BUFFER 8192U
/** The host's time for one put per piece, of the order of the paper's hosts. */
#define HOST_PIECE 2500.0

static double rate(double bytes, double time)
{
    return 1000 * bytes / time;
}

static onic_link_t adapter(const char *name)
{
    onic_links_t links = onic_links_default("other");
    char path[1024];

    snprintf(path, sizeof(path), SHARE "/links/%s.txt", name);
    if (onic_links_load(&links, path) != 0) {
        fprintf(stderr, "figures: %s cannot be read\n", path);
        exit(EXIT_FAILURE);
    }
    return links.adapter;
}

static onic_layout_t shape(uint64_t rows, uint64_t block, uint64_t stride)
{
    onic_layout_t l;

    if (onic_layout_contig(&l, 0, block) != ONIC_LAYOUT_OK ||
        (rows > 1 && onic_layout_repeat(&l, rows, (int64_t)stride) != ONIC_LAYOUT_OK))
        exit(EXIT_FAILURE);
    return l;
}

/** The host's part of a single message. */
static double host(const onic_link_t *k)
{
    return fmax(0, k->message / 2 - k->latency - k->gap);
}

/** Through buffers of the receiver, whose server sleeps; all in one chunk, or as in the paper. */
static double by_buffers(const onic_link_t *k, const onic_layout_t *l, bool one_chunk, bool grant,
                         uint32_t buffer)
{
    const sim_machine_t m = {.latency = k->latency,
                             .gap = k->gap,
                             .bnet = k->bnet,
                             .copy = {[0] = {INFINITY, k->bcopy}}};
    sim_transfer_t t = {.machine = &m,
                        .bytes = l->size,
                        .buffers = 16,
                        .buffer_bytes = one_chunk ? (uint32_t)l->size : buffer,
                        .grant = grant ? k->grant : 0,
                        .gather_here = onic_link_gather(k, l),
                        .gather_there = onic_link_gather(k, l)};

    if (one_chunk)
        onic_schedule_growing(&t.schedule, t.buffer_bytes, 1, 1, t.buffer_bytes);
    else
        onic_schedule_growing(&t.schedule, SIM_C0, SIM_Q, 1, buffer);
    return host(k) + sim_transfer(&t).time + host(k) + k->wake;
}

/** By the way that production code chooses, with its own buffers. */
static double hybrid(const onic_link_t *k, const onic_layout_t *l)
{
    const nicstride_path_t path = {.link = *k};
    const nicstride_case_t c = {.rows = nicstride_methods,
                                .dir = NICSTRIDE_PUT,
                                .origin = l,
                                .target = l,
                                .reach = NICSTRIDE_REACH(NICSTRIDE_METHOD_PACK) |
                                         NICSTRIDE_REACH(NICSTRIDE_METHOD_PIPELINE) |
                                         NICSTRIDE_REACH(NICSTRIDE_METHOD_RDMA) |
                                         NICSTRIDE_REACH(NICSTRIDE_METHOD_NIC),
                                .presence = NICSTRIDE_SERVED,
                                .path = &path};

    switch (nicstride_plan(&c)) {
    case NICSTRIDE_METHOD_PIPELINE:
        return by_buffers(k, l, false, true, ONIC_PIPELINE_RX_BUFFER);
    case NICSTRIDE_METHOD_PACK:
        return by_buffers(k, l, false, false, (uint32_t)k->fragment);
    default:
        return sim_requests(k, false, false, 0, l, l).time;
    }
}

/* ---- figures --------------------------------------------------------------------------------- */

static void figure_6(FILE *to, const sim_options_t *o)
{
    const onic_link_t k = adapter("quadrics-elan4");

    (void)o;
    fprintf(to, "bytes\tNIC-based\tHBNA\tone by one\thybrid\n");
    for (double d = 8; d <= 1024.1; d *= SIM_SIZE_STEP) {
        const uint64_t n = (uint64_t)d;
        const onic_layout_t l = shape(n, 8 * n, 8 * ROW);
        const double b = (double)l.size;

        fprintf(to, "%.0f\t%.5g\t%.5g\t%.5g\t%.5g\n", b,
                rate(b, sim_requests(&k, false, false, 0, &l, &l).time),
                rate(b, by_buffers(&k, &l, false, true, BUFFER)),
                rate(b, sim_requests(&k, false, false, HOST_PIECE, &l, &l).time),
                rate(b, hybrid(&k, &l)));
    }
}

static void figure_7(FILE *to, const sim_options_t *o)
{
    const onic_link_t k = adapter("quadrics-elan4");

    (void)o;
    fprintf(to, "bytes\tNIC-based\tone by one\tHBNA\tcopy, send, copy\n");
    for (double d = 8; d <= 1024.1; d *= SIM_SIZE_STEP) {
        const uint64_t n = (uint64_t)d;
        const onic_layout_t l = shape(n, 8 * n, 8 * ROW);
        const double b = (double)l.size;

        fprintf(to, "%.0f\t%.5g\t%.5g\t%.5g\t%.5g\n", b,
                rate(b, sim_requests(&k, false, false, 0, &l, &l).time),
                rate(b, sim_requests(&k, false, false, HOST_PIECE, &l, &l).time),
                rate(b, by_buffers(&k, &l, false, true, BUFFER)),
                rate(b, by_buffers(&k, &l, true, true, BUFFER)));
    }
}

/** 1 MiB in pieces of some length, with a current adapter. */
static void gets(FILE *to, const sim_options_t *o)
{
    const onic_link_t k = adapter("roce-100");

    (void)o;
    fprintf(to, "piece\treads\tputs of the other side\trequests\n");
    for (uint64_t block = 16; block <= 65536; block *= 2) {
        const onic_layout_t far = shape((1 << 20) / block, block, 2 * block),
                            near = shape(1, 1 << 20, 0);
        const sim_requested_t reads = sim_requests(&k, true, false, 0, &near, &far);
        /* The other side gathers: one piece here is a list there. */
        const sim_requested_t puts = sim_requests(&k, true, true, 0, &far, &near);

        fprintf(to, "%llu\t%.5g\t%.5g\t%llu\n", (unsigned long long)block,
                rate(1 << 20, reads.time), rate(1 << 20, puts.time), reads.requests);
    }
}

const sim_figure_t sim_figures_strided[] = {
    {"strided-6", figure_6}, {"strided-7", figure_7}, {"strided-gets", gets}, {NULL, NULL}};
