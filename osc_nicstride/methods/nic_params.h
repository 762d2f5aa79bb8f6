/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The parameters and counters of method nic, also in builds without libibverbs. */
#pragma once

#include <stddef.h>

#include "common/support/component.h"
#include "common/transport/verbs/requests.h"

typedef struct nicstride_nic_params {
    size_t connections;
    size_t memory; /**< most bytes of users' memory that are registered */
} nicstride_nic_params_t;

extern nicstride_nic_params_t nicstride_nic_params;

/** Its requests; transport lock. */
extern onic_rdma_counts_t nicstride_nic_counts;

/** What the row of the method has of both. */
enum { NICSTRIDE_NIC_COUNTERS = 4 };
extern onic_param_t nicstride_nic_rows[];
extern const onic_counter_t nicstride_nic_counters[NICSTRIDE_NIC_COUNTERS];
