/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The order of operations of one origin on one target, played: operations are begun one after the
 * other by ways of all kinds, those of each way take effect when they may, and one that has to wait
 * does so until all have. Each reads what the last one before it has written to those bytes, and
 * what is there in the end was written last.
 */
#include "osc_nicstride/protocol/order.h"

#include <string.h>

#include "test/unit/unit.h"

enum { BYTES = 24, STEPS = 60, ROUNDS = 4000, ROW_A = NICSTRIDE_WAY_ROW + 6, ROW_B = ROW_A + 1 };

static const unsigned ways[] = {NICSTRIDE_WAY_NOW, NICSTRIDE_WAY_COMES, NICSTRIDE_WAY_TURN, ROW_A,
                                ROW_B};
enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

/** An operation, numbered from 1, that has begun and has had no effect yet. */
typedef struct step {
    unsigned way;
    bool reads;
    unsigned from, to;
    unsigned found[BYTES]; /* of a read: who must have written them */
} step_t;

typedef struct world {
    unit_random_t random;
    nicstride_order_t order;
    step_t step[STEPS + 1];
    unsigned out[STEPS]; /* under way, in their order */
    unsigned nout;
    unsigned memory[BYTES], model[BYTES];
    unsigned waits;
} world_t;

/** Must what goes by way `b` stay behind what went by `a` before, by what the ways promise? */
static bool is_behind(const step_t *a, const step_t *b)
{
    if (a->way == NICSTRIDE_WAY_COMES)
        return b->way == NICSTRIDE_WAY_COMES || b->way == NICSTRIDE_WAY_TURN;
    if (a->way == NICSTRIDE_WAY_TURN)
        return b->way == NICSTRIDE_WAY_TURN;
    return a->way == b->way && !a->reads && !b->reads;
}

static void take_effect(world_t *w, unsigned i)
{
    const unsigned number = w->out[i];
    const step_t *s = &w->step[number];

    for (unsigned k = s->from; k < s->to; k++)
        if (s->reads)
            ck_assert_uint_eq(w->memory[k], s->found[k]);
        else
            w->memory[k] = number;
    w->nout--;
    memmove(&w->out[i], &w->out[i + 1], (w->nout - i) * sizeof(w->out[0]));
}

static bool may_take_effect(const world_t *w, unsigned i)
{
    for (unsigned k = 0; k < i; k++)
        if (is_behind(&w->step[w->out[k]], &w->step[w->out[i]]))
            return false;
    return true;
}

/** Some that may, in any order. */
static void go_on(world_t *w, unsigned n)
{
    while (n-- > 0 && w->nout > 0) {
        const unsigned i = (unsigned)unit_below(&w->random, w->nout);

        if (may_take_effect(w, i))
            take_effect(w, i);
    }
}

static void land(world_t *w)
{
    while (w->nout > 0)
        go_on(w, 1);
    nicstride_order_landed(&w->order);
    ck_assert(nicstride_order_is_idle(&w->order));
}

static void begin(world_t *w, unsigned number)
{
    step_t *s = &w->step[number];

    s->way = ways[unit_below(&w->random, WAYS)];
    s->reads = unit_below(&w->random, 2) == 0;
    s->from = (unsigned)unit_below(&w->random, BYTES);
    s->to = s->from + 1 + (unsigned)unit_below(&w->random, BYTES - s->from);
    if (!s->reads && s->way == NICSTRIDE_WAY_COMES && unit_below(&w->random, 2) == 0)
        s->to = s->from + 1;
    if (nicstride_order_waits(&w->order, s->way, s->reads, s->from, s->to)) {
        w->waits++;
        land(w);
    }
    /* A put may overtake a get, which is complete before a program writes there. */
    for (unsigned k = 0; k < w->nout && !s->reads; k++) {
        const step_t *before = &w->step[w->out[k]];

        if (before->reads && before->from < s->to && s->from < before->to)
            while (w->nout > 0)
                go_on(w, 1);
    }
    memcpy(s->found, w->model, sizeof(s->found));
    for (unsigned k = s->from; k < s->to && !s->reads; k++)
        w->model[k] = number;
    w->out[w->nout++] = number;
    if (s->way == NICSTRIDE_WAY_NOW)
        take_effect(w, w->nout - 1);
    else
        nicstride_order_note(&w->order, s->way, s->reads, s->from, s->to);
}

