/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Who does the accumulates of a window. Either processors do, under a lock in the memory of
 *  the target's node; or an adapter does all of them, with its own atomics, also those of the
 *  target's neighbours and its own. The two are not atomic with each other, so that the members of
 *  a window agree on one of them when they make it: on the adapter where all wish that, and all
 *  can. */
#include "common/wire/put.h"
#include "osc_nicstride/component/setup.h"
#include "osc_nicstride/queue/keys.h"
#include "osc_nicstride/window/state.h"
#include "osc_nicstride/window/window.h"

int32_t nicstride_adapter_wish(const nicstride_module_t *m, opal_info_t *info)
{
    const nicstride_adapter_t mode = nicstride_component.params.adapter_atomics;
    const bool wanted =
        mode == NICSTRIDE_ADAPTER_ON ||
        (mode == NICSTRIDE_ADAPTER_AUTO && nicstride_info_bool(info, NICSTRIDE_SINGLE_INTRINSIC));

    return wanted && m->flavor != MPI_WIN_FLAVOR_DYNAMIC && onic_wire_puts() && onic_wire_atomics()
               ? NICSTRIDE_WANTS_ADAPTER
               : 0;
}

/** Registers all of the own memory, in one piece. */
static bool enrol_locked(nicstride_module_t *m)
{
    const uint32_t rows = NICSTRIDE_REACH(NICSTRIDE_METHOD_RDMA);
    const nicstride_of_rows_t *word;
    const nicstride_key_piece_t *piece;

    if (nicstride_info(m, m->rank)->size == 0)
        return true;
    m->adapter_updates = true;
    piece = nicstride_enrol_locked(m, 0, rows, &word);
    return piece != NULL && piece->of.row[NICSTRIDE_METHOD_RDMA] != NULL;
}

bool nicstride_adapter_can(nicstride_module_t *m, int32_t wishes)
{
    const bool forced = nicstride_component.params.adapter_atomics == NICSTRIDE_ADAPTER_ON;
    bool can;

    if ((wishes & NICSTRIDE_WANTS_ADAPTER) == 0 || (!forced && m->fence.nodes == 1))
        return false;
    onic_wire_lock();
    can = (forced || onic_peer_atomics_by_rdma(m->near[m->node.me])) && enrol_locked(m);
    onic_wire_unlock();
    return can;
}
