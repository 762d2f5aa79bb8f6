/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The smallest calls: may a few contiguous bytes be moved as things stand, and where are they? A
 * negative answer says nothing: resolve the call (origin.h), which finds out and explains.
 *
 * Inlined: on mapped windows this is nearly all that an 8-byte call takes, and half of what it
 * would take resolved.
 */
#ifndef NICSTRIDE_CONTIGUOUS_H
#define NICSTRIDE_CONTIGUOUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/ompi_compat.h"
#include "ompi/datatype/ompi_datatype.h"

#include "common/layout/flatten.h"
#include "common/support/device.h"
#include "osc_nicstride/window/state.h"
#include "osc_nicstride/window/module.h"
#include "osc_nicstride/window/transfer.h"
#include "osc_nicstride/sync/counted.h"

/** Bytes of `count` elements of a datatype without any gap, else 0. */
static inline size_t nicstride_gapless_bytes(const ompi_datatype_t *dt, size_t count)
{
    size_t bytes;

    return onic_type_is_plain(dt, count, &bytes) ? bytes : 0;
}

/** Are `bytes` bytes at `disp` within the target's window, and does the epoch allow access? Waits
 *  until the target is done with the last fence. `*offset` gets their distance from the window's
 * start, or their address in a dynamic window: whether that is attached its target knows. Never
 * where memory of devices can be recognised: the long way asks for each buffer. */
static inline bool nicstride_allowed_offset(nicstride_module_t *m, int target, ptrdiff_t disp,
                                            size_t bytes, uint64_t *offset)
{
    const nicstride_rank_info_t *info = nicstride_info(m, target);

    if (onic_devices_told() || disp < 0)
        return false;
    if (m->flavor == MPI_WIN_FLAVOR_DYNAMIC)
        *offset = (uint64_t)disp;
    else if (__builtin_mul_overflow((uint64_t)disp, (uint64_t)info->disp_unit, offset) ||
             *offset > info->size || bytes > info->size - *offset)
        return false;
    return nicstride_enter(m, target) == NULL;
}

/** Where such bytes are mapped here, and to be used so, their address; else NULL. */
static inline void *nicstride_mapped_bytes(nicstride_module_t *m, int target, ptrdiff_t disp,
                                           size_t bytes)
{
    const int method = nicstride_component.params.method;
    uint64_t at;

    if (!nicstride_is_mapped(m, target) ||
        (method != NICSTRIDE_METHOD_AUTO && method != NICSTRIDE_METHOD_DIRECT) ||
        !nicstride_allowed_offset(m, target, disp, bytes, &at))
        return NULL;
    return m->mapped[onic_node_index(&m->node, target)] + at;
}

#endif
