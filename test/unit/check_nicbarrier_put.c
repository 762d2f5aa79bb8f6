/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Engine put without UCX: all members of a group in this process, over a wire of the test's own
 * (put_wire.h).
 */
#include "coll_nicbarrier/engines/engine.h"
#include "coll_nicbarrier/schedule/schedule.h"

#include <string.h>

#include "test/unit/put_wire.h"

/* Check still has this old name. */
#undef fail

enum { MEMBERS_MAX = 9, ENDPOINT_ROOM = 64 };

static const nicbarrier_engine_t *const engine = &nicbarrier_engine_put;

/* ---- a group -------------------------------------------------------------------------------- */

typedef struct group {
    int n;
    nicbarrier_schedule_kind_t schedule;
    nicbarrier_net_t *net[MEMBERS_MAX];
    int first_remote[MEMBERS_MAX]; /* in the order of its steps */
    uint64_t entered[MEMBERS_MAX];
} group_t;

/** All but the last `missing` connect. The engine is open. */
static void make_group(group_t *g, int n, nicbarrier_schedule_kind_t schedule, int missing)
{
    static const nicbarrier_net_events_t none;
    unsigned char bytes[MEMBERS_MAX][ENDPOINT_ROOM];
    uint32_t len[MEMBERS_MAX];
    nicbarrier_reason_t why = {""};

    *g = (group_t){.n = n, .schedule = schedule};
    for (int i = 0; i < n; i++) {
        const nicbarrier_group_t group = {.key = 7, .n = n, .me = i};
        unsigned char endpoint[NICBARRIER_ENDPOINT_MAX];
        ck_assert_int_eq(engine->prepare(&group, &g->net[i], endpoint, &len[i], &why), 0);
        ck_assert_uint_le(len[i], ENDPOINT_ROOM);
        memcpy(bytes[i], endpoint, len[i]);
    }
    nicbarrier_endpoint_t list[MEMBERS_MAX];
    for (int i = 0; i < n; i++)
        list[i] = (nicbarrier_endpoint_t){i, len[i], bytes[i]};
    const nicbarrier_endpoints_t endpoints = {n, list};
    for (int i = 0; i < n - missing; i++) {
        g->first_remote[i] = wire.remotes;
        ck_assert_int_eq(engine->connect(g->net[i], &endpoints, &none, &why), 0);
    }
}

static void open_engine(nicbarrier_schedule_kind_t schedule)
{
    const nicbarrier_engine_settings_t settings = {.schedule = (int)schedule};
    nicbarrier_reason_t why = {""};

    ck_assert_int_eq(engine->open(&settings, &why), 0);
}

static void connect_all(group_t *g, int n, nicbarrier_schedule_kind_t schedule)
{
    open_engine(schedule);
    make_group(g, n, schedule, 0);
}

static void enter(group_t *g, int i, uint64_t epoch)
{
    g->entered[i] = epoch;
    engine->enter(g->net[i], epoch);
}

static void leave(group_t *g, int i)
{
    engine->disconnect(g->net[i]);
    g->net[i] = NULL;
}

static void leave_all(group_t *g)
{
    for (int i = 0; i < g->n; i++)
        if (g->net[i] != NULL)
            leave(g, i);
}

static bool has_failed(const group_t *g, int i)
{
    return engine->failed(g->net[i]);
}

static uint64_t least_entered(const group_t *g)
{
    uint64_t low = UINT64_MAX;
    for (int i = 0; i < g->n; i++)
        low = g->entered[i] < low ? g->entered[i] : low;
    return low;
}

/** Nothing is held any more. */
static void close_all(void)
{
    engine->close();
    ck_assert_int_eq(wire.wants_server, 0);
    ck_assert_int_eq(wire.references, 0);
    ck_assert_int_eq(wire.open_remotes, 0);
    for (int i = 0; i < wire.regions; i++) {
        ck_assert_msg(wire.region[i]->freed, "region %d", i);
        free(wire.region[i]);
    }
    for (int i = 0; i < wire.remotes; i++)
        free(wire.remote[i]);
}

static void reset(uint64_t more)
{
    memset(&wire, 0, sizeof(wire));
    wire.random.state = unit_seed() + more;
}

