/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Compare and swap; see origin.h. */
#include <stddef.h>
#include <string.h>

#include "osc_nicstride/origin/origin.h"
#include "osc_nicstride/origin/rma.h"
#include "osc_nicstride/window/component.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/window/module.h"
#include "osc_nicstride/window/op.h"
#include "osc_nicstride/origin/contiguous.h"
#include "osc_nicstride/queue/start.h"
#include "osc_nicstride/window/transfer.h"

/** In mapped memory: the whole call is an update under the lock. */
static inline bool swap_mapped(nicstride_module_t *m, const void *origin, const void *compare,
                               void *result, ompi_datatype_t *dt, int target, ptrdiff_t disp)
{
    const size_t bytes = nicstride_gapless_bytes(dt, 1);
    nicstride_ctl_t *ctl;
    void *at;

    if (bytes == 0 || !ompi_datatype_is_predefined(dt) ||
        (at = nicstride_mapped_bytes(m, target, disp, bytes)) == NULL)
        return false;
    ctl = nicstride_ctl(m, onic_node_index(&m->node, target));
    /* An error is for the way that can return it. */
    if (nicstride_ctl_lock(m, &ctl->acc_lock) != OMPI_SUCCESS)
        return false;
    nicstride_apply_cas(at, bytes, compare, origin, result);
    nicstride_ctl_unlock(&ctl->acc_lock);
    nicstride_count_accumulate(NICSTRIDE_METHOD_DIRECT, bytes);
    return true;
}

int nicstride_compare_and_swap(const void *origin, const void *compare, void *result,
                               ompi_datatype_t *dt, int target, ptrdiff_t disp, ompi_win_t *win)
{
    nicstride_module_t *m = nicstride_module(win);
    const nicstride_arguments_t g = {"MPI_Compare_and_swap", origin, 1, dt, target, disp, 1, dt};
    const char *call = g.call;
    nicstride_transfer_t a;
    bool done;
    int dtype, rc;

    if (swap_mapped(m, origin, compare, result, dt, target, disp))
        return OMPI_SUCCESS;
    dtype = nicstride_dtype_index(dt);
    if (dtype < 0 || !ompi_datatype_is_predefined(dt))
        return nicstride_error(m, call, MPI_ERR_TYPE, "the datatype is not a predefined one");
    rc = nicstride_target_init(&a, m, NICSTRIDE_MSG_CAS, &g);
    if (rc != OMPI_SUCCESS)
        return rc;
    rc = nicstride_check_host(m, call, "compare", compare, &a.origin);
    if (rc == OMPI_SUCCESS)
        rc = nicstride_check_host(m, call, "result", result, &a.origin);
    if (rc != OMPI_SUCCESS) {
        /* It has its text. */
    } else if (!onic_layout_is_contig(&a.target)) {
        rc = nicstride_error(m, call, MPI_ERR_TYPE, "the datatype has gaps");
    } else if (nicstride_applies_here(&a)) {
        nicstride_ctl_t *ctl = nicstride_ctl(m, a.peer->local);

        if (nicstride_ctl_lock(m, &ctl->acc_lock) == OMPI_SUCCESS) {
            nicstride_apply_cas(a.direct, a.target.size, compare, origin, result);
            nicstride_ctl_unlock(&ctl->acc_lock);
        } else {
            rc = nicstride_broken_error(m, call);
        }
        nicstride_count_accumulate(NICSTRIDE_METHOD_DIRECT, a.target.size);
    } else {
        a.op = 0;
        a.dtype = (uint16_t)dtype;
        a.origin_base = (char *)(uintptr_t)compare;
        a.swap = origin;
        a.result_base = result;
        onic_layout_contig(&a.result, 0, a.target.size);
        nicstride_count_accumulate(NICSTRIDE_METHOD_PACK, a.target.size);
        rc = nicstride_message_start(&a, false, &done);
    }
    nicstride_target_fini(&a);
    return rc;
}
