/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Both sides of sends that lack credit, over a network that keeps no order. What a receiver stores
 * stays within its pool, but for headers that it has pulled; no receive and no probe waits for
 * a message that stays with its sender; messages do not overtake each other where MPI forbids it;
 * and none is lost.
 */
#include "pml_superpipe/matching/backlog.h"

#include <string.h>

#include "pml_superpipe/matching/comm.h"
#include "pml_superpipe/matching/credit.h"
#include "test/unit/unit.h"

enum { SENDERS = 3, CONTEXTS = 2, MESSAGES = 300, RECEIVES = 2 * SENDERS * MESSAGES };
enum { FLIGHTS = 4 * SENDERS * MESSAGES, TAGS = 4 };

typedef enum kind { WHOLE, HEADER, LIMIT, BACKLOG, PULL, QUERY, EMPTY } kind_t;

/** What one of them sends, in the order of its calls. */
typedef struct message {
    superpipe_entry_t entry;   /* at the sender */
    superpipe_message_t there; /* at the receiver */
    uint64_t payload, paid;
    unsigned sender;
    bool matched;
} message_t;

typedef struct receive {
    superpipe_receive_t receive;
    unsigned context;
} receive_t;

/** On its way between the receiver and a sender. */
typedef struct flight {
    kind_t kind;
    unsigned sender, context;
    uint64_t value, handle; /* WHOLE, HEADER: number of the message; what was paid */
    int32_t source, tag;
} flight_t;

typedef struct sender {
    superpipe_credit_t credit;
    superpipe_backlog_t backlog;
    uint32_t sequence[CONTEXTS];
    unsigned sent;
    message_t message[MESSAGES];
} sender_t;

static struct world {
    unit_random_t r;
    uint64_t payload; /* most bytes */
    sender_t sender[SENDERS];
    superpipe_pool_t pool;
    superpipe_sender_t from[SENDERS];
    superpipe_remote_t remote[SENDERS];
    superpipe_comm_t comm[CONTEXTS];
    receive_t receive[RECEIVES];
    unsigned posted, matched, unpaid;
    uint64_t stored; /* bytes that were paid for */
    flight_t flight[FLIGHTS];
    size_t nflights;
} w;

static void fly(flight_t f)
{
    UNIT_CHECK(w.nflights < FLIGHTS);
    w.flight[w.nflights++] = f;
}

static bool is_stored_within_bounds(void)
{
    return w.stored <= w.pool.held && w.pool.held + w.pool.set_aside <= w.pool.bytes;
}

/* ---- sender ---------------------------------------------------------------------------------- */

static unsigned number_of(const message_t *m)
{
    return (unsigned)(m - w.sender[m->sender].message);
}

/** Sends a message as far as there is credit, or its header where it is pulled. */
static bool send_if_paid(message_t *m, bool pulled)
{
    sender_t *s = &w.sender[m->sender];
    flight_t f = {WHOLE, m->sender, m->entry.context, number_of(m), 0, 0, m->entry.tag};

    if (superpipe_credit_take(&s->credit, SUPERPIPE_RECORD + m->payload)) {
        f.handle = SUPERPIPE_RECORD + m->payload;
    } else if (superpipe_credit_take(&s->credit, SUPERPIPE_RECORD)) {
        f.kind = HEADER;
        f.handle = SUPERPIPE_RECORD;
    } else if (pulled) {
        f.kind = HEADER;
    } else {
        return false;
    }
    m->there.sequence = s->sequence[f.context]++;
    fly(f);
    return true;
}

static void announce(unsigned i)
{
    const superpipe_entry_t *k;

    while ((k = superpipe_backlog_announce(&w.sender[i].backlog)) != NULL)
        fly((flight_t){BACKLOG, i, k->context, 0, k->number, k->source, k->tag});
}

static void send_entry(superpipe_entry_t *k)
{
    /* The first member. */
    UNIT_CHECK(send_if_paid((message_t *)k, true));
}

