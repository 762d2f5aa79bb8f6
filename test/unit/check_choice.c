/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The choice of methods, with the default numbers, on machines of our own making; and what
 * is noted of transfers that are watched. */
#include <math.h>

#include "common/model/watch.h"
#include "osc_nicstride/methods/plan.h"
#include "common/mover/pipe/chunks.h"
#include "test/unit/method_rows.h"
#include "test/unit/unit.h"

/* ---- machines -------------------------------------------------------------------------------- */

/** What a transfer takes: so much, and so much for a byte, nanoseconds. */
typedef struct line {
    double first, byte;
} line_t;

/** Figures in the order of size of measured ones. */
typedef struct machine {
    line_t copy, unlucky; /**< single copy, and of one in `often` where both ends lie badly */
    unsigned often;       /**< 0: of none */
    line_t messages, slots;
} machine_t;

static const machine_t near_ones = {{2700, 0.05}, {0, 0}, 0, {600, 0.07}, {900, 0.03}};
static const machine_t far_ones = {{2700, 0.05}, {0, 0}, 0, {1400, 0.09}, {1800, 0.16}};
static const machine_t slow_copy = {{6000, 0.35}, {0, 0}, 0, {600, 0.08}, {900, 0.05}};
static const machine_t fast_copy = {{400, 0.02}, {0, 0}, 0, {2500, 0.2}, {3500, 0.1}};
static const machine_t aliasing = {{2700, 0.05}, {2700, 0.4}, 2, {600, 0.15}, {900, 0.09}};
static const machine_t seldom = {{2700, 0.05}, {2700, 0.4}, 20, {600, 0.15}, {900, 0.09}};
static const machine_t *const machines[] = {&near_ones, &far_ones, &slow_copy,
                                            &fast_copy, &aliasing, &seldom};

static double of(line_t l, uint64_t bytes)
{
    return l.first + l.byte * (double)bytes;
}

/** What a method takes there on average. */
static double mean(const machine_t *m, nicstride_method_t method, uint64_t bytes)
{
    const double copy = of(m->copy, bytes), bad = of(m->unlucky, bytes);

    switch (method) {
    case NICSTRIDE_METHOD_CMA:
        return m->often == 0 ? copy : copy + (bad - copy) / m->often;
    case NICSTRIDE_METHOD_SIEVE:
        return copy * 1.3;
    case NICSTRIDE_METHOD_MOVER:
        return of(m->slots, bytes);
    default:
        return of(m->messages, bytes);
    }
}

static double any(const machine_t *m, nicstride_method_t method, uint64_t bytes, unit_random_t *r)
{
    double took = mean(m, method, bytes);

    if (method == NICSTRIDE_METHOD_CMA && m->often > 0)
        took = of(unit_once_in(r, m->often) ? m->unlucky : m->copy, bytes);
    if (unit_once_in(r, 3000))
        took += 400000; /* the processor was lost */
    return took * (0.9 + (double)unit_below(r, 200) / 1000);
}

/** A program's transfers of one kind. */
typedef struct program {
    nicstride_direction_t dir;
    uint64_t bytes;
    onic_learn_cell_t cell;
    onic_learn_budget_t budget;
} program_t;

static bool is_possible(nicstride_direction_t dir, nicstride_method_t method, uint64_t bytes)
{
    if (method == NICSTRIDE_METHOD_CMA)
        return dir != NICSTRIDE_ACC;
    return method == NICSTRIDE_METHOD_PACK || (method == NICSTRIDE_METHOD_MOVER && bytes > 16384);
}

static double best(const program_t *p, const machine_t *m)
{
    double least = INFINITY;

    for (int i = NICSTRIDE_METHOD_DIRECT; i < NICSTRIDE_METHOD_LAST; i++)
        if (is_possible(p->dir, (nicstride_method_t)i, p->bytes))
            least = fmin(least, mean(m, (nicstride_method_t)i, p->bytes));
    return least;
}

