/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The table of all methods; see protocol/method.h. */
#pragma once

#include <stdbool.h>

#include "common/pipeline/core/schedules.h"
#include "osc_nicstride/protocol/method.h"

#include "ompi/mca/osc/osc.h"

/** The row of each method, by number. NICSTRIDE_METHOD_AUTO's has only a name. */
extern const nicstride_method_row_t *nicstride_methods[NICSTRIDE_METHODS_MAX];

extern const nicstride_method_row_t nicstride_direct;               /* direct.c */
extern const nicstride_method_row_t nicstride_cma, nicstride_sieve; /* single_copy.c */

extern const nicstride_method_row_t nicstride_rdma;     /* ucx_rma.c */
extern const nicstride_method_row_t nicstride_pipeline; /* pipeline.c */
extern const nicstride_method_row_t nicstride_nic;      /* verbs_wr.c */

/** What method pipeline takes between hosts, in nanoseconds, with receive buffers of `buffer` bytes
 *  and such a schedule. */
double nicstride_pipeline_cost(const nicstride_case_t *c, double buffer,
                               onic_schedule_kind_t schedule);

/** The component as Open MPI finds it, followed by the table, to which a test adds rows. */
typedef struct nicstride_osc {
    ompi_osc_base_component_t super;
    const nicstride_method_row_t **methods;
} nicstride_osc_t;

/** Bytes of an accumulate after which its locks are released for others. */
#define NICSTRIDE_LOCK_SPAN (64 << 10)
