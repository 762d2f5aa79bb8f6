/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Matching of point-to-point messages against a naive matcher. */
#include "pml_superpipe/matching/comm.h"

#include <string.h>

#include "test/unit/pml_naive.h"
#include "test/unit/unit.h"

enum { CONTEXTS = 3, TAGS = 4, MOST = 200, IDS = 1 << 14 };

typedef struct message {
    superpipe_message_t m; /* first */
    int id;
} message_t;

typedef struct receive {
    superpipe_receive_t r; /* first */
    int id;
} receive_t;

/** One process and those that send to it. */
typedef struct world {
    unit_random_t r;
    superpipe_comms_t comms;
    superpipe_comm_t comm[CONTEXTS]; /* those that exist */
    naive_comm_t naive[CONTEXTS];
    receive_t *receive[IDS]; /* those that are posted */
    int ids;
    naive_pairs_t real, expected; /* of one step */
    unsigned weight[8];
} world_t;

static world_t w;

static uint64_t context_of(unsigned i)
{
    return 37 * i;
}

static int new_id(void)
{
    UNIT_CHECK(w.ids < IDS);
    return w.ids++;
}

static int32_t some_source(void)
{
    return (int32_t)unit_below(&w.r, NAIVE_RANKS);
}

static int32_t some_tag(void)
{
    return (int32_t)unit_below(&w.r, TAGS) - (unit_once_in(&w.r, 6) ? 2 + TAGS : 0);
}

static int32_t wanted_source(void)
{
    return unit_below(&w.r, 10) < w.weight[6] ? SUPERPIPE_ANY_SOURCE : some_source();
}

static int32_t wanted_tag(void)
{
    return unit_below(&w.r, 10) < w.weight[7] ? SUPERPIPE_ANY_TAG : some_tag();
}

static void got(int id, superpipe_receive_t *r)
{
    receive_t *receive = (receive_t *)r;

    UNIT_CHECK(w.receive[receive->id] == receive);
    w.real.at[w.real.n++] = (naive_pair_t){id, receive->id};
    w.receive[receive->id] = NULL;
    free(receive);
}

static void compare(void)
{
    UNIT_CHECK(w.real.n == w.expected.n);
    UNIT_CHECK(memcmp(w.real.at, w.expected.at, w.real.n * sizeof(w.real.at[0])) == 0);
    w.real.n = w.expected.n = 0;
}

static void compare_message(const superpipe_message_t *m, int expected)
{
    UNIT_CHECK((m != NULL ? ((const message_t *)m)->id : NAIVE_NONE) == expected);
}

/* ---- messages -------------------------------------------------------------------------------- */

/** As pml_superpipe/protocols/receive.c. */
static void arrive_some(void)
{
    const unsigned i = (unsigned)unit_below(&w.r, CONTEXTS);
    const naive_item_t item = {new_id(), some_source(), some_tag()};
    superpipe_comm_t *c = superpipe_comms_find(&w.comms, context_of(i));
    superpipe_receive_t *receive = NULL;

    if (w.naive[i].unexpected.n + w.naive[i].parked.n >= MOST)
        return;
    if (c != NULL)
        receive = superpipe_match_message(&c->match, item.source, item.tag);
    if (receive != NULL) {
        got(item.id, receive);
    } else {
        message_t *message = calloc(1, sizeof(*message));

        UNIT_CHECK(message != NULL);
        message->id = item.id;
        message->m.context = context_of(i);
        message->m.source = item.source;
        message->m.tag = item.tag;
        if (c != NULL)
            superpipe_match_keep(&c->match, &message->m);
        else
            TAILQ_INSERT_TAIL(&w.comms.parked, &message->m, of_list);
    }
    naive_arrive(&w.naive[i], item, &w.expected);
    compare();
}

static unsigned index_of(uint64_t context)
{
    unsigned i = 0;

    while (context_of(i) != context)
        i++;
    return i;
}

/* ---- receives and probes --------------------------------------------------------------------- */

static void post_some(superpipe_comm_t *c, naive_comm_t *naive)
{
    receive_t *receive = calloc(1, sizeof(*receive));
    const int32_t source = wanted_source(), tag = wanted_tag();

    UNIT_CHECK(receive != NULL);
    receive->id = new_id();
    if (naive->posted.n >= MOST) {
        free(receive);
        return;
    }
    superpipe_message_t *m = superpipe_match_post(&c->match, &receive->r, source, tag);
    compare_message(m, naive_post(naive, (naive_item_t){receive->id, source, tag}));
    if (m == NULL) {
        w.receive[receive->id] = receive;
        return;
    }
    /* It is not posted. */
    UNIT_CHECK(!superpipe_match_cancel(&c->match, &receive->r));
    free(receive);
    free(m);
}

static void cancel_some(superpipe_comm_t *c, naive_comm_t *naive)
{
    if (naive->posted.n == 0)
        return;
    const int id = naive->posted.at[unit_below(&w.r, naive->posted.n)].id;
    UNIT_CHECK(naive_take(&naive->posted, id));
    UNIT_CHECK(superpipe_match_cancel(&c->match, &w.receive[id]->r));
    UNIT_CHECK(!superpipe_match_cancel(&c->match, &w.receive[id]->r));
    free(w.receive[id]);
    w.receive[id] = NULL;
}

