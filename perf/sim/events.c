/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "perf/sim/events.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/** Children of a heap node: gives few levels, and the children of one node fit in two cache lines.
 */
#define CHILDREN 4

void sim_events_init(sim_events_t *s, uint64_t seed)
{
    *s = (sim_events_t){.random = seed};
}

void sim_events_fini(sim_events_t *s)
{
    free(s->heap);
    s->heap = NULL;
}

static int is_sooner(const sim_event_t *a, const sim_event_t *b)
{
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

void sim_add(sim_events_t *s, sim_event_t e)
{
    if (s->n == s->room) {
        s->room = s->room > 0 ? 2 * s->room : 1024;
        s->heap = realloc(s->heap, s->room * sizeof(*s->heap));
        if (s->heap == NULL) {
            fprintf(stderr, "sim: out of memory\n");
            exit(EXIT_FAILURE);
        }
    }
    e.order = s->order++;
    size_t i = s->n++;
    for (; i > 0 && is_sooner(&e, &s->heap[(i - 1) / CHILDREN]); i = (i - 1) / CHILDREN)
        s->heap[i] = s->heap[(i - 1) / CHILDREN];
    s->heap[i] = e;
}

int sim_next(sim_events_t *s, sim_event_t *e)
{
    if (s->n == 0)
        return 0;
    *e = s->heap[0];
    const sim_event_t last = s->heap[--s->n];
    size_t i = 0;

    for (size_t first; (first = CHILDREN * i + 1) < s->n;) {
        size_t least = first;
        for (size_t c = first + 1; c < first + CHILDREN && c < s->n; c++)
            if (is_sooner(&s->heap[c], &s->heap[least]))
                least = c;
        if (is_sooner(&last, &s->heap[least]))
            break;
        s->heap[i] = s->heap[least];
        i = least;
    }
    s->heap[i] = last;
    s->now = e->at;
    s->handled++;
    return 1;
}

/** splitmix64 */
static uint64_t random64(sim_events_t *s)
{
    uint64_t z = s->random += 0x9e3779b97f4a7c15U;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
}

double sim_uniform(sim_events_t *s)
{
    return (double)(random64(s) >> 11) * 0x1p-53;
}

double sim_exponential(sim_events_t *s, double mean)
{
    return mean > 0 ? -mean * log1p(-sim_uniform(s)) : 0;
}
