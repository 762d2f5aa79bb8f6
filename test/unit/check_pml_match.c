/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Matching of point-to-point messages against a naive matcher, and how long its lists get.
 */
#include "pml_superpipe/matching/match.h"

#include <stdlib.h>
#include <string.h>

#include "test/unit/pml_naive.h"
#include "test/unit/unit.h"

enum { CONTEXTS = 3, TAGS = 4, MOST = 200, IDS = 1 << 14, MANY = 100000 };

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
    superpipe_match_t match;
    naive_comm_t naive[CONTEXTS];
    receive_t *receive[IDS]; /* those that are posted */
    int ids;
    /* Of ten: how often each thing is done, and how often a source or a tag is a wildcard. */
    unsigned arrives, posts, cancels, probes, any_source, any_tag;
} world_t;

static world_t w;

/** The first and the last share a list of their context. */
static uint32_t context_of(unsigned i)
{
    return SUPERPIPE_CONTEXT_LISTS / 2 * i;
}

static int new_id(void)
{
    UNIT_CHECK(w.ids < IDS);
    return w.ids++;
}

static bool in_ten(unsigned n)
{
    return unit_below(&w.r, 10) < n;
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
    return in_ten(w.any_source) ? SUPERPIPE_ANY_SOURCE : some_source();
}

static int32_t wanted_tag(void)
{
    return in_ten(w.any_tag) ? SUPERPIPE_ANY_TAG : some_tag();
}

static int message_id(const superpipe_message_t *m)
{
    return m != NULL ? ((const message_t *)m)->id : NAIVE_NONE;
}

static void free_receive(superpipe_receive_t *r)
{
    const int id = ((receive_t *)r)->id;

    UNIT_CHECK(w.receive[id] == (receive_t *)r && !superpipe_match_cancel(&w.match, r));
    w.receive[id] = NULL;
    free(r);
}

/* ---- messages, receives and probes ----------------------------------------------------------- */

static void arrive_some(unsigned i)
{
    const naive_item_t item = {new_id(), some_source(), some_tag()};
    superpipe_receive_t *receive;

    if (w.naive[i].unexpected.n >= MOST)
        return;
    receive = superpipe_match_message(&w.match, context_of(i), item.source, item.tag);
    UNIT_CHECK(naive_arrive(&w.naive[i], item) ==
               (receive != NULL ? ((receive_t *)receive)->id : NAIVE_NONE));
    if (receive != NULL) {
        free_receive(receive);
    } else {
        message_t *message = calloc(1, sizeof(*message));

        UNIT_CHECK(message != NULL);
        message->id = item.id;
        message->m.context = context_of(i);
        message->m.source = item.source;
        message->m.tag = item.tag;
        superpipe_match_keep(&w.match, &message->m);
    }
}

static void post_some(unsigned i)
{
    receive_t *receive = calloc(1, sizeof(*receive));
    const int32_t source = wanted_source(), tag = wanted_tag();
    superpipe_message_t *m;

    UNIT_CHECK(receive != NULL);
    receive->id = new_id();
    if (w.naive[i].posted.n >= MOST) {
        free(receive);
        return;
    }
    m = superpipe_match_post(&w.match, &receive->r, context_of(i), source, tag);
    UNIT_CHECK(message_id(m) == naive_post(&w.naive[i], (naive_item_t){receive->id, source, tag}));
    w.receive[receive->id] = receive;
    if (m != NULL)
        free_receive(&receive->r);
    free(m);
}

static void cancel_some(unsigned i)
{
    naive_list_t *posted = &w.naive[i].posted;

    if (posted->n == 0)
        return;
    const int id = posted->at[unit_below(&w.r, posted->n)].id;
    UNIT_CHECK(naive_take(posted, id));
    UNIT_CHECK(superpipe_match_cancel(&w.match, &w.receive[id]->r));
    free_receive(&w.receive[id]->r);
}

static void probe_some(unsigned i)
{
    const int32_t source = wanted_source(), tag = wanted_tag();
    superpipe_message_t *m = superpipe_match_probe(&w.match, context_of(i), source, tag);

    UNIT_CHECK(message_id(m) == naive_find(&w.naive[i], source, tag));
    if (m == NULL || unit_once_in(&w.r, 2))
        return;
    superpipe_match_take(&w.match, m);
    UNIT_CHECK(naive_take(&w.naive[i].unexpected, message_id(m)));
    free(m);
}

/* ---- ends ------------------------------------------------------------------------------------ */

/** Receives of one source, as if it had died, or all. */
static void abandon(unsigned i, int32_t source)
{
    naive_list_t *posted = &w.naive[i].posted;
    superpipe_receive_t *r;
    size_t cursor = 0;

    while ((r = superpipe_match_abandon(&w.match, context_of(i), source, &cursor)) != NULL) {
        UNIT_CHECK(source == SUPERPIPE_ALL_RECEIVES || r->source == source);
        UNIT_CHECK(naive_take(posted, ((receive_t *)r)->id));
        free_receive(r);
    }
    for (size_t k = 0; k < posted->n; k++)
        UNIT_CHECK(posted->at[k].source != source && source != SUPERPIPE_ALL_RECEIVES);
}

