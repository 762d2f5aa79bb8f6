/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The papers' clusters in numbers. Numbers not given in the text are typical of such hosts;
 * machines.c says which. */
#pragma once

#include "perf/sim/barrier.h"
#include "perf/sim/transfer.h"

/** Superpipeline paper, section 2. */
extern const sim_machine_t sim_graphene, sim_infini;
/** ARMCI paper, section 4. */
extern const sim_machine_t sim_clan, sim_myrinet;

/** Barrier paper, section 8: steps by the adapter, and by the host with point-to-point messages. */
extern const sim_barrier_costs_t sim_lanai_xp, sim_lanai_xp_host, sim_lanai_9, sim_lanai_9_host,
    sim_elan3, sim_elan3_host;
/** This project's, by the kernel and by the process, as measured with two hosts on one machine
 *  (docs/performance.md). They include no wire. */
extern const sim_barrier_costs_t sim_steps_bpf, sim_steps_host, sim_steps_tuned;

/** The paper's model, section 8.3: T = Tinit + (ceil(log2 N) - 1) Ttrig + Tadj, nanoseconds. */
typedef struct sim_barrier_model {
    double init, trig, adj;
} sim_barrier_model_t;
extern const sim_barrier_model_t sim_model_myrinet, sim_model_quadrics;
double sim_barrier_model(const sim_barrier_model_t *m, int32_t members);
