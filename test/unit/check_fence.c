/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Fences by flags and counts: simulated processes in any order, with puts by message that arrive
 * late and in any order beside direct ones. Nobody leaves a fence before all that
 * was put into its memory is there, and nothing of a later epoch is overwritten by an earlier one.
 * Then nodes, between which messages take any time, those of one sender in order: nobody leaves a
 * fence before all have entered, all know whether anybody's operation had failed, and where a
 * process has died, at any point, all others come to an end.
 */
#include "osc_nicstride/protocol/fence.h"

#include <stdlib.h>
#include <string.h>

#include "test/unit/unit.h"

#define MAX_N        9
#define MAX_MESSAGES 64
#define SLOTS        4
#define EPOCHS       40

/** A put on its way: the number of its epoch for one place. */
typedef struct message {
    int from;
    int slot;
    uint32_t epoch;
} message_t;

typedef struct process {
    nicstride_fence_t fence;
    bool in_fence;
    uint32_t fenced;          /* the last fence that had a mark */
    int slow;                 /* it has its turn once in so many */
    uint32_t memory[SLOTS];   /* the epoch that was put last */
    uint32_t expected[SLOTS]; /* the highest that was ever put, */
    uint32_t before[SLOTS];   /* and the highest below it */
    message_t queue[MAX_MESSAGES];
    int queued;
    uint64_t sent[MAX_N];    /* to each, in all */
    uint64_t applied[MAX_N]; /* of each, in all */
    uint64_t counts[MAX_N];  /* what each has written here */
} process_t;

typedef struct world {
    unit_random_t *r;
    int n;
    uint64_t seldom; /* one put in so many goes by a message */
    process_t p[MAX_N];
    char *boards;
    size_t next;
} world_t;

static void open_world(world_t *w, unit_random_t *r, uint32_t first)
{
    memset(w, 0, sizeof(*w));
    w->r = r;
    w->n = 1 + (int)unit_below(r, MAX_N);
    w->seldom = unit_once_in(r, 2) ? 2 : 100;
    w->next = nicstride_fence_board_bytes(w->n, 1);
    w->boards = aligned_alloc(64, w->next * (size_t)w->n);
    ck_assert_ptr_nonnull(w->boards);
    memset(w->boards, 0, w->next * (size_t)w->n);
    for (int i = 0; i < w->n; i++) {
        nicstride_fence_t *f = &w->p[i].fence;

        *f = (nicstride_fence_t){
            .n = w->n, .me = i, .nodes = 1, .board = w->boards, .next = w->next};
        w->p[i].slow = unit_once_in(r, 3) ? 30 : 1;
        /* As if so many fences had been before. */
        w->p[i].fenced = f->number = first;
        nicstride_fence_set_done(f);
        for (unsigned s = 0; s < nicstride_fence_steps(w->n); s++)
            nicstride_fence_board(f, i)->step[s].number = first;
    }
}

/** Puts the number of the epoch, if the target is done with the last one. */
static void put(world_t *w, int from, int to, uint32_t first)
{
    process_t *o = &w->p[from], *t = &w->p[to];
    const int slot = (int)unit_below(w->r, SLOTS);
    const uint32_t epoch = o->fence.number - first + 1;

    if (!nicstride_fence_is_done(&o->fence, to, o->fenced))
        return;
    if (t->expected[slot] != epoch) {
        t->before[slot] = t->expected[slot];
        t->expected[slot] = epoch;
    }
    if (t->queued < MAX_MESSAGES && unit_once_in(w->r, w->seldom)) {
        t->queue[t->queued++] = (message_t){from, slot, epoch};
        o->sent[to]++;
    } else {
        UNIT_CHECK(t->memory[slot] <= epoch);
        t->memory[slot] = epoch;
    }
}

/** One of the messages that have come takes effect; in any order. */
static void apply(world_t *w, process_t *t)
{
    const int i = (int)unit_below(w->r, (uint64_t)t->queued);
    const message_t m = t->queue[i];

    t->queue[i] = t->queue[--t->queued];
    UNIT_CHECK(t->memory[m.slot] <= m.epoch);
    t->memory[m.slot] = m.epoch;
    t->applied[m.from]++;
}

static void enter(world_t *w, int me)
{
    process_t *p = &w->p[me];
    bool sent = false;

    for (int t = 0; t < w->n; t++) {
        sent = sent || w->p[t].counts[me] != p->sent[t];
        w->p[t].counts[me] = p->sent[t];
    }
    nicstride_fence_begin(&p->fence, sent);
    p->in_fence = true;
}

