/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The target of a communication call: what moves from where to where, and whether it may.
 */
#ifndef NICSTRIDE_TARGET_H
#define NICSTRIDE_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/ompi_compat.h"
#include "ompi/datatype/ompi_datatype.h"

#include "common/layout.h"
#include "osc_nicstride/module.h"

/** One communication call, resolved: what moves from where to where. */
typedef struct nicstride_target {
    const char *call; /**< name of the MPI call, for texts */
    nicstride_peer_t *peer;
    onic_layout_t origin;
    onic_layout_t target;
    char *origin_base;
    int64_t disp;    /**< bytes from the window's base, or an address for dynamic windows */
    bool mapped;     /**< the target's memory is in my address space: */
    char *direct;    /**< disp there; may be 0 (MPI_BOTTOM), so only `mapped` says if it counts */
    bool cma;        /**< single copy can be used: address below is good */
    uint64_t remote; /**< address of disp in the target's address space */
} nicstride_target_t;

/**
 * Checks a communication call and resolves it: epoch, layouts, equal sizes, an origin buffer in
 * host memory, bounds. `origin_dt` NULL: there is no origin buffer (MPI_NO_OP). On success call
 * nicstride_target_fini later.
 */
int nicstride_target_init(nicstride_target_t *a, nicstride_module_t *m, const char *call,
                          const void *origin, size_t origin_count, ompi_datatype_t *origin_dt,
                          int target, ptrdiff_t target_disp, size_t target_count,
                          ompi_datatype_t *target_dt);
void nicstride_target_fini(nicstride_target_t *a);
/** May the target be accessed now? Notes that, and waits until it is done with the last fence. */
bool nicstride_may_enter(nicstride_module_t *m, int target);
/** MPI_ERR_BUFFER, with a text, where the first or the last byte of a buffer is known to be memory
 *  of a device. `what` names the buffer. MPI threads only. */
int nicstride_check_host(const nicstride_module_t *m, const char *call, const char *what,
                         const void *base, const onic_layout_t *l);
/** Is the memory of a target mapped here, and to be used so? */
static inline bool nicstride_is_mapped(const nicstride_module_t *m, int target)
{
    const int local = m->node.index[target];

    return local >= 0 && m->mapped[local] != NULL && m->flavor != MPI_WIN_FLAVOR_DYNAMIC;
}
/** Can the kernel copy to and from the peer's memory? Asked once. Takes the wire lock then. */
bool nicstride_single_copy_works(nicstride_peer_t *p);
/** Says that there is no single copy, once: the program works all the same, but its user may wonder
 *  why it is slow. */
void nicstride_say_no_single_copy(void);
/** Copies contiguous bytes without tearing aligned words of up to 8. */
void nicstride_copy_bytes(void *to, const void *from, size_t bytes);
/** Request-based calls are for passive-target epochs. */
int nicstride_check_passive(nicstride_module_t *m, const char *call, int target);

#endif
