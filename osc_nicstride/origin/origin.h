/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The way of a communication call at its origin. It is resolved (resolve.c): may it be made
 *  now, what does it move, and does that stay inside the target's window. Then its method is chosen
 *  and started (choose.c).
 *
 *  Accumulates: if the target's memory is mapped here, the origin applies them itself. Otherwise
 *  they travel as messages, long ones through receive buffers, and the target applies them. Both
 *  obey the target's discipline (window/hold.h), so all are atomic with respect to each other. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/ompi_compat.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/request/request.h"
#include "common/layout/flatten.h"
#include "osc_nicstride/protocol/method.h"
#include "osc_nicstride/methods/pack/short.h"
#include "osc_nicstride/window/state.h"
#include "osc_nicstride/window/module.h"
#include "osc_nicstride/window/transfer.h"
#include "common/support/device.h"
#include "osc_nicstride/sync/fence.h"

/** Arguments that communication calls share, in MPI's order. */
typedef struct nicstride_arguments {
    const char *call; /**< its name, for texts */
    const void *origin;
    onic_rma_count_t origin_count;
    ompi_datatype_t *origin_dt; /**< NULL: there is no origin buffer (MPI_NO_OP) */
    int target;
    ptrdiff_t disp;
    onic_rma_count_t target_count;
    ompi_datatype_t *target_dt;
} nicstride_arguments_t;

/** Checks a communication call and resolves it: epoch, layouts, bounds, buffers in host memory. If
 *  there is more room than data, the room is cut to the data, so both sides are equally long. Only
 *  for NICSTRIDE_MSG_GET_ACC the origin may be shorter than the target: the rest of the target is
 *  fetched and not changed. On success, call nicstride_target_fini later. */
int nicstride_target_init(nicstride_transfer_t *a, nicstride_module_t *m, nicstride_msg_type_t type,
                          const nicstride_arguments_t *g);
void nicstride_target_fini(nicstride_transfer_t *a);
/** Layouts of datatypes that calls have used. Set up and freed by the component. */
extern onic_flattened_t nicstride_flattened;

/** Calls onic_flatten. If that fails, prints a text and leaves an empty layout. `what` is "origin",
 *  "target" or "result". MPI threads only. */
int nicstride_flatten(nicstride_module_t *m, const char *call, const char *what,
                      const ompi_datatype_t *dt, size_t count, onic_layout_t *l);
/** Cuts the room for `bytes` of data to them. MPI_ERR_TYPE, with a text that names both buffers, if
 *  they do not fit. */
int nicstride_fit(nicstride_module_t *m, const char *call, const char *from, uint64_t bytes,
                  const char *to, onic_layout_t *room);
/** MPI_ERR_BUFFER, with a text, if the first or last byte of a buffer is known to be memory of a
 *  device. `what` names the buffer. MPI threads only. */
int nicstride_check_host(const nicstride_module_t *m, const char *call, const char *what,
                         const void *base, const onic_layout_t *l);

/** Finishes a call that was resolved with result `rc`: chooses a method and starts it. Ends `t`.
 *  `request_p` gets the request of a request-based call, which is complete or will be completed
 *  later; NULL: the call has none. */
int nicstride_run(nicstride_transfer_t *t, int rc, ompi_request_t **request_p);

/** Sends a short operation in a message, alone or in a vector, if it is clear at once that this is
 *  its way. Sets the operation's place. False if it must be resolved, which would take more than
 *  half of the time of a put of 8 bytes in a series. */
bool nicstride_send_short(nicstride_module_t *m, int target, ptrdiff_t disp, nicstride_short_t *s);

/** Set Open MPI's functions for these calls. The functions have Open MPI's arguments, which Open
 *  MPI has checked unless a function says otherwise. MPI threads, no lock held. They return
 *  OMPI_SUCCESS, or an error of MPI's or Open MPI's after a text. */
void nicstride_put_get_calls(ompi_osc_base_module_t *calls);
void nicstride_update_calls(ompi_osc_base_module_t *calls);
void nicstride_dynamic_calls(ompi_osc_base_module_t *calls);

/* ---- the smallest calls -------------------------------------------------------------------------
 *
 * Checks whether a few contiguous bytes can be moved right now, and finds them. If the answer is
 * no, the reason is unknown: the call must be resolved, which finds out and reports it.
 *
 * Inlined: on mapped windows this is nearly all that an 8-byte call takes, and half of what it
 * would take if resolved. */

/** Bytes of `count` elements of a datatype without gaps, else 0. */
static inline size_t nicstride_gapless_bytes(const ompi_datatype_t *dt, size_t count)
{
    size_t bytes;

    return onic_type_is_plain(dt, count, &bytes) ? bytes : 0;
}

/** True if `bytes` bytes at `disp` are within the target's window and the epoch allows the access.
 *  Waits until the target has finished the last fence. `*offset` gets their offset from the
 *  window's base, or their address in a dynamic window; only its target knows whether that is
 *  attached. Always false if memory of devices can be recognised or the window is checked: the long
 *  way looks at each buffer. */
static inline bool nicstride_allowed_offset(nicstride_module_t *m, int target, ptrdiff_t disp,
                                            size_t bytes, uint64_t *offset)
{
    const nicstride_rank_info_t *info = nicstride_info(m, target);

    if (m->check != NULL || onic_devices_told() || disp < 0)
        return false;
    if (m->flavor == MPI_WIN_FLAVOR_DYNAMIC)
        *offset = (uint64_t)disp;
    else if (__builtin_mul_overflow((uint64_t)disp, (uint64_t)info->disp_unit, offset) ||
             *offset > info->size || bytes > info->size - *offset)
        return false;
    return nicstride_enter(m, target) == NULL;
}

/** The offset of an address in a target's memory that is mapped here. */
static inline int64_t nicstride_disp_of(const nicstride_module_t *m, int target, const void *at)
{
    return (const char *)at - m->mapped[onic_node_index(&m->node, target)];
}

/** The address of such bytes if they are mapped here and to be accessed by loads and stores now;
 *  else NULL. */
static inline void *nicstride_mapped_bytes(nicstride_module_t *m, int target, ptrdiff_t disp,
                                           size_t bytes)
{
    const nicstride_method_t method = nicstride_forced();
    uint64_t at;

    if (!nicstride_is_mapped(m, target) || nicstride_has_unlanded(m, target) ||
        (method != NICSTRIDE_METHOD_AUTO && method != NICSTRIDE_METHOD_DIRECT) ||
        !nicstride_allowed_offset(m, target, disp, bytes, &at))
        return NULL;
    return m->mapped[onic_node_index(&m->node, target)] + at;
}
