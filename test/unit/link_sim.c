/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/unit/link_sim.h"

#include <math.h>
#include <stdlib.h>

#include "perf/sim/events.h"
#include "test/unit/unit.h"

/* ---- stations and things that go through them ------------------------------------------------ */

enum { STAGES = 8 };

/** Things, all of which pass the same stages in their order. A stage is a station, which serves one
 *  after the other, or a way, on which none waits for others. */
typedef struct line {
    unsigned stages;
    bool is_way[STAGES];
    unsigned things;
    unsigned places; /**< so many may be under way at a time */
    double (*takes)(const struct line *l, unsigned stage, unsigned thing);
    double held; /**< nothing leaves the first stage before that */
    const sim_case_t *c;
    double *size;   /**< bytes of each thing */
    double *packed; /**< bytes that are packed before it leaves */
} line_t;

/** When the last thing has left the last stage. */
static double run(const line_t *l)
{
    double busy_until[STAGES] = {0}, end = 0;
    unsigned entered = 0;
    sim_events_t events;
    sim_event_t e; /* a thing arrives at a stage */

    sim_events_init(&events, 0);
    for (; entered < l->things && entered < l->places; entered++)
        sim_add(&events, (sim_event_t){.who = entered});
    while (sim_next(&events, &e)) {
        const double since = l->is_way[e.step] ? e.at : fmax(e.at, busy_until[e.step]);
        double until = since + l->takes(l, e.step, e.who);

        busy_until[e.step] = until;
        if (e.step == 0)
            until = fmax(until, l->held);
        e.at = until;
        if (++e.step < l->stages) {
            sim_add(&events, e);
            continue;
        }
        end = fmax(end, until);
        if (entered < l->things)
            sim_add(&events, (sim_event_t){.at = until, .who = entered++});
    }
    sim_events_fini(&events);
    return end;
}

/* ---- messages -------------------------------------------------------------------------------- */

/** A host's time for a message that stands alone. */
static double host(const onic_link_t *k)
{
    return fmax(0, k->message / 2 - k->latency - k->gap);
}

/** From one host's call to the other's handler. */
static double message(const onic_link_t *k)
{
    return host(k) + k->latency;
}

/** Packing or unpacking a part of the data, at the origin or the target. */
static double copying(const line_t *l, bool here, double bytes)
{
    const sim_case_t *c = l->c;
    const double all = here ? c->gather_here : c->gather_there;

    return bytes / c->link->bcopy + all * bytes / (double)c->bytes;
}

/** Pack, send, move and unpack. */
static double packed(const line_t *l, unsigned stage, unsigned thing)
{
    const onic_link_t *k = l->c->link;

    switch (stage) {
    case 0:
        return l->packed[thing] > 0 ? copying(l, !l->c->get, l->packed[thing]) + k->gap : 0;
    case 1:
        return l->size[thing] / k->bnet;
    case 2:
        return k->latency;
    default:
        return copying(l, l->c->get, l->size[thing]) + (l->packed[thing] > 0 ? k->gap : 0);
    }
}

static void grow(line_t *l, unsigned *room)
{
    if (l->things < *room)
        return;
    *room = 2 * *room + 8;
    l->size = realloc(l->size, *room * sizeof(*l->size));
    l->packed = realloc(l->packed, *room * sizeof(*l->packed));
    UNIT_CHECK(l->size != NULL && l->packed != NULL);
}

/** Cuts a transfer into chunks, which grow by `q` from `next` to `most`, and these into blocks. */
static void cut(line_t *l, double next, double q, double most, double block)
{
    double left = (double)l->c->bytes;
    unsigned room = 0;

    l->things = 0;
    l->size = l->packed = NULL;
    for (; left > 0; next = fmin(most, next * q)) {
        const double chunk = fmin(left, fmin(most, next));

        for (double at = 0; at < chunk; at += block) {
            grow(l, &room);
            l->packed[l->things] = at == 0 ? chunk : 0;
            l->size[l->things++] = fmin(block, chunk - at);
        }
        left -= chunk;
    }
}

