/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The engine itself: what each memory model allows and forbids, by the known small tests.
 *  What a run ends with is counted, and compared with what must, may and must not be. */
#include "test/explore/explore.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic uint32_t x, y, z;
static unsigned r[4];
static uint32_t plain;

/* Store buffering: both loads see the old value, unless full fences stand between. */

static void sb(unsigned me)
{
    atomic_store_explicit(me == 0 ? &x : &y, 1, memory_order_release);
    r[me] = atomic_load_explicit(me == 0 ? &y : &x, memory_order_acquire);
}

static void sb_fences(unsigned me)
{
    atomic_store_explicit(me == 0 ? &x : &y, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    r[me] = atomic_load_explicit(me == 0 ? &y : &x, memory_order_relaxed);
}

static void sb_seq_cst(unsigned me)
{
    atomic_store(me == 0 ? &x : &y, 1);
    r[me] = atomic_load(me == 0 ? &y : &x);
}

static void sb_end(void)
{
    EXPLORE_ASSERT(r[0] == 1 || r[1] == 1);
}

/* Message passing. */

static void mp_relaxed(unsigned me)
{
    if (me == 0) {
        atomic_store_explicit(&x, 1, memory_order_relaxed);
        atomic_store_explicit(&y, 1, memory_order_relaxed);
    } else {
        r[0] = atomic_load_explicit(&y, memory_order_relaxed);
        r[1] = atomic_load_explicit(&x, memory_order_relaxed);
    }
}

static void mp_release(unsigned me)
{
    if (me == 0) {
        atomic_store_explicit(&x, 1, memory_order_relaxed);
        atomic_store_explicit(&y, 1, memory_order_release);
    } else {
        r[0] = atomic_load_explicit(&y, memory_order_acquire);
        r[1] = atomic_load_explicit(&x, memory_order_relaxed);
    }
}

static void mp_end(void)
{
    EXPLORE_ASSERT(r[0] == 0 || r[1] == 1);
}

static void mp_plain(unsigned me)
{
    if (me == 0) {
        plain = 7;
        atomic_store_explicit(&y, 1, memory_order_release);
    } else {
        while (atomic_load_explicit(&y, memory_order_acquire) == 0)
            explore_pause();
        EXPLORE_ASSERT(plain == 7);
    }
}

static void mp_plain_relaxed(unsigned me)
{
    if (me == 0) {
        plain = 7;
        atomic_store_explicit(&y, 1, memory_order_relaxed);
    } else {
        while (atomic_load_explicit(&y, memory_order_acquire) == 0)
            explore_pause();
        EXPLORE_ASSERT(plain == 7);
    }
}

/* Independent reads of independent writes. */

static void iriw(unsigned me)
{
    if (me < 2) {
        atomic_store_explicit(me == 0 ? &x : &y, 1, memory_order_release);
    } else {
        r[2 * (me - 2)] = atomic_load_explicit(me == 2 ? &x : &y, memory_order_acquire);
        r[2 * (me - 2) + 1] = atomic_load_explicit(me == 2 ? &y : &x, memory_order_acquire);
    }
}

static void iriw_seq_cst(unsigned me)
{
    if (me < 2) {
        atomic_store(me == 0 ? &x : &y, 1);
    } else {
        r[2 * (me - 2)] = atomic_load(me == 2 ? &x : &y);
        r[2 * (me - 2) + 1] = atomic_load(me == 2 ? &y : &x);
    }
}

static void iriw_end(void)
{
    EXPLORE_ASSERT(!(r[0] == 1 && r[1] == 0 && r[2] == 1 && r[3] == 0));
}

/* What was read once is not read older. */

static void coherent(unsigned me)
{
    if (me == 0) {
        atomic_store_explicit(&x, 1, memory_order_relaxed);
        atomic_store_explicit(&x, 2, memory_order_relaxed);
    } else {
        r[0] = atomic_load_explicit(&x, memory_order_relaxed);
        r[1] = atomic_load_explicit(&x, memory_order_relaxed);
        EXPLORE_ASSERT(r[1] >= r[0]);
    }
}

/* Counters. */

static void counts(unsigned me)
{
    (void)me;
    atomic_fetch_add_explicit(&x, 1, memory_order_relaxed);
}

static void counts_end(void)
{
    EXPLORE_ASSERT(atomic_load(&x) == 3);
}

static void counts_wrong(unsigned me)
{
    (void)me;
    const uint32_t old = atomic_load_explicit(&x, memory_order_relaxed);
    atomic_store_explicit(&x, old + 1, memory_order_relaxed);
}

/* A sleeper and a waker that cross, and the same with fences. */

static void sleeps(unsigned me, bool fences)
{
    if (me == 0) {
        atomic_store_explicit(&x, 1, memory_order_release);
        if (fences)
            atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load_explicit(&y, memory_order_relaxed) != 0) {
            atomic_fetch_add(&z, 1);
            explore_futex_wake(&z);
        }
    } else {
        const uint32_t wakes = atomic_load(&z);
        atomic_store_explicit(&y, 1, memory_order_release);
        if (fences)
            atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load_explicit(&x, memory_order_acquire) == 0)
            explore_futex_wait(&z, wakes);
    }
}

static void sleeps_fenced(unsigned me)
{
    sleeps(me, true);
}

static void sleeps_crossing(unsigned me)
{
    sleeps(me, false);
}

/* ---- what the reduction leaves out is the same ---------------------------------------------- */

#define PROGRAMS 40
#define STEPS    3

/** A program of three threads that do a few random steps at two or three words. Not put back before
 *  a run: it lies in memory of its own. */
static struct program {
    unsigned nwords, nsteps[3];
    unsigned char step[3][STEPS], word[3][STEPS], order[3][STEPS];
} * program;

