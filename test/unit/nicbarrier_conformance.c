/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What every engine must do; see nicbarrier_conformance.h. */
#include "test/unit/nicbarrier_conformance.h"

#include <string.h>

/** Epochs that may be outstanding in a random run. */
enum { OUTSTANDING = 5, SCHEDULES = NICBARRIER_GATHER_BROADCAST + 1 };

/** The group under test, and what the reference knows. */
static struct {
    const conformance_row_t *row;
    unit_random_t random;
    int n;
    bool connected[CONFORMANCE_MEMBERS_MAX], gone[CONFORMANCE_MEMBERS_MAX];
    uint64_t entered[CONFORMANCE_MEMBERS_MAX];
    uint64_t seen[CONFORMANCE_MEMBERS_MAX]; /**< completed, when it was last looked at */
    bool failed[CONFORMANCE_MEMBERS_MAX];   /**< likewise */
} group;

static void __attribute__((noreturn)) failed(const char *what, int line)
{
    for (int i = 0; i < group.n; i++)
        fprintf(stderr, "member %d: entered %" PRIu64 ", completed %" PRIu64 "%s%s%s\n", i,
                group.entered[i], group.seen[i], group.connected[i] ? "" : ", not connected",
                group.gone[i] ? ", gone" : "", group.failed[i] ? ", failed" : "");
    ck_abort_msg("%s with %d members: line %d: %s", group.row->name, group.n, line, what);
    abort();
}

#define CONFORM(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            failed(#condition, __LINE__);                                                          \
    } while (0)

static int below(int n)
{
    return (int)unit_below(&group.random, (uint64_t)n);
}

/* ---- the reference -------------------------------------------------------------------------- */

static uint64_t least(void)
{
    uint64_t low = UINT64_MAX;

    for (int i = 0; i < group.n; i++)
        low = group.entered[i] < low ? group.entered[i] : low;
    return low;
}

void conformance_told(int member, uint64_t epoch)
{
    CONFORM(epoch <= least());
    CONFORM(group.connected[member]);
}

/** Nothing that is complete is one that somebody has not entered, and nothing goes back. */
static void look(int i)
{
    if (!group.connected[i] || group.gone[i])
        return;
    const uint64_t completed = group.row->completed(i);
    const bool bad = group.row->failed(i);

    CONFORM(completed <= least());
    CONFORM(completed >= group.seen[i]);
    CONFORM(bad || !group.failed[i]);
    group.seen[i] = completed;
    group.failed[i] = bad;
}

static void look_at_all(void)
{
    for (int i = 0; i < group.n; i++)
        look(i);
}

/* ---- moving on ------------------------------------------------------------------------------ */

static void connect_one(int i)
{
    group.connected[i] = true;
    group.row->connect(i);
}

static void enter(int i, uint64_t epoch)
{
    if (epoch > group.entered[i])
        group.entered[i] = epoch;
    group.row->enter(i, epoch);
}

static void enter_all(uint64_t epoch)
{
    for (int i = 0; i < group.n; i++)
        enter(i, epoch);
}

static void progress_one(int i)
{
    if (group.connected[i] && !group.gone[i])
        group.row->progress(i);
    look(i);
}

static void disconnect(int i)
{
    group.gone[i] = true;
    group.row->disconnect(i);
}

/** Members in a random order. */
static void shuffle(int order[CONFORMANCE_MEMBERS_MAX])
{
    for (int i = 0; i < group.n; i++) {
        const int j = below(i + 1);
        order[i] = order[j];
        order[j] = i;
    }
}

static void pass_and_progress(void)
{
    group.row->pass();
    progress_one(below(group.n));
}

/** What does not happen now never does. */
static void idle(void)
{
    for (int k = 0; k < group.row->quiet; k++)
        pass_and_progress();
    look_at_all();
}

static bool all_complete(void)
{
    bool all = true;

    look_at_all();
    for (int i = 0; i < group.n; i++)
        all &= group.gone[i] || !group.connected[i] || group.seen[i] == least();
    return all;
}

static bool all_failed(void)
{
    bool all = true;

    look_at_all();
    for (int i = 0; i < group.n; i++)
        all &= group.gone[i] || group.failed[i];
    return all;
}

static void move_until(bool (*over)(void))
{
    for (int left = group.row->patience; !over(); left--) {
        CONFORM(left > 0);
        for (int i = 0; i < group.n; i++)
            pass_and_progress();
    }
}

/** What all have entered becomes complete everywhere, and nothing fails. */
static void settle(void)
{
    move_until(all_complete);
    for (int i = 0; i < group.n; i++)
        CONFORM(!group.failed[i]);
}

/* ---- a group -------------------------------------------------------------------------------- */

