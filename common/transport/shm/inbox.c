/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/ompi_compat.h"
#include "common/transport/shm/inbox.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "opal/util/proc.h"

/** Owners of a queue that is in no use, and of one that is taken: its name is not there yet, or not
 *  any more. */
#define NOBODY UINT64_C(0)
#define TAKEN  UINT64_MAX

/** As many senders at least can make their rounds as long as can be. */
#define SHARES 8

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

/** A ring of those of so many senders, who share so many bytes: no less where there are more than
 *  some, for they hardly all need it. */
static uint32_t ring_for(size_t bytes, uint32_t senders)
{
    const size_t share = bytes / (senders < SHARES ? senders : SHARES);
    /* A ring is a power of two, and what stands before it is not to halve it. */
    const size_t least = onic_queue_bytes(ONIC_QUEUE_RING_MIN), each = share + onic_queue_bytes(0);

    return onic_queue_ring_for(each < least ? least : each);
}

void onic_inbox_open(size_t bytes)
{
    onic_inbox_t *in = &onic_inbox;
    /* This process hardly sends to itself, if there are others. */
    const uint32_t n = processes_here(), senders = n > 1 ? n - 1 : 1;
    const size_t part = onic_segment_part(bytes, n), all_begin = senders * ONIC_QUEUE_ROUND;
    const uint32_t ring_bytes = bytes > 0 ? ring_for(part, senders) : 0;

    /* With its head alone in memory. */
    if (!onic_segment_make(ring_bytes > 0 ? queue_at(n, ring_bytes, n) : head_bytes(n),
                           head_bytes(n), 1, false, &in->key, &in->segment))
        return;
    onic_inbox_head_t *head = in->segment.base;
    onic_presence_use(&head->presence);
    if (ring_bytes == 0)
        return;
    in->queue = calloc(n, sizeof(*in->queue));
    if (in->queue == NULL) {
        onic_inbox_close();
        return;
    }
    head->nqueues = n;
    head->ring_bytes = ring_bytes;
    head->spare = part > all_begin ? part - all_begin : 0;
}

void onic_inbox_meet(void)
{
    onic_inbox_t *in = &onic_inbox;
    onic_inbox_head_t *head = in->segment.base;
    const uint32_t n = processes_here();
    uint32_t known = atomic_load_explicit(&in->nqueues, memory_order_relaxed);

    atomic_store_explicit(&in->senders, atomic_load_explicit(&head->senders, memory_order_acquire),
                          memory_order_relaxed);
    for (uint32_t i = 0; i < n && known < n; i++) {
        const uint64_t owner = atomic_load_explicit(&head->owner[i], memory_order_acquire);
        if (owner != NOBODY && owner != TAKEN) {
            const onic_queue_t q =
                onic_queue_at((char *)head + queue_at(n, head->ring_bytes, i), head->ring_bytes);
            atomic_store_explicit(&head->owner[i], TAKEN, memory_order_relaxed);
            in->queue[known].owner = owner - 1;
            in->queue[known++].receiver = onic_queue_receiver(&q);
        }
    }
    atomic_store_explicit(&in->nqueues, known, memory_order_release);
}

bool onic_inbox_has_messages(void)
{
    const onic_inbox_t *in = &onic_inbox;
    const onic_inbox_head_t *head = in->segment.base;
    bool found;

    if (head == NULL)
        return false;
    const uint32_t n = atomic_load_explicit(&in->nqueues, memory_order_acquire);
    found = atomic_load_explicit(&head->senders, memory_order_relaxed) !=
            atomic_load_explicit(&in->senders, memory_order_relaxed);
    for (uint32_t i = 0; i < n && !found; i++)
        found = onic_queue_has_message(&in->queue[i].receiver);
    return found;
}

void onic_inbox_close(void)
{
    onic_inbox_t *in = &onic_inbox;

    onic_presence_use(NULL);
    onic_segment_withdraw(&in->key);
    onic_segment_unmap(&in->segment);
    free(in->queue);
    in->queue = NULL;
    atomic_store(&in->nqueues, 0);
    atomic_store(&in->senders, 0);
}

/* ---- another process's ----------------------------------------------------------------------- */

bool onic_inbox_has_queues(const onic_segment_key_t *key)
{
    return key->size > head_bytes(processes_here());
}

/** What is mapped of an inbox: processes of other jobs may have shorter heads. */
static onic_mapped_t head_of(void *base, const onic_segment_key_t *key)
{
    const size_t mine = head_bytes(processes_here());

    return (onic_mapped_t){base, 0, key->size < mine ? key->size : mine};
}

