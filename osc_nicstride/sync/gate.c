/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/sync/lock_queue.h"

#include <stdlib.h>
#include <string.h>

#include "common/node/segment.h"
#include "common/wire/put.h"
#include "osc_nicstride/protocol/lockq.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/queue/wait.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/window/state.h"

/** Bytes of the longest key. */
enum { KEY_MAX = 1024 };

/** Does an adapter do atomics in the memory of that process, or is that emulated where it should?
 */
static bool has_atomics(onic_peer_t *wire)
{
    const nicstride_adapter_t mode = nicstride_component.params.adapter_locks;

    return onic_wire_atomics() && mode != NICSTRIDE_ADAPTER_OFF &&
           (mode == NICSTRIDE_ADAPTER_ON || onic_peer_atomics_by_rdma(wire));
}

/* ---- the target ------------------------------------------------------------------------------ */

/** Its gate: nicstride_module_t's `gate`. */
struct nicstride_gatehouse {
    nicstride_gate_t gate;
    uint64_t *word;
    onic_region_t *region;
    onic_remote_t *own;       /**< its key for itself: only the adapter changes the word */
    unsigned happened;        /**< a set of NICSTRIDE_GATE_IS_... */
    nicstride_gate_do_t todo; /**< what is to be done with the word then */
    bool busy;                /**< a change of the word is under way */
    uint64_t operand, before; /**< of that */
    bool repairs;             /**< it takes away what a lost process had */
    nicstride_module_t *of;   /**< the window */
};

void nicstride_gate_free_locked(nicstride_module_t *m)
{
    nicstride_gatehouse_t *g = m->gate;

    if (g == NULL)
        return;
    if (g->own != NULL)
        onic_remote_close(g->own);
    if (g->region != NULL)
        onic_region_free_locked(g->region);
    free(g->word);
    free(g);
    m->gate = NULL;
}

static bool open_own(nicstride_module_t *m, nicstride_gatehouse_t *g)
{
    unsigned char key[KEY_MAX];
    const size_t len = onic_region_key_locked(g->region, key, sizeof(key));
    int rc;

    if (len > 0)
        g->own = onic_remote_open(m->near[m->node.me], key, len, &rc);
    return g->own != NULL;
}

static nicstride_gatehouse_t *make(nicstride_module_t *m)
{
    const size_t page = onic_whole_pages(1);
    nicstride_gatehouse_t *g = calloc(1, sizeof(*g));

    if (g == NULL)
        return NULL;
    g->of = m;
    /* In a page of its own: children of this process may not get one that an adapter writes. */
    g->word = aligned_alloc(page, page);
    if (g->word != NULL) {
        *g->word = NICSTRIDE_GATE_CLOSED;
        g->region = onic_region_over_locked(g->word, page);
    }
    m->gate = g;
    if (g->region != NULL && open_own(m, g))
        return g;
    nicstride_gate_free_locked(m);
    return NULL;
}

size_t nicstride_gate_offer_locked(nicstride_module_t *m, void *bytes, size_t cap)
{
    if (m->gate == NULL && !m->gateless && !m->no_locks && has_atomics(m->near[m->node.me]))
        m->gate = make(m);
    m->gateless = m->gate == NULL;
    return m->gate != NULL ? onic_region_key_locked(m->gate->region, bytes, cap) : 0;
}

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
static nicstride_tell_t at_gate(nicstride_module_t *m, int local, uint32_t origin, unsigned what)
{
    nicstride_lockq_t *q = nicstride_ctl_lockq(m, local);
    nicstride_gatehouse_t *g = m->gate;
    const uint64_t word = __atomic_load_n(g->word, __ATOMIC_ACQUIRE);
    const bool near = (g->happened & NICSTRIDE_GATE_BY_NEAR) != 0;

    (void)origin, (void)what;
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
    return NICSTRIDE_TELL_NOTHING;
}

void nicstride_gate_settle_locked(nicstride_module_t *m)
{
    nicstride_gatehouse_t *g = m->gate;
    int rc = OMPI_SUCCESS;

    if (g == NULL)
        return;
    if (g->happened != 0)
        rc = nicstride_change_queue(m, m->node.me, at_gate, 0, 0, true);
    if (rc == NICSTRIDE_QUEUE_BUSY)
        nicstride_queue_is_busy_locked();
    else if (rc != OMPI_SUCCESS)
        g->happened = 0; /* nobody will have the queue any more */
    if (g->busy || g->todo == NICSTRIDE_GATE_NOTHING)
        return;
    g->todo = NICSTRIDE_GATE_NOTHING;
    /* Of a bit that nobody else changes this takes it out as well as it puts it in. */
    change_word(g, NICSTRIDE_GATE_CLOSED);
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
    nicstride_gate_settle_locked(m);
}

bool nicstride_gate_lost_locked(nicstride_module_t *m, int rank)
{
    nicstride_gatehouse_t *g = m->gate;

    if (g == NULL)
        return true;
    if (g->busy)
        return false;
    const uint64_t word = __atomic_load_n(g->word, __ATOMIC_ACQUIRE) & ~NICSTRIDE_GATE_CLOSED;
    const uint64_t exclusive = nicstride_gate_mark(NICSTRIDE_LOCK_EXCLUSIVE, (uint32_t)rank);

    if (word >> 32 == exclusive >> 32) {
        /* It may be alive, not know, and still go out: the word is not to be relied on from then
         * on, and the gate stays shut. */
        g->gate.shut = UINT32_MAX;
        g->repairs = true;
        change_word(g, -exclusive);
        return true;
    }
    /* It may be one of those that share the lock. */
    if ((uint32_t)word != 0)
        nicstride_break(m, NICSTRIDE_BROKEN_LOCK, -1);
    /* Or it has gone out, and not told. */
    if (g->gate.state == NICSTRIDE_GATE_LEAVING)
        nicstride_gate_note_locked(m, NICSTRIDE_GATE_IS_WANTED);
    return true;
}

