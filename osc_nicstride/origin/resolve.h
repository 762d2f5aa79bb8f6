/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Resolving communication calls: may it be made now, what does it move, and does that stay inside
 * the target's window?
 */
#ifndef NICSTRIDE_RESOLVE_H
#define NICSTRIDE_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/ompi_compat.h"
#include "ompi/datatype/ompi_datatype.h"

#include "osc_nicstride/window/transfer.h"

/** Arguments that communication calls have in common, in MPI's order. */
typedef struct nicstride_arguments {
    const char *call; /**< its name, for texts */
    const void *origin;
    int origin_count;
    ompi_datatype_t *origin_dt; /**< NULL: there is no origin buffer (MPI_NO_OP) */
    int target;
    ptrdiff_t disp;
    int target_count;
    ompi_datatype_t *target_dt;
} nicstride_arguments_t;

/** Checks a communication call and resolves it: epoch, layouts, equal sizes, an origin buffer in
 *  host memory, bounds. On success call nicstride_target_fini later. */
int nicstride_target_init(nicstride_transfer_t *a, nicstride_module_t *m,
                          const nicstride_arguments_t *g);
void nicstride_target_fini(nicstride_transfer_t *a);
/** MPI_ERR_BUFFER, with a text, where the first or the last byte of a buffer is known to be memory
 *  of a device. `what` names the buffer. MPI threads only. */
int nicstride_check_host(const nicstride_module_t *m, const char *call, const char *what,
                         const void *base, const onic_layout_t *l);
#endif