onic_inbox_head_t *onic_inbox_map(const onic_segment_key_t *key)
{
    onic_mapped_t mapped = head_of(NULL, key);

    return onic_segment_map_part(key, &mapped) ? mapped.base : NULL;
}

void onic_inbox_unmap(onic_inbox_head_t *head, const onic_segment_key_t *key)
{
    onic_mapped_t mapped = head_of(head, key);

    onic_unmap(&mapped);
}

/* ---- sending --------------------------------------------------------------------------------- */

void onic_outbox_park(unsigned nap)
{
    atomic_store_explicit(&onic_presence_mine()->parked, nap, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
}

/** Takes so many bytes of what rounds may become longer by. */
static bool take_spare(_Atomic uint64_t *spare, uint64_t bytes)
{
    uint64_t left = atomic_load_explicit(spare, memory_order_relaxed);

    do {
        if (left < bytes)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(spare, &left, left - bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

/** Gives memory to whole pages of this process's queue. */
static bool fill(const onic_outbox_t *out, size_t from, size_t to)
{
    return onic_segment_fill(&out->queue, &out->file, from, to - from);
}

/** Gives memory to what this process's ring needs for a longer round. */
static bool give_memory(void *arg, uint32_t round)
{
    const onic_outbox_t *out = arg;
    const uint32_t ring_bytes = out->sender.q.ring_bytes, more = round - out->sender.round;

    if (!take_spare(&out->head->spare, more))
        return false;
    if (fill(out, onic_whole_pages(onic_queue_touched(ring_bytes, out->sender.round)),
             onic_whole_pages(onic_queue_touched(ring_bytes, round))))
        return true;
    atomic_fetch_add_explicit(&out->head->spare, more, memory_order_relaxed);
    return false;
}

/** Makes this process's queue there its own, and gives memory to its beginning. */
static bool take_queue(onic_outbox_t *out, uint32_t number, uint32_t ring_bytes, uint64_t me)
{
    const onic_queue_t q = onic_queue_at(out->queue.base, ring_bytes);
    uint64_t secret, nobody = NOBODY;

    /* A process that another daemon of this job gave the same number may have taken it. */
    if (getrandom(&secret, sizeof(secret), 0) != (ssize_t)sizeof(secret) ||
        !fill(out, 0, onic_whole_pages(onic_queue_touched(ring_bytes, ONIC_QUEUE_ROUND))) ||
        !atomic_compare_exchange_strong(&out->head->owner[number], &nobody, TAKEN))
        return false;
    out->sender = onic_queue_sender(&q, secret);
    out->sender.give = give_memory;
    out->sender.arg = out;
    atomic_store_explicit(&out->head->owner[number], me + 1, memory_order_release);
    atomic_fetch_add_explicit(&out->head->senders, 1, memory_order_release);
    return true;
}

bool onic_outbox_open(onic_outbox_t *out, const onic_segment_key_t *key, onic_inbox_head_t *head,
                      uint64_t me, const onic_file_key_t *wake)
{
    const uint32_t n = processes_here(), number = (uint32_t)opal_process_info.my_local_rank;
    const uint32_t ring_bytes = head->ring_bytes;

    *out = (onic_outbox_t){.head = head, .file = key->file, .wake = wake};
    if (number >= n || head->nqueues != n || queue_at(n, ring_bytes, n) != key->size)
        return false;
    out->queue.from = queue_at(n, ring_bytes, number);
    out->queue.len = onic_whole_pages(onic_queue_bytes(ring_bytes));
    if (onic_segment_map_part(key, &out->queue) && take_queue(out, number, ring_bytes, me))
        return true;
    onic_outbox_close(out);
    return false;
}

void onic_outbox_close(onic_outbox_t *out)
{
    onic_unmap(&out->queue);
}

static size_t most(const onic_outbox_t *out)
{
    const size_t bytes = onic_queue_longest(out->sender.round);

    return bytes < ONIC_OUTBOX_MOST ? bytes : ONIC_OUTBOX_MOST;
}

size_t onic_outbox_most(onic_outbox_t *out, size_t wanted)
{
    while (most(out) < wanted && most(out) < ONIC_OUTBOX_MOST &&
           onic_queue_lengthen(&out->sender)) {
    }
    return most(out);
}

/** Ends the sleep of a server thread that stands in, and has not seen the message just put. */
static void wake(onic_outbox_t *out)
{
    /* Either that thread sees the message, or this one sees it asleep. */
    atomic_thread_fence(memory_order_seq_cst);
    const unsigned nap = atomic_load_explicit(&out->head->presence.parked, memory_order_relaxed);
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

    if (len > most(out))
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
