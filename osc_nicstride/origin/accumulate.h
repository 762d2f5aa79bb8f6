/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What accumulate.c and compare_and_swap.c share. Where the target's memory is mapped here the
 * origin applies them itself, under the target's accumulate lock; elsewhere they travel as
 * messages, long ones through slots, and the target applies them under the same lock, so that all
 * of them are atomic with each other.
 */
#ifndef NICSTRIDE_ACCUMULATE_H
#define NICSTRIDE_ACCUMULATE_H

#include "osc_nicstride/window/component.h"
#include "osc_nicstride/window/module.h"
#include "osc_nicstride/window/transfer.h"

/** Counts one of them, with the bytes of the target that it is about. */
static inline void nicstride_count_accumulate(nicstride_method_t method, uint64_t bytes)
{
    nicstride_add(&nicstride_counters.accumulates, 1);
    nicstride_count(method, bytes);
}

/** Does the origin apply it itself? All accumulates to a target must go one way. */
static inline bool nicstride_applies_here(const nicstride_transfer_t *a)
{
    return a->mapped && mca_osc_nicstride_component.params.method != NICSTRIDE_METHOD_PACK;
}

#endif
