/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A strided transfer by an adapter's requests, built and issued by the production code's
 * walk and sliding window (strided-RMA paper, section 5.2 and figure 5). */
#pragma once

#include <stdbool.h>

#include "common/layout/layout.h"
#include "common/model/link.h"

typedef struct sim_requested {
    double time; /**< nanoseconds from the call until the last completion; negative: it hangs */
    unsigned long long requests, doorbells, completions;
} sim_requested_t;

/** A write of `far` from `near`, or a read, both of the same size, with the numbers of an adapter.
 * `host`: nanoseconds of the host's processor for each request; 0: the adapter takes them from a
 * list. `answered`: a read is requested from the other side, whose adapter writes: one more
 * message, and its window instead of that of reads. */
sim_requested_t sim_requests(const onic_link_t *link, bool read, bool answered, double host,
                             const onic_layout_t *near, const onic_layout_t *far);