static void release(unsigned i)
{
    superpipe_backlog_t *b = &w.sender[i].backlog;
    superpipe_credit_t *c = &w.sender[i].credit;
    superpipe_entry_t *k;

    if (superpipe_backlog_is_empty(b))
        return;
    while ((k = superpipe_backlog_take_pulled(b)) != NULL)
        send_entry(k);
    while (c->limit - c->sent >= SUPERPIPE_RECORD && (k = superpipe_backlog_take(b)) != NULL)
        send_entry(k);
    if (superpipe_backlog_is_empty(b))
        fly((flight_t){EMPTY, i, 0, b->number, 0, 0, 0});
}

/** A call of MPI_Isend. */
static void send_one(unsigned i)
{
    sender_t *s = &w.sender[i];
    message_t *m = &s->message[s->sent++];

    m->sender = i;
    m->payload = unit_once_in(&w.r, 3) ? 0 : unit_below(&w.r, w.payload);
    m->entry.context = (uint32_t)unit_below(&w.r, CONTEXTS);
    m->entry.tag = (int32_t)unit_below(&w.r, TAGS) - (unit_once_in(&w.r, 4) ? TAGS + 1 : 0);
    m->there.context = m->entry.context;
    m->there.source = (int32_t)i;
    m->there.tag = m->entry.tag;
    if (superpipe_backlog_is_empty(&s->backlog) && send_if_paid(m, false))
        return;
    superpipe_backlog_add(&s->backlog, &m->entry, m->entry.context, (int32_t)i, m->entry.tag);
    announce(i);
}

/* ---- receiver -------------------------------------------------------------------------------- */

static void grant(unsigned i)
{
    fly((flight_t){LIMIT, i, 0, superpipe_pool_grant(&w.pool, &w.from[i]), 0, 0, 0});
}

static void lacks(unsigned i, uint64_t bytes)
{
    if (superpipe_pool_lacks(&w.pool, &w.from[i], bytes))
        grant(i);
}

static void freed(message_t *m)
{
    if (m->paid > 0 && superpipe_pool_freed(&w.pool, &w.from[m->sender], m->paid))
        grant(m->sender);
    for (unsigned i = 0; i < SENDERS; i++)
        if (superpipe_remote_may_hold(&w.remote[i]))
            lacks(i, SUPERPIPE_RECORD);
    m->paid = 0;
}

static bool matches(const message_t *m, const superpipe_receive_t *r, unsigned context)
{
    return m->there.context == context &&
           (r->source == SUPERPIPE_ANY_SOURCE || r->source == m->there.source) &&
           (r->tag == SUPERPIPE_ANY_TAG ? m->there.tag >= 0 : r->tag == m->there.tag);
}

static void match(message_t *m, receive_t *r)
{
    UNIT_CHECK(!m->matched && matches(m, &r->receive, r->context));
    m->matched = true;
    w.matched++;
    /* None that was sent before has been overtaken. */
    for (const message_t *before = w.sender[m->sender].message; before < m; before++)
        UNIT_CHECK(before->matched || !matches(before, &r->receive, r->context));
}

static void keep(message_t *m)
{
    superpipe_comm_keep(&w.comm[m->there.context], &m->there);
    w.stored += m->paid;
}

static message_t *of_there(superpipe_message_t *there)
{
    return (message_t *)((char *)there - offsetof(message_t, there));
}

static receive_t *of_receive(superpipe_receive_t *receive)
{
    return (receive_t *)((char *)receive - offsetof(receive_t, receive));
}

static void take_stored(message_t *m, receive_t *r)
{
    match(m, r);
    w.stored -= m->paid;
    freed(m);
}

static void arrive(message_t *m, uint64_t paid)
{
    superpipe_comm_t *c = &w.comm[m->there.context];
    superpipe_receive_t *receive;
    superpipe_message_t *next;

    m->paid = paid;
    if (paid > 0)
        UNIT_CHECK(superpipe_pool_arrived(&w.from[m->sender], paid));
    else
        UNIT_CHECK(w.remote[m->sender].pulled);
    w.unpaid += paid == 0;
    switch (superpipe_comm_arrive(c, m->there.source, m->there.tag, m->there.sequence, &receive)) {
    case SUPERPIPE_MATCHED:
        match(m, of_receive(receive));
        freed(m);
        break;
    case SUPERPIPE_WAITS:
        keep(m);
        break;
    case SUPERPIPE_REFUSED:
        UNIT_CHECK(false);
    }
    while ((next = superpipe_comm_next(c, m->there.source, &receive)) != NULL)
        take_stored(of_there(next), of_receive(receive));
}

