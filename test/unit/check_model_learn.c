/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Learning what choices cost: against machines of our own making. */
#include "common/model/watch.h"
#include "common/model/learn.h"

#include <math.h>
#include <string.h>

#include "test/unit/unit.h"

/* Three of the choices, the first and the last among them. */
#define CMA   0
#define PACK  3
#define ZCOPY (N - 1)
#define N     ONIC_LEARN_CHOICES
#define BYTES 65536ull

/** A machine: what the model believes and what is true, for transfers of BYTES. */
typedef struct machine {
    double model[N];
    double truth[N];
    double noise;      /* a transfer takes up to this part more */
    unsigned cold;     /* the first transfers by PACK take 10 times as long */
    double moves;      /* what the first transfer behind one by another choice takes more */
    unsigned last;     /* the choice of the last transfer */
    unsigned moved[N]; /* transfers made */
    unsigned chosen;   /* of them not settled before */
    double spent;      /* nanoseconds in all */
    onic_learn_budget_t budget;
} machine_t;

static machine_t machine(double cma, double pack)
{
    machine_t m = {.cold = 0};

    for (int i = 0; i < N; i++)
        m.model[i] = m.truth[i] = INFINITY;
    m.model[CMA] = m.truth[CMA] = cma;
    m.model[PACK] = m.truth[PACK] = pack;
    return m;
}

/** Transfers of so many bytes, those that are settled among them. */
static void run_bytes(machine_t *m, onic_learn_cell_t *cell, unit_random_t *r, unsigned transfers,
                      uint64_t bytes)
{
    memset(m->moved, 0, sizeof(m->moved));
    m->spent = 0;
    m->chosen = 0;
    for (unsigned i = 0; i < transfers; i++) {
        unsigned choice;
        const bool settled = onic_learn_fixed(cell, true, &choice);
        double nsec;

        if (!settled)
            choice = onic_learn_choose(cell, &m->budget, m->model, bytes);
        UNIT_CHECK(choice < N);
        nsec = m->truth[choice] * (1 + m->noise * (double)unit_below(r, 1000) / 1000);
        if (choice == PACK && m->cold > 0) {
            m->cold--;
            nsec *= 10;
        }
        nsec += choice != m->last ? m->moves : 0;
        m->last = choice;
        m->moved[choice]++;
        m->spent += nsec;
        if (settled)
            continue;
        UNIT_CHECK(isfinite(m->model[choice]));
        m->chosen++;
        onic_learn_note(cell, &m->budget, choice, bytes, nsec);
    }
}

static void run(machine_t *m, onic_learn_cell_t *cell, unit_random_t *r, unsigned transfers)
{
    run_bytes(m, cell, r, transfers, BYTES);
}

/* Where the model is right, trying others costs little. */
/** The shape by mean block is that of layouts with such blocks. */
START_TEST(shapes_by_block)
{
    static const uint64_t blocks[] = {1, 8, 15, 16, 63, 64, 255, 256, 1023, 1024, 4095, 4096, 9000};

    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
        onic_layout_t l, whole;

        ck_assert(onic_layout_contig(&l, 0, blocks[i]) == ONIC_LAYOUT_OK &&
                  onic_layout_repeat(&l, 10, 2 * (int64_t)blocks[i]) == ONIC_LAYOUT_OK &&
                  onic_layout_contig(&whole, 0, l.size) == ONIC_LAYOUT_OK);
        ck_assert_uint_eq(onic_learn_shape_of(blocks[i], l.size), onic_learn_shape(&l, &whole));
        ck_assert_uint_eq(onic_learn_shape_of(l.size, l.size), onic_learn_shape(&whole, &whole));
    }
}
END_TEST

START_TEST(model_is_right)
{
    for (unsigned seed = 1; seed <= 50; seed++) {
        unit_random_t r = {unit_seed() + seed};
        onic_learn_cell_t cell = {.trial = 0};
        machine_t m = machine(5000, 2000 + 50 * seed);

        m.noise = 0.2;
        run(&m, &cell, &r, 20000);
        UNIT_CHECK(m.moved[PACK] > 19500);
        UNIT_CHECK(m.moved[CMA] > 16); /* but they are tried */
        UNIT_CHECK(m.spent < 1.15 * 20000 * m.truth[PACK]);
    }
}
END_TEST