/** All that waits in a communicator, the messages in the order of arrival. */
static void destroy(unsigned i)
{
    naive_comm_t *naive = &w.naive[i];
    superpipe_message_t *m, *next;

    abandon(i, some_source());
    abandon(i, SUPERPIPE_ANY_SOURCE);
    abandon(i, SUPERPIPE_ALL_RECEIVES);
    for (m = TAILQ_FIRST(superpipe_match_arrived(&w.match, context_of(i))); m != NULL; m = next) {
        next = TAILQ_NEXT(m, of_context);
        if (m->context != context_of(i))
            continue;
        UNIT_CHECK(message_id(m) == naive->unexpected.at[0].id);
        UNIT_CHECK(naive_take(&naive->unexpected, message_id(m)));
        superpipe_match_take(&w.match, m);
        free(m);
    }
    UNIT_CHECK(naive->unexpected.n == 0);
}

static void compare_counts(void)
{
    size_t posted = 0, unexpected = 0;

    for (unsigned i = 0; i < CONTEXTS; i++) {
        posted += w.naive[i].posted.n;
        unexpected += w.naive[i].unexpected.n;
    }
    UNIT_CHECK(w.match.exact + w.match.wildcards == posted && w.match.unexpected == unexpected);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void step_in(unsigned i)
{
    if (in_ten(w.arrives))
        arrive_some(i);
    if (in_ten(w.posts))
        post_some(i);
    if (in_ten(w.cancels))
        cancel_some(i);
    if (in_ten(w.probes))
        probe_some(i);
    compare_counts();
    if (unit_once_in(&w.r, 600))
        destroy(i);
}

/* Each time with other proportions of all that may happen. */
START_TEST(as_the_naive_one)
{
    for (int round = 0; round < 30; round++) {
        memset(&w, 0, sizeof(w));
        superpipe_match_init(&w.match);
        w.r.state = unit_seed() + 100 * (uint64_t)_i + (uint64_t)round;
        w.arrives = 1 + (unsigned)unit_below(&w.r, 10);
        w.cancels = (unsigned)unit_below(&w.r, 4);
        unsigned *const others[] = {&w.posts, &w.probes, &w.any_source, &w.any_tag};
        for (unsigned k = 0; k < 4; k++)
            *others[k] = (unsigned)unit_below(&w.r, 11);
        for (int step = 0; step < 5000; step++)
            step_in((unsigned)unit_below(&w.r, CONTEXTS));
        for (unsigned i = 0; i < CONTEXTS; i++)
            destroy(i);
        compare_counts();
    }
}
END_TEST

/* ---- lists stay short ------------------------------------------------------------------------ */

/** Source and tag of number i of many: in rows of some width in one of them or both, or in a
 * square; or the same in many communicators. */
static superpipe_message_t key_of(int kind, uint32_t i)
{
    const int32_t n = (int32_t)i;

    switch (kind) {
    case 0:
        return (superpipe_message_t){.tag = n};
    case 1:
        return (superpipe_message_t){.source = n};
    case 2:
        return (superpipe_message_t){.source = n, .tag = n};
    case 3:
        return (superpipe_message_t){.tag = 1024 * n};
    case 4:
        return (superpipe_message_t){.source = 4096 * n};
    case 5:
        return (superpipe_message_t){.source = n, .tag = -2 - n};
    case 6:
        return (superpipe_message_t){.source = n % 317, .tag = n / 317};
    default:
        return (superpipe_message_t){.context = i};
    }
}

/* A message looks at few others, however sources and tags are numbered. */
START_TEST(lists_are_short)
{
    superpipe_message_t *message = calloc(MANY, sizeof(*message));
    size_t longest = 0;

    UNIT_CHECK(message != NULL);
    superpipe_match_init(&w.match);
    for (uint32_t i = 0; i < MANY; i++) {
        message[i] = key_of(_i, i);
        superpipe_match_keep(&w.match, &message[i]);
    }
    for (size_t k = 0; k < SUPERPIPE_KEY_LISTS; k++) {
        const superpipe_message_t *m;
        size_t n = 0;

        TAILQ_FOREACH(m, &w.match.by_key[k], of_key)
            n++;
        longest = n > longest ? n : longest;
    }
    ck_assert_uint_lt(longest, 2 * MANY / SUPERPIPE_KEY_LISTS);
    free(message);
}
END_TEST

int main(void)
{
    return UNIT_RUN("pml match", UNIT_LOOP(as_the_naive_one, 0, 4),
                    UNIT_LOOP(lists_are_short, 0, 8));
}
