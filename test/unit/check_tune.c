/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Learning what methods cost: against machines of our own making. */
#include "osc_nicstride/tune.h"
#include "osc_nicstride/habit.h"

#include <math.h>
#include <string.h>

#include "test/unit/unit.h"

#define CMA   NICSTRIDE_METHOD_CMA
#define PACK  NICSTRIDE_METHOD_PACK
#define ZCOPY NICSTRIDE_METHOD_ZCOPY
#define N     NICSTRIDE_METHOD_LAST
#define BYTES 65536ull

/** A machine: what the model believes and what is true, for transfers of BYTES. */
typedef struct machine {
    double model[N];
    double truth[N];
    double noise;      /* a transfer takes up to this part more */
    unsigned cold;     /* the first transfers by PACK take 10 times as long */
    unsigned moved[N]; /* transfers made */
    double spent;      /* nanoseconds in all */
    nicstride_budget_t budget;
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

static void run(machine_t *m, nicstride_tune_cell_t *cell, unit_random_t *r, unsigned transfers)
{
    memset(m->moved, 0, sizeof(m->moved));
    m->spent = 0;
    for (unsigned i = 0; i < transfers; i++) {
        const nicstride_method_t method = nicstride_tune_choose(cell, &m->budget, m->model, BYTES);
        double nsec = m->truth[method];

        UNIT_CHECK(isfinite(m->model[method]));
        nsec *= 1 + m->noise * (double)unit_below(r, 1000) / 1000;
        if (method == PACK && m->cold > 0) {
            m->cold--;
            nsec *= 10;
        }
        m->moved[method]++;
        m->spent += nsec;
        nicstride_tune_learn(cell, &m->budget, method, BYTES, nsec);
    }
}

/* Where the model is right, trying others costs little. */
START_TEST(model_is_right)
{
    for (unsigned seed = 1; seed <= 50; seed++) {
        unit_random_t r = {unit_seed() + seed};
        nicstride_tune_cell_t cell = {.trial = 0};
        machine_t m = machine(5000, 2000 + 50 * seed);

        m.noise = 0.2;
        run(&m, &cell, &r, 20000);
        UNIT_CHECK(m.moved[PACK] > 19500);
        UNIT_CHECK(m.moved[CMA] > 16); /* but they are tried */
        UNIT_CHECK(m.spent < 1.15 * 20000 * m.truth[PACK]);
    }
}
END_TEST

/* Where the model is wrong, the cheaper method is found. */
START_TEST(model_is_wrong)
{
    for (unsigned seed = 1; seed <= 50; seed++) {
        unit_random_t r = {unit_seed() + seed};
        nicstride_tune_cell_t cell = {.trial = 0};
        machine_t m = machine(5000, 2000);

        m.truth[PACK] = 5500 + 100 * seed;
        m.noise = 0.05;
        run(&m, &cell, &r, 100);
        run(&m, &cell, &r, 10000);
        UNIT_CHECK(m.moved[CMA] > 9700);
    }
}
END_TEST

/* When the world changes, in either method, the choice follows. */
START_TEST(follows_changes)
{
    for (unsigned seed = 1; seed <= 50; seed++) {
        unit_random_t r = {unit_seed() + seed};
        nicstride_tune_cell_t cell = {.trial = 0};
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

/* A method that is slow at first, its memory being cold, is not given up for that. */
START_TEST(cold_start)
{
    for (unsigned cold = 1; cold <= 60; cold++) {
        unit_random_t r = {unit_seed() + cold};
        nicstride_tune_cell_t cell = {.trial = 0};
        machine_t m = machine(5000, 2500);

        m.cold = cold;
        run(&m, &cell, &r, 10000);
        run(&m, &cell, &r, 5000);
        UNIT_CHECK(m.moved[PACK] > 4700);
    }
}
END_TEST

/* One transfer that took forever (a processor was lost) changes nothing for long. */
START_TEST(outliers)
{
    unit_random_t r = {unit_seed()};
    nicstride_tune_cell_t cell = {.trial = 0};
    machine_t m = machine(5000, 2500);

    run(&m, &cell, &r, 5000);
    for (int i = 0; i < 20; i++) {
        nicstride_tune_learn(&cell, &m.budget, NICSTRIDE_METHOD_PACK, BYTES, 4e6);
        run(&m, &cell, &r, 100);
        UNIT_CHECK(m.moved[PACK] > 80);
    }
    nicstride_tune_learn(&cell, &m.budget, NICSTRIDE_METHOD_PACK, BYTES, 0);
    nicstride_tune_learn(&cell, &m.budget, NICSTRIDE_METHOD_PACK, BYTES, -5);
    UNIT_CHECK(cell.rate[PACK] > 0);
}
END_TEST

/* What cannot be done is never chosen. */
START_TEST(impossible)
{
    unit_random_t r = {unit_seed()};
    nicstride_tune_cell_t cell = {.trial = 0};
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
    nicstride_tune_cell_t cell = {.trial = 0};
    machine_t m = machine(20 * 2000, 2000);

    run(&m, &cell, &r, 300);
    UNIT_CHECK(m.moved[CMA] == 0);
    run(&m, &cell, &r, 20000);
    UNIT_CHECK(m.moved[CMA] > 0);
    UNIT_CHECK(m.budget.lost <= NICSTRIDE_TUNE_SHARE * m.budget.spent);
    /* Known, it is tried even less. */
    run(&m, &cell, &r, 20000);
    run(&m, &cell, &r, 200000);
    UNIT_CHECK(m.spent < 1.02 * 200000 * m.truth[PACK]);
}
END_TEST

/* Of any machine: time is lost only as far as there is time for it, but for one trial whose cost
 * nobody could know; after that the best method is in use. Machines change. */
START_TEST(time_lost)
{
    for (unsigned seed = 1; seed <= 200; seed++) {
        unit_random_t r = {unit_seed() + seed};
        nicstride_tune_cell_t cell[3];
        nicstride_budget_t budget = {.spent = 0};
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
                const nicstride_method_t method =
                    nicstride_tune_choose(&cell[k], &budget, m[k].model, BYTES);
                const double noise = 1 + 0.2 * (double)unit_below(&r, 1000) / 1000;

                if (!unit_once_in(&r, 10)) /* some are not seen */
                    nicstride_tune_learn(&cell[k], &budget, method, BYTES,
                                         m[k].truth[method] * noise);
                UNIT_CHECK(budget.lost >= -1);
                UNIT_CHECK(budget.lost <= NICSTRIDE_TUNE_SHARE * budget.spent + 1.2 * dearest + 1);
            }
        }
    }
}
END_TEST

/* Of any machine the best method is found in the end, whatever the model believes, and from then on
 * hardly anything is lost. */
START_TEST(converges)
{
    for (unsigned seed = 1; seed <= 100; seed++) {
        unit_random_t r = {unit_seed() + seed};
        nicstride_tune_cell_t cell = {.trial = 0};
        machine_t m = machine(0, 0);
        double best = INFINITY;

        m.noise = 0.1;
        for (int i = CMA; i < N; i++) {
            m.model[i] = 1000 * pow(10, (double)unit_below(&r, 200) / 100);
            m.truth[i] = 1000 * pow(10, (double)unit_below(&r, 200) / 100);
            best = m.truth[i] < best ? m.truth[i] : best;
        }
        run(&m, &cell, &r, 100000);
        run(&m, &cell, &r, 100000);
        UNIT_CHECK(m.spent < 1.12 * 100000 * best * (1 + m.noise / 2));
    }
}
END_TEST

/* A method is not given up for a target that was away now and then. */
START_TEST(absences)
{
    for (unsigned seed = 1; seed <= 50; seed++) {
        unit_random_t r = {unit_seed() + seed};
        nicstride_tune_cell_t cell = {.trial = 0};
        machine_t m = machine(5000, 2500);

        run(&m, &cell, &r, 100);
        for (int i = 0; i < 2000; i++) {
            run(&m, &cell, &r, 2 + (unsigned)unit_below(&r, 3));
            nicstride_tune_learn(&cell, &m.budget, PACK, BYTES, 2500 + 200000);
        }
        run(&m, &cell, &r, 1000);
        UNIT_CHECK(m.moved[PACK] > 950);
    }
}
END_TEST

/* Kinds of transfers: each keeps its own. */
START_TEST(cells)
{
    static nicstride_tune_t tune;
    const nicstride_tune_cell_t *first = &tune.cell[0][0][0], *last = &tune.cell[1][0][0];
    onic_layout_t flat, strided;

    last += NICSTRIDE_TUNE_SHAPES * NICSTRIDE_TUNE_SIZES;
    for (uint64_t size = 1; size < 1ull << 63; size <<= 1) {
        ck_assert_int_eq(onic_layout_contig(&flat, 0, size), ONIC_LAYOUT_OK);
        const nicstride_tune_cell_t *put = nicstride_tune_cell(&tune, NICSTRIDE_PUT, &flat, &flat);
        const nicstride_tune_cell_t *get = nicstride_tune_cell(&tune, NICSTRIDE_GET, &flat, &flat);

        if (size < NICSTRIDE_TUNE_MIN) {
            ck_assert_ptr_null(put);
            continue;
        }
        UNIT_CHECK(put >= first && put < last && get >= first && get < last && put != get);
        for (uint64_t block = 1; block < size && size <= 1ull << 40; block *= 4) {
            ck_assert_int_eq(onic_layout_contig(&strided, 0, block), ONIC_LAYOUT_OK);
            ck_assert_int_eq(onic_layout_repeat(&strided, size / block, 2 * (int64_t)block),
                             ONIC_LAYOUT_OK);
            const nicstride_tune_cell_t *c =
                nicstride_tune_cell(&tune, NICSTRIDE_PUT, &flat, &strided);

            UNIT_CHECK(c >= first && c < last);
            if (strided.size == size && size / block > 1)
                UNIT_CHECK(c != put);
            /* Blocks on either side are what makes it strided. */
            if (strided.size == size)
                UNIT_CHECK(c == nicstride_tune_cell(&tune, NICSTRIDE_PUT, &strided, &flat));
        }
    }
}
END_TEST

/** Operations of few bytes; returns how many were measured. */
static unsigned run_quick(machine_t *m, nicstride_tune_quick_t *quick, unit_random_t *r,
                          unsigned operations)
{
    unsigned measured = 0;

    memset(m->moved, 0, sizeof(m->moved));
    for (unsigned i = 0; i < operations; i++) {
        bool measure;
        const nicstride_method_t method = nicstride_tune_quick(quick, &m->budget, &measure);

        ck_assert(method == CMA || method == PACK);
        m->moved[method]++;
        if (!measure)
            continue;
        measured++;
        nicstride_tune_learn(&quick->cell, &m->budget, method, NICSTRIDE_TUNE_QUICK_BYTES,
                             m->truth[method] *
                                 (1 + m->noise * (double)unit_below(r, 1000) / 1000));
    }
    return measured;
}

/* Operations of few bytes: the cheaper method is found and followed, and few are measured. */
START_TEST(quick)
{
    for (unsigned seed = 1; seed <= 50; seed++) {
        unit_random_t r = {unit_seed() + seed};
        nicstride_tune_quick_t q = {.left = 0};
        machine_t near = machine(450, 340), far = machine(450, 1200);

        near.noise = far.noise = 0.2;
        run_quick(&near, &q, &r, 200);
        UNIT_CHECK(near.moved[CMA] > 0 && near.moved[PACK] > 100);
        UNIT_CHECK(run_quick(&near, &q, &r, 20000) < 20000 / 8);
        UNIT_CHECK(near.moved[PACK] > 19500);
        run_quick(&far, &q, &r, 2000);
        UNIT_CHECK(run_quick(&far, &q, &r, 20000) < 20000 / 8);
        UNIT_CHECK(far.moved[CMA] > 19500);
        run_quick(&near, &q, &r, 30000);
        run_quick(&near, &q, &r, 20000);
        UNIT_CHECK(near.moved[PACK] > 19500);
    }
}
END_TEST

/** Contiguous transfers of BYTES; returns how many were chosen anew. */
static unsigned run_copies(machine_t *m, nicstride_tune_t *tune, unit_random_t *r,
                           unsigned transfers)
{
    unsigned chosen = 0;
    onic_layout_t flat;

    ck_assert_int_eq(onic_layout_contig(&flat, 0, BYTES), ONIC_LAYOUT_OK);
    memset(m->moved, 0, sizeof(m->moved));
    for (unsigned i = 0; i < transfers; i++) {
        nicstride_tune_cell_t *cell = nicstride_tune_cell(tune, NICSTRIDE_GET, &flat, &flat);

        if (nicstride_tune_copies(tune, NICSTRIDE_GET, BYTES)) {
            m->moved[CMA]++;
            continue;
        }
        const nicstride_method_t method =
            nicstride_tune_choose(cell, &tune->budget, m->model, BYTES);

        chosen++;
        m->moved[method]++;
        nicstride_tune_learn(cell, &tune->budget, method, BYTES,
                             m->truth[method] *
                                 (1 + m->noise * (double)unit_below(r, 1000) / 1000));
    }
    return chosen;
}

/* Where single copy is settled, most transfers are spared the choice, and changes are seen. */
START_TEST(copies)
{
    static nicstride_tune_t tune;

    for (unsigned seed = 1; seed <= 50; seed++) {
        unit_random_t r = {unit_seed() + seed};
        machine_t near = machine(5000, 2000), far = machine(5000, 8000);

        memset(&tune, 0, sizeof(tune));
        near.noise = far.noise = 0.2;
        far.model[PACK] = near.model[PACK];
        run_copies(&far, &tune, &r, 3000);
        UNIT_CHECK(run_copies(&far, &tune, &r, 20000) < 20000 / 8);
        UNIT_CHECK(far.moved[CMA] > 19500);
        run_copies(&near, &tune, &r, 20000);
        UNIT_CHECK(run_copies(&near, &tune, &r, 20000) > 19500);
        UNIT_CHECK(near.moved[PACK] > 19500);
        UNIT_CHECK(!nicstride_tune_copies(&tune, NICSTRIDE_PUT, BYTES));
        UNIT_CHECK(!nicstride_tune_copies(&tune, NICSTRIDE_GET, NICSTRIDE_TUNE_MIN - 1));
    }
}
END_TEST

/* Nor is single copy taken for settled where it beats messages, but a rendezvous beats both. */
START_TEST(copies_beside_rendezvous)
{
    static nicstride_tune_t tune;

    for (unsigned seed = 1; seed <= 50; seed++) {
        unit_random_t r = {unit_seed() + seed};
        machine_t m = machine(5000, 8000);

        memset(&tune, 0, sizeof(tune));
        m.noise = 0.2;
        m.model[ZCOPY] = 9000;
        m.truth[ZCOPY] = 3000;
        run_copies(&m, &tune, &r, 3000);
        run_copies(&m, &tune, &r, 20000);
        UNIT_CHECK(m.moved[ZCOPY] > 19500);
    }
}
END_TEST

/* A method that is chosen and never measured, because it fails, leaves the other in use. */
START_TEST(quick_without_copies)
{
    nicstride_tune_quick_t q = {.left = 0};
    nicstride_budget_t budget = {.spent = 0};
    unsigned moved = 0;

    for (int i = 0; i < 20000; i++) {
        bool measure;

        if (nicstride_tune_quick(&q, &budget, &measure) == CMA)
            continue;
        moved++;
        if (measure)
            nicstride_tune_learn(&q.cell, &budget, PACK, NICSTRIDE_TUNE_QUICK_BYTES, 700);
    }
    UNIT_CHECK(moved > 19000);
}
END_TEST

/* Lone operations, several, and flushes with nothing to flush. */
START_TEST(habit)
{
    nicstride_habit_t h = {.alone = false};

    ck_assert(!nicstride_habit_alone(&h));
    nicstride_habit_flush(&h);
    ck_assert(!nicstride_habit_alone(&h));
    for (int i = 0; i < 3; i++) {
        nicstride_habit_operation(&h);
        ck_assert(!nicstride_habit_alone(&h)); /* another one would not be */
        nicstride_habit_flush(&h);
        ck_assert(nicstride_habit_alone(&h));
        nicstride_habit_flush(&h);
        ck_assert(nicstride_habit_alone(&h));
    }
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 2 + i; k++) {
            nicstride_habit_operation(&h);
            ck_assert(!nicstride_habit_alone(&h));
        }
        nicstride_habit_flush(&h);
        ck_assert(!nicstride_habit_alone(&h));
    }
    nicstride_habit_operation(&h);
    nicstride_habit_flush(&h);
    ck_assert(nicstride_habit_alone(&h));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        model_is_right, model_is_wrong, follows_changes,      cold_start, outliers,
        impossible,     cells,          dear_trials,          time_lost,  converges,
        absences,       quick,          quick_without_copies, copies,     copies_beside_rendezvous,
        habit};

    return unit_run("tune", tests, sizeof(tests) / sizeof(tests[0]));
}
