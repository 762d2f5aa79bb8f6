/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Calls under way, and what a new one conflicts with: against a table of all bytes of all calls.
 */
#include <string.h>

#include "osc_nicstride/check/under_way.h"
#include "test/unit/unit.h"

#define TARGETS 3
#define PLACES  (TARGETS + 1) /* the last: buffers here */
#define WORLD   160
#define CALLS   400

/* ---- layouts --------------------------------------------------------------------------------- */

/** A layout, and how often it names each byte of a place. */
typedef struct sample {
    onic_layout_t l;
    int64_t base;
    int times[WORLD];
} sample_t;

static int64_t between(unit_random_t *r, int64_t low, int64_t high)
{
    return low + (int64_t)unit_below(r, (uint64_t)(high - low + 1));
}

static void count(sample_t *s)
{
    onic_cursor_t c;
    int64_t offset;
    uint64_t len;

    memset(s->times, 0, sizeof(s->times));
    onic_cursor_init(&c, &s->l, 0);
    while (onic_cursor_next(&c, UINT64_MAX, &offset, &len))
        for (uint64_t i = 0; i < len; i++)
            s->times[s->base + offset + (int64_t)i]++;
}

/** Nested strides, some of them negative or overlapping, or a list of runs. */
static void make_layout(unit_random_t *r, onic_layout_t *l)
{
    onic_runs_t runs = {0};

    UNIT_CHECK(onic_layout_contig(l, between(r, 0, 9), unit_below(r, 12)) == ONIC_LAYOUT_OK);
    if (unit_once_in(r, 3)) {
        for (int i = 0; i < 4; i++)
            UNIT_CHECK(onic_runs_add(&runs, (onic_run_t){between(r, -20, 40), unit_below(r, 6),
                                                         unit_below(r, 4), between(r, -9, 9)}) ==
                       ONIC_LAYOUT_OK);
        UNIT_CHECK(onic_layout_from_runs(l, &runs, 1) == ONIC_LAYOUT_OK);
    }
    for (uint64_t levels = unit_below(r, 3); levels > 0; levels--)
        UNIT_CHECK(onic_layout_repeat(l, 1 + unit_below(r, 4), between(r, -25, 25)) ==
                   ONIC_LAYOUT_OK);
}

static void make_sample(unit_random_t *r, sample_t *s)
{
    make_layout(r, &s->l);
    while (s->l.ub - s->l.lb > WORLD) {
        onic_layout_fini(&s->l);
        make_layout(r, &s->l);
    }
    s->base = between(r, -s->l.lb, WORLD - s->l.ub);
    count(s);
}

static nicstride_use_t make_use(unit_random_t *r)
{
    nicstride_use_t use = {.how = (uint8_t)unit_below(r, NICSTRIDE_SWAPS + 1)};

    use.op = use.how == NICSTRIDE_UPDATES ? (uint8_t)unit_below(r, 2) : 0;
    use.type = use.how >= NICSTRIDE_UPDATES ? (uint8_t)unit_below(r, 2) : 0;
    return use;
}

/* ---- the naive table ------------------------------------------------------------------------- */

typedef struct entry {
    nicstride_noted_t call;
    struct {
        nicstride_use_t use;
        int times[WORLD];
        bool there;
    } in[PLACES][2];
    bool over_here, over_there;
} entry_t;

static entry_t table[CALLS];
static int entries;

static bool naive_over(const entry_t *e, bool here)
{
    return e->over_there || ((here || nicstride_only_reads(e->call.use)) && e->over_here);
}

/** Does an access conflict at a byte with this call? */
static bool naive_at(const entry_t *e, bool itself, int place, int64_t at, nicstride_use_t use,
                     const nicstride_promises_t *p)
{
    bool found = false;

    for (int i = 0; i < 2 && !naive_over(e, place == TARGETS); i++) {
        const bool wrong =
            itself ? !nicstride_only_reads(use) || !nicstride_only_reads(e->in[place][i].use)
                   : nicstride_conflict(use, e->in[place][i].use, true, p);

        found = found || (e->in[place][i].there && e->in[place][i].times[at] > 0 && wrong);
    }
    return found;
}

