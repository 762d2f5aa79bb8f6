/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What accumulate.c and compare_and_swap.c share. Where the target's memory is mapped here the
 * origin applies them itself, under the target's accumulate lock; elsewhere they travel as messages
 * and the target applies them under the same lock, so that all of them are atomic with each other.
 */
#ifndef NICSTRIDE_ACCUMULATE_H
#define NICSTRIDE_ACCUMULATE_H

#include "osc_nicstride/component.h"
#include "osc_nicstride/module.h"
#include "osc_nicstride/target.h"

/** Counts one of them, with the bytes of the target that it is about. */
static inline void nicstride_count_accumulate(nicstride_method_t method, uint64_t bytes)
{
    nicstride_add(&nicstride_counters.accumulates, 1);
    nicstride_count(method, bytes);
}

/** Does the origin apply it itself? */
static inline bool nicstride_applies_here(const nicstride_target_t *a)
{
    return a->mapped && mca_osc_nicstride_component.params.method != NICSTRIDE_METHOD_PACK;
}

/** The same, of a target that is not resolved yet. All accumulates to a target must go one way. */
static inline bool nicstride_applies_here_to(const nicstride_module_t *m, int target)
{
    return nicstride_is_mapped(m, target) &&
           mca_osc_nicstride_component.params.method != NICSTRIDE_METHOD_PACK;
}

#endif