/** So many transfers; what one takes on average, not counting lost processors and noise. */
static double run(program_t *p, const machine_t *m, unit_random_t *r, unsigned transfers)
{
    const nicstride_path_t path = {onic_links_default.node, ONIC_MOVER_SLOT, ONIC_MOVER_BLOCK,
                                   512 << 10};
    double sum = 0;
    onic_layout_t l;

    ck_assert_int_eq(onic_layout_contig(&l, 0, p->bytes), ONIC_LAYOUT_OK);
    for (unsigned i = 0; i < transfers; i++) {
        const nicstride_case_t c = {.rows = rows,
                                    .dir = p->dir,
                                    .origin = &l,
                                    .target = &l,
                                    .path = &path,
                                    .reach = REACH_MESSAGE | REACH_SLOTS |
                                             (p->dir != NICSTRIDE_ACC ? REACH_COPY : 0),
                                    .learned = {.cell = &p->cell, .budget = &p->budget}};
        unsigned made;
        const bool settled = onic_learn_fixed(&p->cell, true, &made);
        const nicstride_method_t method = settled ? (nicstride_method_t)made : nicstride_plan(&c);

        if (!settled)
            onic_learn_note(&p->cell, &p->budget, method, p->bytes, any(m, method, p->bytes, r));
        sum += mean(m, method, p->bytes);
    }
    return sum / transfers;
}

static const uint64_t sizes[] = {2048, 16384, 65536, 1 << 20};

#define N_SIZES    (sizeof(sizes) / sizeof(sizes[0]))
#define N_MACHINES (sizeof(machines) / sizeof(machines[0]))
/** Transfers after which the best is to be in use: from the start, and after a change. */
#define SOON  1000
#define LATER 10000

/* Of every machine, size and direction: within an eighth of the best, trials among it. */
START_TEST(ends_with_the_best)
{
    unit_random_t r = {unit_seed() + (uint64_t)_i};

    for (size_t k = 0; k < N_MACHINES * N_SIZES * ONIC_LEARN_DIRECTIONS; k++) {
        program_t p = {.dir = (nicstride_direction_t)(k % ONIC_LEARN_DIRECTIONS),
                       .bytes = sizes[k / ONIC_LEARN_DIRECTIONS % N_SIZES]};
        const machine_t *m = machines[k / ONIC_LEARN_DIRECTIONS / N_SIZES];

        (void)run(&p, m, &r, SOON);
        const double took = run(&p, m, &r, 2000);
        ck_assert_msg(took < 1.125 * best(&p, m), "machine %zu, %llu bytes, direction %d: %f of %f",
                      k / ONIC_LEARN_DIRECTIONS / N_SIZES, (unsigned long long)p.bytes, p.dir, took,
                      best(&p, m));
    }
}
END_TEST

/* When a machine becomes another one the choice follows. */
START_TEST(follows_the_machine)
{
    unit_random_t r = {unit_seed() + (uint64_t)_i};

    for (size_t k = 0; k < N_SIZES * ONIC_LEARN_DIRECTIONS; k++) {
        program_t p = {.dir = (nicstride_direction_t)(k % ONIC_LEARN_DIRECTIONS),
                       .bytes = sizes[k / ONIC_LEARN_DIRECTIONS]};

        for (int change = 0; change < 6; change++) {
            const machine_t *m = machines[unit_below(&r, N_MACHINES)];

            (void)run(&p, m, &r, LATER);
            const double took = run(&p, m, &r, 2000);
            ck_assert_msg(took < 1.125 * best(&p, m), "%llu bytes, direction %d: %f of %f",
                          (unsigned long long)p.bytes, p.dir, took, best(&p, m));
        }
    }
}
END_TEST

/* ---- what is watched ------------------------------------------------------------------------- */

static onic_learn_cell_t one, other;

/** Three transfers of 100 bytes whose calls take 50, 10 after each other, waited for at once. */
static onic_watch_t three(void)
{
    onic_watch_t w;

    onic_watch_begin(&w, &one, 3, 7, 100, 1000);
    onic_watch_called(&w, 1050);
    onic_watch_add(&w, &one, 3, 8, 100, 1060);
    onic_watch_called(&w, 1110);
    onic_watch_add(&w, &one, 3, 9, 100, 1120);
    onic_watch_called(&w, 1170);
    return w;
}