static void want(unsigned context, int32_t source, int32_t tag, bool probe)
{
    for (unsigned i = 0; i < SENDERS; i++) {
        if (!superpipe_remote_may_hold(&w.remote[i]) || (probe && w.remote[i].probed))
            continue;
        w.remote[i].pulled = true;
        w.remote[i].probed = w.remote[i].probed || probe;
        fly((flight_t){QUERY, i, context, 0, probe, source, tag});
    }
}

/** A call of MPI_Irecv. */
static void post(unsigned context, int32_t source, int32_t tag)
{
    receive_t *r = &w.receive[w.posted++];
    superpipe_message_t *m;

    UNIT_CHECK(w.posted <= RECEIVES);
    r->context = context;
    r->receive.source = source;
    r->receive.tag = tag;
    m = superpipe_match_post(&w.comm[context].match, &r->receive, source, tag);
    if (m != NULL)
        take_stored(of_there(m), r);
    else
        want(context, source, tag, false);
}

static bool probe(unsigned context, int32_t source, int32_t tag)
{
    const bool found = superpipe_match_probe(&w.comm[context].match, source, tag) != NULL;

    if (!found)
        want(context, source, tag, true);
    return found;
}

static void on_backlog(const flight_t *f)
{
    superpipe_remote_t *h = &w.remote[f->sender];
    const bool expected = superpipe_match_expects(&w.comm[f->context].match, f->source, f->tag);

    h->number = f->handle > h->number ? f->handle : h->number;
    h->pulled = h->pulled || expected;
    lacks(f->sender, SUPERPIPE_RECORD);
    fly((flight_t){PULL, f->sender, 0, expected ? f->handle : 0, 0, 0, 0});
}

static void on_query(const flight_t *f)
{
    superpipe_backlog_t *b = &w.sender[f->sender].backlog;

    if (superpipe_backlog_query(b, f->context, f->source, f->tag))
        release(f->sender);
    if (f->handle != 0)
        fly((flight_t){EMPTY, f->sender, 0, superpipe_backlog_is_empty(b) ? b->number : 0, 1, 0,
                       0});
}

/* ---- the network ----------------------------------------------------------------------------- */

static void handle(const flight_t *f)
{
    sender_t *s = &w.sender[f->sender];
    superpipe_remote_t *h = &w.remote[f->sender];

    switch (f->kind) {
    case WHOLE:
        arrive(&s->message[f->value], f->handle);
        break;
    case HEADER:
        if (f->handle > 0)
            lacks(f->sender, SUPERPIPE_RECORD + s->message[f->value].payload);
        arrive(&s->message[f->value], f->handle);
        break;
    case LIMIT:
        superpipe_credit_raise(&s->credit, f->value);
        release(f->sender);
        break;
    case BACKLOG:
        on_backlog(f);
        break;
    case PULL:
        superpipe_backlog_answered(&s->backlog, f->value);
        release(f->sender);
        announce(f->sender);
        break;
    case QUERY:
        on_query(f);
        break;
    case EMPTY:
        h->probed = h->probed && f->handle == 0;
        h->emptied = f->value > h->emptied ? f->value : h->emptied;
        break;
    }
    UNIT_CHECK(is_stored_within_bounds());
}

static void deliver_any(void)
{
    const size_t at = unit_below(&w.r, w.nflights);
    const flight_t f = w.flight[at];

    w.flight[at] = w.flight[--w.nflights];
    handle(&f);
}

static void settle(void)
{
    while (w.nflights > 0)
        deliver_any();
}