static void begin(const conformance_row_t *row, int which)
{
    const int n = 2 + which % (CONFORMANCE_MEMBERS_MAX - 1);
    const int kind = which / (CONFORMANCE_MEMBERS_MAX - 1) % SCHEDULES;
    const uint64_t seed = unit_seed() + (uint64_t)which;

    memset(&group, 0, sizeof(group));
    group.row = row;
    group.n = n;
    group.random.state = seed;
    row->begin(n, (nicbarrier_schedule_kind_t)kind, seed);
}

static void begin_connected(const conformance_row_t *row, int which)
{
    begin(row, which);
    for (int i = 0; i < group.n; i++)
        connect_one(i);
}

/** All go, in any order. */
static void end(void)
{
    int order[CONFORMANCE_MEMBERS_MAX];

    shuffle(order);
    for (int k = 0; k < group.n; k++) {
        look(order[k]);
        if (!group.gone[order[k]])
            disconnect(order[k]);
    }
    group.row->end();
}

/* ---- tests ---------------------------------------------------------------------------------- */

/* Nobody has completed what one has not entered, whoever that is; then all have. */
static void nobody_before_all(const conformance_row_t *row, int which)
{
    int order[CONFORMANCE_MEMBERS_MAX];

    begin_connected(row, which);
    for (uint64_t epoch = 1; epoch <= 3; epoch++) {
        shuffle(order);
        for (int k = 0; k < group.n; k++) {
            enter(order[k], epoch);
            if (k < group.n - 1 && (k == group.n - 2 || below(3) == 0))
                idle();
        }
        settle();
    }
    end();
}

/* All but one are several epochs ahead. Each that this one enters completes, and no other. */
static void several_outstanding(const conformance_row_t *row, int which)
{
    begin_connected(row, which);
    const int slow = below(group.n);
    for (uint64_t epoch = 1; epoch <= OUTSTANDING; epoch++) {
        for (int i = 0; i < group.n; i++)
            if (i != slow)
                enter(i, epoch);
        pass_and_progress();
    }
    idle();
    for (uint64_t epoch = 1; epoch <= OUTSTANDING; epoch += 2) {
        enter(slow, epoch);
        settle();
        idle();
    }
    end();
}

/* Who connects late gets what was said before. */
static void late_members(const conformance_row_t *row, int which)
{
    int order[CONFORMANCE_MEMBERS_MAX];

    begin(row, which);
    const int early = 1 + below(group.n - 1);
    shuffle(order);
    for (int k = 0; k < early; k++) {
        connect_one(order[k]);
        enter(order[k], 2);
    }
    idle();
    for (int k = early; k < group.n; k++) {
        connect_one(order[k]);
        idle();
        enter(order[k], 2);
    }
    settle();
    end();
}

/* To enter an epoch again says nothing; nor does it to enter one before that. */
static void entered_again(const conformance_row_t *row, int which)
{
    const bool less = row->cannot[CONFORMANCE_BACKWARDS] == NULL;

    begin_connected(row, which);
    for (uint64_t epoch = 1; epoch <= 4; epoch++) {
        for (int i = 0; i < group.n; i++) {
            enter(i, epoch);
            enter(i, less ? 1 + (uint64_t)below((int)epoch) : epoch);
            pass_and_progress();
        }
        settle();
        enter(below(group.n), less ? 1 + (uint64_t)below((int)epoch) : epoch);
        idle();
    }
    end();
}

/* Who has completed the last epoch disconnects, and the others get to know what they must all the
 * same. */
static void leaving_early(const conformance_row_t *row, int which)
{
    const uint64_t last = 3;
    int here, left = row->patience;

    begin_connected(row, which);
    here = group.n;
    while (here > 0) {
        const int i = below(group.n);
        CONFORM(left-- > 0);
        if (group.entered[i] < last && below(4) == 0)
            enter(i, group.entered[i] + 1);
        progress_one(i);
        if (below(2) == 0)
            row->pass();
        if (!group.gone[i] && group.seen[i] == last) {
            disconnect(i);
            here--;
        }
    }
    end();
}

/* One gives up, before it has entered what the others enter, or even before it has connected; the
 * others do not complete that, and give up in the end. */
static void giving_up(const conformance_row_t *row, int which)
{
    begin(row, which);
    const int quitter = below(group.n);
    const bool connects = below(2) == 0;
    for (int i = 0; i < group.n; i++)
        if (i != quitter || connects)
            connect_one(i);
    if (connects) {
        enter_all(1);
        settle();
    }
    for (int i = 0; i < group.n; i++) {
        if (i != quitter)
            enter(i, 2);
        pass_and_progress();
    }
    disconnect(quitter);
    idle();
    end();
}