/* Those of a kind count as one; anything else between them, and nothing is watched. */
START_TEST(watches_several)
{
    onic_watch_t w = three();

    unsigned choice = 0;

    ck_assert(onic_watch_choice(&w, &one, &choice) && choice == 3);
    ck_assert(!onic_watch_choice(&w, &other, &choice));
    onic_watch_wait(&w, 9, 1200);
    ck_assert(w.cell == &one && w.bytes == 300);
    ck_assert(onic_watch_took(&w, 2000, 1) == 1000);
    ck_assert(onic_watch_took(&w, 2000, 0.5) == 500);
    w = three();
    onic_watch_wait(&w, 10, 1200);
    ck_assert_ptr_null(w.cell);
    w = three();
    onic_watch_add(&w, &other, 3, 10, 100, 1180);
    ck_assert_ptr_null(w.cell);
    w = three();
    onic_watch_add(&w, &one, 4, 10, 100, 1180);
    ck_assert_ptr_null(w.cell);
    w = three();
    onic_watch_add(&w, &one, 3, 11, 100, 1180);
    ck_assert_ptr_null(w.cell);
}
END_TEST

/* Where the application has worked in between it cannot be told. */
START_TEST(watches_no_work)
{
    onic_watch_t w = three();

    onic_watch_wait(&w, 9, 5000);
    ck_assert(onic_watch_took(&w, 6000, 1) == 0);
    w = three();
    onic_watch_add(&w, &one, 3, 10, 100, 5000);
    onic_watch_called(&w, 5050);
    onic_watch_wait(&w, 10, 5060);
    ck_assert(onic_watch_took(&w, 6000, 1) == 0);
    w.arrived = 5100;
    ck_assert(onic_watch_told(&w, false, 1010, 5200, 1) == 0);
}
END_TEST

/* What a target tells: what it did while the origin was in its calls is hidden behind them, what it
 * did later is added, and how late it came does not count, nor how long the origin worked. */
START_TEST(watches_both_sides)
{
    onic_watch_t w = three();

    onic_watch_wait(&w, 9, 90000);
    w.arrived = 90100;
    ck_assert(onic_watch_told(&w, false, 1020, 1400, 1) == 400);
    ck_assert(onic_watch_told(&w, false, 1020, 1100, 1) == 170);
    ck_assert(onic_watch_told(&w, false, 80000, 80230, 1) == 170 + 230);
    /* Of an earlier epoch, or nonsense. */
    ck_assert(onic_watch_told(&w, false, 900, 1400, 1) == 0);
    ck_assert(onic_watch_told(&w, false, 1400, 1300, 1) == 0);
    /* Data that came back: when it was there is known to the origin, if it waited at once. */
    ck_assert(onic_watch_told(&w, true, 1020, 1400, 1) == 0);
    w = three();
    onic_watch_wait(&w, 9, 1180);
    w.arrived = 9000;
    ck_assert(onic_watch_told(&w, true, 1020, 1400, 1) == 8000);
    ck_assert(onic_watch_told(&w, true, 8400, 8500, 1) == 170 + 600);
}
END_TEST

/* One is alone where it is the first and the one before was the only one; waiting for nothing says
 * nothing. */
START_TEST(alone)
{
    onic_alone_t a = {.begun = 0};

    ck_assert(!onic_alone_begin(&a));
    onic_alone_wait(&a);
    ck_assert(onic_alone_begin(&a));
    ck_assert(!onic_alone_begin(&a));
    onic_alone_wait(&a);
    ck_assert(!onic_alone_begin(&a));
    onic_alone_wait(&a);
    onic_alone_wait(&a);
    ck_assert(onic_alone_begin(&a));
}
END_TEST

int main(void)
{
    return UNIT_RUN("choice", UNIT_LOOP(ends_with_the_best, 0, 20),
                    UNIT_LOOP(follows_the_machine, 0, 20), UNIT_ONCE(watches_several),
                    UNIT_ONCE(watches_no_work), UNIT_ONCE(watches_both_sides), UNIT_ONCE(alone));
}