static void begin(uint64_t seed)
{
    memset(&w, 0, sizeof(w));
    w.r.state = seed;
    w.payload = 1 + unit_below(&w.r, 3000);
    superpipe_pool_init(&w.pool, unit_below(&w.r, 100000), SENDERS);
    for (unsigned i = 0; i < SENDERS; i++) {
        superpipe_pool_meet(&w.pool, &w.from[i], true);
        w.sender[i].credit.limit = w.pool.first;
    }
    for (unsigned c = 0; c < CONTEXTS; c++)
        UNIT_CHECK(superpipe_comm_init(&w.comm[c], c, SENDERS) == 0);
}

static void end(void)
{
    for (unsigned c = 0; c < CONTEXTS; c++)
        superpipe_comm_fini(&w.comm[c]);
}

/** When nothing is under way any more, nothing in a backlog is what a receive waits for. */
static void check_progress(void)
{
    settle();
    for (unsigned i = 0; i < w.posted; i++) {
        const receive_t *r = &w.receive[i];

        if (!superpipe_link_is_in(&r->receive.link))
            continue;
        for (unsigned s = 0; s < SENDERS; s++)
            for (const superpipe_entry_t *k = w.sender[s].backlog.head; k != NULL; k = k->next)
                UNIT_CHECK(!matches((const message_t *)k, &r->receive, r->context));
    }
}

static int32_t any_source(void)
{
    return unit_once_in(&w.r, 3) ? SUPERPIPE_ANY_SOURCE : (int32_t)unit_below(&w.r, SENDERS);
}

/** Of the user's or of the library's own, or any of the user's. */
static int32_t any_tag(void)
{
    return unit_once_in(&w.r, 4)
               ? SUPERPIPE_ANY_TAG
               : (int32_t)unit_below(&w.r, TAGS) - (unit_once_in(&w.r, 4) ? TAGS + 1 : 0);
}

/** All that is left is received, by probes and receives that name each tag. */
static void receive_rest(void)
{
    for (unsigned i = 0; i < SENDERS; i++) {
        for (unsigned n = 0; n < w.sender[i].sent; n++) {
            const message_t *m = &w.sender[i].message[n];
            const superpipe_message_t *t = &m->there;

            if (m->matched)
                continue;
            /* Whoever polls finds it, whatever is under way for others who poll. */
            for (int polls = 0; !probe((unsigned)t->context, t->source, t->tag); polls++) {
                UNIT_CHECK(polls < 3);
                settle();
            }
            post((unsigned)t->context, t->source, t->tag);
            settle();
        }
    }
}

/* ---- tests ----------------------------------------------------------------------------------- */

/** Senders and receiver do what they want in any order, the receiver more or less willingly. */
START_TEST(any_order)
{
    for (uint64_t round = 0; round < 60; round++) {
        unit_random_t seeds = {unit_seed() + round * 1000 + (uint64_t)_i};
        begin(unit_random64(&seeds));
        const uint64_t lazy = 1 + unit_below(&w.r, 30);
        unsigned all = 0;

        while (all < SENDERS * MESSAGES) {
            const unsigned i = (unsigned)unit_below(&w.r, SENDERS);

            if (w.sender[i].sent < MESSAGES) {
                send_one(i);
                all++;
            }
            for (uint64_t n = unit_below(&w.r, 4); n > 0 && w.nflights > 0; n--)
                deliver_any();
            if (unit_once_in(&w.r, lazy))
                post((unsigned)unit_below(&w.r, CONTEXTS), any_source(), any_tag());
            if (unit_once_in(&w.r, lazy))
                (void)probe((unsigned)unit_below(&w.r, CONTEXTS), any_source(), any_tag());
            if (unit_once_in(&w.r, 50))
                check_progress();
        }
        check_progress();
        receive_rest();
        /* Receives of others that were posted first may have got some of these. */
        check_progress();
        for (unsigned i = 0; i < SENDERS; i++)
            UNIT_CHECK(superpipe_backlog_is_empty(&w.sender[i].backlog) &&
                       !superpipe_remote_may_hold(&w.remote[i]));
        UNIT_CHECK(w.matched == SENDERS * MESSAGES && w.stored == 0);
        end();
    }
}
END_TEST

