/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Compare and swap; see accumulate.h. */
#include <stddef.h>
#include <string.h>

#include "osc_nicstride/accumulate.h"
#include "osc_nicstride/calls.h"
#include "osc_nicstride/component.h"
#include "osc_nicstride/control.h"
#include "osc_nicstride/errors.h"
#include "osc_nicstride/module.h"
#include "osc_nicstride/op.h"
#include "osc_nicstride/quick.h"
#include "osc_nicstride/small.h"
#include "osc_nicstride/stream.h"
#include "osc_nicstride/target.h"

/** In mapped memory: the whole call is an update under the lock. */
static inline bool swap_quickly(nicstride_module_t *m, const void *origin, const void *compare,
                                void *result, ompi_datatype_t *dt, int target, ptrdiff_t disp)
{
    const size_t bytes = nicstride_plain_bytes(dt, 1);
    nicstride_ctl_t *ctl;
    void *at;

    if (bytes == 0 || !ompi_datatype_is_predefined(dt) ||
        (at = nicstride_mapped_bytes(m, target, disp, bytes)) == NULL)
        return false;
    ctl = nicstride_ctl(m, m->node.index[target]);
    nicstride_spin_lock(&ctl->acc_lock);
    nicstride_apply_cas(at, bytes, compare, origin, result);
    nicstride_spin_unlock(&ctl->acc_lock);
    nicstride_count_accumulate(NICSTRIDE_METHOD_DIRECT, bytes);
    return true;
}

/** By one message. */
static bool swap_by_small_message(nicstride_module_t *m, const void *origin, const void *compare,
                                  void *result, ompi_datatype_t *dt, int dtype, int target,
                                  ptrdiff_t disp)
{
    const size_t bytes = nicstride_plain_bytes(dt, 1);
    nicstride_small_t s = {.type = NICSTRIDE_MSG_CAS,
                           .dtype = (uint16_t)dtype,
                           .len = bytes,
                           .data = compare,
                           .data2 = origin,
                           .result = result};

    if (nicstride_applies_here_to(m, target) || bytes == 0 || bytes > NICSTRIDE_SMALL_MAX / 2 ||
        !nicstride_small_start(m, target, disp, &s))
        return false;
    nicstride_habit_operation(&m->habit);
    nicstride_count_accumulate(NICSTRIDE_METHOD_PACK, bytes);
    return true;
}

int nicstride_compare_and_swap(const void *origin, const void *compare, void *result,
                               ompi_datatype_t *dt, int target, ptrdiff_t disp, ompi_win_t *win)
{
    nicstride_module_t *m = nicstride_module(win);
    const char *call = "MPI_Compare_and_swap";
    nicstride_target_t a;
    nicstride_op_t *op;
    int dtype, rc;

    if (swap_quickly(m, origin, compare, result, dt, target, disp))
        return OMPI_SUCCESS;
    dtype = nicstride_dtype_index(dt);
    if (dtype < 0 || !ompi_datatype_is_predefined(dt))
        return nicstride_error(m, call, MPI_ERR_TYPE, "the datatype is not a predefined one");
    if (swap_by_small_message(m, origin, compare, result, dt, dtype, target, disp))
        return OMPI_SUCCESS;
    rc = nicstride_target_init(&a, m, call, origin, 1, dt, target, disp, 1, dt);
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

        nicstride_spin_lock(&ctl->acc_lock);
        nicstride_apply_cas(a.direct, a.target.size, compare, origin, result);
        nicstride_spin_unlock(&ctl->acc_lock);
        nicstride_count_accumulate(NICSTRIDE_METHOD_DIRECT, a.target.size);
    } else if ((op = nicstride_op_new(m, &a, NICSTRIDE_MSG_CAS, a.target.size)) == NULL) {
        rc = OMPI_ERR_OUT_OF_RESOURCE;
    } else {
        op->dtype = (uint16_t)dtype;
        memcpy(op->cas, compare, op->size);
        memcpy(op->cas + op->size, origin, op->size);
        onic_layout_contig(&op->result, 0, op->size);
        op->result_base = result;
        nicstride_count_accumulate(NICSTRIDE_METHOD_PACK, op->size);
        nicstride_habit_operation(&m->habit);
        rc = nicstride_op_start(op);
    }
    nicstride_target_fini(&a);
    return rc;
}