/* Where the model is wrong, the cheaper choice is found. */
START_TEST(model_is_wrong)
{
    for (unsigned seed = 1; seed <= 50; seed++) {
        unit_random_t r = {unit_seed() + seed};
        onic_learn_cell_t cell = {.trial = 0};
        machine_t m = machine(5000, 2000);

        m.truth[PACK] = 5500 + 100 * seed;
        m.noise = 0.05;
        run(&m, &cell, &r, 100);
        run(&m, &cell, &r, 10000);
        UNIT_CHECK(m.moved[CMA] > 9700);
    }
}
END_TEST

/* When the world changes, in either choice, the choice follows. */
START_TEST(follows_changes)
{
    for (unsigned seed = 1; seed <= 50; seed++) {
        unit_random_t r = {unit_seed() + seed};
        onic_learn_cell_t cell = {.trial = 0};
        machine_t m = machine(5000, 2000);

        m.noise = 0.2;
        run(&m, &cell, &r, 5000);
        m.truth[PACK] = 8000; /* the cores have moved apart */
        run(&m, &cell, &r, 100);
        run(&m, &cell, &r, 5000);
        UNIT_CHECK(m.moved[CMA] > 4800);
        m.truth[PACK] = 2000; /* and together again: seen only by trying */
        run(&m, &cell, &r, 1500);
        run(&m, &cell, &r, 5000);
        UNIT_CHECK(m.moved[PACK] > 4700);
    }
}
END_TEST

/* A choice that is slow at first, its memory being cold, is not given up for that. */
START_TEST(cold_start)
{
    for (unsigned cold = 1; cold <= 60; cold++) {
        unit_random_t r = {unit_seed() + cold};
        onic_learn_cell_t cell = {.trial = 0};
        machine_t m = machine(5000, 2500);

        m.cold = cold;
        run(&m, &cell, &r, 10000);
        run(&m, &cell, &r, 5000);
        UNIT_CHECK(m.moved[PACK] > 4700);
    }
}
END_TEST

/* One transfer that took forever (a processor was lost) changes nothing for long. Nor do those that
 * take little of the whole time. */
START_TEST(outliers)
{
    unit_random_t r = {unit_seed()};
    onic_learn_cell_t cell = {.trial = 0};
    machine_t m = machine(5000, 2500);

    run(&m, &cell, &r, 5000);
    for (int i = 0; i < 20; i++) {
        onic_learn_note(&cell, &m.budget, PACK, BYTES, 4e6);
        run(&m, &cell, &r, 2000);
        run(&m, &cell, &r, 2000);
        UNIT_CHECK(m.moved[PACK] > 1800);
    }
    for (int i = 0; i < 200; i++) {
        onic_learn_note(&cell, &m.budget, PACK, BYTES, 100 * 2500);
        run(&m, &cell, &r, 3200); /* of which one in sixteen is observed */
        UNIT_CHECK(m.moved[PACK] > 3000);
    }
    onic_learn_note(&cell, &m.budget, PACK, BYTES, 0);
    onic_learn_note(&cell, &m.budget, PACK, BYTES, -5);
    UNIT_CHECK(cell.rate[PACK] > 0);
}
END_TEST

/* What cannot be done is never chosen. */
START_TEST(impossible)
{
    unit_random_t r = {unit_seed()};
    onic_learn_cell_t cell = {.trial = 0};
    machine_t m = machine(5000, 2000);

    for (int i = 0; i < 2000; i++) {
        m.model[CMA] = unit_once_in(&r, 2) ? INFINITY : 5000;
        run(&m, &cell, &r, 1);
    }
    UNIT_CHECK(m.moved[ZCOPY] == 0);
}
END_TEST

/* What the model says to be many times dearer is not tried by a program that makes few transfers,
 * and hardly by one that makes many. */
START_TEST(dear_trials)
{
    unit_random_t r = {unit_seed()};
    onic_learn_cell_t cell = {.trial = 0};
    machine_t m = machine(20 * 2000, 2000);

    run(&m, &cell, &r, 300);
    UNIT_CHECK(m.moved[CMA] == 0);
    run(&m, &cell, &r, 20000);
    UNIT_CHECK(m.moved[CMA] > 0);
    UNIT_CHECK(m.budget.lost <= ONIC_LEARN_SHARE * m.budget.spent);
    /* Known, it is tried even less. */
    run(&m, &cell, &r, 20000);
    run(&m, &cell, &r, 200000);
    UNIT_CHECK(m.spent < 1.02 * 200000 * m.truth[PACK]);
}
END_TEST