static void probe_some(superpipe_comm_t *c, naive_comm_t *naive)
{
    const int32_t source = wanted_source(), tag = wanted_tag();
    const int expected = naive_find(naive, source, tag);
    superpipe_message_t *m = superpipe_match_probe(&c->match, source, tag);

    compare_message(m, expected);
    if (m == NULL || unit_once_in(&w.r, 2))
        return;
    superpipe_match_take(&c->match, m);
    UNIT_CHECK(naive_take(&naive->unexpected, expected));
    free(m);
}

/* ---- communicators --------------------------------------------------------------------------- */

static void create(unsigned i)
{
    superpipe_message_t *m, *from = TAILQ_FIRST(&w.comms.parked);

    w.comm[i] = (superpipe_comm_t){.context = context_of(i), .nranks = NAIVE_RANKS};
    superpipe_match_init(&w.comm[i].match);
    UNIT_CHECK(superpipe_comms_add(&w.comms, &w.comm[i]) == 0);
    while ((m = superpipe_comms_unpark(&w.comms, context_of(i), &from)) != NULL)
        superpipe_match_keep(&w.comm[i].match, m);
    naive_create(&w.naive[i], &w.expected);
    compare();
}

static void discard(superpipe_message_t *m, naive_list_t *list)
{
    UNIT_CHECK(naive_take(list, ((message_t *)m)->id));
    free(m);
}

/** Receives of one source, as if it had died. */
static void abandon(superpipe_comm_t *c, naive_comm_t *naive, int32_t source)
{
    superpipe_receive_t *r;
    size_t cursor = 0;

    while ((r = superpipe_match_abandon(&c->match, source, &cursor)) != NULL) {
        UNIT_CHECK(source == SUPERPIPE_ALL_RECEIVES || r->source == source);
        UNIT_CHECK(naive_take(&naive->posted, ((receive_t *)r)->id));
        UNIT_CHECK(!superpipe_match_cancel(&c->match, r));
        w.receive[((receive_t *)r)->id] = NULL;
        free(r);
    }
    for (size_t i = 0; i < naive->posted.n; i++)
        UNIT_CHECK(naive->posted.at[i].source != source && source != SUPERPIPE_ALL_RECEIVES);
}

static void destroy(unsigned i)
{
    superpipe_comm_t *c = &w.comm[i];
    superpipe_message_t *m;

    abandon(c, &w.naive[i], some_source());
    abandon(c, &w.naive[i], SUPERPIPE_ANY_SOURCE);
    abandon(c, &w.naive[i], SUPERPIPE_ALL_RECEIVES);
    while ((m = superpipe_match_discard(&c->match)) != NULL)
        discard(m, &w.naive[i].unexpected);
    UNIT_CHECK(w.naive[i].unexpected.n == 0 && w.naive[i].parked.n == 0);
    w.comms.known[context_of(i)] = NULL;
    superpipe_match_fini(&c->match);
    memset(&w.naive[i], 0, sizeof(w.naive[i]));
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void step_in(unsigned i)
{
    if (!w.naive[i].exists) {
        if (unit_once_in(&w.r, 30))
            create(i);
        return;
    }
    superpipe_comm_t *c = superpipe_comms_find(&w.comms, context_of(i));
    UNIT_CHECK(c == &w.comm[i]);
    if (unit_below(&w.r, 10) < w.weight[2])
        post_some(c, &w.naive[i]);
    if (unit_below(&w.r, 10) < w.weight[3])
        cancel_some(c, &w.naive[i]);
    if (unit_below(&w.r, 10) < w.weight[4])
        probe_some(c, &w.naive[i]);
    UNIT_CHECK(c->match.nunexpected == w.naive[i].unexpected.n);
    const uint64_t *n = c->match.waiting;
    UNIT_CHECK(n[0] + n[1] + n[2] + n[3] == w.naive[i].posted.n);
    if (unit_once_in(&w.r, 600))
        destroy(i);
}

static void end(void)
{
    superpipe_message_t *m;

    for (unsigned i = 0; i < CONTEXTS; i++)
        if (w.naive[i].exists)
            destroy(i);
    while ((m = TAILQ_FIRST(&w.comms.parked)) != NULL) {
        TAILQ_REMOVE(&w.comms.parked, m, of_list);
        discard(m, &w.naive[index_of(m->context)].parked);
    }
    for (unsigned i = 0; i < CONTEXTS; i++)
        UNIT_CHECK(w.naive[i].parked.n == 0);
    free(w.comms.known);
}

/* Each time with other proportions of all that may happen. */
START_TEST(as_the_naive_one)
{
    for (int round = 0; round < 30; round++) {
        memset(&w, 0, sizeof(w));
        TAILQ_INIT(&w.comms.parked);
        w.r.state = unit_seed() + 100 * (uint64_t)_i + (uint64_t)round;
        for (unsigned k = 0; k < 8; k++)
            w.weight[k] = (unsigned)unit_below(&w.r, k == 3 ? 4 : 11);
        for (int step = 0; step < 5000; step++) {
            if (unit_below(&w.r, 10) < w.weight[1] + 1)
                arrive_some();
            step_in((unsigned)unit_below(&w.r, CONTEXTS));
        }
        end();
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("pml match", UNIT_LOOP(as_the_naive_one, 0, 4));
}
