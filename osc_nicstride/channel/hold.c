/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Holding locks back; see hold.h. */
#include <stddef.h>

#include "osc_nicstride/channel/hold.h"
#include "osc_nicstride/window/component.h"
#include "osc_nicstride/protocol/held.h"
#include "osc_nicstride/channel/lost.h"
#include "osc_nicstride/channel/send.h"
#include "osc_nicstride/protocol/compact.h"
#include "osc_nicstride/channel/wait.h"
#include "osc_nicstride/channel/operation.h"
#include "osc_nicstride/channel/start.h"

/* What is held back, of whom, and by which thread; wire lock. */
static nicstride_held_t held;
static nicstride_peer_t *holder;
static nicstride_module_t *module;
static const char *thread;

/** Its address is that of the thread. */
static _Thread_local char here;

/** Bytes of a message that is made here. */
typedef struct note {
    unsigned char bytes[sizeof(nicstride_msg_t)];
    size_t len;
} note_t;

static note_t note(nicstride_msg_type_t type, unsigned op, uint64_t count)
{
    nicstride_msg_t msg;
    note_t n;

    nicstride_msg_init(&msg, type, module->info[holder->rank].win, (uint32_t)module->rank);
    msg.op = (uint16_t)op;
    msg.count = count;
    n.len = nicstride_msg_shorten(&msg, n.bytes);
    if (n.len == 0) {
        n.len = sizeof(msg);
        memcpy(n.bytes, &msg, sizeof(msg));
    }
    return n;
}

static void send_operation(const nicstride_held_t *h, bool release)
{
    const note_t unlock = note(NICSTRIDE_MSG_UNLOCK, 0, 0);

    nicstride_post_locked(holder, h->operation, h->len, release);
    if (release)
        nicstride_post_locked(holder, unlock.bytes, unlock.len, false);
}

/** In one message, or the target would not know what belongs together. */
static bool send_together(const nicstride_held_t *h, unsigned what)
{
    const note_t lock = note(NICSTRIDE_MSG_LOCK, h->type, NICSTRIDE_LOCK_COMPANY);
    const note_t unlock = note(NICSTRIDE_MSG_UNLOCK, 0, 0);
    const nicstride_piece_t pieces[] = {
        {lock.bytes, lock.len}, {h->operation, h->len}, {unlock.bytes, unlock.len}};

    return nicstride_bundle_locked(holder, pieces,
                                   (what & NICSTRIDE_HELD_SEND_RELEASE) != 0 ? 3 : 2);
}

static void send_request(const nicstride_held_t *h, unsigned what)
{
    const note_t lock = note(NICSTRIDE_MSG_LOCK, h->type, 0);

    if ((what & NICSTRIDE_HELD_SEND_OPERATION) != 0 && send_together(h, what))
        nicstride_add(&nicstride_counters.together, 1);
    else
        nicstride_post_locked(holder, lock.bytes, lock.len, false);
}

static void let_go(void)
{
    nicstride_held_end(&held);
    __atomic_store_n(&holder->held, false, __ATOMIC_RELAXED);
    __atomic_store_n(&holder, NULL, __ATOMIC_RELAXED);
}

bool nicstride_hold_is_locked(nicstride_peer_t *p)
{
    if (holder != p)
        return false;
    nicstride_held_acknowledged(&held, p->tx.acked);
    if (held.state == NICSTRIDE_HELD_NOT)
        let_go();
    return holder == p;
}

bool nicstride_hold_lock(nicstride_module_t *m, nicstride_peer_t *p, unsigned type)
{
    bool free;

    if (p->local >= 0)
        return false;
    onic_wire_lock();
    free = (holder == NULL || !nicstride_hold_is_locked(holder)) && !p->failed;
    if (free) {
        module = m;
        thread = &here;
        nicstride_held_begin(&held, type);
        __atomic_store_n(&p->held, true, __ATOMIC_RELAXED);
        __atomic_store_n(&holder, p, __ATOMIC_RELAXED);
    }
    onic_wire_unlock();
    return free;
}

static void ask(nicstride_peer_t *p, bool release)
{
    const unsigned what = nicstride_held_ask(&held, release);

    if (what == 0 || nicstride_peer_failed_locked(p))
        return;
    send_request(&held, what);
}

void nicstride_hold_ask_locked(nicstride_peer_t *p)
{
    if (p->held && nicstride_hold_is_locked(p))
        ask(p, false);
}

static bool settled(void *arg)
{
    nicstride_peer_t *p = arg;

    return !nicstride_hold_is_locked(p) || nicstride_peer_failed_locked(p);
}

int nicstride_hold_settle(nicstride_peer_t *p)
{
    bool failed;

    if (!nicstride_hold_may_be(p))
        return OMPI_SUCCESS;
    onic_wire_lock();
    nicstride_hold_ask_locked(p);
    /* It is over when the operation that waited with it is acknowledged, for which that of a
     * request does not ask. */
    nicstride_ask_locked(p, p->enqueued);
    onic_wire_unlock();
    nicstride_wait_until(p, settled, p);
    onic_wire_lock();
    failed = p->failed;
    onic_wire_unlock();
    return failed ? MPI_ERR_OTHER : OMPI_SUCCESS;
}

void nicstride_hold_settle_mine(void)
{
    nicstride_peer_t *p = NULL;

    if (__atomic_load_n(&holder, __ATOMIC_RELAXED) == NULL)
        return;
    onic_wire_lock();
    if (holder != NULL && thread == &here)
        p = holder;
    onic_wire_unlock();
    if (p != NULL)
        (void)nicstride_hold_settle(p);
}

bool nicstride_hold_release(nicstride_peer_t *p)
{
    bool together = false;

    if (!nicstride_hold_may_be(p))
        return false;
    onic_wire_lock();
    if (nicstride_hold_is_locked(p)) {
        ask(p, true);
        together = held.release;
    }
    onic_wire_unlock();
    return together;
}

void nicstride_hold_end_locked(nicstride_peer_t *p)
{
    if (holder == p)
        let_go();
}

void nicstride_hold_end(nicstride_peer_t *p)
{
    if (!nicstride_hold_may_be(p))
        return;
    onic_wire_lock();
    nicstride_hold_end_locked(p);
    onic_wire_unlock();
}

bool nicstride_hold_allows_locked(nicstride_peer_t *p, size_t len)
{
    if (!p->held || !nicstride_hold_is_locked(p))
        return true;
    /* Its acknowledgement must say of it that it is done, and of nothing else. */
    return len <= NICSTRIDE_HELD_MAX && nicstride_held_has_room(&held) && nicstride_tx_idle(&p->tx);
}

void nicstride_hold_keep_locked(nicstride_peer_t *p, const void *message, size_t len)
{
    (void)nicstride_held_keep(&held, message, len, p->tx.sent + 1);
}

bool nicstride_hold_granted_locked(nicstride_peer_t *p, bool refused)
{
    unsigned what;

    if (holder != p || held.state != NICSTRIDE_HELD_ASKED)
        return false;
    what = nicstride_held_granted(&held);
    if (!refused && (what & NICSTRIDE_HELD_SEND_OPERATION) != 0)
        send_operation(&held, (what & NICSTRIDE_HELD_SEND_RELEASE) != 0);
    let_go();
    /* Both sides disagree about who holds what: nothing that is sent there can be relied on. */
    if (refused)
        nicstride_peer_end_locked(p);
    return true;
}