static bool naive_conflict(int place, const sample_t *s, nicstride_use_t use,
                           const nicstride_promises_t *p)
{
    bool found = false;

    for (int64_t at = 0; at < WORLD && !found; at++) {
        found = s->times[at] > 1 && !nicstride_only_reads(use);
        for (int i = 0; i < entries && s->times[at] > 0 && !found; i++)
            found = naive_at(&table[i], i == entries - 1, place, at, use, p);
    }
    return found;
}

static void check_clash(const nicstride_clash_t *clash, int place, const sample_t *s,
                        nicstride_use_t use, const nicstride_promises_t *p)
{
    const bool expected = naive_conflict(place, s, use, p);

    UNIT_CHECK(clash->found == expected);
    if (!expected)
        return;
    UNIT_CHECK(clash->at >= 0 && clash->at < WORLD && s->times[clash->at] > 0);
    if (clash->itself)
        return;
    for (int i = 0; i < entries; i++)
        if (table[i].call.number == clash->with.number) {
            UNIT_CHECK(naive_at(&table[i], false, place, clash->at, use, p));
            return;
        }
    ck_abort_msg("no such call");
}

/* ---- against it ------------------------------------------------------------------------------ */

static void add(unit_random_t *r, nicstride_under_way_t *w, int place, nicstride_use_t use, int nth)
{
    entry_t *e = &table[entries - 1];
    nicstride_clash_t clash;
    sample_t s;

    make_sample(r, &s);
    UNIT_CHECK(nicstride_under_way_add(w, place == TARGETS ? NICSTRIDE_HERE : (uint32_t)place,
                                       s.base, &s.l, use, &clash));
    check_clash(&clash, place, &s, use, &w->promises);
    e->in[place][nth].use = use;
    e->in[place][nth].there = true;
    memcpy(e->in[place][nth].times, s.times, sizeof(s.times));
    onic_layout_fini(&s.l);
}

static void call(unit_random_t *r, nicstride_under_way_t *w)
{
    static const nicstride_use_t buffers[] = {{.how = NICSTRIDE_READS}, {.how = NICSTRIDE_WRITES}};
    entry_t *e = &table[entries++];

    memset(e, 0, sizeof(*e));
    e->call = (nicstride_noted_t){.name = "call",
                                  .target = (uint32_t)unit_below(r, TARGETS),
                                  .use = make_use(r),
                                  .has_request = unit_once_in(r, 4)};
    e->call.number = nicstride_under_way_call(w, &e->call);
    add(r, w, (int)e->call.target, e->call.use, 0);
    if (unit_once_in(r, 2))
        add(r, w, TARGETS, buffers[unit_below(r, 2)], 0);
    if (unit_once_in(r, 4))
        add(r, w, TARGETS, buffers[1], 1);
}

static void end_some(unit_random_t *r, nicstride_under_way_t *w)
{
    const bool all = unit_once_in(r, 4), here = unit_once_in(r, 2);
    const uint32_t target = all ? UINT32_MAX : (uint32_t)unit_below(r, TARGETS);

    nicstride_under_way_over(w, target, here);
    for (int i = 0; i < entries; i++)
        if (all || table[i].call.target == target) {
            table[i].over_here = table[i].over_here || here;
            table[i].over_there = table[i].over_there || !here;
        }
}

static void return_one(unit_random_t *r, nicstride_under_way_t *w)
{
    entry_t *e = entries > 0 ? &table[unit_below(r, (uint64_t)entries)] : NULL;

    if (e == NULL || !e->call.has_request)
        return;
    nicstride_under_way_returned(w, e->call.number);
    e->over_here = true;
}

START_TEST(as_byte_by_byte)
{
    unit_random_t r = {unit_seed() + (uint64_t)_i};
    nicstride_under_way_t w;
    const uint64_t often = 2 + unit_below(&r, 30);

    UNIT_CHECK(nicstride_under_way_init(&w, TARGETS, 1 << 16));
    w.promises.same_op = unit_once_in(&r, 2);
    w.promises.ordered = unit_once_in(&r, 2);
    entries = 0;
    while (entries < CALLS) {
        call(&r, &w);
        if (unit_once_in(&r, often))
            end_some(&r, &w);
        if (unit_once_in(&r, 3))
            return_one(&r, &w);
    }
    nicstride_under_way_fini(&w);
}
END_TEST

/* ---- sizes and room -------------------------------------------------------------------------- */

static const nicstride_use_t put = {.how = NICSTRIDE_WRITES}, get = {.how = NICSTRIDE_READS};