/* Of any machine: time is lost only as far as there is time for it, but for one trial whose cost
 * nobody could know, which is repeated, and costs the transfer behind it; after that the best
 * choice is in use. Machines change. */
START_TEST(time_lost)
{
    for (unsigned seed = 1; seed <= 200; seed++) {
        unit_random_t r = {unit_seed() + seed};
        onic_learn_cell_t cell[3];
        onic_learn_budget_t budget = {.spent = 0};
        double dearest = 0;
        machine_t m[3];

        memset(cell, 0, sizeof(cell));
        for (int change = 0; change < 4; change++) {
            for (int k = 0; k < 3; k++) {
                if (change == 0)
                    m[k] = machine(0, 0);
                for (int i = CMA; i < N; i++) {
                    if (change == 0)
                        m[k].model[i] = 1000 * pow(10, (double)unit_below(&r, 300) / 100);
                    m[k].truth[i] = 1000 * pow(10, (double)unit_below(&r, 300) / 100);
                    dearest = m[k].truth[i] > dearest ? m[k].truth[i] : dearest;
                }
            }
            for (int i = 0; i < 3000; i++) {
                const unsigned k = (unsigned)unit_below(&r, 3);
                const unsigned choice = onic_learn_choose(&cell[k], &budget, m[k].model, BYTES);
                const double noise = 1 + 0.2 * (double)unit_below(&r, 1000) / 1000;

                if (!unit_once_in(&r, 10)) /* some are not seen */
                    onic_learn_note(&cell[k], &budget, choice, BYTES, m[k].truth[choice] * noise);
                UNIT_CHECK(budget.lost >= -1);
                UNIT_CHECK(budget.lost <= ONIC_LEARN_SHARE * budget.spent + 3.6 * dearest + 1);
            }
        }
    }
}
END_TEST

/* Of any machine the best choice is found in the end, whatever the model believes, and from then on
 * hardly anything is lost. */
START_TEST(converges)
{
    for (unsigned seed = 1; seed <= 100; seed++) {
        unit_random_t r = {unit_seed() + seed};
        onic_learn_cell_t cell = {.trial = 0};
        machine_t m = machine(0, 0);
        double best = INFINITY;

        m.noise = 0.1;
        for (int i = CMA; i < N; i++) {
            m.model[i] = 1000 * pow(10, (double)unit_below(&r, 200) / 100);
            m.truth[i] = 1000 * pow(10, (double)unit_below(&r, 200) / 100);
            best = m.truth[i] < best ? m.truth[i] : best;
        }
        run(&m, &cell, &r, 300000);
        run(&m, &cell, &r, 100000);
        UNIT_CHECK(m.spent < 1.12 * 100000 * best * (1 + m.noise / 2));
    }
}
END_TEST

/* A choice that waits for a process which now and then has no processor costs its mean: another one
 * that does not wait is better, and stays so, from the first transfers on. When the waiting is over
 * it is the best again. */
START_TEST(absences)
{
    unsigned waited = 0;

    for (unsigned seed = 1; seed <= 50; seed++) {
        unit_random_t r = {unit_seed() + seed};
        onic_learn_cell_t cell = {.trial = 0};
        machine_t m = machine(5000, 2500);

        for (int i = 0; i < 1000; i++) {
            m.truth[PACK] = unit_once_in(&r, 4) ? 1e6 : 2500;
            run(&m, &cell, &r, 1);
            waited += m.moved[PACK];
        }
        m.truth[PACK] = 2500;
        run(&m, &cell, &r, 10000);
        run(&m, &cell, &r, 1000);
        UNIT_CHECK(m.moved[PACK] > 950);
    }
    ck_assert_uint_lt(waited, 50 * 60);
}
END_TEST

/* The first transfer behind one by another choice takes longer: data lies in other caches then. The
 * choice that is best in a series is found, whichever is in use, and trials do not unsettle it. */
START_TEST(caches)
{
    for (unsigned seed = 1; seed <= 50; seed++) {
        unit_random_t r = {unit_seed() + seed};
        onic_learn_cell_t cell = {.trial = 0};
        machine_t m = machine(5300, 7000);

        m.model[ZCOPY] = m.truth[ZCOPY] = 6500;
        m.model[CMA] = 20000;
        m.noise = 0.3;
        m.moves = 4000;
        run(&m, &cell, &r, 20000);
        run(&m, &cell, &r, 5000);
        UNIT_CHECK(m.moved[CMA] > 4700);
        UNIT_CHECK(m.spent < 1.1 * 5000 * 1.15 * m.truth[CMA]);
    }
}
END_TEST