START_TEST(random_steps)
{
    world_t w = {.nout = 0};
    unsigned waits = 0;

    w.random.state = unit_seed() + (uint64_t)_i;
    for (int round = 0; round < ROUNDS; round++) {
        memset(&w.order, 0, sizeof(w.order));
        memset(w.memory, 0, sizeof(w.memory));
        memset(w.model, 0, sizeof(w.model));
        w.nout = w.waits = 0;
        for (unsigned i = 1; i <= STEPS; i++) {
            begin(&w, i);
            go_on(&w, (unsigned)unit_below(&w.random, 3));
        }
        land(&w);
        ck_assert_mem_eq(w.memory, w.model, sizeof(w.memory));
        waits += w.waits;
    }
    ck_assert_uint_gt(waits, 0);
}
END_TEST

/** Streams of one kind never wait, whatever they write, nor do gets behind gets. */
START_TEST(streams)
{
    for (unsigned i = NICSTRIDE_WAY_COMES; i < WAYS - 1; i++) {
        nicstride_order_t o = {0};

        for (int k = 0; k < 100; k++) {
            ck_assert(!nicstride_order_waits(&o, ways[i], false, 0, 8));
            nicstride_order_note(&o, ways[i], false, 0, 8);
        }
        ck_assert(!nicstride_order_is_idle(&o));
    }
    for (unsigned i = 0; i < WAYS; i++) {
        const nicstride_order_t o = {0};

        ck_assert(!nicstride_order_waits(&o, ways[i], true, 0, UINT64_MAX));
    }
}
END_TEST

START_TEST(other_bytes)
{
    nicstride_order_t o = {0};

    nicstride_order_note(&o, NICSTRIDE_WAY_TURN, false, 100, 200);
    ck_assert(!nicstride_order_waits(&o, NICSTRIDE_WAY_NOW, true, 0, 100));
    ck_assert(!nicstride_order_waits(&o, NICSTRIDE_WAY_NOW, true, 200, 300));
    ck_assert(nicstride_order_waits(&o, NICSTRIDE_WAY_NOW, true, 0, 101));
    ck_assert(nicstride_order_waits(&o, NICSTRIDE_WAY_COMES, false, 199, 200));
    ck_assert(!nicstride_order_waits(&o, NICSTRIDE_WAY_TURN, true, 100, 200));
    nicstride_order_landed(&o);
    nicstride_order_note(&o, NICSTRIDE_WAY_TURN, false, 500, 600); /* the old span is gone */
    ck_assert(!nicstride_order_waits(&o, NICSTRIDE_WAY_NOW, true, 100, 500));
}
END_TEST

/** A get is no reason to wait, but where it waits for its turn itself. */
START_TEST(gets)
{
    nicstride_order_t o = {0};

    nicstride_order_note(&o, NICSTRIDE_WAY_TURN, true, 0, 8);
    ck_assert(nicstride_order_is_idle(&o));
    nicstride_order_note(&o, NICSTRIDE_WAY_TURN, false, 100, 108);
    nicstride_order_note(&o, ROW_A, true, 0, 8);
    ck_assert(!nicstride_order_waits(&o, NICSTRIDE_WAY_COMES, false, 0, 8));
    nicstride_order_note(&o, NICSTRIDE_WAY_TURN, true, 0, 8);
    ck_assert(nicstride_order_waits(&o, NICSTRIDE_WAY_COMES, false, 0, 8));
}
END_TEST

START_TEST(several_rows)
{
    nicstride_order_t o = {0};

    nicstride_order_note(&o, ROW_A, false, 0, 8);
    ck_assert(nicstride_order_waits(&o, ROW_A, true, 0, 8));
    ck_assert(nicstride_order_waits(&o, ROW_B, false, 0, 8));
    nicstride_order_note(&o, ROW_B, false, 8, 16);
    ck_assert(nicstride_order_waits(&o, ROW_A, false, 0, 8));
    ck_assert(nicstride_order_waits(&o, ROW_B, false, 8, 16));
    nicstride_order_landed(&o);
    nicstride_order_note(&o, ROW_B, false, 8, 16);
    ck_assert(!nicstride_order_waits(&o, ROW_B, false, 8, 16));
}
END_TEST

int main(void)
{
    return UNIT_RUN("order", UNIT_LOOP(random_steps, 0, 3), UNIT_ONCE(streams),
                    UNIT_ONCE(other_bytes), UNIT_ONCE(gets), UNIT_ONCE(several_rows));
}
