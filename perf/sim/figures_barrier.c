/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The barrier paper: figures 5 to 8, and predictions for many more members. Microseconds. */
#include "perf/sim/figures.h"
#include "perf/sim/machines.h"

/** The default of `coll_nicbarrier_nack_timeout`. */
#define NACK_FIRST 1000000

/** Members times barriers for each point of a figure; at least one barrier. */
#define MEMBERS_TOGETHER (1 << 16)

static double run(const sim_barrier_costs_t *costs, nicbarrier_schedule_kind_t schedule,
                  int32_t members, int barriers, double jitter, double loss, uint64_t seed)
{
    const sim_barrier_t b = {.costs = *costs,
                             .schedule = schedule,
                             .members = members,
                             .barriers = barriers,
                             .jitter = jitter,
                             .loss = loss,
                             .silence = NACK_FIRST,
                             .seed = seed};
    const sim_barrier_result_t r = sim_barrier(&b);

    return r.complete && !r.early ? r.time / 1000 : -1;
}

static double alone(const sim_barrier_costs_t *costs, nicbarrier_schedule_kind_t schedule,
                    int32_t members)
{
    return run(costs, schedule, members, 10, 0, 0, 0);
}

static int barriers_of(int32_t members)
{
    return members < MEMBERS_TOGETHER ? MEMBERS_TOGETHER / members : 1;
}

/* ---- the paper's figures
 * ----------------------------------------------------------------------------- */

static void myrinet(FILE *to, const sim_barrier_costs_t *nic, const sim_barrier_costs_t *host,
                    int32_t most)
{
    fprintf(to, "nodes\tNIC, dissemination\tNIC, pairwise\thost, dissemination\thost, pairwise\n");
    for (int32_t n = 2; n <= most; n++)
        fprintf(to, "%d\t%.5g\t%.5g\t%.5g\t%.5g\n", n, alone(nic, NICBARRIER_DISSEMINATION, n),
                alone(nic, NICBARRIER_PAIRWISE, n), alone(host, NICBARRIER_DISSEMINATION, n),
                alone(host, NICBARRIER_PAIRWISE, n));
}

static void figure_5(FILE *to, const sim_options_t *o)
{
    (void)o;
    myrinet(to, &sim_lanai_9, &sim_lanai_9_host, 16);
}

static void figure_6(FILE *to, const sim_options_t *o)
{
    (void)o;
    myrinet(to, &sim_lanai_xp, &sim_lanai_xp_host, 8);
}

static void figure_7(FILE *to, const sim_options_t *o)
{
    (void)o;
    fprintf(to, "nodes\tNIC, dissemination\tNIC, pairwise\tElanlib's tree\n");
    for (int32_t n = 2; n <= 8; n++)
        fprintf(to, "%d\t%.5g\t%.5g\t%.5g\n", n, alone(&sim_elan3, NICBARRIER_DISSEMINATION, n),
                alone(&sim_elan3, NICBARRIER_PAIRWISE, n),
                alone(&sim_elan3_host, NICBARRIER_GATHER_BROADCAST, n));
}

static void figure_8(FILE *to, const sim_options_t *o)
{
    (void)o;
    fprintf(to, "nodes\tMyrinet\tMyrinet, the model\tQuadrics\tQuadrics, the model\n");
    for (int32_t n = 2; n <= 1024; n *= 2)
        fprintf(to, "%d\t%.5g\t%.5g\t%.5g\t%.5g\n", n,
                alone(&sim_lanai_xp, NICBARRIER_DISSEMINATION, n),
                sim_barrier_model(&sim_model_myrinet, n) / 1000,
                alone(&sim_elan3, NICBARRIER_DISSEMINATION, n),
                sim_barrier_model(&sim_model_quadrics, n) / 1000);
}

/* ---- more members
 * ---------------------------------------------------------------------------------- */

/** Numbers of members are powers of four, and half as many again. */
static void algorithms(FILE *to, const sim_options_t *o)
{
    const sim_barrier_costs_t *c = &sim_lanai_xp;

    fprintf(to, "members\tdissemination\tpairwise\tgather-broadcast\n");
    for (int32_t n = 4; n <= o->members; n *= 4)
        for (int32_t part = 2; part <= 3 && n * part / 2 <= o->members; part++)
            fprintf(to, "%d\t%.5g\t%.5g\t%.5g\n", n * part / 2,
                    run(c, NICBARRIER_DISSEMINATION, n * part / 2, 1, 0, 0, 0),
                    run(c, NICBARRIER_PAIRWISE, n * part / 2, 1, 0, 0, 0),
                    run(c, NICBARRIER_GATHER_BROADCAST, n * part / 2, 1, 0, 0, 0));
}

static void jitter(FILE *to, const sim_options_t *o)
{
    static const double means[] = {0, 2000, 10000};

    fprintf(to, "members\tnone\t2 us\t10 us\tpairwise, 2 us\tgather-broadcast, 2 us\n");
    for (int32_t n = 4; n <= o->members; n *= 4) {
        const int barriers = barriers_of(n);

        fprintf(to, "%d", n);
        for (int i = 0; i < 3; i++)
            fprintf(
                to, "\t%.5g",
                run(&sim_lanai_xp, NICBARRIER_DISSEMINATION, n, barriers, means[i], 0, o->seed));
        fprintf(to, "\t%.5g\t%.5g\n",
                run(&sim_lanai_xp, NICBARRIER_PAIRWISE, n, barriers, means[1], 0, o->seed),
                run(&sim_lanai_xp, NICBARRIER_GATHER_BROADCAST, n, barriers, means[1], 0, o->seed));
    }
}

static void loss(FILE *to, const sim_options_t *o)
{
    static const double parts[] = {0, 1e-6, 1e-4, 1e-2};

    fprintf(to, "members\tnone\t1e-6\t1e-4\t1e-2\n");
    for (int32_t n = 4; n <= o->members; n *= 4) {
        fprintf(to, "%d", n);
        for (int i = 0; i < 4; i++)
            fprintf(to, "\t%.5g",
                    run(&sim_lanai_xp, NICBARRIER_DISSEMINATION, n, barriers_of(n), 500, parts[i],
                        o->seed));
        fprintf(to, "\n");
    }
}

/** Measured here with two hosts, with added time for wires and switches. */
static void here(FILE *to, const sim_options_t *o)
{
    static const sim_barrier_costs_t *const costs[] = {&sim_steps_tuned, &sim_steps_host,
                                                       &sim_steps_bpf};
    static const double wires[] = {0, 5000};

    (void)o;
    fprintf(to, "hosts\tcoll/tuned\thost\tbpf\tcoll/tuned, 5 us of wire\thost, 5 us of wire\t"
                "bpf, 5 us of wire\n");
    for (int32_t n = 2; n <= 4096; n *= 2) {
        fprintf(to, "%d", n);
        for (int w = 0; w < 2; w++)
            for (int i = 0; i < 3; i++) {
                sim_barrier_costs_t c = *costs[i];

                c.latency += wires[w];
                fprintf(to, "\t%.5g", alone(&c, NICBARRIER_DISSEMINATION, n));
            }
        fprintf(to, "\n");
    }
}

const sim_figure_t sim_figures_barrier[] = {
    {"barrier-5", figure_5},    {"barrier-6", figure_6}, {"barrier-7", figure_7},
    {"barrier-8", figure_8},    {"barrier-here", here},  {"barrier-algorithms", algorithms},
    {"barrier-jitter", jitter}, {"barrier-loss", loss},  {NULL, NULL}};