/* The first transfers find memory cold: they say nothing against the choice that the model knows to
 * be the best. */
START_TEST(cold_memory)
{
    unsigned moved = 0;

    for (unsigned seed = 1; seed <= 50; seed++) {
        unit_random_t r = {unit_seed() + seed};
        onic_learn_cell_t cell = {.trial = 0};
        machine_t m = machine(5000, 7500);

        m.noise = 0.1;
        m.moves = 4000;
        m.truth[CMA] = 25000;
        run(&m, &cell, &r, 1);
        m.truth[CMA] = seed % 2 == 0 ? 13000 : 9000;
        run(&m, &cell, &r, 1);
        m.truth[CMA] = 5000;
        run(&m, &cell, &r, 6);
        moved += m.moved[CMA];
    }
    ck_assert_uint_gt(moved, 240);
}
END_TEST

/* Kinds of transfers: each keeps its own. */
START_TEST(cells)
{
    static onic_learn_t learn;
    const onic_learn_cell_t *first = &learn.cell[0][0][0], *last = &learn.cell[1][0][0];
    const onic_learn_cell_t *before = NULL;
    onic_layout_t flat, strided;

    last += ONIC_LEARN_SHAPES * ONIC_LEARN_SIZES;
    for (uint64_t size = 1; size < 1ull << 63; size <<= 1) {
        ck_assert_int_eq(onic_layout_contig(&flat, 0, size), ONIC_LAYOUT_OK);
        const onic_learn_cell_t *put = onic_learn_cell(&learn, 0, &flat, &flat);
        const onic_learn_cell_t *get = onic_learn_cell(&learn, 1, &flat, &flat);

        UNIT_CHECK(put >= first && put < last && get >= first && get < last && put != get);
        UNIT_CHECK(put == onic_learn_contiguous(&learn, 0, size));
        UNIT_CHECK(get == onic_learn_contiguous(&learn, 1, size));
        /* Up to its end, a power of two; the shortest and the longest are one each. */
        UNIT_CHECK(put == onic_learn_contiguous(&learn, 0, 2 * size - 1));
        if (before != NULL)
            UNIT_CHECK((put == before) == (size < ONIC_LEARN_LEAST || size > 8ull << 20));
        before = put;
        for (uint64_t block = 1; block < size && size <= 1ull << 40; block *= 4) {
            ck_assert_int_eq(onic_layout_contig(&strided, 0, block), ONIC_LAYOUT_OK);
            ck_assert_int_eq(onic_layout_repeat(&strided, size / block, 2 * (int64_t)block),
                             ONIC_LAYOUT_OK);
            const onic_learn_cell_t *c = onic_learn_cell(&learn, 0, &flat, &strided);

            UNIT_CHECK(c >= first && c < last);
            if (strided.size == size && size / block > 1)
                UNIT_CHECK(c != put);
            /* Blocks on either side are what makes it strided. */
            if (strided.size == size)
                UNIT_CHECK(c == onic_learn_cell(&learn, 0, &strided, &flat));
        }
    }
}
END_TEST

/** Any length of one class. */
static uint64_t any_bytes(unit_random_t *r)
{
    return unit_once_in(r, 2) ? 1 + unit_below(r, ONIC_LEARN_LEAST - 1) : BYTES;
}

/* In every class the cheapest choice is found, whichever it is; most transfers are spared the
 * choice; and changes are seen all the same. */
START_TEST(settles)
{
    for (unsigned seed = 1; seed <= 100; seed++) {
        unit_random_t r = {unit_seed() + seed};
        onic_learn_cell_t cell = {.trial = 0};
        machine_t near = machine(450, 340), far = machine(450, 1200);
        const uint64_t bytes = any_bytes(&r);

        near.noise = far.noise = 0.2;
        memcpy(near.model, far.model, sizeof(far.model));
        run_bytes(&near, &cell, &r, 400, bytes);
        UNIT_CHECK(near.moved[CMA] > 0 && near.moved[PACK] > 300);
        run_bytes(&near, &cell, &r, 20000, bytes);
        UNIT_CHECK(near.chosen < 20000 / 8 && near.moved[PACK] > 19500);
        run_bytes(&far, &cell, &r, 2000, bytes);
        run_bytes(&far, &cell, &r, 20000, bytes);
        UNIT_CHECK(far.chosen < 20000 / 8 && far.moved[CMA] > 19500);
        run_bytes(&near, &cell, &r, 30000, bytes);
        run_bytes(&near, &cell, &r, 20000, bytes);
        UNIT_CHECK(near.moved[PACK] > 19500);
    }
}
END_TEST