/** Leaves the fence if it may. */
static void try_to_leave(world_t *w, process_t *p, uint32_t first)
{
    const uint32_t ended = p->fence.number - first;

    if (nicstride_fence_next(&p->fence) != NICSTRIDE_FENCE_OVER)
        return;
    for (int i = 0; i < w->n; i++) {
        UNIT_CHECK((int32_t)(w->p[i].fence.number - p->fence.number) >= 0);
        if (p->fence.marked && p->applied[i] < p->counts[i])
            return;
    }
    /* Others may have begun the next epoch. */
    for (int i = 0; i < SLOTS; i++)
        UNIT_CHECK(p->memory[i] >= (p->expected[i] <= ended ? p->expected[i] : p->before[i]));
    p->in_fence = false;
    if (p->fence.marked) {
        nicstride_fence_set_done(&p->fence);
        p->fenced = p->fence.number;
    }
}

static void turn(world_t *w, int me, uint32_t first)
{
    process_t *p = &w->p[me];

    if (p->queued > 0 && unit_once_in(w->r, 3))
        apply(w, p);
    else if (p->in_fence)
        try_to_leave(w, p, first);
    else if (p->fence.number - first < EPOCHS && unit_once_in(w->r, 4))
        enter(w, me);
    else if (p->fence.number - first < EPOCHS)
        put(w, me, (int)unit_below(w->r, (uint64_t)w->n), first);
}

static bool all_over(const world_t *w, uint32_t first)
{
    for (int i = 0; i < w->n; i++)
        if (w->p[i].in_fence || w->p[i].fence.number - first < EPOCHS)
            return false;
    return true;
}

static void run_world(unit_random_t *r, uint32_t first)
{
    world_t w;
    long turns = 0;

    open_world(&w, r, first);
    while (!all_over(&w, first)) {
        const int me = (int)unit_below(r, (uint64_t)w.n);

        if (unit_once_in(r, (uint64_t)w.p[me].slow))
            turn(&w, me, first);
        ck_assert_msg(++turns < 10000000, "a fence never ends");
    }
    for (int i = 0; i < w.n; i++)
        UNIT_CHECK(w.p[i].queued == 0);
    free(w.boards);
}

/* Numbers wrap, in 32 bits and in the sign. */
START_TEST(any_order)
{
    static const uint32_t first[] = {0, UINT32_MAX - EPOCHS / 2, INT32_MAX - EPOCHS / 2};
    unit_random_t r = {unit_seed()};

    for (int i = 0; i < 150; i++)
        run_world(&r, first[i % 3]);
}
END_TEST

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

/* ---- nodes ----------------------------------------------------------------------------------- */

enum { MAX_NODES = 6, MAX_ON_NODE = 4, FAR = 10, MAX_FAR = 4 * MAX_NODES * FAR };

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
    bool bad[FAR + 1]; /* an operation before that fence has failed */
} cluster_t;

static void open_cluster(cluster_t *c, unit_random_t *r, uint32_t first)
{
    memset(c, 0, sizeof(*c));
    c->r = r;
    c->first = first;
    c->nodes = 2 + (int)unit_below(r, MAX_NODES - 1);
    for (int k = 0; k < c->nodes; k++) {
        const int n = c->on[k] = 1 + (int)unit_below(r, MAX_ON_NODE);
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
            b->over.number = first;
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
    UNIT_CHECK(p->fence.marked || !c->bad[p->fences]);
    for (int k = 0; k < c->nodes; k++)
        for (int i = 0; i < c->on[k]; i++)
            UNIT_CHECK(c->p[k][i].fences >= p->fences);
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

            if (!p->dead && (p->in_fence || p->fences < FAR))
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
        else if (!p->dead && p->fences < FAR && unit_once_in(r, 4))
            enter_next(&c, p);
        ck_assert_msg(++turns < 10000000, "a fence never ends: %d nodes, %d dead", c.nodes, c.dead);
    }
    close_cluster(&c);
}

START_TEST(over_nodes)
{
    unit_random_t r = {unit_seed()};

    for (int i = 0; i < 300; i++)
        run_cluster(&r, i % 2 ? 0 : UINT32_MAX - FAR / 2, 0);
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
    return UNIT_RUN("fence", UNIT_ONCE(any_order), UNIT_ONCE(steps), UNIT_ONCE(over_nodes),
                    UNIT_ONCE(deaths));
}
