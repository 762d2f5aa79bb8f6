/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/queue/lazy_lock.h"
#include "osc_nicstride/window/state.h"
#include "osc_nicstride/protocol/lockq.h"
#include "osc_nicstride/queue/send.h"

/** A lock that is held back, or was asked for with what is kept until it is granted. */
typedef struct nicstride_lazy_lock {
    nicstride_lazy_t lazy;
    nicstride_peer_t *peer; /* NULL: there is none; a guess without the lock */
    const char *thread;     /* that has called MPI_Win_lock */
    bool keeps;             /* it has an operation that nobody was sent yet */
} nicstride_lazy_lock_t;

/* The one; transport lock. */
static nicstride_lazy_lock_t one;

/** Its address is that of the thread. */
static _Thread_local char here;

static void send_operation(nicstride_peer_t *p, const nicstride_lazy_t *h, bool release)
{
    const nicstride_msg_t unlock = nicstride_note(p, NICSTRIDE_MSG_UNLOCK, 0, 0);

    nicstride_post_locked(p, h->operation, h->len, release);
    if (release)
        nicstride_post_locked(p, &unlock, sizeof(unlock), false);
}

static unsigned request_of(const nicstride_lazy_t *h)
{
    return h->type | (h->holds ? NICSTRIDE_LOCK_HOLDS : 0);
}

/** In one message, or the target would not know what belongs together. */
static bool send_together(nicstride_peer_t *p, const nicstride_lazy_t *h, unsigned what)
{
    const nicstride_msg_t lock =
        nicstride_note(p, NICSTRIDE_MSG_LOCK, request_of(h) | NICSTRIDE_LOCK_WITH_MORE, 0);
    const nicstride_msg_t unlock = nicstride_note(p, NICSTRIDE_MSG_UNLOCK, 0, 0);
    const nicstride_piece_t pieces[] = {
        {&lock, sizeof(lock)}, {h->operation, h->len}, {&unlock, sizeof(unlock)}};

    return nicstride_bundle_locked(p, pieces, (what & NICSTRIDE_LAZY_SEND_RELEASE) != 0 ? 3 : 2);
}

static void send_request(nicstride_peer_t *p, const nicstride_lazy_t *h, unsigned what)
{
    const nicstride_msg_t lock = nicstride_note(p, NICSTRIDE_MSG_LOCK, request_of(h), 0);

    if ((what & NICSTRIDE_LAZY_SEND_OPERATION) != 0 && send_together(p, h, what))
        nicstride_add(&nicstride_counters.locks_together, 1);
    else
        nicstride_post_locked(p, &lock, sizeof(lock), false);
}

static void end(nicstride_lazy_lock_t *h)
{
    h->keeps = false;
    __atomic_store_n(&h->peer->lock.lazy, NULL, __ATOMIC_RELAXED);
    __atomic_store_n(&h->peer, NULL, __ATOMIC_RELAXED);
}

bool nicstride_lazy_lock_is_locked(nicstride_peer_t *p)
{
    nicstride_lazy_lock_t *h = p->lock.lazy;

    if (h == NULL)
        return false;
    nicstride_lazy_acknowledged(&h->lazy, p->flow.tx.acked);
    if (h->lazy.state == NICSTRIDE_LAZY_NOT)
        end(h);
    return p->lock.lazy != NULL;
}

bool nicstride_lazy_lock_begin(nicstride_peer_t *p, unsigned type, bool holds)
{
    bool held_back;

    if (p->local >= 0)
        return false;
    onic_transport_lock();
    held_back = (one.peer == NULL || !nicstride_lazy_lock_is_locked(one.peer)) && !p->failed;
    if (held_back) {
        nicstride_lazy_begin(&one.lazy, type, holds);
        one.thread = &here;
        __atomic_store_n(&one.peer, p, __ATOMIC_RELAXED);
        __atomic_store_n(&p->lock.lazy, &one, __ATOMIC_RELAXED);
    }
    onic_transport_unlock();
    return held_back;
}

static void ask(nicstride_lazy_lock_t *h, bool release)
{
    const unsigned what = nicstride_lazy_ask(&h->lazy, release);

    if (what == 0)
        return;
    h->keeps = false;
    if (!nicstride_peer_failed_locked(h->peer))
        send_request(h->peer, &h->lazy, what);
}

void nicstride_lazy_lock_ask_locked(nicstride_peer_t *p)
{
    if (nicstride_lazy_lock_is_locked(p))
        ask(p->lock.lazy, false);
}

int nicstride_lazy_lock_send_kept_locked(void)
{
    if (!one.keeps)
        return 0;
    ask(&one, false);
    return 1;
}

nicstride_peer_t *nicstride_lazy_lock_mine(void)
{
    nicstride_peer_t *p = NULL;

    if (__atomic_load_n(&one.peer, __ATOMIC_RELAXED) == NULL)
        return NULL;
    onic_transport_lock();
    if (one.thread == &here)
        p = one.peer;
    onic_transport_unlock();
    return p;
}

bool nicstride_lazy_lock_release(nicstride_peer_t *p)
{
    bool together = false;

    if (!nicstride_lazy_lock_may_be(p))
        return false;
    onic_transport_lock();
    if (nicstride_lazy_lock_is_locked(p)) {
        ask(p->lock.lazy, true);
        together = p->lock.lazy->lazy.release;
    }
    onic_transport_unlock();
    return together;
}

void nicstride_lazy_lock_end_locked(nicstride_peer_t *p)
{
    if (p->lock.lazy != NULL)
        end(p->lock.lazy);
}

void nicstride_lazy_lock_end(nicstride_peer_t *p)
{
    if (!nicstride_lazy_lock_may_be(p))
        return;
    onic_transport_lock();
    nicstride_lazy_lock_end_locked(p);
    onic_transport_unlock();
}

bool nicstride_lazy_lock_allows_locked(nicstride_peer_t *p, size_t len)
{
    if (!nicstride_lazy_lock_is_locked(p))
        return true;
    /* Its acknowledgement must say of it that it is done, and of nothing else. */
    return len <= NICSTRIDE_LAZY_MAX && nicstride_lazy_has_room(&p->lock.lazy->lazy) &&
           nicstride_tx_may_ask(&p->flow.tx);
}

void nicstride_lazy_lock_keep_locked(nicstride_peer_t *p, const void *message, size_t len)
{
    nicstride_lazy_lock_t *h = p->lock.lazy;

    /* The caller has not asked nicstride_lazy_lock_allows_locked: the operation must not be lost
     * unseen.
     */
    if (!nicstride_lazy_keep(&h->lazy, message, len, p->flow.tx.sent + 1)) {
        nicstride_give_up_locked(p);
        return;
    }
    h->keeps = true;
    onic_transport_defer(ONIC_AM_OSC);
}

bool nicstride_lazy_lock_granted_locked(nicstride_peer_t *p, bool refused)
{
    nicstride_lazy_lock_t *h = p->lock.lazy;
    unsigned what;

    if (h == NULL || h->lazy.state != NICSTRIDE_LAZY_ASKED)
        return false;
    what = nicstride_lazy_granted(&h->lazy);
    if (!refused && (what & NICSTRIDE_LAZY_SEND_OPERATION) != 0)
        send_operation(p, &h->lazy, (what & NICSTRIDE_LAZY_SEND_RELEASE) != 0);
    end(h);
    return true;
}