static double through(line_t *l)
{
    const double took = run(l);

    free(l->size);
    free(l->packed);
    return took;
}

double sim_pack(const sim_case_t *c)
{
    const double fragment = c->link->fragment;
    line_t l = {.c = c, .stages = 4, .is_way = {[2] = true}, .places = 1 << 30, .takes = packed};

    cut(&l, fragment, 1, fragment, fragment);
    /* The call, or the question; and the answer, or the handler of the last of the data. */
    return host(c->link) + through(&l) + message(c->link);
}

/* ---- slots ----------------------------------------------------------------------------------- */

/** As above, and the way back of an acknowledgement: then the slot is free. */
static double by_slots(const line_t *l, unsigned stage, unsigned thing)
{
    return stage == 4 ? l->c->link->latency : packed(l, stage, thing);
}

/** As many as a lease has slots. */
#define SLOTS 16

static double slots(const sim_case_t *c, double chunk, double most, double block)
{
    const onic_link_t *k = c->link;
    line_t l = {.c = c,
                .stages = 5,
                .is_way = {[2] = true, [4] = true},
                .places = SLOTS * (unsigned)ceil(most / block),
                .takes = by_slots,
                .held = c->get ? 0 : k->grant};

    cut(&l, chunk, 1.5, most, block);
    /* The question, or the call. A get is over without the last acknowledgement, a put with an
     * answer. */
    return host(k) + through(&l) + host(k);
}

double sim_pipeline(const sim_case_t *c)
{
    return slots(c, fmin(12 << 10, c->slot), c->slot, c->slot);
}

double sim_one_chunk(const sim_case_t *c)
{
    return slots(c, (double)c->bytes, (double)c->bytes, (double)c->bytes);
}

/* ---- requests -------------------------------------------------------------------------------- */

/** Requests of this many are simulated; of more, these and twice as many, and the rest is as these.
 */
#define REQUESTS_MAX 512

typedef struct requests {
    line_t line;
    bool one_by_one;
    double pieces, bytes; /* of a request */
} requests_t;

static double requested(const line_t *l, unsigned stage, unsigned thing)
{
    const requests_t *r = (const void *)l;
    const onic_link_t *k = l->c->link;

    switch (stage) {
    case 0: /* the host's list */
        return r->one_by_one ? l->c->piece : fmod(thing, k->batch) == 0 ? k->doorbell : 0;
    case 1: /* the adapter */
        return k->request + (l->c->get ? 0 : (r->pieces - 1) * k->entry);
    case 2:
        return k->latency;
    case 3: /* the wire, either way; of a read the other adapter is before it */
        return fmax(r->bytes / k->bnet, l->c->get ? k->request : 0);
    case 4: /* the pieces of a read */
        return l->c->get ? (r->pieces - 1) * k->entry : 0;
    default:
        return k->latency;
    }
}

static double requests(const sim_case_t *c, bool one_by_one)
{
    const onic_link_t *k = c->link;
    const uint64_t pieces = c->here > c->there ? c->here : c->there;
    const double lists = ceil((double)pieces / (double)c->there / k->entries);
    const double n = (double)c->there * lists;
    requests_t r = {.line = {.c = c,
                             .stages = 6,
                             .is_way = {[2] = true, [5] = true},
                             .places = (unsigned)(c->get ? k->reads : k->window),
                             .takes = requested},
                    .one_by_one = one_by_one,
                    .pieces = (double)pieces / n,
                    .bytes = (double)c->bytes / n};
    double took;

    r.line.things = n < REQUESTS_MAX ? (unsigned)n : REQUESTS_MAX;
    took = run(&r.line);
    if (n > REQUESTS_MAX) {
        r.line.things = 2 * REQUESTS_MAX;
        took += (run(&r.line) - took) * (n - REQUESTS_MAX) / REQUESTS_MAX;
    }
    return took;
}

double sim_nic(const sim_case_t *c)
{
    return requests(c, false);
}

double sim_one_by_one(const sim_case_t *c)
{
    return requests(c, true);
}
