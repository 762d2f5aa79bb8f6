/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/ompi_compat.h"
#include "common/node/outbox.h"

#include <limits.h>
#include <string.h>
#include <sys/random.h>

#include "common/node/inbox.h"
#include "common/node/segment.h"
#include "common/support/clock.h"
#include "common/support/membarrier.h"
#include "opal/util/proc.h"

/** A message that is longer leaves too little room for those that follow. */
#define LONGEST 16384U

_Static_assert(ONIC_OUTBOX_LEAST <= ONIC_QUEUE_RING_MIN / 2 - ONIC_QUEUE_LINE,
               "the shortest ring takes it");

/** A process that sleeps cannot make the barrier of this one. */
static bool makes_barriers;

void onic_outbox_start(void)
{
    makes_barriers = !onic_membarrier_register();
}

bool onic_outbox_park(unsigned nap)
{
    atomic_store_explicit(&onic_presence_mine()->parked, nap, memory_order_release);
    return nap == 0 || onic_inbox.segment.base == NULL || onic_membarrier();
}

/** The sizes of another process's inbox, if they can be right. */
static bool read_head(const onic_segment_t *segment, uint32_t *ring_bytes_p)
{
    const onic_inbox_head_t *head = segment->base;
    const uint32_t n = head->nqueues, ring_bytes = head->ring_bytes;

    *ring_bytes_p = ring_bytes;
    return head->mark == ONIC_INBOX_MARK && n == onic_processes_here() &&
           ring_bytes >= ONIC_QUEUE_RING_MIN && ring_bytes <= ONIC_QUEUE_RING_MAX &&
           (ring_bytes & (ring_bytes - 1)) == 0 &&
           segment->size == onic_inbox_queue_at(n, ring_bytes, n);
}

/** Gives memory to the first `bytes` of this process's ring. */
static bool give_memory(void *arg, uint32_t bytes)
{
    const onic_outbox_t *out = arg;
    const size_t at = (size_t)((char *)out->sender.q.ends - (char *)out->segment.base);

    return onic_segment_fill(&out->segment, &out->file, at,
                             onic_whole_pages(onic_queue_bytes(bytes)));
}

/** Makes this process's queue there its own, and gives memory to its beginning. */
static bool take_queue(onic_outbox_t *out, uint64_t me)
{
    const uint32_t number = (uint32_t)opal_process_info.my_local_rank, n = onic_processes_here();
    onic_inbox_head_t *head = out->segment.base;
    uint64_t secret, nobody = ONIC_QUEUE_NOBODY;
    uint32_t ring_bytes;

    if (!read_head(&out->segment, &ring_bytes) || number >= n ||
        getrandom(&secret, sizeof(secret), 0) != (ssize_t)sizeof(secret)) {
        return false;
    }
    out->sender.q =
        onic_queue_at((char *)head + onic_inbox_queue_at(n, ring_bytes, number), ring_bytes);
    /* It may be taken already, by a process that another daemon of this job gave the same number.
     */
    if (!give_memory(out, ring_bytes < ONIC_QUEUE_ROUND ? ring_bytes : ONIC_QUEUE_ROUND) ||
        !atomic_compare_exchange_strong(&head->owner[number], &nobody, ONIC_QUEUE_CLAIMED)) {
        return false;
    }
    out->sender = onic_queue_sender(&out->sender.q, secret);
    out->sender.give = give_memory;
    out->sender.arg = out;
    out->message_max = onic_queue_longest(&out->sender.q) / 2;
    if (out->message_max > LONGEST) {
        out->message_max = LONGEST;
    } else if (out->message_max < ONIC_OUTBOX_LEAST) {
        out->message_max = ONIC_OUTBOX_LEAST;
    }
    atomic_store_explicit(&head->owner[number], me + 1, memory_order_release);
    atomic_fetch_add_explicit(&head->senders, 1, memory_order_release);
    return true;
}

bool onic_outbox_can_open(const onic_segment_key_t *key)
{
    return key->size > sizeof(onic_inbox_head_t);
}

bool onic_outbox_open(onic_outbox_t *out, const onic_segment_key_t *key, uint64_t me,
                      const onic_presence_t *owner, int pipe)
{
    *out = (onic_outbox_t){.file = key->file, .owner = owner, .pipe = pipe};
    if (onic_segment_join(key, key->size, INT_MAX, &out->segment) != ONIC_JOINED) {
        return false;
    }
    if (!take_queue(out, me)) {
        onic_segment_unmap(&out->segment);
        return false;
    }
    return true;
}

void onic_outbox_close(onic_outbox_t *out)
{
    onic_segment_unmap(&out->segment);
}

static void put_payload(onic_outbox_t *out, unsigned char *to, const onic_payload_t *payload)
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
static void wake(onic_outbox_t *out)
{
    if (makes_barriers) {
        atomic_thread_fence(memory_order_seq_cst);
    } else {
        atomic_signal_fence(memory_order_seq_cst);
    }
    const unsigned nap = atomic_load_explicit(&out->owner->parked, memory_order_relaxed);
    if (nap != 0 && nap != out->woken) {
        out->woken = nap;
        onic_wake_pipe_write(out->pipe, ONIC_WAKE_PEER);
    }
}

bool onic_outbox_put(onic_outbox_t *out, uint8_t id, const void *header, size_t header_len,
                     const onic_payload_t *payload, bool wakes)
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
    onic_queue_send(&out->sender, id, (uint16_t)header_len, (uint32_t)(payload_at + bytes));
    if (wakes) {
        wake(out);
    }
    return true;
}
