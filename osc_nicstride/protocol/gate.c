/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/protocol/gate.h"

/** Times that the gate stays shut when near processes had it closed the most often. */
enum { NEAR_MOST = 6 };

/** Who stands for those behind the gate. */
static uint32_t insiders(const nicstride_lockq_t *q)
{
    return q->n - 1;
}

/** The gate is closed, and the word is that: who is inside? */
static void look(nicstride_gate_t *g, nicstride_lockq_t *q, uint64_t word)
{
    const uint64_t inside = word & ~NICSTRIDE_GATE_CLOSED;

    g->state = NICSTRIDE_GATE_LEAVING;
    if (inside == 0) {
        (void)nicstride_lockq_release(q, insiders(q));
        g->state = NICSTRIDE_GATE_SHUT;
    } else if (inside >> 32 == 0) {
        nicstride_lockq_share(q, insiders(q));
    }
}

nicstride_gate_do_t nicstride_gate_released(nicstride_gate_t *g, nicstride_lockq_t *q)
{
    if (g->state != NICSTRIDE_GATE_SHUT)
        return NICSTRIDE_GATE_NOTHING;
    if (g->shut > 0) {
        g->shut--;
        return NICSTRIDE_GATE_NOTHING;
    }
    if (!nicstride_lockq_try(q, insiders(q), NICSTRIDE_LOCK_EXCLUSIVE, 0))
        return NICSTRIDE_GATE_NOTHING;
    g->state = NICSTRIDE_GATE_OPENING;
    return NICSTRIDE_GATE_DO_OPEN;
}

nicstride_gate_do_t nicstride_gate_wanted(nicstride_gate_t *g, nicstride_lockq_t *q, bool near,
                                          uint64_t word)
{
    const bool closes = g->state == NICSTRIDE_GATE_OPEN;

    if (near && (closes || g->state == NICSTRIDE_GATE_OPENING)) {
        g->near = g->near < NEAR_MOST ? g->near + 1 : NEAR_MOST;
        g->shut = g->shut < 1u << g->near ? 1u << g->near : g->shut;
    }
    if (g->state == NICSTRIDE_GATE_LEAVING)
        look(g, q, word);
    if (!closes)
        return NICSTRIDE_GATE_NOTHING;
    g->state = NICSTRIDE_GATE_CLOSING;
    return NICSTRIDE_GATE_DO_CLOSE;
}

nicstride_gate_do_t nicstride_gate_changed(nicstride_gate_t *g, nicstride_lockq_t *q, uint64_t word)
{
    if (g->state == NICSTRIDE_GATE_CLOSING) {
        look(g, q, word);
        return NICSTRIDE_GATE_NOTHING;
    }
    if (g->state != NICSTRIDE_GATE_OPENING)
        return NICSTRIDE_GATE_NOTHING;
    g->state = NICSTRIDE_GATE_OPEN;
    if (!nicstride_lockq_has_waiters(q))
        return NICSTRIDE_GATE_NOTHING;
    g->state = NICSTRIDE_GATE_CLOSING;
    return NICSTRIDE_GATE_DO_CLOSE;
}
