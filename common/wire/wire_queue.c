/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Messages between processes of one job on one node, through queues in shared memory
 * (common/node/queue.h): those of one-sided operations and of the point-to-point layer, all but
 * rendezvous.
 *
 * Every process that is asked for it makes a segment with one queue for each process of its node,
 * and tells where it is with its address. Who first sends to it gives memory to the beginning of
 * its own queue there, and has it marked as in use; so only what is used of queues takes up memory,
 * and a message needs no connection of UCX's. What cannot be had, because /dev/shm is full or the
 * processes must not open each other's files, goes by UCX from the first message on: so the
 * messages from one process to another stay in order.
 *
 * A server thread that stands in for the MPI threads shows when it sleeps, and looks at its queues
 * once more before it does; who has put a one-sided operation into one then sees that, and knocks
 * (wake). For that order the sleeping side makes the barrier of both (membarrier.h), which takes it
 * 7 us, so that a message needs none. Where its kernel refuses that it sleeps a millisecond at a
 * time; where the sender's does, that one makes a barrier with each message. So there are queues
 * only to those at whom this process can knock. Other threads that sleep are woken by who waits for
 * them (presence.h), not by messages.
 */
#include "common/ompi_compat.h"
#include "common/wire/wire_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/node/segment.h"
#include "common/node/stores.h"
#include "common/support/clock.h"
#include "common/support/membarrier.h"
#include "common/wire/wire_queue.h"
#include "ompi/constants.h"

/** A message that is longer leaves too little room for those that follow. */
#define LONGEST 16384U

_Static_assert(ONIC_MESSAGE_LEAST <= ONIC_QUEUE_RING_MIN / 2 - ONIC_QUEUE_LINE,
               "the shortest ring takes it");

/** This process's own queue in another one's segment. */
struct onic_queue_out {
    onic_queue_sender_t sender;
    size_t message_max;
    onic_stores_t stores[2]; /**< of payloads, by whether they are contiguous */
    onic_segment_t segment;
    onic_peer_t *to;
    unsigned knocked; /**< the sleep of the other's server thread that has been ended */
    onic_send_t *wait_head, **wait_tail; /**< messages for which there was no room, in order */
    onic_queue_out_t *next_waiting;      /**< of those that have such */
    bool waits;                          /**< it is one of these */
    onic_queue_out_t *next;              /**< of all */
};

static onic_queue_out_t *outs, *waiting;

/** Who sleeps cannot make the barrier of this process. */
static bool makes_barriers;

void onic_queues_out_start(void)
{
    makes_barriers = !onic_membarrier_register();
}

size_t onic_queue_message_max(const onic_queue_out_t *out)
{
    return out->message_max;
}

/** The sizes of another process's segment, if they can be right. */
static bool read_head(const onic_segment_t *segment, uint32_t *ring_bytes_p)
{
    const onic_queues_head_t *head = segment->base;
    const uint32_t n = head->nqueues, ring_bytes = head->ring_bytes;

    *ring_bytes_p = ring_bytes;
    return head->mark == ONIC_QUEUES_MARK && n == onic_processes_here() &&
           ring_bytes >= ONIC_QUEUE_RING_MIN && ring_bytes <= ONIC_QUEUE_RING_MAX &&
           (ring_bytes & (ring_bytes - 1)) == 0 &&
           segment->size == onic_queues_at(n, ring_bytes, n);
}

/** Gives memory to the first `bytes` of this process's ring. */
static bool give_memory(void *arg, uint32_t bytes)
{
    const onic_queue_out_t *out = arg;
    const onic_queue_t *q = &out->sender.q;
    const size_t at = (size_t)((char *)q->ends - (char *)out->segment.base);

    return onic_segment_fill(&out->segment, &out->to->queues.file, at,
                             onic_whole_pages(onic_queue_bytes(bytes)));
}

/** Makes this process's queue there its own, and gives memory to its beginning. */
static bool take_queue(onic_queue_out_t *out)
{
    const uint32_t me = (uint32_t)opal_process_info.my_local_rank, n = onic_processes_here();
    onic_queues_head_t *head = out->segment.base;
    uint64_t secret, nobody = ONIC_QUEUE_NOBODY;
    uint32_t ring_bytes;

    if (!read_head(&out->segment, &ring_bytes) || me >= n ||
        getrandom(&secret, sizeof(secret), 0) != (ssize_t)sizeof(secret)) {
        return false;
    }
    out->sender.q = onic_queue_at((char *)head + onic_queues_at(n, ring_bytes, me), ring_bytes);
    /* Whoever has it may be one that another daemon of this job gave the same number. */
    if (!give_memory(out, ring_bytes < ONIC_QUEUE_ROUND ? ring_bytes : ONIC_QUEUE_ROUND) ||
        !atomic_compare_exchange_strong(&head->owner[me], &nobody, ONIC_QUEUE_CLAIMED)) {
        return false;
    }
    out->sender = onic_queue_sender(&out->sender.q, secret);
    out->sender.give = give_memory;
    out->sender.arg = out;
    out->message_max = onic_queue_longest(&out->sender.q) / 2;
    if (out->message_max > LONGEST) {
        out->message_max = LONGEST;
    } else if (out->message_max < ONIC_MESSAGE_LEAST) {
        out->message_max = ONIC_MESSAGE_LEAST;
    }
    /* Who this process is must fit into its first message. */
    if (onic_address_record_size() > onic_queue_message_max(out)) {
        return false;
    }
    atomic_store_explicit(&head->owner[me], onic_wire_me() + 1, memory_order_release);
    atomic_fetch_add_explicit(&head->senders, 1, memory_order_release);
    return true;
}