/* Some enter, before and after all have heard of a failure: it does not complete anything, and what
 * all have entered may become complete or not. */
static void enter_in_ruins(void)
{
    for (int i = 0; i < group.n; i++) {
        if (below(2) == 0)
            enter(i, group.entered[i] + 1);
        pass_and_progress();
    }
}

/* One says that the group has failed: all hear of it that wait, and it stays. */
static void failure_spreads(const conformance_row_t *row, int which)
{
    begin_connected(row, which);
    enter_in_ruins();
    const int finder = below(group.n);
    row->fail(finder);
    /* It does not come to the epoch that the others wait for. */
    for (int i = 0; i < group.n; i++) {
        if (i != finder)
            enter(i, group.entered[finder] + 1);
        pass_and_progress();
    }
    move_until(all_failed);
    enter_in_ruins();
    idle();
    end();
}

/* The connections of one break, some of them in the middle of a barrier: all hear of it that wait
 * for more. */
void conformance_cut_off(const conformance_row_t *row, int which)
{
    begin_connected(row, which);
    const int lost = below(group.n);
    enter_all(1);
    settle();
    for (int left = below(10); left > 0; left--)
        enter_in_ruins();
    row->cut(lost);
    enter_all(least() + 20);
    move_until(all_failed);
    enter_in_ruins();
    idle();
    end();
}

/* Anything, in any order. */
static void anything(const conformance_row_t *row, int which)
{
    begin_connected(row, which);
    for (int left = row->steps; left > 0; left--) {
        const int i = below(group.n);
        const uint64_t ahead = group.entered[i] - least();
        if (below(5) < 2 && ahead < OUTSTANDING)
            enter(i, group.entered[i] + 1 + (uint64_t)below((int)(OUTSTANDING - ahead)));
        else if (below(3) == 0)
            progress_one(i);
        else if (below(2) == 0)
            row->pass();
        else
            look(below(group.n));
        if (below(100) == 0)
            settle();
    }
    const uint64_t last = least() + OUTSTANDING;
    enter_all(last);
    settle();
    end();
}

/* All at the same time, in processes or threads, one barrier after another. */
static void together(const conformance_row_t *row, int which)
{
    const uint64_t last = (uint64_t)row->steps / 25;

    begin_connected(row, which);
    row->together(last);
    for (int i = 0; i < group.n; i++)
        group.entered[i] = last;
    settle();
    end();
}

/* ---- for all rows --------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(const conformance_row_t *row, int which);
    int needs; /**< conformance_ability_t; -1: nothing */
} tests[] = {
    {"nobody_before_all", nobody_before_all, -1},
    {"several_outstanding", several_outstanding, -1},
    {"late_members", late_members, CONFORMANCE_LATE},
    {"entered_again", entered_again, -1},
    {"leaving_early", leaving_early, -1},
    {"giving_up", giving_up, CONFORMANCE_ABANDON},
    {"failure_spreads", failure_spreads, CONFORMANCE_FAIL},
    {"cut_off", conformance_cut_off, CONFORMANCE_CUT},
    {"anything", anything, -1},
    {"together", together, CONFORMANCE_TOGETHER},
};

enum {
    TESTS = sizeof(tests) / sizeof(tests[0]),
    CASES = SCHEDULES * (CONFORMANCE_MEMBERS_MAX - 1) /**< of a test */
};

static const char *skipped(const conformance_row_t *row, int test)
{
    return tests[test].needs < 0 ? NULL : row->cannot[tests[test].needs];
}

static const conformance_row_t *const *all_rows;

/** _i: row, test, case. */
START_TEST(conformance)
{
    const int test = _i / CASES % TESTS, which = _i % CASES;

    tests[test].run(all_rows[_i / CASES / TESTS], which);
}
END_TEST

void conformance_add(Suite *suite, const conformance_row_t *const *rows, int n)
{
#ifdef __SANITIZE_THREAD__ /* which needs not all sizes of groups to see a race */
    const int fewer = 4;
#else
    const int fewer = 1;
#endif

    all_rows = rows;
    for (int r = 0; r < n; r++) {
        TCase *tcase = tcase_create(rows[r]->name);
        tcase_set_timeout(tcase, UNIT_SECONDS);
        for (int t = 0; t < TESTS; t++) {
            const int first = (r * TESTS + t) * CASES;
            if (skipped(rows[r], t) != NULL) {
                printf("SKIP: %s: %s: %s\n", rows[r]->name, tests[t].name, skipped(rows[r], t));
                continue;
            }
            const int every = rows[r]->every * fewer;
            for (int which = t % every; which < CASES; which += every)
                tcase_add_loop_test(tcase, conformance, first + which, first + which + 1);
        }
        suite_add_tcase(suite, tcase);
    }
}
