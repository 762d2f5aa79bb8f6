/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Locks of targets of other nodes by their gates; see gate.h. */
#include <string.h>

#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/queue/wait.h"
#include "osc_nicstride/sync/gate.h"
#include "osc_nicstride/window/keys.h"
#include "osc_nicstride/window/state.h"

static nicstride_entrance_t *entrance_locked(const nicstride_peer_t *p)
{
    return p->keys != NULL ? p->keys->entrance : NULL;
}

static nicstride_entrance_t *entrance(const nicstride_peer_t *p)
{
    nicstride_entrance_t *e;

    onic_wire_lock();
    e = entrance_locked(p);
    onic_wire_unlock();
    return e;
}

/* ---- operations of the adapter ----------------------------------------------------------------
 */

static void done_cb(void *arg, int status)
{
    nicstride_entrance_t *e = arg;

    e->pending--;
    e->failed = e->failed || status != OMPI_SUCCESS;
}

/** Those of one lock are done in order. `result` of compare and swap: the new value. */
static void begin(nicstride_entrance_t *e, onic_atomic_op_t op, size_t offset, size_t size,
                  uint64_t operand, uint64_t result)
{
    const unsigned i = e->steps++;
    int rc;

    e->step[i].operand = operand;
    e->step[i].result = result;
    e->pending++;
    rc = onic_remote_atomic(e->key, op, offset, size, &e->step[i].operand, &e->step[i].result,
                            done_cb, e);
    if (rc != 0)
        done_cb(e, rc < 0 ? rc : OMPI_SUCCESS);
}

/** Writes this process's mark beside the word. */
static void mark(nicstride_entrance_t *e, const nicstride_peer_t *p, uint32_t says)
{
    uint64_t operand = 0;

    memcpy(&operand, &says, sizeof(says));
    begin(e, ONIC_ATOMIC_SWAP, NICSTRIDE_GATE_MARKS + sizeof(says) * p->me, sizeof(says), operand,
          0);
}

static bool is_done(void *arg)
{
    return ((const nicstride_entrance_t *)arg)->pending == 0;
}

/** Waits for all; the word as it was before step `i`. */
static uint64_t await(nicstride_peer_t *p, nicstride_entrance_t *e, unsigned i)
{
    nicstride_wait_until(p, is_done, e);
    return e->step[i].result;
}

/* ---- in and out -------------------------------------------------------------------------------
 */

/** Takes away what was added; tells the target where somebody waits for that. */
static void go_out(nicstride_peer_t *p, nicstride_entrance_t *e, unsigned type)
{
    const bool shared = type == NICSTRIDE_LOCK_SHARED;
    unsigned i;

    onic_wire_lock();
    e->steps = 0;
    if (shared)
        mark(e, p, NICSTRIDE_MARK_MAYBE);
    i = e->steps;
    begin(e, ONIC_ATOMIC_ADD, 0, sizeof(uint64_t), -nicstride_gate_mark(type, p->me), 0);
    if (shared)
        mark(e, p, NICSTRIDE_MARK_OUT);
    onic_wire_unlock();
    if (nicstride_gate_tells(await(p, e, i)) && !e->failed)
        (void)nicstride_send_note(p, NICSTRIDE_MSG_GATE, 0, 0);
}

/** The word as it was before this process has tried to go in. */
static uint64_t try(nicstride_peer_t *p, nicstride_entrance_t *e, unsigned type)
{
    const uint64_t with = nicstride_gate_mark(type, p->me);
    const bool shared = type == NICSTRIDE_LOCK_SHARED;
    unsigned i;

    onic_wire_lock();
    e->steps = 0;
    if (shared)
        mark(e, p, NICSTRIDE_MARK_MAYBE);
    i = e->steps;
    if (shared)
        begin(e, ONIC_ATOMIC_ADD, 0, sizeof(with), with, 0);
    else
        begin(e, ONIC_ATOMIC_COMPARE_SWAP, 0, sizeof(with), 0, with);
    onic_wire_unlock();
    return await(p, e, i);
}

/** Where it shall be tried, else NULL. */
static nicstride_entrance_t *open_entrance(nicstride_peer_t *p)
{
    nicstride_entrance_t *e;

    onic_wire_lock();
    e = entrance_locked(p);
    if (e != NULL && (e->failed || p->failed || !nicstride_gate_may_try(&e->luck)))
        e = NULL;
    onic_wire_unlock();
    return e;
}

bool nicstride_gate_enter(nicstride_peer_t *p, unsigned type)
{
    nicstride_entrance_t *e = p->local < 0 && nicstride_may_have_keys(p) ? open_entrance(p) : NULL;
    bool in;

    if (e == NULL)
        return false;
    in = nicstride_gate_is_in(type, try(p, e, type)) && !e->failed;
    nicstride_gate_tried(&e->luck, in);
    if (in) {
        e->type = type;
        nicstride_add(&nicstride_counters.adapter_locks, 1);
    }
    if (type == NICSTRIDE_LOCK_EXCLUSIVE || e->failed)
        return in;
    if (!in) {
        go_out(p, e, type);
        return false;
    }
    onic_wire_lock();
    mark(e, p, NICSTRIDE_MARK_IN);
    onic_wire_unlock();
    return true;
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
    (void)await(p, e, 0);
    go_out(p, e, type);
    return e->failed ? MPI_ERR_OTHER : OMPI_SUCCESS;
}