/** Cuts what goes out from member `from`, in the order of its steps; all of it. */
static void cut(int first, int n)
{
    for (int i = first; i < first + n; i++)
        wire.remote[i]->cut = true;
    wire.losses++;
}

/** Cuts all that goes from a to b. */
static void cut_from(const group_t *g, int a, int b)
{
    nicbarrier_step_t steps[NICBARRIER_STEPS_MAX];
    const int n = nicbarrier_schedule(g->schedule, a, g->n, steps);
    int remote = g->first_remote[a];

    for (int k = 0; k < n; k++) {
        if (steps[k].send_to == b)
            cut(remote, 1);
        remote += steps[k].send_to != NICBARRIER_NOBODY;
    }
}

static void cut_between(const group_t *g, int a, int b)
{
    cut_from(g, a, b);
    cut_from(g, b, a);
}

/** Nothing goes from a member or to it any more. */
static void cut_off(const group_t *g, int a)
{
    for (int b = 0; b < g->n; b++)
        if (b != a)
            cut_between(g, a, b);
}

/** To whom member `a` puts. */
static int a_partner(const group_t *g, int a)
{
    nicbarrier_step_t steps[NICBARRIER_STEPS_MAX];
    const int n = nicbarrier_schedule(g->schedule, a, g->n, steps);
    int k = (int)unit_below(&wire.random, (uint64_t)n);

    while (steps[k].send_to == NICBARRIER_NOBODY)
        k = (k + 1) % n;
    return steps[k].send_to;
}

static nicbarrier_schedule_kind_t random_schedule(void)
{
    static const nicbarrier_schedule_kind_t kinds[] = {
        NICBARRIER_DISSEMINATION, NICBARRIER_PAIRWISE, NICBARRIER_GATHER_BROADCAST};
    return kinds[unit_below(&wire.random, 3)];
}

/* ---- tests ---------------------------------------------------------------------------------- */

/** Enters something, if it may, up to `last`. */
static void enter_some(group_t *g, int i, uint64_t last)
{
    if (g->entered[i] < last && g->entered[i] < engine->completed(g->net[i]) + 4)
        enter(g, i, g->entered[i] + 1 + unit_below(&wire.random, last - g->entered[i]) % 3);
}

static void random_member(group_t *g, uint64_t last)
{
    const int i = (int)unit_below(&wire.random, (uint64_t)g->n);
    if (g->net[i] == NULL)
        return;
    const uint64_t complete = engine->completed(g->net[i]);
    UNIT_CHECK(complete <= least_entered(g));
    UNIT_CHECK(!has_failed(g, i));
    if (complete == last)
        leave(g, i);
    else
        enter_some(g, i, last);
}

static bool anybody(const group_t *g)
{
    bool any = false;
    for (int i = 0; i < g->n; i++)
        any |= g->net[i] != NULL;
    return any;
}

static void run_group(group_t *g, uint64_t last)
{
    for (int left = 200000; anybody(g); left--) {
        UNIT_CHECK(left > 0);
        if (unit_once_in(&wire.random, 2))
            random_member(g, last);
        else
            (void)put_wire_progress(unit_once_in(&wire.random, 2));
    }
}

/* Barriers of all kinds of groups, several outstanding; whoever has completed the last leaves. */
START_TEST(all_complete)
{
    group_t g;

    reset((uint64_t)_i);
    wire.at_once = unit_once_in(&wire.random, 8);
    wire.overtaken = unit_once_in(&wire.random, 3);
    const uint64_t last = 1 + unit_below(&wire.random, 12);
    const int n = 2 + (int)unit_below(&wire.random, MEMBERS_MAX - 1);
    connect_all(&g, n, random_schedule());
    run_group(&g, last);
    put_wire_drain();
    close_all();
}
END_TEST

/* Groups come and go: what they need is used again. Some end while puts are on their way that come
 * in the time of later ones: what these complete, all have entered. */