/* A choice is not settled where it beats another one, but a third beats both. */
START_TEST(settles_among_three)
{
    for (unsigned seed = 1; seed <= 50; seed++) {
        unit_random_t r = {unit_seed() + seed};
        onic_learn_cell_t cell = {.trial = 0};
        machine_t m = machine(5000, 8000);

        m.noise = 0.2;
        m.model[ZCOPY] = 9000;
        m.truth[ZCOPY] = 3000;
        run(&m, &cell, &r, 23000);
        run(&m, &cell, &r, 20000);
        UNIT_CHECK(m.moved[ZCOPY] > 19500);
    }
}
END_TEST

/* Where there is one choice it is taken, and settled, too. */
START_TEST(single)
{
    unit_random_t r = {unit_seed()};
    onic_learn_cell_t cell = {.trial = 0};
    machine_t m = machine(INFINITY, 2000);

    m.truth[PACK] = 9000;
    run(&m, &cell, &r, 10000);
    ck_assert_uint_eq(m.moved[PACK], 10000);
    ck_assert_uint_lt(m.chosen, 10000 / 8);
    ck_assert(m.budget.lost == 0);
    onic_learn_known(&cell, m.model, BYTES);
    ck_assert(fabs(m.model[PACK] - 9000) < 1 && isinf(m.model[CMA]));
}
END_TEST

/* A choice that is made and never observed, because it fails, leaves another one in use. */
START_TEST(never_observed)
{
    onic_learn_cell_t cell = {.trial = 0};
    onic_learn_budget_t budget = {.spent = 0};
    const machine_t m = machine(900, 600);
    unsigned moved = 0;

    for (int i = 0; i < 20000; i++) {
        unsigned choice;
        const bool settled = onic_learn_fixed(&cell, true, &choice);

        if (!settled)
            choice = onic_learn_choose(&cell, &budget, m.model, 8);
        if (choice != PACK)
            continue;
        moved++;
        if (!settled)
            onic_learn_note(&cell, &budget, PACK, 8, 700);
    }
    UNIT_CHECK(moved > 19000);
}
END_TEST

/* Who cannot follow what is settled chooses: that is counted as time spent once only. */
START_TEST(not_followed)
{
    onic_learn_cell_t cell = {.trial = 0};
    onic_learn_budget_t budget = {.spent = 0};
    const machine_t m = machine(INFINITY, 1000);

    for (int i = 0; i < 10000; i++) {
        ck_assert_uint_eq(onic_learn_choose(&cell, &budget, m.model, BYTES), PACK);
        onic_learn_note(&cell, &budget, PACK, BYTES, 1000);
    }
    ck_assert(budget.spent < 1.01 * 10000 * 1000);
}
END_TEST

/* All short transfers cost the same. */
START_TEST(short_ones)
{
    onic_learn_cell_t cell = {.trial = 0};
    onic_learn_budget_t budget = {.spent = 0};

    onic_learn_note(&cell, &budget, CMA, 1, 500);
    for (uint64_t bytes = 1; bytes <= ONIC_LEARN_LEAST; bytes++) {
        machine_t m = machine(600, 700);

        onic_learn_known(&cell, m.model, bytes);
        UNIT_CHECK(fabs(m.model[CMA] - 500) < 0.01 && m.model[PACK] == 700);
    }
}
END_TEST

/* Short transfers are whole if the flush comes at once, long ones if it comes soon for them. */
START_TEST(whole)
{
    ck_assert(onic_learn_is_whole(0, 0) && onic_learn_is_whole(800, 900));
    ck_assert(!onic_learn_is_whole(3000, 4000) && !onic_learn_is_whole(20000, 100000));
    ck_assert(onic_learn_is_whole(6000, 300000));
}
END_TEST

/* ---- bursts ---------------------------------------------------------------------------------- */

#define ALL ((1U << CMA) | (1U << PACK))

/** A burst of `n` transfers by PACK, of which the last begins before the first ends; returns
 *  whether it was noted. */
