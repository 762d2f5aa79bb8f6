/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "perf/sim/fence.h"

#include <stdio.h>
#include <stdlib.h>

#include "perf/sim/events.h"

enum { QUESTION, ANSWER };

typedef struct process {
    double caller, server; /**< times from which they are free */
    unsigned asked, answered;
    uint32_t *others; /**< in the order in which they are asked */
} process_t;

typedef struct world {
    sim_events_t events;
    const sim_fence_t *f;
    process_t *process;
} world_t;

static void *memory(size_t n, size_t bytes)
{
    void *found = calloc(n, bytes);

    if (found == NULL) {
        fprintf(stderr, "sim: out of memory\n");
        exit(EXIT_FAILURE);
    }
    return found;
}

static void arrange(world_t *w, uint32_t who)
{
    uint32_t *others = w->process[who].others, n = 0;

    for (uint32_t p = 0; p < w->f->processes; p++)
        if (p != who)
            others[n++] = p;
    for (uint32_t i = n; w->f->order == SIM_RANDOM && i > 1; i--) {
        const uint32_t j = (uint32_t)(sim_uniform(&w->events) * i), other = others[j];

        others[j] = others[i - 1];
        others[i - 1] = other;
    }
}

static void ask(world_t *w, uint32_t who)
{
    process_t *p = &w->process[who];

    if (p->asked == w->f->processes - 1)
        return;
    const double sent = sim_serve(&p->caller, w->events.now, w->f->overhead);
    sim_add(&w->events, (sim_event_t){.at = sent + w->f->latency,
                                      .kind = QUESTION,
                                      .who = p->others[p->asked++],
                                      .value = who});
}

static void handle(world_t *w, const sim_event_t *e)
{
    process_t *p = &w->process[e->who];

    if (e->kind == QUESTION) {
        const double served = sim_serve(&p->server, e->at, w->f->server);
        sim_add(
            &w->events,
            (sim_event_t){.at = served + w->f->latency, .kind = ANSWER, .who = (uint32_t)e->value});
        return;
    }
    (void)sim_serve(&p->caller, e->at, w->f->overhead);
    p->answered++;
    ask(w, e->who);
}

double sim_fence(const sim_fence_t *f)
{
    world_t w = {.f = f, .process = memory(f->processes, sizeof(process_t))};
    sim_event_t e;
    double end = 0;

    sim_events_init(&w.events, f->seed);
    for (uint32_t who = 0; who < f->callers; who++) {
        w.process[who].others = memory(f->processes, sizeof(uint32_t));
        arrange(&w, who);
        for (unsigned i = 0; i < f->outstanding; i++)
            ask(&w, who);
    }
    while (sim_next(&w.events, &e))
        handle(&w, &e);
    for (uint32_t who = 0; who < f->processes; who++) {
        end = w.process[who].caller > end ? w.process[who].caller : end;
        free(w.process[who].others);
    }
    free(w.process);
    sim_events_fini(&w.events);
    return end;
}
