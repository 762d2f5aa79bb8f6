/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Fences of simulated processes of one or several nodes, between which messages take any time,
 * those of one sender in order: nobody leaves a fence before all have entered, all know whether
 * anybody has entered with a mark, who is done is seen to be so, and where a process has died, at
 * any point, all others come to an end. Few processes on one node, in all orders, with what they
 * put to each other: test/explore/fence.
 */
#include "osc_nicstride/protocol/fence.h"

#include <stdlib.h>
#include <string.h>

#include "test/unit/unit.h"

START_TEST(steps)
{
    ck_assert_uint_eq(nicstride_fence_steps(1), 0);
    ck_assert_uint_eq(nicstride_fence_steps(2), 1);
    ck_assert_uint_eq(nicstride_fence_steps(3), 2);
    ck_assert_uint_eq(nicstride_fence_steps(4), 2);
    ck_assert_uint_eq(nicstride_fence_steps(5), 3);
    ck_assert_uint_eq(nicstride_fence_steps(256), 8);
    ck_assert_uint_eq(nicstride_fence_steps(257), 9);
}
END_TEST

enum { MAX_NODES = 6, MAX_ON_NODE = 9, FENCES = 10, MAX_FAR = 4 * MAX_NODES * FENCES };

typedef struct far_message {
    int from, to; /* nodes */
    unsigned step;
    uint32_t number;
    bool bad;
    int error;
} far_message_t;

typedef struct member {
    nicstride_fence_t fence;
    bool in_fence, dead, bad;
    int fences; /* it has entered */
} member_t;

typedef struct cluster {
    unit_random_t *r;
    int nodes;
    int on[MAX_NODES];
    member_t p[MAX_NODES][MAX_ON_NODE];
    char *boards[MAX_NODES];
    far_message_t queue[MAX_FAR];
    int queued, dead;
    uint32_t first;
    bool bad[FENCES + 1]; /* an operation before that fence has failed */
} cluster_t;

static void open_cluster(cluster_t *c, unit_random_t *r, uint32_t first)
{
    memset(c, 0, sizeof(*c));
    c->r = r;
    c->first = first;
    c->nodes = 1 + (int)unit_below(r, MAX_NODES);
    for (int k = 0; k < c->nodes; k++) {
        const int n = c->on[k] = 1 + (int)unit_below(r, c->nodes == 1 ? MAX_ON_NODE : 4);
        const size_t next = nicstride_fence_board_bytes(n, c->nodes);
        const size_t flags = next / sizeof(nicstride_fence_flag_t);

        c->boards[k] = aligned_alloc(64, next * (size_t)n);
        ck_assert_ptr_nonnull(c->boards[k]);
        memset(c->boards[k], 0, next * (size_t)n);
        for (int i = 0; i < n; i++) {
            nicstride_fence_board_t *b = (void *)(c->boards[k] + (size_t)i * next);

            c->p[k][i].fence = (nicstride_fence_t){.n = n,
                                                   .me = i,
                                                   .nodes = c->nodes,
                                                   .node = k,
                                                   .board = c->boards[k],
                                                   .next = next,
                                                   .number = first};
            b->over.number = b->done.number = first;
            for (size_t s = 0; s < flags - sizeof(*b) / sizeof(nicstride_fence_flag_t); s++)
                b->step[s].number = first;
        }
    }
}

static void close_cluster(cluster_t *c)
{
    for (int k = 0; k < c->nodes; k++)
        free(c->boards[k]);
}

static void send_far(cluster_t *c, const nicstride_fence_t *f)
{
    far_message_t m = {
        .from = f->node, .number = f->number, .bad = f->marked, .error = nicstride_fence_lost(f)};

    m.to = nicstride_fence_to(f, &m.step);
    ck_assert_int_ne(m.to, f->node);
    ck_assert_int_lt(c->queued, MAX_FAR);
    c->queue[c->queued++] = m;
}

/** Any that no other of the same sender to the same receiver stands before. */
static void deliver(cluster_t *c)
{
    far_message_t m = c->queue[unit_below(c->r, (uint64_t)c->queued)];
    int i = 0;

    while (c->queue[i].from != m.from || c->queue[i].to != m.to)
        i++;
    m = c->queue[i];
    memmove(&c->queue[i], &c->queue[i + 1], (size_t)(--c->queued - i) * sizeof(m));
    if (!c->p[m.to][0].dead)
        nicstride_fence_receive(&c->p[m.to][0].fence, m.step, m.number, m.bad, m.error);
}