START_TEST(come_and_go)
{
    group_t g;

    reset(0);
    open_engine(NICBARRIER_DISSEMINATION);
    for (int i = 0; i < 1000; i++) {
        make_group(&g, 3, NICBARRIER_DISSEMINATION, 0);
        if (i % 3 == 0) {
            enter(&g, 0, 1);
            enter(&g, 1, 2);
            leave_all(&g);
        } else {
            run_group(&g, 2);
        }
        for (int puts = (int)unit_below(&wire.random, 100); puts > 0; puts--)
            (void)put_wire_progress(true);
    }
    put_wire_drain();
    ck_assert_int_le(wire.regions, 6);
    close_all();
}
END_TEST

/** Two members, and member 0 enters until a put of its own is under way; returns its epoch. */
static uint64_t begin_put(group_t *g)
{
    uint64_t epoch = 1;

    reset(0);
    connect_all(g, 2, NICBARRIER_DISSEMINATION);
    /* Those before it were locally complete at once. */
    for (enter(g, 0, epoch); wire.put[0].word == NULL; enter(g, 0, ++epoch))
        put_wire_drain();
    ck_assert_int_eq(wire.puts, 1);
    return epoch;
}

static void end_two(group_t *g)
{
    leave(g, 0);
    leave(g, 1);
    put_wire_drain();
    (void)put_wire_progress(false);
    close_all();
}

/* A put is still under way when member 0 has completed the next epoch and leaves: the other must
 * get its word of that. */
START_TEST(word_behind_another)
{
    group_t g;
    const uint64_t last = begin_put(&g) + 1;

    enter(&g, 0, last);
    ck_assert_int_eq(wire.puts, 1);
    wire.at_once = true;
    enter(&g, 1, last);
    ck_assert_int_eq(wire.puts, 2);
    onic_wire_lock();
    put_wire_step(1);
    onic_wire_unlock();
    (void)put_wire_progress(false);
    ck_assert_uint_eq(engine->completed(g.net[0]), last);
    leave(&g, 0);
    /* Which takes the server thread, where the application goes away now. */
    ck_assert_int_eq(wire.wants_server, 2);
    put_wire_drain();
    (void)put_wire_progress(false);
    ck_assert_int_eq(wire.wants_server, 1);
    ck_assert_uint_eq(engine->completed(g.net[1]), last);
    leave(&g, 1);
    close_all();
}
END_TEST

/* The last member gives up, after it has entered, before that, or before it has connected: the puts
 * of the others arrive later. Or it has even completed the trial when it ends, and others, for whom
 * the agreement is over, enter the next epoch. */
START_TEST(giving_up)
{
    group_t g;

    reset(0);
    wire.at_once = true;
    open_engine(NICBARRIER_DISSEMINATION);
    make_group(&g, 3, NICBARRIER_DISSEMINATION, _i == 2);
    if (_i == 0 || _i == 3)
        enter(&g, 2, 1);
    enter(&g, 0, 1);
    enter(&g, 1, 1);
    if (_i == 3) {
        put_wire_drain();
        (void)put_wire_progress(false);
        ck_assert_uint_eq(engine->completed(g.net[2]), 1);
        enter(&g, 0, 2);
        enter(&g, 1, 2);
    }
    leave(&g, 2);
    put_wire_drain();
    leave(&g, 0);
    leave(&g, 1);
    put_wire_drain();
    close_all();
}
END_TEST

/* ---- failures ------------------------------------------------------------------------------- */

/* Whoever cannot reach a partner says so; the partner does not, if nobody else can tell it. */
START_TEST(lost_before_a_put)
{
    group_t g;

    reset(0);
    wire.at_once = true;
    connect_all(&g, 2, NICBARRIER_DISSEMINATION);
    ck_assert(!has_failed(&g, 0));
    cut(0, 1);
    wire.losses = 0;
    enter(&g, 0, 1);
    ck_assert(has_failed(&g, 0));
    enter(&g, 1, 1);
    put_wire_drain();
    ck_assert(!has_failed(&g, 1));
    end_two(&g);
}
END_TEST

START_TEST(lost_during_a_put)
{
    group_t g;

    (void)begin_put(&g);
    ck_assert(!has_failed(&g, 0));
    cut(0, 1);
    wire.losses = 0;
    put_wire_drain();
    ck_assert(has_failed(&g, 0));
    ck_assert(!has_failed(&g, 1));
    end_two(&g);
}
END_TEST

