/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Barriers by messages: members of any number over a simulated network that keeps messages
 *  in order, but takes any time for them. */
#include "coll_nicbarrier/component/messages.h"

#include <stdlib.h>
#include <string.h>

#include "test/unit/unit.h"

enum { MEMBERS_MAX = 20, FAILED = 55, BROKEN = 66, DEPTH = 64 };

typedef struct net net_t;

/** What is under way on one side: a send whose buffer is still needed, or a posted receive. */
typedef struct request {
    net_t *net;
    int from, to;
    bool is_send;
    const unsigned char *out;
    unsigned char *in;
} request_t;

typedef struct node {
    net_t *net;
    int me;
    nicbarrier_messages_t *messages;
    uint64_t entered;
} node_t;

/** Messages under way from one to another, in order. */
typedef struct wire {
    unsigned char word[DEPTH][NICBARRIER_MESSAGE_BYTES];
    int first, n;
} wire_t;

struct net {
    int n;
    unit_random_t random;
    node_t node[MEMBERS_MAX];
    wire_t wire[MEMBERS_MAX][MEMBERS_MAX]; /**< from, to */
    int sends, receives;                   /**< requests that are not complete */
    long messages;                         /**< that were sent */
    bool closed;                           /**< whatever is under way fails */
    int broken;                            /**< a member whose calls fail; -1: none */
};

static request_t *request_new(net_t *net, int from, int to)
{
    request_t *r = calloc(1, sizeof(*r));

    UNIT_CHECK(r != NULL);
    *r = (request_t){.net = net, .from = from, .to = to};
    return r;
}

static int start_send(void *arg, int member, const void *bytes, void **request_p)
{
    node_t *node = arg;

    *request_p = NULL;
    if (node->net->broken == node->me || node->net->closed)
        return BROKEN;
    request_t *r = request_new(node->net, node->me, member);
    r->is_send = true;
    r->out = bytes;
    node->net->sends++;
    *request_p = r;
    return 0;
}

static int start_receive(void *arg, int member, void *bytes, void **request_p)
{
    node_t *node = arg;

    request_t *r = request_new(node->net, member, node->me);
    r->in = bytes;
    node->net->receives++;
    *request_p = r;
    return 0;
}

/** Complete sometimes; what a send says is read as late as possible. */
static bool try_complete(request_t *r)
{
    net_t *net = r->net;
    wire_t *w = &net->wire[r->from][r->to];

    if (!unit_once_in(&net->random, 3))
        return false;
    if (r->is_send) {
        UNIT_CHECK(w->n < DEPTH);
        memcpy(w->word[(w->first + w->n++) % DEPTH], r->out, NICBARRIER_MESSAGE_BYTES);
        net->sends--;
        net->messages++;
        return true;
    }
    if (w->n == 0)
        return false;
    memcpy(r->in, w->word[w->first], NICBARRIER_MESSAGE_BYTES);
    w->first = (w->first + 1) % DEPTH;
    w->n--;
    net->receives--;
    return true;
}

static int test(void *arg, void **request_p)
{
    const bool closed = ((node_t *)arg)->net->closed;

    if (!closed && !try_complete(*request_p))
        return 0;
    free(*request_p);
    *request_p = NULL;
    return closed ? BROKEN : 1;
}

static const nicbarrier_messages_ops_t ops = {start_send, start_receive, test};

static net_t *make(int n, uint64_t seed)
{
    net_t *net = calloc(1, sizeof(*net));

    UNIT_CHECK(net != NULL);
    net->n = n;
    net->broken = -1;
    net->random.state = seed;
    for (int i = 0; i < n; i++) {
        net->node[i] = (node_t){.net = net, .me = i};
        net->node[i].messages = nicbarrier_messages_new(n, i, FAILED, &ops, &net->node[i]);
        UNIT_CHECK(net->node[i].messages != NULL);
    }
    return net;
}

/** What is under way would keep the memory. */
static void unmake(net_t *net)
{
    net->closed = true;
    for (int i = 0; i < net->n; i++) {
        (void)nicbarrier_messages_progress(net->node[i].messages);
        nicbarrier_messages_free(net->node[i].messages);
    }
    free(net);
}

static uint64_t least(const net_t *net)
{
    uint64_t low = UINT64_MAX;

    for (int i = 0; i < net->n; i++)
        low = net->node[i].entered < low ? net->node[i].entered : low;
    return low;
}