static onic_queue_out_t *open_queue(onic_peer_t *to)
{
    onic_queue_out_t *out = calloc(1, sizeof(*out));

    if (out == NULL) {
        return NULL;
    }
    out->to = to;
    if (onic_segment_join(&to->queues, to->queues.size, INT_MAX, &out->segment, NULL) !=
        ONIC_JOINED) {
        free(out);
        return NULL;
    }
    if (!take_queue(out)) {
        onic_segment_unmap(&out->segment);
        free(out);
        return NULL;
    }
    out->wait_tail = &out->wait_head;
    out->next = outs;
    outs = out;
    return out;
}

bool onic_queue_can_open(const onic_peer_t *to)
{
    return !to->self && to->queues.size > sizeof(onic_queues_head_t) &&
           to->name >> 32 == onic_wire.job && onic_same_place(&to->cma_id, &onic_wire.cma_id);
}

void onic_queue_open(onic_peer_t *to)
{
    to->queue_tried = true;
    if (onic_queue_can_open(to) && onic_peer_has_pipe(to)) {
        to->queue = open_queue(to);
    }
}

static void put_payload(onic_queue_out_t *out, unsigned char *to, const onic_payload_t *payload)
{
    if (payload->len < ONIC_STORES_LEAST) {
        onic_payload_copy(to, payload, false);
        return;
    }
    onic_stores_t *stores = &out->stores[onic_payload_bytes(payload) != NULL];
    bool timed;
    const bool streams = onic_stores_choose(stores, &timed);
    const uint64_t begun = timed ? onic_ticks() : 0;
    onic_payload_copy(to, payload, streams);
    if (timed) {
        onic_stores_note(stores, streams, payload->len, onic_ticks() - begun);
    }
}

/** Ends the sleep of a server thread that stands in: it has not seen the message that was just put,
 *  or this sees that it sleeps. */
static void wake(onic_queue_out_t *out)
{
    if (makes_barriers) {
        atomic_thread_fence(memory_order_seq_cst);
    } else {
        atomic_signal_fence(memory_order_seq_cst);
    }
    const unsigned nap = atomic_load_explicit(&out->to->presence->parked, memory_order_relaxed);
    if (nap != 0 && nap != out->knocked) {
        out->knocked = nap;
        onic_peer_wake(out->to);
    }
}

/** Sends a message if there is room for it. */
static bool put(onic_queue_out_t *out, unsigned am_id, const void *header, size_t header_len,
                const onic_payload_t *payload)
{
    const size_t bytes = payload != NULL ? payload->len : 0;
    const uint32_t payload_at = onic_queue_payload_at((uint32_t)header_len, bytes);
    unsigned char *at;

    if (header_len + bytes > out->message_max ||
        (at = onic_queue_reserve(&out->sender, (uint32_t)(payload_at + bytes))) == NULL) {
        return false;
    }
    memcpy(at, header, header_len);
    if (bytes > 0) {
        put_payload(out, at + payload_at, payload);
    }
    onic_queue_send(&out->sender, (uint8_t)am_id, (uint16_t)header_len,
                    (uint32_t)(payload_at + bytes));
    if (am_id == ONIC_AM_OSC) {
        wake(out);
    }
    return true;
}

bool onic_queue_put(onic_queue_out_t *out, unsigned am_id, const void *header, size_t header_len,
                    const onic_payload_t *payload)
{
    return out->wait_head == NULL && put(out, am_id, header, header_len, payload);
}

void onic_queue_wait(onic_queue_out_t *out, onic_send_t *s)
{
    onic_queue_counters.waited++;
    s->starting = false;
    s->next = NULL;
    *out->wait_tail = s;
    out->wait_tail = &s->next;
    if (!out->waits) {
        out->waits = true;
        out->next_waiting = waiting;
        waiting = out;
    }
    onic_server_look_after();
}

/** Sends what has waited for room, or ends it where nobody makes any. */
static int send_waiting(onic_queue_out_t *out)
{
    int n = 0;

    while (out->wait_head != NULL) {
        onic_send_t *s = out->wait_head;
        const onic_payload_t payload = {.base = s->base, .cursor = s->cursor, .len = s->len};
        const bool lost = out->to->failed != UCS_OK;

        if (!lost && !put(out, s->am_id, s->header, s->header_len, &payload)) {
            break;
        }
        out->wait_head = s->next;
        if (out->wait_head == NULL) {
            out->wait_tail = &out->wait_head;
        }
        onic_send_tell(s, lost ? OMPI_ERR_UNREACH : OMPI_SUCCESS);
        n++;
    }
    return n;
}

int onic_queues_send(void)
{
    onic_queue_out_t *out = waiting;
    int n = 0;

    waiting = NULL;
    for (onic_queue_out_t *next; out != NULL; out = next) {
        next = out->next_waiting;
        out->waits = false;
        n += send_waiting(out);
        if (out->wait_head != NULL && !out->waits) {
            out->waits = true;
            out->next_waiting = waiting;
            waiting = out;
        }
    }
    return n;
}

bool onic_queues_have_waiting(void)
{
    return waiting != NULL;
}

void onic_queues_out_stop(void)
{
    while (outs != NULL) {
        onic_queue_out_t *out = outs;

        outs = out->next;
        onic_segment_unmap(&out->segment);
        free(out);
    }
    waiting = NULL;
}