/* All that member 0 had to say has gone out, but what it waits for cannot come. */
START_TEST(lost_after_a_put)
{
    group_t g;

    reset(0);
    wire.at_once = true;
    connect_all(&g, 2, NICBARRIER_DISSEMINATION);
    enter(&g, 0, 1);
    put_wire_drain();
    ck_assert(!has_failed(&g, 0));
    cut(0, 1);
    (void)put_wire_progress(false);
    ck_assert(has_failed(&g, 0));
    ck_assert(!has_failed(&g, 1));
    ck_assert_int_eq(wire.told, 1);
    end_two(&g);
}
END_TEST

/* A partner leaves when nothing is awaited of it: it may be in MPI_Finalize. Nobody hears of it,
 * unless another barrier is entered. */
START_TEST(lost_in_good_order)
{
    group_t g;

    reset(0);
    wire.at_once = true;
    connect_all(&g, 4, NICBARRIER_DISSEMINATION);
    for (int i = 0; i < 4; i++)
        enter(&g, i, 1);
    put_wire_drain();
    (void)put_wire_progress(false);
    ck_assert_uint_eq(engine->completed(g.net[0]), 1);
    cut_from(&g, 0, 1);
    (void)put_wire_progress(false);
    ck_assert_int_eq(wire.told, 0);
    ck_assert_int_eq(wire.puts, 0);
    /* Who knew of it now would give up without a word to the others. */
    ck_assert(!has_failed(&g, 0));
    if (_i == 1) {
        enter(&g, 0, 2);
        ck_assert_int_eq(wire.told, 1);
        ck_assert(has_failed(&g, 0));
        put_wire_drain();
        (void)put_wire_progress(false);
        for (int i = 1; i < 4; i++)
            ck_assert(has_failed(&g, i));
    }
    leave_all(&g);
    close_all();
}
END_TEST

/** All but `out` know that the group has failed. */
static bool is_over(const group_t *g, int out)
{
    bool over = true;
    for (int i = 0; i < g->n; i++)
        over &= i == out || has_failed(g, i);
    return over;
}

/** Programs go on with barriers until one of them fails; `out` does not. */
static void run_to_failure(group_t *g, int out)
{
    for (int left = 200000; !is_over(g, out); left--) {
        UNIT_CHECK(left > 0);
        const int i = (int)unit_below(&wire.random, (uint64_t)g->n);
        UNIT_CHECK(engine->completed(g->net[i]) <= least_entered(g));
        if (unit_once_in(&wire.random, 2))
            (void)put_wire_progress(unit_once_in(&wire.random, 2));
        else if (i != out && !has_failed(g, i))
            enter_some(g, i, UINT64_MAX);
    }
}

/** Some barriers, from which on anything can happen. */
static void warm_up(group_t *g, uint64_t last)
{
    for (int left = (int)unit_below(&wire.random, 200); left > 0; left--)
        if (unit_once_in(&wire.random, 2))
            (void)put_wire_progress(true);
        else
            enter_some(g, (int)unit_below(&wire.random, (uint64_t)g->n), last);
}

static void begin_random(group_t *g, uint64_t seed, uint64_t last)
{
    static const int sizes[] = {4, 5, 8};

    reset(seed);
    wire.at_once = unit_once_in(&wire.random, 8);
    wire.silent = unit_once_in(&wire.random, 4);
    connect_all(g, sizes[unit_below(&wire.random, 3)], random_schedule());
    warm_up(g, last);
}

/** Each put is tried once. Who leaves does not wait for those that cannot go out. */
static void end_random(group_t *g)
{
    for (int i = 0; i < wire.remotes; i++)
        UNIT_CHECK(wire.remote[i]->failures <= 1);
    leave_all(g);
    for (int left = 10000; wire.wants_server > 0; left--) {
        UNIT_CHECK(left > 0);
        (void)put_wire_progress(true);
    }
    wire.silent = false;
    put_wire_drain();
    (void)put_wire_progress(false);
    close_all();
}

/* A member is lost at any time, in the middle of puts: all others hear of it, also those that had
 * nothing to do with it. */