/** Nobody takes for complete what not all have entered. */
static void act(net_t *net, uint64_t last, uint64_t ahead)
{
    node_t *node = &net->node[unit_below(&net->random, (uint64_t)net->n)];

    if (unit_once_in(&net->random, 3) && node->entered < last &&
        node->entered < least(net) + ahead) {
        node->entered += 1 + unit_below(&net->random, 3);
        node->entered = node->entered < last ? node->entered : last;
        nicbarrier_messages_enter(node->messages, node->entered);
    } else {
        (void)nicbarrier_messages_progress(node->messages);
    }
    UNIT_CHECK(!nicbarrier_messages_done(node->messages, least(net) + 1));
}

static bool all_done(const net_t *net, uint64_t epoch)
{
    for (int i = 0; i < net->n; i++)
        if (!nicbarrier_messages_done(net->node[i].messages, epoch))
            return false;
    return true;
}

static void check_nothing_left(const net_t *net)
{
    UNIT_CHECK(net->sends == 0 && net->receives == 0);
    for (int i = 0; i < net->n; i++)
        for (int j = 0; j < net->n; j++)
            UNIT_CHECK(net->wire[i][j].n == 0);
}

/* Any number of members, several barriers outstanding: all end, and nothing is left over, neither a
 * message nor a receive; and again after that. */
START_TEST(nothing_is_left)
{
    unit_random_t random = {unit_seed() + (uint64_t)_i};
    const int n = 2 + (int)unit_below(&random, MEMBERS_MAX - 1);
    net_t *net = make(n, unit_random64(&random));
    uint64_t last = 1;

    for (int round = 0; round < 4; round++) {
        last += 1 + unit_below(&random, 20);
        const uint64_t ahead = 1 + unit_below(&random, 8);
        long turns = 0;
        while (!all_done(net, last)) {
            UNIT_CHECK(turns++ < 1000000);
            act(net, last, ahead);
        }
        check_nothing_left(net);
    }
    for (int i = 0; i < n; i++)
        UNIT_CHECK(nicbarrier_messages_failure(net->node[i].messages) == 0);
    unmake(net);
}
END_TEST

/* One by one each barrier costs each member a message for each step. */
START_TEST(messages)
{
    for (int n = 2; n <= MEMBERS_MAX; n++) {
        net_t *net = make(n, unit_seed() + (uint64_t)n);
        int steps = 0;

        while (1 << steps < n)
            steps++;
        for (uint64_t last = 1; last <= 10; last++)
            while (!all_done(net, last))
                act(net, last, 1);
        ck_assert_int_eq(net->messages, 10L * n * steps);
        unmake(net);
    }
}
END_TEST

/* Where a message cannot be sent the member has that code, and those it can reach have heard. */
START_TEST(failures)
{
    const int n = 2 + _i % (MEMBERS_MAX - 1);
    net_t *net = make(n, unit_seed() + 9000 + (uint64_t)_i);

    net->broken = (int)unit_below(&net->random, (uint64_t)n);
    for (int turns = 0; turns < 20000; turns++)
        act(net, 5, 4);
    for (int i = 0; i < n; i++) {
        UNIT_CHECK(!nicbarrier_messages_done(net->node[i].messages, 2));
        if (i == net->broken)
            UNIT_CHECK(nicbarrier_messages_failure(net->node[i].messages) == BROKEN);
    }
    unmake(net);
}
END_TEST

/* Words that cannot be, and the bit of a failure. */
START_TEST(wrong_words)
{
    const uint64_t words[] = {UINT64_MAX, NICBARRIER_OUTSTANDING_MAX + 10, NICBARRIER_WORD_FAILED,
                              NICBARRIER_WORD_FAILED | 2};

    for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++) {
        net_t *net = make(2, unit_seed());
        wire_t *w = &net->wire[1][0];
        for (int b = 0; b < NICBARRIER_MESSAGE_BYTES; b++)
            w->word[0][b] = (unsigned char)(words[k] >> (56 - 8 * b));
        w->n = 1;
        nicbarrier_messages_enter(net->node[0].messages, 2);
        for (int turns = 0; turns < 100; turns++)
            (void)nicbarrier_messages_progress(net->node[0].messages);
        ck_assert_int_eq(nicbarrier_messages_failure(net->node[0].messages), FAILED);
        unmake(net);
    }
}
END_TEST

int main(void)
{
    const TTest *const each[] = {nothing_is_left, failures};
    const TTest *const tests[] = {messages, wrong_words};

    return unit_run_loop("nicbarrier_messages", each, 2, 150, tests, 2);
}
