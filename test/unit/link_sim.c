/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/unit/link_sim.h"

#include <math.h>
#include <stdlib.h>

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

typedef struct event {
    double at;
    unsigned thing, stage; /**< arrives there */
} event_t;

/** A heap of events. */
typedef struct events {
    event_t *e;
    unsigned n, room;
} events_t;

static bool is_sooner(const event_t *a, const event_t *b)
{
    return a->at < b->at || (a->at == b->at && a->thing < b->thing);
}

static void add(events_t *h, event_t e)
{
    unsigned i = h->n++;

    if (h->n > h->room) {
        h->room = 2 * h->n;
        h->e = realloc(h->e, h->room * sizeof(*h->e));
        UNIT_CHECK(h->e != NULL);
    }
    for (; i > 0 && is_sooner(&e, &h->e[(i - 1) / 2]); i = (i - 1) / 2)
        h->e[i] = h->e[(i - 1) / 2];
    h->e[i] = e;
}

static event_t first(events_t *h)
{
    const event_t found = h->e[0], last = h->e[--h->n];
    unsigned i = 0;

    for (unsigned child; (child = 2 * i + 1) < h->n; i = child) {
        if (child + 1 < h->n && is_sooner(&h->e[child + 1], &h->e[child]))
            child++;
        if (is_sooner(&last, &h->e[child]))
            break;
        h->e[i] = h->e[child];
    }
    h->e[i] = last;
    return found;
}

/** When the last thing has left the last stage. */
static double run(const line_t *l)
{
    double busy_until[STAGES] = {0}, end = 0;
    events_t h = {0};
    unsigned entered = 0;

    for (; entered < l->things && entered < l->places; entered++)
        add(&h, (event_t){0, entered, 0});
    while (h.n > 0) {
        const event_t e = first(&h);
        const double since = l->is_way[e.stage] ? e.at : fmax(e.at, busy_until[e.stage]);
        double until = since + l->takes(l, e.stage, e.thing);

        busy_until[e.stage] = until;
        if (e.stage == 0)
            until = fmax(until, l->held);
        if (e.stage + 1 < l->stages) {
            add(&h, (event_t){until, e.thing, e.stage + 1});
            continue;
        }
        end = fmax(end, until);
        if (entered < l->things)
            add(&h, (event_t){until, entered++, 0});
    }
    free(h.e);
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
#define REQUESTS_MAX 2048

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
