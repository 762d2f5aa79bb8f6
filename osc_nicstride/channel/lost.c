/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Lost connections; see lost.h. */
#include "osc_nicstride/channel/lost.h"
#include "osc_nicstride/channel/operation.h"
#include "osc_nicstride/channel/send.h"
#include "osc_nicstride/channel/start.h"
#include "osc_nicstride/window/component.h"
#include "osc_nicstride/window/used.h"

bool nicstride_peer_failed_locked(nicstride_peer_t *p)
{
    if (!p->failed && onic_peer_lost(p->wire)) {
        __atomic_store_n(&p->failed, true, __ATOMIC_RELAXED);
        nicstride_use_locked(p);
    }
    return p->failed;
}

bool nicstride_rank_failed_locked(nicstride_module_t *m, int rank)
{
    if (m->peer[rank] != NULL)
        return nicstride_peer_failed_locked(m->peer[rank]);
    onic_peer_t *wire = nicstride_wire_locked(m, rank);
    return wire == NULL || onic_peer_lost(wire);
}

void nicstride_peer_end_locked(nicstride_peer_t *p)
{
    __atomic_store_n(&p->failed, true, __ATOMIC_RELAXED);
    nicstride_use_locked(p);
    nicstride_drop_waiting_locked(p);
    nicstride_ops_fail_locked(p);
    nicstride_tx_forget(&p->tx, p->quota);
    /* One that lives may still send by what it was lent. */
    if (onic_peer_has_died(p->wire))
        (void)nicstride_loan_returned(&nicstride_component.bank, &p->process->loan,
                                      p->process->loan.lent);
    nicstride_pump_all_locked(p->process);
}

int nicstride_lost_class(const onic_peer_t *wire)
{
    return onic_peer_has_died(wire) ? ONIC_ERR_PROC_FAILED : MPI_ERR_OTHER;
}

bool nicstride_node_has_lost(const nicstride_module_t *m)
{
    bool lost = false;

    for (int i = 0; i < m->node.n && !lost && onic_wire_losses() > 0; i++)
        lost = onic_peer_has_died(m->near[i]);
    return lost;
}