static bool enter(nicstride_under_way_t *w, uint32_t target, int64_t at, onic_layout_t l,
                  nicstride_use_t use, nicstride_clash_t *clash)
{
    (void)nicstride_under_way_call(w,
                                   &(nicstride_noted_t){.name = "x", .target = target, .use = use});
    return nicstride_under_way_add(w, target, at, &l, use, clash);
}

static onic_layout_t column(uint64_t rows, int64_t row, uint64_t block)
{
    onic_layout_t l;

    UNIT_CHECK(onic_layout_contig(&l, 0, block) == ONIC_LAYOUT_OK);
    UNIT_CHECK(onic_layout_repeat(&l, rows, row) == ONIC_LAYOUT_OK);
    return l;
}

/** What is met again and again, or over, takes neither room nor, with that, time. */
START_TEST(room_is_bounded_by_what_is_under_way)
{
    nicstride_under_way_t w;
    nicstride_clash_t clash;
    bool kept = true;

    UNIT_CHECK(nicstride_under_way_init(&w, 2, 1024));
    UNIT_CHECK(enter(&w, 1, 0, column(1, 0, 8), put, &clash));
    for (int i = 0; i < 100000; i++) /* a counter in one epoch */
        kept = kept && enter(&w, 0, 0, column(1, 0, 8), get, &clash) && !clash.found;
    UNIT_CHECK(kept && w.n < 8);
    for (int i = 0; i < 100000; i++) { /* many epochs, beside one that stays open */
        kept = kept && enter(&w, 0, 0, column(1, 0, 8), put, &clash) && clash.found == (i == 0);
        nicstride_under_way_over(&w, 0, false);
    }
    UNIT_CHECK(kept && w.n < 512);
    UNIT_CHECK(enter(&w, 1, 4, column(1, 0, 8), put, &clash) && clash.found && clash.at >= 4);
    nicstride_under_way_fini(&w);
}
END_TEST

/** Equal blocks are kept once, but not where they end at different times, or are not for the same.
 */
START_TEST(equal_blocks_keep_what_differs)
{
    static const nicstride_use_t peek = {NICSTRIDE_PEEKS, 0, 1}, sum = {NICSTRIDE_UPDATES, 1, 1};
    nicstride_under_way_t w;
    nicstride_clash_t clash;
    onic_layout_t l = column(1, 0, 8);
    uint64_t number;

    UNIT_CHECK(nicstride_under_way_init(&w, 1, 64));
    UNIT_CHECK(enter(&w, 0, 0, l, peek, &clash) && !clash.found);
    UNIT_CHECK(enter(&w, 0, 0, l, get, &clash) && !clash.found);
    UNIT_CHECK(enter(&w, 0, 0, l, sum, &clash) && clash.found && clash.with.use.how == get.how);
    nicstride_under_way_over(&w, 0, false);
    UNIT_CHECK(enter(&w, 0, 0, l, get, &clash) && !clash.found);
    number = nicstride_under_way_call(
        &w, &(nicstride_noted_t){.name = "x", .use = get, .has_request = true});
    UNIT_CHECK(nicstride_under_way_add(&w, 0, 0, &l, get, &clash) && !clash.found);
    nicstride_under_way_returned(&w, number);
    UNIT_CHECK(enter(&w, 0, 0, l, put, &clash) && clash.found && clash.with.number < number);
    nicstride_under_way_fini(&w);
}
END_TEST

START_TEST(full_says_so_and_recovers)
{
    nicstride_under_way_t w;
    nicstride_clash_t clash;
    int n = 0;

    UNIT_CHECK(nicstride_under_way_init(&w, 2, 256));
    while (enter(&w, 0, 16 * n, column(1, 0, 8), put, &clash) && n < 1000)
        n++;
    UNIT_CHECK(n >= 254 && n <= 256 && w.full);
    UNIT_CHECK(!enter(&w, 1, 0, column(1, 0, 8), put, &clash) && !clash.found);
    nicstride_under_way_over(&w, 0, false);
    UNIT_CHECK(!w.full);
    UNIT_CHECK(enter(&w, 0, 0, column(1, 0, 8), put, &clash) && !clash.found);
    UNIT_CHECK(enter(&w, 0, 7, column(1, 0, 1), get, &clash) && clash.found && clash.at == 7);
    nicstride_under_way_fini(&w);
}
END_TEST