bool nicstride_gate_is_still_locked(const nicstride_module_t *m)
{
    return m->gate == NULL ||
           (!m->gate->busy && m->gate->todo == NICSTRIDE_GATE_NOTHING && m->gate->happened == 0);
}

/* ---- origins --------------------------------------------------------------------------------- */

/** What an origin has of a target's gate: nicstride_peer_lock_t's `entrance`. */
typedef struct nicstride_entrance {
    onic_remote_t *key;
    nicstride_gate_luck_t luck;
    uint32_t type;  /**< of the lock that is had by the gate, or 0; the thread's that has it */
    bool under_way; /**< the adapter changes the word, */
    bool failed;    /**< or once could not */
    uint64_t operand, result;
} nicstride_entrance_t;

void nicstride_gate_told_locked(nicstride_peer_t *p, const void *bytes, size_t len)
{
    nicstride_entrance_t *e;
    int rc;

    if (p->local >= 0 || p->lock.entrance != NULL || !has_atomics(p->wire))
        return;
    e = calloc(1, sizeof(*e));
    if (e != NULL)
        e->key = onic_remote_open(p->wire, bytes, len, &rc);
    if (e != NULL && e->key != NULL)
        __atomic_store_n(&p->lock.entrance, e, __ATOMIC_RELEASE);
    else
        free(e);
}

void nicstride_entrance_free_locked(nicstride_peer_t *p)
{
    if (p->lock.entrance != NULL)
        onic_remote_close(p->lock.entrance->key);
    free(p->lock.entrance);
    p->lock.entrance = NULL;
}

static nicstride_entrance_t *entrance(const nicstride_peer_t *p)
{
    return __atomic_load_n(&p->lock.entrance, __ATOMIC_ACQUIRE);
}

static void done_cb(void *arg, int status)
{
    nicstride_entrance_t *e = arg;

    e->under_way = false;
    e->failed = e->failed || status != OMPI_SUCCESS;
}

static bool is_done(void *arg)
{
    return !((const nicstride_entrance_t *)arg)->under_way;
}

/** Changes the word; `result` not 0: from `operand` to that, else by adding. Returns what it was.
 */
static uint64_t change(nicstride_peer_t *p, nicstride_entrance_t *e, uint64_t operand,
                       uint64_t result)
{
    const onic_atomic_op_t op = result != 0 ? ONIC_ATOMIC_COMPARE_SWAP : ONIC_ATOMIC_ADD;
    unsigned how;
    int rc;

    onic_wire_lock();
    e->operand = operand;
    e->result = result;
    e->under_way = true;
    rc = onic_remote_atomic(e->key, op, 0, sizeof(operand), &e->operand, &e->result, done_cb, e);
    if (rc != 0)
        done_cb(e, rc < 0 ? rc : OMPI_SUCCESS);
    /* Where it is forced there may be no adapter. */
    how = onic_peer_atomics_by_rdma(p->wire) ? 0 : NICSTRIDE_WAKE;
    onic_wire_unlock();
    nicstride_wait(p, how, is_done, e);
    return e->result;
}

/** Takes away what was added; tells the target where somebody waits for that. */
static void go_out(nicstride_peer_t *p, nicstride_entrance_t *e, unsigned type)
{
    if (nicstride_gate_tells(change(p, e, -nicstride_gate_mark(type, p->me), 0)) && !e->failed)
        (void)nicstride_send_note(p, NICSTRIDE_MSG_GATE, 0, 0);
}

/** Where it shall be tried, else NULL. */
static nicstride_entrance_t *open_entrance(nicstride_peer_t *p)
{
    nicstride_entrance_t *e;

    onic_wire_lock();
    e = p->lock.entrance;
    if (e->failed || p->failed || !nicstride_gate_may_try(&e->luck))
        e = NULL;
    onic_wire_unlock();
    return e;
}

bool nicstride_gate_enter(nicstride_peer_t *p, unsigned type)
{
    nicstride_entrance_t *e = entrance(p) != NULL ? open_entrance(p) : NULL;
    const uint64_t mark = nicstride_gate_mark(type, p->me);
    uint64_t before;
    bool in;

    if (e == NULL)
        return false;
    before = type == NICSTRIDE_LOCK_EXCLUSIVE ? change(p, e, 0, mark) : change(p, e, mark, 0);
    in = nicstride_gate_is_in(type, before) && !e->failed;
    nicstride_gate_tried(&e->luck, in);
    if (in) {
        e->type = type;
        nicstride_add(&nicstride_counters.adapter_locks, 1);
    } else if (type == NICSTRIDE_LOCK_SHARED && !e->failed) {
        go_out(p, e, type);
    }
    return in;
}

bool nicstride_gate_holds(const nicstride_peer_t *p)
{
    const nicstride_entrance_t *e = entrance(p);

    return e != NULL && e->type != 0;
}

int nicstride_gate_leave(nicstride_peer_t *p)
{
    nicstride_entrance_t *e = entrance(p);
    const unsigned type = e->type;

    e->type = 0;
    go_out(p, e, type);
    return e->failed ? MPI_ERR_OTHER : OMPI_SUCCESS;
}
