/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "perf/sim/machines.h"

#include <math.h>

/* ---- superpipeline paper ------------------------------------------------------------------------
 *
 * From the text: registration (68 us, 20 GB/s); g - o is about 100 ns; C_0 = B_copy 2 lambda is 8
 * to 16 KiB. With registration a long message reaches 91 % of the network, so B_net is 1.98 GB/s;
 * with naive copies 57 %, so memory is copied at 2.62 GB/s. Copies within caches and latencies are
 * typical of such processors (Xeon X3440, X5570). */

const sim_machine_t sim_graphene = {
    .latency = 1500,
    .gap = 150,
    .overhead = 60,
    .bnet = 1.98,
    .copy = {{32 << 10, 12}, {256 << 10, 10}, {4 << 20, 6}, {INFINITY, 2.62}},
    .pin = 68000,
    .pin_byte = 0.05};

/* QDR, limited by PCIe. */
const sim_machine_t sim_infini = {
    .latency = 1300,
    .gap = 120,
    .overhead = 50,
    .bnet = 3.2,
    .copy = {{32 << 10, 14}, {256 << 10, 12}, {4 << 20, 8}, {INFINITY, 4.5}},
    .pin = 68000,
    .pin_byte = 0.05};

/* ---- ARMCI paper --------------------------------------------------------------------------------
 *
 * From the text: the networks' rates, and an 8-byte get, 34.6 and 35.4 us, mostly for waking the
 * server's blocked thread. Registration is cheap in VIA, and dear in GM 1.5, where deregistration
 * takes as long again. The numbers for both, and for copies by a Pentium III, are typical values.
 */

const sim_machine_t sim_clan = {
    .latency = 8000,
    .gap = 1000,
    .overhead = 1000,
    .bnet = 0.110,
    .copy = {{16 << 10, 1.6}, {256 << 10, 0.8}, {INFINITY, 0.35}, {INFINITY, 0.35}},
    .pin = 15000,
    .pin_byte = 0.0002,
    .unpin = 5000,
    .wake = 17000};

const sim_machine_t sim_myrinet = {
    .latency = 9000,
    .gap = 1000,
    .overhead = 800,
    .bnet = 0.235,
    .copy = {{16 << 10, 1.6}, {256 << 10, 0.8}, {INFINITY, 0.35}, {INFINITY, 0.35}},
    .pin = 30000,
    .pin_byte = 0.0015,
    .unpin = 150000,
    .unpin_byte = 0.0015,
    .wake = 16000};

/* ---- barrier paper ------------------------------------------------------------------------------
 *
 * A step of the adapter (first or send, latency, receive) takes the paper's Ttrig, and a whole
 * barrier of two nodes takes Tinit + Tadj. The text does not divide a step into its parts. */

const sim_barrier_model_t sim_model_myrinet = {3600, 3500, 3840};
const sim_barrier_model_t sim_model_quadrics = {2250, 2320, -1000};

double sim_barrier_model(const sim_barrier_model_t *m, int32_t members)
{
    return m->init + (ceil(log2(members)) - 1) * m->trig + m->adj;
}

/* 3500 for each step, 3940 for the path from the host and back. */
const sim_barrier_costs_t sim_lanai_xp = {
    .enter = 1600, .first = 1200, .send = 1200, .latency = 500, .receive = 1800, .leave = 2340};
/* 2.64 times as long at 8 nodes: 12.5 us for each step, including acknowledgements by the adapter.
 */
const sim_barrier_costs_t sim_lanai_xp_host = {
    .first = 1500, .send = 1500, .latency = 9000, .receive = 2000};
/* 133 instead of 225 MHz; 25.72 us at 16 nodes. */
const sim_barrier_costs_t sim_lanai_9 = {
    .enter = 1500, .first = 2030, .send = 2030, .latency = 500, .receive = 3045, .leave = 1920};
/* 3.38 times as long. */
const sim_barrier_costs_t sim_lanai_9_host = {
    .first = 2700, .send = 2700, .latency = 15500, .receive = 3530};
/* The host starts the first descriptor, at once; later ones are chained to an event. */
const sim_barrier_costs_t sim_elan3 = {
    .enter = 250, .first = 100, .send = 1720, .latency = 350, .receive = 250, .leave = 300};
/* Elanlib's tree: 2.48 times as long at 8 nodes. */
const sim_barrier_costs_t sim_elan3_host = {
    .first = 500, .send = 500, .latency = 1700, .receive = 700};

/* ---- measured here ------------------------------------------------------------------------------
 *
 * Two hosts, one rank each on its own processor: 2.1 us by the kernel, of which a message between
 * hosts takes 0.6 to 0.9; 2.6 us by the processes, 5.3 us by coll/tuned over TCP. */

const sim_barrier_costs_t sim_steps_bpf = {
    .enter = 600, .first = 400, .send = 400, .latency = 0, .receive = 500, .leave = 600};
const sim_barrier_costs_t sim_steps_host = {
    .enter = 100, .first = 1300, .send = 1300, .latency = 0, .receive = 1100, .leave = 100};
const sim_barrier_costs_t sim_steps_tuned = {.first = 2650, .send = 2650, .receive = 2650};