/* A call that is refused conflicts with nothing, and leaves nothing under way. */
START_TEST(refused)
{
    nicstride_under_way_t w;
    nicstride_clash_t clash;

    UNIT_CHECK(nicstride_under_way_init(&w, 2, 64));
    UNIT_CHECK(enter(&w, 0, 0, column(1, 0, 8), put, &clash) && !clash.found);
    UNIT_CHECK(enter(&w, 0, 0, column(1, 0, 16), put, &clash) && clash.found);
    nicstride_under_way_refused(&w, w.last);
    UNIT_CHECK(enter(&w, 0, 8, column(1, 0, 8), put, &clash) && !clash.found);
    UNIT_CHECK(enter(&w, 0, 4, column(1, 0, 1), put, &clash) && clash.with.number == 1);
    UNIT_CHECK(enter(&w, 1, 0, column(2, 4, 8), put, &clash) && clash.itself);
    UNIT_CHECK(w.busy == 2);
    nicstride_under_way_refused(&w, w.last);
    UNIT_CHECK(w.busy == 1);
    nicstride_under_way_refused(&w, 2); /* later calls are under way */
    UNIT_CHECK(w.busy == 1);
    nicstride_under_way_over(&w, 0, false);
    UNIT_CHECK(w.busy == 0);
    nicstride_under_way_fini(&w);
}
END_TEST

START_TEST(out_of_the_address_space)
{
    nicstride_under_way_t w;
    nicstride_clash_t clash;

    UNIT_CHECK(nicstride_under_way_init(&w, 1, 64));
    UNIT_CHECK(enter(&w, 0, INT64_MAX - 8, column(1, 0, 8), put, &clash) && !clash.found);
    UNIT_CHECK(enter(&w, 0, INT64_MAX - 1, column(1, 0, 2), put, &clash) && !clash.found);
    UNIT_CHECK(enter(&w, 0, -4, column(1, 0, 8), put, &clash) && !clash.found);
    UNIT_CHECK(enter(&w, 0, INT64_MAX - 1, column(1, 0, 1), put, &clash) && clash.found);
    nicstride_under_way_fini(&w);
}
END_TEST

/* ---- the rule -------------------------------------------------------------------------------- */

/** By how: reads, writes, sum of one type, product of it, sum of another, peeks, swaps. */
static const nicstride_use_t uses[] = {{NICSTRIDE_READS, 0, 0},   {NICSTRIDE_WRITES, 0, 0},
                                       {NICSTRIDE_UPDATES, 1, 1}, {NICSTRIDE_UPDATES, 2, 1},
                                       {NICSTRIDE_UPDATES, 1, 2}, {NICSTRIDE_PEEKS, 0, 1},
                                       {NICSTRIDE_SWAPS, 0, 1}};

#define USES (sizeof(uses) / sizeof(uses[0]))

/* r: at any rate; o: unless ordered; a: of two origins, or not ordered, where also MPI_NO_OP must
 * be the same operation; else they may meet. */
static const char rule[USES][USES + 1] = {"-rrrr-r", "rrrrrrr", "rr-ora-", "rro-ra-",
                                          "rrrr-rr", "-raar--", "rr--r--"};

START_TEST(what_conflicts)
{
    for (int promised = 0; promised < 4; promised++)
        for (int one = 0; one < 2; one++)
            for (size_t i = 0; i < USES; i++)
                for (size_t j = 0; j < USES; j++) {
                    const nicstride_promises_t p = {.same_op = promised & 1,
                                                    .ordered = promised & 2};
                    const bool ordered = one && p.ordered;
                    const char c = rule[i][j];

                    UNIT_CHECK(nicstride_conflict(uses[i], uses[j], one, &p) ==
                               (c == 'r' || (c == 'o' && !ordered) ||
                                (c == 'a' && !ordered && p.same_op)));
                }
}
END_TEST

int main(void)
{
    unit_in_one_process();
    return UNIT_RUN("under_way", UNIT_ONCE(what_conflicts), UNIT_LOOP(as_byte_by_byte, 0, 60),
                    UNIT_ONCE(room_is_bounded_by_what_is_under_way),
                    UNIT_ONCE(equal_blocks_keep_what_differs), UNIT_ONCE(full_says_so_and_recovers),
                    UNIT_ONCE(refused), UNIT_ONCE(out_of_the_address_space));
}
