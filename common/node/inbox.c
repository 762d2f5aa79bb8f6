/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/ompi_compat.h"
#include "common/node/inbox.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/node/segment.h"
#include "opal/util/proc.h"

/** Owners of a queue that is in no use, and of one that some process is about to use. */
#define NOBODY  UINT64_C(0)
#define CLAIMED UINT64_MAX

onic_inbox_t onic_inbox;

static size_t head_bytes(uint32_t nqueues)
{
    return onic_whole_pages(sizeof(onic_inbox_head_t) + nqueues * sizeof(uint64_t));
}

/** Where the queue of the process with number `i` begins; i = nqueues: the length of all. */
static size_t queue_at(uint32_t nqueues, uint32_t ring_bytes, uint32_t i)
{
    return head_bytes(nqueues) + i * onic_whole_pages(onic_queue_bytes(ring_bytes));
}

static uint32_t processes_here(void)
{
    return (uint32_t)opal_process_info.num_local_peers + 1;
}

/** A ring that takes up such a share of the memory, within what makes sense. */
static uint32_t ring_for(size_t share)
{
    /* A ring is a power of two, and what stands before it is not to halve it. */
    const size_t least = onic_queue_bytes(ONIC_QUEUE_RING_MIN), bytes = share + onic_queue_bytes(0);

    return onic_queue_ring_for(bytes < least ? least : bytes);
}

void onic_inbox_open(size_t bytes)
{
    onic_inbox_t *in = &onic_inbox;
    const uint32_t n = processes_here();
    const uint32_t ring_bytes =
        n > 1 && bytes > 0 ? ring_for(onic_segment_part(bytes, n) / (n - 1)) : 0;

    /* With its head alone in memory. */
    if (ring_bytes == 0 || !onic_segment_make(queue_at(n, ring_bytes, n), head_bytes(n), 1,
                                              ONIC_NAMELESS, &in->key, &in->segment))
        return;
    in->receiver = malloc(n * sizeof(*in->receiver));
    in->owner = malloc(n * sizeof(*in->owner));
    in->seen = calloc(n, sizeof(*in->seen));
    in->ring_bytes = ring_bytes;
    if (in->receiver == NULL || in->owner == NULL || in->seen == NULL) {
        onic_inbox_close();
        return;
    }
    onic_inbox_head_t *head = in->segment.base;
    head->nqueues = n;
    head->ring_bytes = ring_bytes;
}

void onic_inbox_meet(void)
{
    onic_inbox_t *in = &onic_inbox;
    onic_inbox_head_t *head = in->segment.base;
    const uint32_t n = processes_here(), ring_bytes = in->ring_bytes;
    uint32_t known = atomic_load_explicit(&in->nreceivers, memory_order_relaxed);

    atomic_store_explicit(&in->senders, atomic_load_explicit(&head->senders, memory_order_acquire),
                          memory_order_relaxed);
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t owner = atomic_load_explicit(&head->owner[i], memory_order_acquire);
        if (!in->seen[i] && owner != NOBODY && owner != CLAIMED) {
            in->seen[i] = true;
            const onic_queue_t q =
                onic_queue_at((char *)head + queue_at(n, ring_bytes, i), ring_bytes);
            in->owner[known] = owner - 1;
            in->receiver[known++] = onic_queue_receiver(&q);
        }
    }
    atomic_store_explicit(&in->nreceivers, known, memory_order_release);
}

bool onic_inbox_has_messages(void)
{
    const onic_inbox_t *in = &onic_inbox;
    const onic_inbox_head_t *head = in->segment.base;
    bool found;

    if (head == NULL)
        return false;
    const uint32_t n = atomic_load_explicit(&in->nreceivers, memory_order_acquire);
    found = atomic_load_explicit(&head->senders, memory_order_relaxed) !=
            atomic_load_explicit(&in->senders, memory_order_relaxed);
    for (uint32_t i = 0; i < n && !found; i++)
        found = onic_queue_has_message(&in->receiver[i]);
    return found;
}

void onic_inbox_close(void)
{
    onic_inbox_t *in = &onic_inbox;

    onic_segment_withdraw(&in->key);
    onic_segment_unmap(&in->segment);
    free(in->receiver);
    free(in->owner);
    free(in->seen);
    in->receiver = NULL;
    in->owner = NULL;
    in->seen = NULL;
    atomic_store(&in->nreceivers, 0);
    atomic_store(&in->senders, 0);
}

/* ---- sending --------------------------------------------------------------------------------- */

_Static_assert(ONIC_OUTBOX_LEAST <= ONIC_QUEUE_RING_MIN / 2 - ONIC_QUEUE_LINE,
               "the shortest ring takes it");

