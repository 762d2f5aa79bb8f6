/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The shadow of a target's memory: against a table of all accesses to each byte; of processes that
 * access the same bytes at the same time, one at least sees the other.
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "osc_nicstride/check/shadow.h"
#include "test/unit/unit.h"

#define ORIGINS 4
#define WORLD   93 /* no whole number of granules */
#define MARKS   20000

static const nicstride_promises_t promises = {.ordered = true};

static nicstride_shadow_t make(uint64_t bytes)
{
    const size_t size = nicstride_shadow_size(bytes, ORIGINS);
    void *at = aligned_alloc(64, size);

    memset(at, 0, size);
    return nicstride_shadow_at(at, bytes, ORIGINS);
}

/* ---- the naive table ------------------------------------------------------------------------- */

typedef struct mark {
    nicstride_visit_t v;
    bool byte[WORLD];
} mark_t;

static mark_t mark[MARKS];
static int marks;

static bool naive_lasts(const nicstride_shadow_t *s, const nicstride_visit_t *v,
                        const nicstride_visit_t *by)
{
    const nicstride_ends_t *ends = &s->head->ends[v->origin];

    switch (v->lasts) {
    case NICSTRIDE_LASTS_THERE:
        return ends->there == v->tag;
    case NICSTRIDE_LASTS_HERE:
        return ends->here == v->tag;
    case NICSTRIDE_LASTS_BUFFER:
        return ends->buffer == v->tag;
    case NICSTRIDE_LASTS_POST:
        return s->head->posts == v->tag;
    default:
        return v->lasts == by->lasts && v->tag == by->tag;
    }
}

static bool naive_conflicts(const nicstride_shadow_t *s, const mark_t *m, const mark_t *by,
                            uint64_t at)
{
    return m->byte[at] && by->byte[at] && m->v.origin != by->v.origin &&
           nicstride_conflict(m->v.use, by->v.use, false, &promises) &&
           naive_lasts(s, &m->v, &by->v);
}

/* ---- against it ------------------------------------------------------------------------------ */

/** How all synchronise now, and the number of the last fence. */
static nicstride_lasts_t phase;
static uint32_t fence;

static void make_visit(unit_random_t *r, const nicstride_shadow_t *s, nicstride_visit_t *v)
{
    const nicstride_ends_t *ends;

    memset(v, 0, sizeof(*v));
    v->origin = (uint32_t)unit_below(r, ORIGINS);
    ends = &s->head->ends[v->origin];
    v->use.how = (uint8_t)unit_below(r, NICSTRIDE_SWAPS + 1);
    v->use.op = v->use.how == NICSTRIDE_UPDATES ? (uint8_t)unit_below(r, 2) : 0;
    v->use.type = v->use.how >= NICSTRIDE_UPDATES ? (uint8_t)unit_below(r, 2) : 0;
    v->buffer = unit_once_in(r, 4);
    if (v->buffer)
        v->use = (nicstride_use_t){.how = v->use.how % 2};
    if (phase == NICSTRIDE_LASTS_FENCE) {
        v->lasts = phase;
        v->tag = fence;
    } else if (v->buffer) {
        v->lasts = NICSTRIDE_LASTS_BUFFER;
        v->tag = ends->buffer;
    } else if (phase == NICSTRIDE_LASTS_POST) {
        v->lasts = phase;
        v->tag = s->head->posts;
    } else {
        v->lasts = nicstride_only_reads(v->use) ? NICSTRIDE_LASTS_HERE : NICSTRIDE_LASTS_THERE;
        v->tag = nicstride_only_reads(v->use) ? ends->here : ends->there;
    }
}

static onic_layout_t make_layout(unit_random_t *r, mark_t *m)
{
    const uint64_t block = 1 + unit_below(r, 12), count = 1 + unit_below(r, 3);
    const uint64_t stride = block + unit_below(r, 12), span = (count - 1) * stride + block;
    const uint64_t from = unit_below(r, WORLD + 1 - span);
    onic_layout_t l;

    UNIT_CHECK(onic_layout_contig(&l, (int64_t)from, block) == ONIC_LAYOUT_OK);
    UNIT_CHECK(onic_layout_repeat(&l, count, (int64_t)stride) == ONIC_LAYOUT_OK);
    memset(m->byte, 0, sizeof(m->byte));
    for (uint64_t i = 0; i < count; i++)
        memset(m->byte + from + i * stride, true, block);
    return l;
}

/** Granules of which marks may have been lost since all began anew. */
static bool lost[WORLD / NICSTRIDE_GRANULE + 1];

static bool is_in(const mark_t *m, uint64_t granule)
{
    bool in = false;

    for (uint64_t i = 0; i < NICSTRIDE_GRANULE; i++) {
        const uint64_t at = granule * NICSTRIDE_GRANULE + i;

        in = in || (at < WORLD && m->byte[at]);
    }
    return in;
}

/** Has a mark that lasts been lost where this access is, or will one be lost by it? */
static bool may_be_lost(const nicstride_shadow_t *s, const mark_t *by)
{
    bool any = false;

    for (uint64_t g = 0; g <= WORLD / NICSTRIDE_GRANULE; g++) {
        unsigned n = 0;

        if (!is_in(by, g))
            continue;
        for (int i = 0; i < marks; i++)
            n += is_in(&mark[i], g) && naive_lasts(s, &mark[i].v, &mark[i].v);
        lost[g] = lost[g] || n >= NICSTRIDE_CELLS;
        any = any || lost[g];
    }
    return any;
}

static bool naive_any(const nicstride_shadow_t *s, const mark_t *by)
{
    for (int i = 0; i < marks; i++)
        for (uint64_t at = 0; at < WORLD; at++)
            if (naive_conflicts(s, &mark[i], by, at))
                return true;
    return false;
}

