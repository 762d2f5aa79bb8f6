/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Datatypes of Open MPI to layouts. */
#pragma once

#include "common/ompi_compat.h"
#include "ompi/datatype/ompi_datatype.h"
#include ONIC_MUTEX_HEADER

#include "common/layout/layout_cache.h"
#include "common/layout/layout.h"
#include "common/support/device.h"

/** Construct the lock. */
typedef struct onic_flattened {
    opal_mutex_t lock;
    onic_layout_cache_t cache; /**< those of one item each */
} onic_flattened_t;

/** Describes `count` elements of a committed datatype as a layout whose offsets count from the
 *  buffer address that MPI calls take (so that MPI_BOTTOM works), by the optimised description that
 *  Open MPI keeps. The packed order is MPI_Pack's in a homogeneous system. Regular types cost well
 *  under a microsecond and no allocation; irregular ones allocate a run list. OMPI_SUCCESS,
 *  OMPI_ERR_OUT_OF_RESOURCE, or OMPI_ERR_VALUE_OUT_OF_BOUNDS where 64 bits are not enough.
 *
 *  `f`, which may be NULL: the layouts of long descriptions that a component has met. A long
 *  description is then not read again each time that the type, or another one with the same
 *  description, is used: it is compared. MPI threads. */
ONIC_EXPORT int onic_flatten(const struct ompi_datatype_t *dt, size_t count, onic_layout_t *l,
                             onic_flattened_t *f);

/** Are `count` items of a type one piece of memory without gaps, in the order in which it is sent,
 *  that begins where the buffer does? Then its bytes. False where that is not seen at once. */
static inline bool onic_type_is_plain(const struct ompi_datatype_t *dt, size_t count,
                                      size_t *bytes_p)
{
    const opal_datatype_t *type = &dt->super;
    const uint16_t gapless = OPAL_DATATYPE_FLAG_CONTIGUOUS | OPAL_DATATYPE_FLAG_NO_GAPS;

    return (type->flags & gapless) == gapless && type->true_lb == 0 &&
           type->size == (size_t)(type->ub - type->lb) &&
           !__builtin_mul_overflow(type->size, count, bytes_p) && *bytes_p <= INT64_MAX;
}

/** True if the first or last byte of a layout at `base` is memory of a device (onic_on_device). */
static inline bool onic_layout_on_device(const void *base, const onic_layout_t *l)
{
    return onic_devices_told() && l->size > 0 &&
           (onic_on_device((const char *)((uintptr_t)base + (uintptr_t)l->lb)) ||
            onic_on_device((const char *)((uintptr_t)base + (uintptr_t)l->ub - 1)));
}
