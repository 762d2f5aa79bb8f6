/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/methods/nic_params.h"

#include "common/transport/verbs/rc_terms.h"

nicstride_nic_params_t nicstride_nic_params;
onic_rdma_counts_t nicstride_nic_counts;

onic_param_t nicstride_nic_rows[] = {
    {.name = "nic_connections",
     .help = "Connections that method nic opens at most, each to one process, and as many that it "
             "takes from others. What finds no room goes by message",
     .size = &nicstride_nic_params.connections,
     .value = 64,
     .min = 2,
     .max = ONIC_RC_MOST},
    {.name = "nic_memory",
     .help = "Mebibytes of this process's own buffers that method nic keeps registered with the "
             "adapter, and so locked, at most. What needs more goes by message",
     .size = &nicstride_nic_params.memory,
     .shift = 20,
     .value = 1024,
     .min = 1,
     .max = 1 << 20},
    {.name = NULL},
};

const onic_counter_t nicstride_nic_counters[NICSTRIDE_NIC_COUNTERS] = {
    {"nic_doorbells", "Lists of work requests that method nic has given to the adapter",
     &nicstride_nic_counts.doorbells, 0},
    {"nic_requests", "Work requests in them", &nicstride_nic_counts.requests, 0},
    {"nic_completions", "Completions of them that the adapter has shown",
     &nicstride_nic_counts.completions, 0},
    {"nic_bytes", "Bytes that they were to move", &nicstride_nic_counts.bytes, 0},
};