static unsigned next_random(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return (unsigned)(*seed >> 33);
}

static void make_program(uint64_t seed)
{
    program->nwords = 2 + next_random(&seed) % 2;
    for (int t = 0; t < 3; t++) {
        program->nsteps[t] = 1 + next_random(&seed) % (t == 0 ? 3 : t == 1 ? 2 : 1);
        for (int i = 0; i < STEPS; i++) {
            program->step[t][i] = (unsigned char)(next_random(&seed) % 9);
            program->word[t][i] = (unsigned char)(next_random(&seed) % program->nwords);
            program->order[t][i] = (unsigned char)(next_random(&seed) % 3);
        }
    }
}

static uint64_t seen[3];

static void run_program(unsigned me)
{
    static const int loads[] = {__ATOMIC_RELAXED, __ATOMIC_ACQUIRE, __ATOMIC_SEQ_CST};
    static const int stores[] = {__ATOMIC_RELAXED, __ATOMIC_RELEASE, __ATOMIC_SEQ_CST};
    static const int both[] = {__ATOMIC_RELAXED, __ATOMIC_ACQ_REL, __ATOMIC_SEQ_CST};
    _Atomic uint32_t *const words[] = {&x, &y, &z};
    for (unsigned i = 0; i < program->nsteps[me]; i++) {
        _Atomic uint32_t *w = words[program->word[me][i]];
        const int order = program->order[me][i];
        uint32_t old = 0;
        switch (program->step[me][i]) {
        case 0:
        case 1:
        case 2:
            old = atomic_load_explicit(w, (memory_order)loads[order]);
            break;
        case 3:
        case 4:
        case 5:
            atomic_store_explicit(w, 4 * me + i + 1, (memory_order)stores[order]);
            break;
        case 6:
            if (order == 2)
                atomic_thread_fence(memory_order_seq_cst);
            else
                old = atomic_fetch_add_explicit(w, 1, (memory_order)both[order]);
            break;
        case 7:
            old = atomic_load_explicit(w, (memory_order)loads[order]);
            if (old == 0) {
                explore_pause_for_a_time();
                old = atomic_load_explicit(w, (memory_order)loads[order]);
            }
            break;
        default:
            (void)atomic_compare_exchange_strong_explicit(
                w, &old, 4 * me + i + 1, (memory_order)both[order], memory_order_relaxed);
        }
        seen[me] = seen[me] * 37 + old;
    }
}

static void end_program(void)
{
    explore_end_with(((seen[0] * 1000003 + seen[1]) * 1000003 + seen[2]) * 1000003 +
                     (atomic_load(&x) * 10007U + atomic_load(&y)) * 10007U + atomic_load(&z));
}

/** Do all orders of random programs end as those that are left by the reduction? */
static bool reduces(unsigned nprograms)
{
    static const char *const name[] = {"sc", "tso", "weak"};
    const explore_target_t t = {"random", 3, NULL, run_program, end_program, 0, 0};
    for (unsigned i = 0; i < nprograms; i++) {
        for (unsigned model = EXPLORE_SC; model <= EXPLORE_WEAK; model++) {
            uint64_t all, reduced;
            make_program(i);
            const unsigned nall = explore_ends(&t, (explore_model_t)model, false, &all);
            const unsigned n = explore_ends(&t, (explore_model_t)model, true, &reduced);
            if (nall == 0 || n != nall || all != reduced) {
                printf("program %u, %s: %u ends, with the reduction %u\n", i, name[model], nall, n);
                return false;
            }
        }
    }
    printf("%u random programs end with the reduction as without\n", nprograms);
    return true;
}

#define TSO_WEAK (EXPLORE_IN(TSO) | EXPLORE_IN(WEAK))
#define WEAK     EXPLORE_IN(WEAK)

static const explore_target_t targets[] = {
    {"sb", 2, NULL, sb, sb_end, 0, TSO_WEAK},
    {"sb-fences", 2, NULL, sb_fences, sb_end, 0, 0},
    {"sb-seq-cst", 2, NULL, sb_seq_cst, sb_end, 0, 0},
    {"mp-relaxed", 2, NULL, mp_relaxed, mp_end, 0, WEAK},
    {"mp-release", 2, NULL, mp_release, mp_end, 0, 0},
    {"mp-plain", 2, NULL, mp_plain, NULL, 0, 0},
    {"mp-plain-relaxed", 2, NULL, mp_plain_relaxed, NULL, 0, EXPLORE_IN_ALL},
    {"iriw", 4, NULL, iriw, iriw_end, 0, WEAK},
    {"iriw-seq-cst", 4, NULL, iriw_seq_cst, iriw_end, 0, 0},
    {"coherent", 2, NULL, coherent, NULL, 0, 0},
    {"counts", 3, NULL, counts, counts_end, 0, 0},
    {"counts-wrong", 3, NULL, counts_wrong, counts_end, 0, EXPLORE_IN_ALL},
    {"counts-wrong-bounded", 3, NULL, counts_wrong, counts_end, 1, EXPLORE_IN_ALL},
    {"sleeps-fenced", 2, NULL, sleeps_fenced, NULL, 0, 0},
    {"sleeps-crossing", 2, NULL, sleeps_crossing, NULL, 0, TSO_WEAK},
};

int main(int argc, char **argv)
{
    const unsigned nprograms = argc == 3 && strcmp(argv[1], "--programs") == 0
                                   ? (unsigned)atoi(argv[2])
                               : argc == 1 ? PROGRAMS
                                           : 0;
    program = malloc(sizeof(*program));
    explore_init();
    if (nprograms > 0 && !reduces(nprograms))
        return 1;
    if (argc == 3 && nprograms > 0)
        return 0;
    return explore_main(argc, argv, targets, sizeof(targets) / sizeof(targets[0]));
}