/** Nobody receives: no header without credit, and nothing more than the pool. */
START_TEST(nobody_receives)
{
    begin(unit_seed());
    for (unsigned n = 0; n < MESSAGES; n++) {
        for (unsigned i = 0; i < SENDERS; i++)
            send_one(i);
        settle();
    }
    UNIT_CHECK(w.unpaid == 0 && w.matched == 0 && w.stored <= w.pool.bytes);
    for (unsigned i = 0; i < SENDERS; i++)
        UNIT_CHECK(!superpipe_backlog_is_empty(&w.sender[i].backlog));
    end();
}
END_TEST

/** Nobody receives, but whoever polls finds what was sent, and others that poll for what was not
 *  sent do not keep him from it. */
START_TEST(probes_alone)
{
    begin(unit_seed() + 1);
    for (unsigned n = 0; n < MESSAGES * SENDERS; n++)
        send_one(n % SENDERS);
    settle();
    for (unsigned n = 0; n < 200; n++) {
        const sender_t *s = &w.sender[unit_below(&w.r, SENDERS)];
        const superpipe_message_t *t = &s->message[unit_below(&w.r, MESSAGES)].there;

        for (int polls = 0; !probe((unsigned)t->context, t->source, t->tag); polls++) {
            UNIT_CHECK(polls < 3);
            settle();
            UNIT_CHECK(!probe(1, SUPERPIPE_ANY_SOURCE, 1000));
            settle();
        }
    }
    UNIT_CHECK(w.unpaid > 0 && w.stored <= w.pool.bytes);
    end();
}
END_TEST

/** A receive for what stands behind many others of the user's costs their headers, once; one for
 *  what stands in another communicator, or for a message of the library's, costs none of these. */
START_TEST(calls_cost_what_they_must)
{
    superpipe_backlog_t b = {0};
    superpipe_entry_t k[10];

    for (int i = 0; i < 10; i++)
        superpipe_backlog_add(&b, &k[i], i == 7, 0, i == 9 ? -3 : i == 8 ? 5 : 4);
    UNIT_CHECK(!superpipe_backlog_query(&b, 0, 0, 6) && !superpipe_backlog_query(&b, 0, 1, 5));
    UNIT_CHECK(superpipe_backlog_take_pulled(&b) == NULL);
    UNIT_CHECK(superpipe_backlog_query(&b, 0, 0, -3) && b.npulled == 1);
    UNIT_CHECK(superpipe_backlog_take_pulled(&b) == &k[9]);
    UNIT_CHECK(superpipe_backlog_query(&b, 1, SUPERPIPE_ANY_SOURCE, SUPERPIPE_ANY_TAG));
    UNIT_CHECK(superpipe_backlog_take_pulled(&b) == &k[7] && b.npulled == 0);
    superpipe_backlog_answered(&b, 9);
    for (int i = 0; i < 9; i++)
        UNIT_CHECK(i == 7 || superpipe_backlog_take_pulled(&b) == &k[i]);
    UNIT_CHECK(superpipe_backlog_is_empty(&b) && superpipe_backlog_announce(&b) == NULL);
    /* What a peer must not say. */
    superpipe_backlog_answered(&b, 3);
    superpipe_backlog_add(&b, &k[0], 0, 0, 1);
    superpipe_backlog_answered(&b, 11 + 1);
    UNIT_CHECK(superpipe_backlog_take_pulled(&b) == NULL &&
               superpipe_backlog_announce(&b) == &k[0]);
    UNIT_CHECK(superpipe_backlog_take(&b) == &k[0] && superpipe_backlog_is_empty(&b));
}
END_TEST

int main(void)
{
    const TTest *const each[] = {any_order};
    const TTest *const tests[] = {nobody_receives, probes_alone, calls_cost_what_they_must};

    return unit_run_loop("pml backlog", each, 1, 4, tests, sizeof(tests) / sizeof(tests[0]));
}