/** Does the process find out now that one for whom it waits is dead? Of its own node it may ask
 *  anybody, of others only the one that is to send. */
static bool finds_loss(const cluster_t *c, const nicstride_fence_t *f)
{
    const int from = nicstride_fence_from(f);
    bool dead = from >= 0 && c->p[from >= 0 ? from : 0][0].dead;

    for (int i = 0; i < f->n && from < 0; i++)
        dead = dead || c->p[f->node][i].dead;
    return dead && unit_once_in(c->r, 5);
}

static void check_over(const cluster_t *c, const member_t *p)
{
    const nicstride_fence_t *f = &p->fence;

    UNIT_CHECK(f->marked || !c->bad[p->fences]);
    for (int k = 0; k < c->nodes; k++)
        for (int i = 0; i < c->on[k]; i++)
            UNIT_CHECK(c->p[k][i].fences >= p->fences);
    if (f->marked)
        nicstride_fence_set_done(f);
    for (int i = 0; i < f->n && f->marked && c->dead == 0; i++) {
        const member_t *other = &c->p[f->node][i];

        UNIT_CHECK(nicstride_fence_is_done(f, i, f->number) ==
                   (other == p || other->fences > p->fences || !other->in_fence));
    }
}

static void go_on(cluster_t *c, member_t *p)
{
    switch (nicstride_fence_next(&p->fence)) {
    case NICSTRIDE_FENCE_SEND:
        send_far(c, &p->fence);
        break;
    case NICSTRIDE_FENCE_WAIT:
        if (finds_loss(c, &p->fence))
            nicstride_fence_lose(&p->fence, 7);
        break;
    case NICSTRIDE_FENCE_OVER:
        check_over(c, p);
        p->in_fence = false;
        break;
    case NICSTRIDE_FENCE_LOST:
        UNIT_CHECK(c->dead > 0);
        p->in_fence = false;
        break;
    }
}

static void enter_next(cluster_t *c, member_t *p)
{
    const bool bad = unit_once_in(c->r, 6);

    p->fences++;
    c->bad[p->fences] = bad || c->bad[p->fences];
    nicstride_fence_begin(&p->fence, bad);
    p->in_fence = true;
}

static bool cluster_is_over(const cluster_t *c)
{
    for (int k = 0; k < c->nodes; k++) {
        for (int i = 0; i < c->on[k]; i++) {
            const member_t *p = &c->p[k][i];

            if (!p->dead && (p->in_fence || p->fences < FENCES))
                return false;
        }
    }
    return true;
}

static void run_cluster(unit_random_t *r, uint32_t first, int deaths)
{
    cluster_t c;
    long turns = 0;

    open_cluster(&c, r, first);
    while (!cluster_is_over(&c)) {
        const int k = (int)unit_below(r, (uint64_t)c.nodes);
        member_t *p = &c.p[k][unit_below(r, (uint64_t)c.on[k])];

        if (c.queued > 0 && unit_once_in(r, 4))
            deliver(&c);
        if (c.dead < deaths && !p->dead && unit_once_in(r, 200)) {
            p->dead = true;
            c.dead++;
        }
        if (!p->dead && p->in_fence)
            go_on(&c, p);
        else if (!p->dead && p->fences < FENCES && unit_once_in(r, 4))
            enter_next(&c, p);
        ck_assert_msg(++turns < 10000000, "a fence never ends: %d nodes, %d dead", c.nodes, c.dead);
    }
    close_cluster(&c);
}

/* Numbers wrap, in 32 bits and in the sign. */
START_TEST(all_enter)
{
    static const uint32_t first[] = {0, UINT32_MAX - FENCES / 2, INT32_MAX - FENCES / 2};
    unit_random_t r = {unit_seed()};

    for (int i = 0; i < 600; i++)
        run_cluster(&r, first[i % 3], 0);
}
END_TEST

START_TEST(deaths)
{
    unit_random_t r = {unit_seed()};

    for (int i = 0; i < 1000; i++)
        run_cluster(&r, 0, 1 + i % 3);
}
END_TEST

int main(void)
{
    return UNIT_RUN("fence", UNIT_ONCE(steps), UNIT_ONCE(all_enter), UNIT_ONCE(deaths));
}
