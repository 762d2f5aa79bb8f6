/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "perf/sim/requests.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/transport/verbs/requests.h"
#include "perf/sim/events.h"

typedef struct world {
    onic_rdma_transfer_t transfer; /**< the first member */
    sim_events_t events;
    const onic_link_t *link;
    bool read;
    double host;
    double host_free, adapter, wire; /**< times from which they are free */
    onic_request_queue_t queue;
    onic_rdma_counts_t counts;
    sim_requested_t result;
    bool over;
} world_t;

/** The adapter takes the requests of a batch in order; a signalled one completes when its answer
 *  has come. For a read the other adapter also takes each request, and answers on the same wire. */
static bool post(void *arg, const onic_rdma_batch_t *batch, uint64_t first)
{
    world_t *w = arg;
    const onic_link_t *k = w->link;

    (void)sim_serve(&w->host_free, w->events.now, k->doorbell);
    for (uint32_t i = 0; i < batch->n; i++) {
        const onic_rdma_request_t *r = &batch->request[i];
        const double takes = k->request + (r->pieces - 1) * k->entry;
        const double made = sim_serve(&w->host_free, w->host_free, w->host);
        const double asked = sim_serve(&w->adapter, made, takes);
        const double arrives = w->read ? asked + k->latency : asked;
        const double moved = sim_serve(&w->wire, arrives, (double)r->bytes / k->bnet);

        if (r->signalled)
            sim_add(&w->events, (sim_event_t){.at = moved + (w->read ? 1 : 2) * k->latency,
                                              .value = first + i});
    }
    return true;
}

static void ended(onic_rdma_transfer_t *t, bool failed)
{
    ((world_t *)t)->over = !failed;
}

static uint32_t at_least(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

sim_requested_t sim_requests(const onic_link_t *link, bool read, bool answered, double host,
                             const onic_layout_t *near, const onic_layout_t *far)
{
    const uint64_t base = UINT64_C(1) << 40;
    const bool reads = read && !answered;
    const uint32_t window = at_least(2, (uint32_t)(reads ? link->reads : link->window));
    const uint32_t batch = link->batch < window / 2 ? (uint32_t)link->batch : window / 2;
    world_t w = {.link = link, .read = reads, .host = host};
    sim_event_t e;

    sim_events_init(&w.events, 0);
    w.events.now = read && answered ? link->message / 2 : 0;
    if (!onic_request_queue_init(&w.queue,
                                 &(onic_request_queue_spec_t){.window = window,
                                                              .batch = batch,
                                                              .signal = at_least(1, batch / 2),
                                                              .pieces = (uint32_t)link->entries})) {
        fprintf(stderr, "sim: out of memory\n");
        exit(EXIT_FAILURE);
    }
    w.queue.post = post;
    w.queue.arg = &w;
    w.queue.counts = &w.counts;
    w.transfer.ended = ended;
    onic_rdma_walk_init(
        &w.transfer.walk,
        &(onic_rdma_limits_t){.pieces = (uint32_t)link->entries, .message = 1U << 30}, reads,
        &(onic_rdma_side_t){near, base, 1}, &(onic_rdma_side_t){far, base, 1});
    onic_request_queue_begin(&w.queue, &w.transfer);
    while (!w.over && sim_next(&w.events, &e))
        onic_request_queue_processed(&w.queue, e.value);
    w.result = (sim_requested_t){.time = w.over ? w.events.now : -1,
                                 .requests = w.counts.requests,
                                 .doorbells = w.counts.doorbells,
                                 .completions = w.counts.completions};
    onic_request_queue_fini(&w.queue);
    sim_events_fini(&w.events);
    return w.result;
}
