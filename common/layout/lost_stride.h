/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Datatypes of which Open MPI itself does not know where their bytes are. */
#ifndef ONIC_LOST_STRIDE_H
#define ONIC_LOST_STRIDE_H

#include <stdbool.h>

#include "common/support/export.h"

struct ompi_datatype_t;

/**
 * Is there a vector with a stride of -1 byte in the derived type? Open MPI 4.1 and 5.0 take that
 * number for none, and describe a type whose elements follow each other upwards: only how it was
 * made tells the two apart. Costs some 10 ns for each constructor of the type that has one child,
 * and for each member of a structure. Thread-safe: the type is only read. True also where there is
 * no memory to look.
 */
ONIC_EXPORT bool onic_lost_stride(const struct ompi_datatype_t *dt);

#endif