START_TEST(member_lost)
{
    enum { LAST = 12 };
    group_t g;

    begin_random(&g, (uint64_t)_i, LAST);
    const int out = (int)unit_below(&wire.random, (uint64_t)g.n);
    cut_off(&g, out);
    run_to_failure(&g, out);
    end_random(&g);
}
END_TEST

/* Only two cannot reach each other any more. */
START_TEST(link_lost)
{
    enum { LAST = 12 };
    group_t g;

    begin_random(&g, (uint64_t)_i, LAST);
    const int a = (int)unit_below(&wire.random, (uint64_t)g.n);
    cut_between(&g, a, a_partner(&g, a));
    run_to_failure(&g, -1);
    end_random(&g);
}
END_TEST

/* A process behind a member has died: all know it in the end. */
START_TEST(death_behind)
{
    enum { LAST = 12 };
    group_t g;

    begin_random(&g, (uint64_t)_i, LAST);
    engine->fail(g.net[unit_below(&wire.random, (uint64_t)g.n)]);
    put_wire_drain();
    for (int i = 0; i < g.n; i++) {
        ck_assert(has_failed(&g, i));
        ck_assert_uint_le(engine->completed(g.net[i]), least_entered(&g));
    }
    end_random(&g);
}
END_TEST

/* UCX says nothing of a put that is under way to a partner that is lost: who leaves does not wait
 * for that. When UCX says it at last, the word is still there. */
START_TEST(lost_in_silence)
{
    group_t g;

    (void)begin_put(&g);
    wire.silent = true;
    cut(0, 1);
    (void)put_wire_progress(false);
    ck_assert(has_failed(&g, 0));
    leave(&g, 0);
    ck_assert_int_eq(wire.wants_server, 1);
    leave(&g, 1);
    ck_assert_int_eq(wire.wants_server, 0);
    if (_i == 0) {
        wire.silent = false;
        put_wire_drain();
        (void)put_wire_progress(false);
        close_all();
    } else {
        wire.ends = true;
        engine->close();
        ck_assert_int_eq(wire.references, 0);
    }
}
END_TEST

/* The process ends with a put that UCX could not send: of which it may still say so. */
START_TEST(closed_in_flight)
{
    group_t g;

    (void)begin_put(&g);
    leave(&g, 0);
    leave(&g, 1);
    wire.ends = true;
    engine->close();
    for (int i = 0; i < wire.regions; i++)
        ck_assert(wire.region[i]->freed);
}
END_TEST

/* A word of another group in a flag, come late, may have hidden one: the group fails. */
START_TEST(stray_word)
{
    group_t g;

    reset(0);
    wire.at_once = true;
    connect_all(&g, 2, NICBARRIER_DISSEMINATION);
    enter(&g, 0, 1);
    ck_assert_int_eq(wire.puts, 1);
    /* As if its flags had served another one before, with the tag of that. */
    wire.put[0].value ^= UINT64_C(3) << 48;
    put_wire_drain();
    ck_assert(has_failed(&g, 1));
    ck_assert(has_failed(&g, 0));
    ck_assert_uint_eq(engine->completed(g.net[1]), 0);
    end_two(&g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nicbarrier_put");
    TCase *tcase = tcase_create("nicbarrier_put");

    tcase_set_timeout(tcase, UNIT_SECONDS);
    tcase_add_loop_test(tcase, all_complete, 0, 400);
    tcase_add_test(tcase, come_and_go);
    tcase_add_loop_test(tcase, giving_up, 0, 4);
    tcase_add_test(tcase, word_behind_another);
    tcase_add_test(tcase, lost_before_a_put);
    tcase_add_test(tcase, lost_during_a_put);
    tcase_add_test(tcase, lost_after_a_put);
    tcase_add_loop_test(tcase, lost_in_good_order, 0, 2);
    tcase_add_loop_test(tcase, member_lost, 0, 400);
    tcase_add_loop_test(tcase, link_lost, 0, 200);
    tcase_add_loop_test(tcase, death_behind, 0, 200);
    tcase_add_loop_test(tcase, lost_in_silence, 0, 2);
    tcase_add_test(tcase, closed_in_flight);
    tcase_add_test(tcase, stray_word);
    suite_add_tcase(suite, tcase);
    return unit_run_suite(suite);
}