void onic_outbox_park(unsigned nap)
{
    atomic_store_explicit(&onic_presence_mine()->parked, nap, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
}

/** The sizes of another process's inbox, if they keep within its segment. */
static bool read_head(const onic_segment_t *segment, uint32_t *ring_bytes_p)
{
    const onic_inbox_head_t *head = segment->base;
    const uint32_t n = head->nqueues, ring_bytes = head->ring_bytes;

    *ring_bytes_p = ring_bytes;
    return n == processes_here() && ring_bytes >= ONIC_QUEUE_RING_MIN &&
           ring_bytes <= ONIC_QUEUE_RING_MAX && (ring_bytes & (ring_bytes - 1)) == 0 &&
           segment->size == queue_at(n, ring_bytes, n);
}

/** Gives memory to what this process's ring needs for such a round. */
static bool give_memory(void *arg, uint32_t round)
{
    const onic_outbox_t *out = arg;
    const size_t at = (size_t)((char *)out->sender.q.ends - (char *)out->segment.base);

    return onic_segment_fill(&out->segment, &out->file, at,
                             onic_whole_pages(onic_queue_touched(out->sender.q.ring_bytes, round)));
}

/** Makes this process's queue there its own, and gives memory to its beginning. */
static bool take_queue(onic_outbox_t *out, uint64_t me)
{
    const uint32_t number = (uint32_t)opal_process_info.my_local_rank, n = processes_here();
    onic_inbox_head_t *head = out->segment.base;
    uint64_t secret, nobody = NOBODY;
    uint32_t ring_bytes;

    if (!read_head(&out->segment, &ring_bytes) || number >= n ||
        getrandom(&secret, sizeof(secret), 0) != (ssize_t)sizeof(secret))
        return false;
    out->sender.q = onic_queue_at((char *)head + queue_at(n, ring_bytes, number), ring_bytes);
    /* A process that another daemon of this job gave the same number may have taken it. */
    if (!give_memory(out, ring_bytes < ONIC_QUEUE_ROUND ? ring_bytes : ONIC_QUEUE_ROUND) ||
        !atomic_compare_exchange_strong(&head->owner[number], &nobody, CLAIMED))
        return false;
    out->sender = onic_queue_sender(&out->sender.q, secret);
    out->sender.give = give_memory;
    out->sender.arg = out;
    out->message_max = onic_queue_longest(&out->sender.q) / 2;
    if (out->message_max > ONIC_QUEUE_SURE)
        out->message_max = ONIC_QUEUE_SURE;
    else if (out->message_max < ONIC_OUTBOX_LEAST)
        out->message_max = ONIC_OUTBOX_LEAST;
    atomic_store_explicit(&head->owner[number], me + 1, memory_order_release);
    atomic_fetch_add_explicit(&head->senders, 1, memory_order_release);
    return true;
}

bool onic_outbox_can_open(const onic_segment_key_t *key)
{
    return key->size > sizeof(onic_inbox_head_t);
}

bool onic_outbox_open(onic_outbox_t *out, const onic_segment_key_t *key, uint64_t me,
                      const onic_presence_t *owner, const onic_wake_t *wake)
{
    *out = (onic_outbox_t){.file = key->file, .owner = owner, .wake = wake};
    if (onic_segment_join(key, key->size, INT_MAX, &out->segment) != ONIC_JOINED)
        return false;
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

/** Ends the sleep of a server thread that stands in, and has not seen the message just put. */
static void wake(onic_outbox_t *out)
{
    /* Either that thread sees the message, or this one sees it asleep. */
    atomic_thread_fence(memory_order_seq_cst);
    const unsigned nap = atomic_load_explicit(&out->owner->parked, memory_order_relaxed);
    if (nap != 0 && nap != out->woken) {
        out->woken = nap;
        onic_wake_peer(out->wake);
    }
}

bool onic_outbox_put(onic_outbox_t *out, uint8_t id, const void *header, size_t header_len,
                     const onic_payload_t *payload, bool wakes)
{
    const size_t bytes = payload != NULL ? payload->len : 0;
    const size_t len = header_len + bytes;
    unsigned char *at;

    if (len > out->message_max)
        return false;
    at = onic_queue_reserve(&out->sender, (uint32_t)len);
    if (at == NULL) {
        /* What fills the queue may have woken nobody. */
        wake(out);
        return false;
    }
    memcpy(at, header, header_len);
    if (bytes > 0)
        onic_payload_copy(at + header_len, payload, out->far && bytes >= ONIC_STREAM_FROM);
    onic_queue_send(&out->sender, id, (uint16_t)header_len, (uint32_t)len);
    if (wakes)
        wake(out);
    return true;
}
