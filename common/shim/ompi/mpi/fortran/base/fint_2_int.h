/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Open MPI's ompi/op/op.h includes a header of this name that Open MPI does not install. This one
 * stands in for it with the conversions that op.h uses. It is searched last, so that an
 * installation that has the real header uses that.
 */
#pragma once

#include "mpi.h"

/** From C's int to Fortran's INTEGER and back. */
#define OMPI_INT_2_FINT(value) ((MPI_Fint)(value))
#define OMPI_FINT_2_INT(value) ((int)(value))
