/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The order of a communicator's barriers; see queue.h. */
#include "coll_nicbarrier/component/queue.h"

void nicbarrier_queue_init(nicbarrier_queue_t *q, uint64_t before, const nicbarrier_means_t *means,
                           void *arg)
{
    *q = (nicbarrier_queue_t){.means = means, .arg = arg, .begun = before, .complete = before};
}

uint64_t nicbarrier_queue_number(nicbarrier_queue_t *q)
{
    q->means->enter(q->arg, ++q->begun);
    return q->begun;
}

void nicbarrier_queue_add(nicbarrier_queue_t *q, nicbarrier_item_t *item)
{
    item->epoch = nicbarrier_queue_number(q);
    item->failure = 0;
    item->next = NULL;
    if (q->head == NULL)
        q->head = item;
    else
        q->tail->next = item;
    q->tail = item;
}

/** Is the first through, one way or the other? */
static bool finish_first(nicbarrier_queue_t *q)
{
    nicbarrier_item_t *item = q->head;

    if (item == NULL)
        return false;
    if (q->means->done(q->arg, item->epoch)) {
        nicbarrier_queue_reached(q, item->epoch);
        return true;
    }
    item->failure = q->means->failure(q->arg);
    return item->failure != 0;
}

nicbarrier_item_t *nicbarrier_queue_harvest(nicbarrier_queue_t *q)
{
    nicbarrier_item_t *first = q->head, *last = NULL;

    while (finish_first(q)) {
        last = q->head;
        atomic_store_explicit(&q->head, last->next, memory_order_release);
    }
    if (last == NULL)
        return NULL;
    last->next = NULL;
    return first;
}
