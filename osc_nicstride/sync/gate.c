/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The gate to the own lock: opened and closed by the adapter; see gate.h. */
#include "osc_nicstride/sync/gate.h"

#include "osc_nicstride/sync/change_queue.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/window/state.h"

/** Gates that wait for a lock; wire lock. */
static unsigned waiting;

static void change_word(nicstride_gatehouse_t *g, uint64_t add);

/** Has that happened, and is it dealt with now? What would change the word waits while another
 *  change of it does. */
static bool takes(nicstride_gatehouse_t *g, unsigned what)
{
    const bool now = (g->happened & what) != 0 && g->todo == NICSTRIDE_GATE_NOTHING;

    if (now)
        g->happened &= ~what;
    return now;
}

/** What has happened at the gate. */
static bool at_gate(nicstride_module_t *m, int local, uint32_t origin)
{
    nicstride_lockq_t *q = nicstride_ctl_lockq(m, local);
    nicstride_gatehouse_t *g = m->gate;
    const uint64_t word = __atomic_load_n(g->word, __ATOMIC_ACQUIRE);
    const bool near = (g->happened & NICSTRIDE_GATE_BY_NEAR) != 0;

    (void)origin;
    if (takes(g, NICSTRIDE_GATE_IS_CHANGED)) {
        g->todo = nicstride_gate_changed(&g->gate, q, word);
        /* Nobody must come into a window that has failed. */
        if (nicstride_is_broken(m))
            g->happened |= NICSTRIDE_GATE_IS_WANTED;
    }
    if (takes(g, NICSTRIDE_GATE_IS_RELEASED) && !nicstride_is_broken(m))
        g->todo = nicstride_gate_released(&g->gate, q);
    if (takes(g, NICSTRIDE_GATE_IS_WANTED | NICSTRIDE_GATE_BY_NEAR))
        g->todo = nicstride_gate_wanted(&g->gate, q, near, word);
    return true;
}

/** Deals with that. False where the queue is busy. */
static bool change_queue(nicstride_module_t *m)
{
    const int rc = nicstride_change_queue(m, m->node.me, at_gate, 0, true);

    /* Nobody will have the queue any more. */
    if (rc != OMPI_SUCCESS && rc != NICSTRIDE_QUEUE_BUSY)
        m->gate->happened = 0;
    return rc != NICSTRIDE_QUEUE_BUSY;
}

/** Deals with what has happened, unless the queue is busy. */
static bool settle(nicstride_module_t *m)
{
    nicstride_gatehouse_t *g = m->gate;
    const bool settled = g->happened == 0 || change_queue(m);

    if (g->waits && settled)
        waiting--;
    if (!g->waits && !settled)
        waiting++;
    g->waits = !settled;
    if (!settled)
        onic_wire_defer(ONIC_AM_OSC);
    if (g->busy || g->todo == NICSTRIDE_GATE_NOTHING)
        return settled;
    g->todo = NICSTRIDE_GATE_NOTHING;
    /* Of a bit that nobody else changes this takes it out as well as it puts it in. */
    change_word(g, NICSTRIDE_GATE_CLOSED);
    return settled;
}

static void changed_cb(void *arg, int status)
{
    nicstride_gatehouse_t *g = arg;
    const bool repaired = g->repairs;

    g->busy = g->repairs = false;
    if (status != OMPI_SUCCESS)
        nicstride_break(g->of, NICSTRIDE_BROKEN_LOCK, -1);
    nicstride_gate_note_locked(g->of,
                               repaired ? NICSTRIDE_GATE_IS_WANTED : NICSTRIDE_GATE_IS_CHANGED);
}

/** Adds to the word. */
static void change_word(nicstride_gatehouse_t *g, uint64_t add)
{
    int rc;

    g->busy = true;
    g->operand = add;
    rc = onic_remote_atomic(g->own, ONIC_ATOMIC_ADD, 0, sizeof(g->before), &g->operand, &g->before,
                            changed_cb, g);
    if (rc != 0)
        changed_cb(g, rc < 0 ? rc : OMPI_SUCCESS);
}

void nicstride_gate_note_locked(nicstride_module_t *m, unsigned happened)
{
    if (m->gate == NULL)
        return;
    m->gate->happened |= happened;
    (void)settle(m);
}

bool nicstride_gates_settle_locked(void)
{
    opal_hash_table_t *windows = &nicstride_component.windows;
    void *m, *node;
    uint32_t name;

    if (waiting == 0)
        return true;
    for (int rc = opal_hash_table_get_first_key_uint32(windows, &name, &m, &node);
         rc == OPAL_SUCCESS;
         rc = opal_hash_table_get_next_key_uint32(windows, &name, &m, node, &node))
        if (((nicstride_module_t *)m)->gate != NULL && ((nicstride_module_t *)m)->gate->waits)
            (void)settle(m);
    return waiting == 0;
}

bool nicstride_gate_lost_locked(nicstride_module_t *m, int rank)
{
    nicstride_gatehouse_t *g = m->gate;
    uint64_t had = 0;

    if (g == NULL)
        return true;
    if (g->busy)
        return false;
    const uint64_t word = __atomic_load_n(g->word, __ATOMIC_ACQUIRE) & ~NICSTRIDE_GATE_CLOSED;
    const uint64_t exclusive = nicstride_gate_mark(NICSTRIDE_LOCK_EXCLUSIVE, (uint32_t)rank);

    if (word >> 32 == exclusive >> 32)
        had = exclusive;
    else if (g->marks[rank] == NICSTRIDE_MARK_IN)
        had = nicstride_gate_mark(NICSTRIDE_LOCK_SHARED, (uint32_t)rank);
    else if (g->marks[rank] == NICSTRIDE_MARK_MAYBE)
        nicstride_break(m, NICSTRIDE_BROKEN_LOCK, -1);
    g->marks[rank] = NICSTRIDE_MARK_OUT;
    if (had == 0) {
        /* It may have gone out, and not have told. */
        if (g->gate.state == NICSTRIDE_GATE_LEAVING)
            nicstride_gate_note_locked(m, NICSTRIDE_GATE_IS_WANTED);
        return true;
    }
    /* It may be alive, not know, and still go out: the word is not to be relied on from then on,
     * and the gate stays shut. */
    g->gate.shut = UINT32_MAX;
    g->repairs = true;
    change_word(g, -had);
    return true;
}

bool nicstride_gate_is_still_locked(const nicstride_module_t *m)
{
    return m->gate == NULL ||
           (!m->gate->busy && m->gate->todo == NICSTRIDE_GATE_NOTHING && m->gate->happened == 0);
}
