/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Converts Open MPI's datatypes to layouts. */
#pragma once

#include "common/ompi_compat.h"
#include "ompi/datatype/ompi_datatype.h"
#include ONIC_MUTEX_HEADER

#include "common/layout/layout.h"
#include "common/support/device.h"

/** Layouts of long descriptions that were read before: attributes of their datatypes. Its lock must
 *  be constructed, and `keyval` be MPI_KEYVAL_INVALID, whenever MPI is initialised. */
typedef struct onic_flattened {
    opal_mutex_t lock;
    int keyval;              /**< of the attribute */
    uint64_t numbers;        /**< given to lists so far (onic_layout_set_number) */
    unsigned long long hits; /**< types that had their layout */
} onic_flattened_t;

/** Describes `count` elements of a committed datatype as a layout whose offsets count from the
 *  buffer address that MPI calls take (so that MPI_BOTTOM works), from Open MPI's optimised
 *  description. The packed order is that of MPI_Pack in a homogeneous system. Regular types take
 *  well under a microsecond; others allocate a run list. OMPI_SUCCESS, OMPI_ERR_OUT_OF_RESOURCE, or
 *  OMPI_ERR_VALUE_OUT_OF_BOUNDS if 64 bits are not enough.
 *
 *  With `f`, which may be NULL, a long description is read once, and a list that is used again has
 *  a number. MPI threads. */
ONIC_EXPORT int onic_flatten(const struct ompi_datatype_t *dt, size_t count, onic_layout_t *l,
                             onic_flattened_t *f);

/** True if `count` items of a type are one contiguous piece of memory, in packed order, that begins
 *  at the buffer's address; then gives its bytes. May be false if that is not obvious. */
static inline bool onic_type_is_plain(const struct ompi_datatype_t *dt, size_t count,
                                      size_t *bytes_p)
{
    const opal_datatype_t *type = &dt->super;
    const uint16_t gapless = OPAL_DATATYPE_FLAG_CONTIGUOUS | OPAL_DATATYPE_FLAG_NO_GAPS;

    return (type->flags & gapless) == gapless && type->true_lb == 0 &&
           type->size == (size_t)(type->ub - type->lb) &&
           !__builtin_mul_overflow(type->size, count, bytes_p) && *bytes_p <= INT64_MAX;
}

/** True if the first or last byte of a layout at `base` is device memory (onic_on_device). */
static inline bool onic_layout_on_device(const void *base, const onic_layout_t *l)
{
    return onic_devices_told() && l->size > 0 &&
           (onic_on_device((const char *)((uintptr_t)base + (uintptr_t)l->lb)) ||
            onic_on_device((const char *)((uintptr_t)base + (uintptr_t)l->ub - 1)));
}