static bool burst_of(onic_burst_t *b, onic_learn_cell_t *cell, unsigned n, bool well)
{
    onic_learn_budget_t budget = {0, 0};
    const unsigned seen = cell->seen[PACK];

    for (unsigned i = 0; i < n; i++) {
        const bool joins = onic_burst_enter(b, cell, ALL, BYTES);

        ck_assert(joins == (i > 0) && onic_burst_is_first(b) == (i == 0));
        if (i == 0)
            onic_burst_begin(b, cell, PACK, BYTES, 1000);
        ck_assert_uint_eq(b->choice, PACK);
    }
    for (unsigned i = 0; i < n; i++) {
        ck_assert_uint_eq(cell->seen[PACK], seen);
        onic_burst_leave(b, &budget, well || i > 0, 1000 + 500 * n);
    }
    return cell->seen[PACK] > seen;
}

/* Many under way together take together what each would by itself, and are noted once. */
START_TEST(bursts)
{
    onic_learn_cell_t cell;
    onic_burst_t b = {0};

    memset(&cell, 0, sizeof(cell));
    for (unsigned n = 1; n < 40; n++) {
        ck_assert(burst_of(&b, &cell, n, true));
        UNIT_CHECK(fabs(cell.rate[PACK] * BYTES - 500) < 0.1);
        ck_assert(!burst_of(&b, &cell, n, false));
    }
}
END_TEST

/* Where another is always under way the first one's choice does not hold for ever. */
START_TEST(endless_burst)
{
    onic_learn_budget_t budget = {0, 0};
    onic_learn_cell_t cell;
    onic_burst_t b = {0};
    unsigned joined = 0;

    memset(&cell, 0, sizeof(cell));
    ck_assert(!onic_burst_enter(&b, &cell, ALL, BYTES));
    onic_burst_begin(&b, &cell, PACK, BYTES, 0);
    for (int i = 0; i < 1000; i++) {
        joined += onic_burst_enter(&b, &cell, ALL, BYTES);
        onic_burst_leave(&b, &budget, true, 1000);
    }
    onic_burst_leave(&b, &budget, true, 1000);
    ck_assert_uint_eq(joined, ONIC_BURST_MOST);
    ck_assert_uint_eq(cell.seen[PACK], 0);
    ck_assert(burst_of(&b, &cell, 3, true));
}
END_TEST

/* What is of another kind, cannot go the same way, or has gone another one, spoils a burst, and not
 * the next one. */
START_TEST(spoilt_bursts)
{
    for (int how = 0; how < 3; how++) {
        onic_learn_cell_t cell, other;
        onic_learn_budget_t budget = {0, 0};
        onic_burst_t b = {0};

        memset(&cell, 0, sizeof(cell));
        memset(&other, 0, sizeof(other));
        ck_assert(!onic_burst_enter(&b, &cell, ALL, BYTES));
        onic_burst_begin(&b, &cell, PACK, BYTES, 0);
        ck_assert(onic_burst_enter(&b, how == 0 ? &other : &cell, how == 1 ? 1U << CMA : ALL,
                                   BYTES) == (how == 2));
        if (how == 2)
            onic_burst_spoil(&b);
        ck_assert(!onic_burst_enter(&b, &cell, ALL, BYTES));
        for (int i = 0; i < 3; i++)
            onic_burst_leave(&b, &budget, true, 1000);
        UNIT_CHECK(cell.seen[PACK] == 0 && other.seen[PACK] == 0);
        ck_assert(burst_of(&b, &cell, 3, true));
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("model_learn", UNIT_ONCE(shapes_by_block), UNIT_ONCE(whole),
                    UNIT_ONCE(model_is_right), UNIT_ONCE(model_is_wrong),
                    UNIT_ONCE(follows_changes), UNIT_ONCE(cold_start), UNIT_ONCE(outliers),
                    UNIT_ONCE(impossible), UNIT_ONCE(cells), UNIT_ONCE(dear_trials),
                    UNIT_ONCE(time_lost), UNIT_ONCE(converges), UNIT_ONCE(absences),
                    UNIT_ONCE(caches), UNIT_ONCE(cold_memory), UNIT_ONCE(settles),
                    UNIT_ONCE(settles_among_three), UNIT_ONCE(single), UNIT_ONCE(never_observed),
                    UNIT_ONCE(not_followed), UNIT_ONCE(short_ones), UNIT_ONCE(bursts),
                    UNIT_ONCE(spoilt_bursts), UNIT_ONCE(endless_burst));
}