static bool naive_is(const nicstride_shadow_t *s, const mark_t *by, const nicstride_crossing_t *c)
{
    for (int i = 0; i < marks; i++)
        if (mark[i].v.origin == c->other.origin && mark[i].v.use.how == c->other.use.how &&
            mark[i].v.lasts == c->other.lasts && mark[i].v.tag == c->other.tag &&
            mark[i].v.buffer == c->other.buffer && naive_conflicts(s, &mark[i], by, c->at))
            return true;
    return false;
}

static void end_of(nicstride_ends_t *ends, bool there)
{
    ends->buffer++;
    ends->here++;
    ends->there += there;
}

/** All that any has under way ends, and they go on in another way. */
static void change_phase(unit_random_t *r, const nicstride_shadow_t *s)
{
    for (int i = 0; i < ORIGINS; i++)
        end_of(&s->head->ends[i], true);
    s->head->posts++;
    fence++;
    phase = (nicstride_lasts_t[]){NICSTRIDE_LASTS_THERE, NICSTRIDE_LASTS_FENCE,
                                  NICSTRIDE_LASTS_POST}[unit_below(r, 3)];
    marks = 0;
    memset(lost, 0, sizeof(lost));
}

/** Marks that do not last any more are left out of the table, so that it stays short. */
static void end_some(unit_random_t *r, const nicstride_shadow_t *s)
{
    int n = 0;

    end_of(&s->head->ends[unit_below(r, ORIGINS)], unit_once_in(r, 2));
    for (int i = 0; i < marks; i++)
        if (naive_lasts(s, &mark[i].v, &mark[i].v))
            mark[n++] = mark[i];
    marks = n;
    if (unit_once_in(r, 10) || marks > 60)
        change_phase(r, s);
}

START_TEST(as_byte_by_byte)
{
    unit_random_t r = {unit_seed() + (uint64_t)_i};
    const nicstride_shadow_t s = make(WORLD);
    const uint64_t often = 1 + unit_below(&r, 4);
    int found = 0, sure = 0;

    fence = 0;
    change_phase(&r, &s);
    for (int i = 0; i < 3000 && marks < MARKS; i++) {
        mark_t *m = &mark[marks];
        nicstride_crossing_t crossing;
        onic_layout_t l;
        bool clear, complete;

        make_visit(&r, &s, &m->v);
        l = make_layout(&r, m);
        const bool leaves = !unit_once_in(&r, 8);
        complete = !may_be_lost(&s, m);
        clear = nicstride_shadow_visit(&s, &m->v, 0, &l, &promises, leaves, &crossing);
        if (!clear)
            UNIT_CHECK(naive_is(&s, m, &crossing));
        else if (complete)
            UNIT_CHECK(!naive_any(&s, m));
        sure += complete;
        found += !clear;
        marks += leaves;
        if (unit_once_in(&r, often))
            end_some(&r, &s);
    }
    UNIT_CHECK(found > 100 && sure > 100);
    free(s.head);
}
END_TEST

/* ---- at the same time ------------------------------------------------------------------------ */

#define ROUNDS 100000

typedef struct racer {
    const nicstride_shadow_t *s;
    _Atomic uint32_t *come;
    uint32_t origin;
    bool *clear; /* of each round */
} racer_t;

/** Waits until both have come, so often by now; they go on at the same moment, as far as that can
 *  be had. */
static void meet(_Atomic uint32_t *come, uint32_t often)
{
    atomic_fetch_add(come, 1);
    for (unsigned tries = 1; atomic_load(come) < often; tries++)
        if (tries % 4096 == 0)
            sched_yield();
}

static void *race(void *arg)
{
    racer_t *me = arg;
    unit_random_t r = {unit_seed() + me->origin};
    onic_layout_t byte;

    UNIT_CHECK(onic_layout_contig(&byte, 0, 1) == ONIC_LAYOUT_OK);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        const nicstride_visit_t v = {.origin = me->origin,
                                     .use = {.how = NICSTRIDE_WRITES},
                                     .lasts = NICSTRIDE_LASTS_FENCE,
                                     .tag = i + 1};
        nicstride_crossing_t crossing;

        /* Each has a cell by then: they do not meet at one that both want to have. */
        UNIT_CHECK(
            nicstride_shadow_visit(me->s, &v, me->origin, &byte, &promises, true, &crossing));
        meet(me->come, 4 * i + 2);
        /* The one that has waited learns later that it need not. */
        for (volatile uint64_t left = unit_below(&r, 200); left > 0; left = left - 1)
            ;
        me->clear[i] = nicstride_shadow_visit(me->s, &v, 7, &byte, &promises, true, &crossing);
        /* Nobody is in the next epoch before. */
        meet(me->come, 4 * i + 4);
    }
    return NULL;
}

START_TEST(one_of_two_sees_the_other)
{
    static bool clear[2][ROUNDS];
    static _Atomic uint32_t come;
    const nicstride_shadow_t s = make(64);
    pthread_t thread[2];
    racer_t racer[2];

    for (uint32_t i = 0; i < 2; i++) {
        racer[i] = (racer_t){&s, &come, i, clear[i]};
        UNIT_CHECK(pthread_create(&thread[i], NULL, race, &racer[i]) == 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < ROUNDS; i++)
        UNIT_CHECK(!clear[0][i] || !clear[1][i]);
    free(s.head);
}
END_TEST

int main(void)
{
    return UNIT_RUN("shadow", UNIT_LOOP(as_byte_by_byte, 0, 20),
                    UNIT_ONCE(one_of_two_sees_the_other));
}
