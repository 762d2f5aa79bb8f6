/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/ompi_compat.h"
#include "common/node/inbox.h"

#include <stdlib.h>

#include "common/node/segment.h"
#include "opal/util/proc.h"

/** Nothing has been gained by longer rings than twice an L2 cache. */
#define RING_MOST (UINT32_C(1) << 21)

onic_inbox_t onic_inbox;

static size_t head_bytes(uint32_t nqueues)
{
    return onic_whole_pages(sizeof(onic_inbox_head_t) + nqueues * sizeof(uint64_t));
}

size_t onic_inbox_queue_at(uint32_t nqueues, uint32_t ring_bytes, uint32_t i)
{
    return head_bytes(nqueues) + i * onic_whole_pages(onic_queue_bytes(ring_bytes));
}

uint32_t onic_processes_here(void)
{
    return (uint32_t)opal_process_info.num_local_peers + 1;
}

/** The segment with its head alone in memory. */
static bool make_segment(uint32_t n, uint32_t ring_bytes)
{
    onic_inbox_t *in = &onic_inbox;

    if (!onic_segment_make(onic_inbox_queue_at(n, ring_bytes, n), head_bytes(n), 1,
                           ONIC_BY_DESCRIPTOR, &in->key, &in->segment)) {
        return false;
    }
    /* One with a name would outlive a process that is killed. */
    if (in->key.file.fd >= 0) {
        return true;
    }
    onic_segment_withdraw(&in->key);
    onic_segment_unmap(&in->segment);
    return false;
}

/** A ring that takes up such a share of the memory, within what makes sense. */
static uint32_t ring_for(size_t share)
{
    const size_t least = onic_queue_bytes(ONIC_QUEUE_RING_MIN), most = onic_queue_bytes(RING_MOST);
    /* A ring is a power of two, and what stands before it is not to halve it. */
    const size_t bytes = share + onic_queue_bytes(0);

    return onic_queue_ring_for(bytes < least ? least : bytes < most ? bytes : most);
}

void onic_inbox_open(size_t bytes)
{
    onic_inbox_t *in = &onic_inbox;
    const uint32_t n = onic_processes_here();
    const uint32_t ring_bytes =
        n > 1 && bytes > 0 ? ring_for(onic_segment_part(bytes, n) / (n - 1)) : 0;

    if (ring_bytes == 0 || !make_segment(n, ring_bytes)) {
        return;
    }
    in->receiver = malloc(n * sizeof(*in->receiver));
    in->owner = malloc(n * sizeof(*in->owner));
    in->seen = calloc(n, sizeof(*in->seen));
    in->ring_bytes = ring_bytes;
    if (in->receiver == NULL || in->owner == NULL || in->seen == NULL) {
        onic_inbox_close();
        return;
    }
    onic_inbox_head_t *head = in->segment.base;
    head->mark = ONIC_INBOX_MARK;
    head->nqueues = n;
    head->ring_bytes = ring_bytes;
}

void onic_inbox_meet(void)
{
    onic_inbox_t *in = &onic_inbox;
    onic_inbox_head_t *head = in->segment.base;
    const uint32_t n = onic_processes_here(), ring_bytes = in->ring_bytes;
    uint32_t known = atomic_load_explicit(&in->nreceivers, memory_order_relaxed);

    atomic_store_explicit(&in->senders, atomic_load_explicit(&head->senders, memory_order_acquire),
                          memory_order_relaxed);
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t owner = atomic_load_explicit(&head->owner[i], memory_order_acquire);
        if (!in->seen[i] && owner != ONIC_QUEUE_NOBODY && owner != ONIC_QUEUE_CLAIMED) {
            in->seen[i] = true;
            const onic_queue_t q =
                onic_queue_at((char *)head + onic_inbox_queue_at(n, ring_bytes, i), ring_bytes);
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

    if (head == NULL) {
        return false;
    }
    const uint32_t n = atomic_load_explicit(&in->nreceivers, memory_order_acquire);
    found = atomic_load_explicit(&head->senders, memory_order_relaxed) !=
            atomic_load_explicit(&in->senders, memory_order_relaxed);
    for (uint32_t i = 0; i < n && !found; i++) {
        found = onic_queue_has_message(&in->receiver[i]);
    }
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
