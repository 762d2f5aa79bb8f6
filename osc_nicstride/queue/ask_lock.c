/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/queue/ask_lock.h"

#include <stdlib.h>
#include <string.h>

#include "osc_nicstride/protocol/message.h"
#include "osc_nicstride/queue/flow.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/queue/wait.h"
#include "osc_nicstride/window/state.h"

/** A request with the messages that go along, each after its length, as in a batch: an operation
 *  and perhaps the release. Kept until the answer. */
typedef struct nicstride_lock_request {
    nicstride_msg_t lock;
    unsigned char along[2 * sizeof(uint16_t) + NICSTRIDE_PIECE_MAX + sizeof(nicstride_msg_t)];
} lock_request_t;

_Static_assert(sizeof(lock_request_t) <= ONIC_MESSAGE_LEAST, "it goes through every queue");

/* The peer whose request is held back, and the thread that did so; transport lock. */
static nicstride_peer_t *held_back;
static const char *holder;

/* The address identifies the thread. */
static _Thread_local char here;

static void forget_held_back(const nicstride_peer_t *p)
{
    if (held_back == p)
        __atomic_store_n(&held_back, NULL, __ATOMIC_RELAXED);
}

static void write_behind(unsigned char *to, const void *message, size_t len)
{
    const uint16_t length = (uint16_t)len;

    memcpy(to, &length, sizeof(length));
    memcpy(to + sizeof(length), message, len);
}

static void add(lock_request_t *r, const void *message, size_t len)
{
    write_behind(r->along + r->lock.len, message, len);
    r->lock.flags = NICSTRIDE_MSG_INLINE;
    r->lock.len += sizeof(uint16_t) + len;
}

void nicstride_send_request_locked(nicstride_peer_t *p)
{
    lock_request_t *r = p->lock.request;

    forget_held_back(p);
    nicstride_asked_begin(&p->lock.asked, r->lock.len > 0);
    nicstride_post_locked(p, r, sizeof(r->lock) + r->lock.len, r->lock.len > 0);
}

void nicstride_post_operation_locked(nicstride_peer_t *p, const void *message, size_t len,
                                     bool may_wait)
{
    if (!nicstride_lock_is_held_back(p)) {
        nicstride_post_locked(p, message, len, may_wait);
        return;
    }
    add(p->lock.request, message, len);
    nicstride_send_request_locked(p);
    onic_count(&nicstride_counters.locks_together, 1);
}

/** True if the request is the last waiting message. */
static bool waits_last(const nicstride_peer_t *p)
{
    const nicstride_batch_t *b = p->flow.batch != NULL ? &p->flow.batch->batch : NULL;
    nicstride_msg_t last;

    if (b == NULL || !STAILQ_EMPTY(&p->queue.waiting))
        return false;
    memcpy(&last, b->bytes + b->last + sizeof(uint16_t), sizeof(last));
    return last.type == NICSTRIDE_MSG_LOCK && last.len > 0;
}

void nicstride_release_along(nicstride_peer_t *p)
{
    const nicstride_msg_t unlock = nicstride_note(p, NICSTRIDE_MSG_UNLOCK, 0, 0);
    const size_t len = sizeof(uint16_t) + sizeof(unlock);
    unsigned char *at = NULL;

    onic_transport_lock();
    if (waits_last(p))
        at = nicstride_batch_extend(&p->flow.batch->batch, nicstride_batch_max_locked(p, len), len);
    if (at != NULL) {
        nicstride_asked_release(&p->lock.asked);
        write_behind(at, &unlock, sizeof(unlock));
        add(p->lock.request, &unlock, sizeof(unlock));
    }
    onic_transport_unlock();
}

static bool answered(void *arg)
{
    nicstride_peer_t *p = arg;

    return nicstride_asked_is_had(&p->lock.asked) || nicstride_peer_failed_locked(p);
}

int nicstride_await_lock(nicstride_peer_t *p)
{
    int error;

    onic_transport_lock();
    nicstride_ask_lock_locked(p);
    onic_transport_unlock();
    nicstride_wait(p, NICSTRIDE_WAKE, answered, p);
    onic_transport_lock();
    error = nicstride_asked_error(&p->lock.asked, MPI_ERR_OTHER);
    onic_transport_unlock();
    return error;
}

void nicstride_await_my_lock(void)
{
    nicstride_peer_t *mine;

    if (__atomic_load_n(&held_back, __ATOMIC_RELAXED) == NULL)
        return;
    onic_transport_lock();
    mine = holder == &here ? held_back : NULL;
    onic_transport_unlock();
    if (mine != NULL)
        (void)nicstride_await_lock(mine);
}

/** Frees the request. Transport lock. */
static void drop_request(nicstride_peer_t *p)
{
    free(p->lock.request);
    p->lock.request = NULL;
}

void nicstride_forget_lock_locked(nicstride_peer_t *p)
{
    forget_held_back(p);
    nicstride_asked_end(&p->lock.asked);
    drop_request(p);
}

int nicstride_want_lock(nicstride_peer_t *p, unsigned what)
{
    lock_request_t *r = malloc(sizeof(*r));
    int error = OMPI_SUCCESS;
    bool held;

    if (r == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    r->lock = nicstride_note(p, NICSTRIDE_MSG_LOCK, what, 0);
    onic_transport_lock();
    p->lock.request = r;
    nicstride_asked_hold(&p->lock.asked);
    held = held_back == NULL && !nicstride_peer_failed_locked(p);
    if (held) {
        __atomic_store_n(&held_back, p, __ATOMIC_RELAXED);
        holder = &here;
    }
    onic_transport_unlock();
    if (!held)
        error = nicstride_await_lock(p);
    if (error != OMPI_SUCCESS) {
        onic_transport_lock();
        nicstride_forget_lock_locked(p);
        onic_transport_unlock();
    }
    return error;
}

int nicstride_give_lock(nicstride_peer_t *p)
{
    int error = nicstride_await_lock(p);

    onic_transport_lock();
    if (error == OMPI_SUCCESS && !p->lock.asked.released)
        nicstride_send_note_locked(p, NICSTRIDE_MSG_UNLOCK, 0, 0);
    if (error == OMPI_SUCCESS && nicstride_peer_failed_locked(p))
        error = MPI_ERR_OTHER;
    nicstride_forget_lock_locked(p);
    onic_transport_unlock();
    return error;
}

static void send_again(nicstride_peer_t *p)
{
    const lock_request_t *r = p->lock.request;
    const void *message;
    size_t at = 0, len;

    while (nicstride_batch_next(r->along, r->lock.len, &at, &message, &len))
        nicstride_post_locked(p, message, len, true);
    nicstride_send_waiting_locked(p);
}

void nicstride_lock_answered_locked(nicstride_peer_t *p, int error, bool done)
{
    const nicstride_answer_t answer = nicstride_asked_answer(&p->lock.asked, error, done);

    if (answer == NICSTRIDE_ANSWER_AGAIN)
        send_again(p);
    if (answer == NICSTRIDE_ANSWER_LOST)
        nicstride_peer_end_locked(p);
    if (!nicstride_asked_is_had(&p->lock.asked))
        return;
    drop_request(p);
    nicstride_pump_locked(p); /* sends what waited for the lock */
}
