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

enum { MEMBERS_MAX = 9, ENDPOINT_ROOM = 64 };

static const nicbarrier_engine_t *const engine = &nicbarrier_engine_put;

/* ---- a group ----------------------------------------------------------------------------------
 */

typedef struct group {
    int n;
    nicbarrier_net_t *net[MEMBERS_MAX];
    uint64_t entered[MEMBERS_MAX];
} group_t;

/** All but the last `missing` connect. */
static void connect_most(group_t *g, int n, nicbarrier_schedule_kind_t schedule, int missing)
{
    static const nicbarrier_net_events_t none;
    const nicbarrier_engine_settings_t settings = {.schedule = (int)schedule};
    unsigned char bytes[MEMBERS_MAX][ENDPOINT_ROOM];
    uint32_t len[MEMBERS_MAX];
    nicbarrier_reason_t why = {""};

    *g = (group_t){.n = n};
    ck_assert_int_eq(engine->open(&settings, &why), 0);
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
    for (int i = 0; i < n - missing; i++)
        ck_assert_int_eq(engine->connect(g->net[i], &endpoints, &none, &why), 0);
}

static void connect_all(group_t *g, int n, nicbarrier_schedule_kind_t schedule)
{
    connect_most(g, n, schedule, 0);
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

/** The agreement has not come to an end here. */
static void abandon(group_t *g, int i)
{
    engine->extras->abandon(g->net[i]);
    leave(g, i);
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

/* ---- tests ------------------------------------------------------------------------------------
 */

static void random_member(group_t *g, uint64_t last)
{
    const int i = (int)unit_below(&wire.random, (uint64_t)g->n);
    if (g->net[i] == NULL)
        return;
    const uint64_t complete = engine->completed(g->net[i]);
    UNIT_CHECK(complete <= least_entered(g));
    UNIT_CHECK(engine->extras->failure(g->net[i]) == NICBARRIER_SOUND);
    if (complete == last && (!wire.overtaken || wire.puts == 0))
        leave(g, i);
    else if (g->entered[i] < last && g->entered[i] < complete + 4)
        enter(g, i, g->entered[i] + 1 + unit_below(&wire.random, last - g->entered[i]) % 3);
}

static bool anybody(const group_t *g)
{
    bool any = false;
    for (int i = 0; i < g->n; i++)
        any |= g->net[i] != NULL;
    return any;
}

/* Barriers of all kinds of groups, several outstanding; whoever has completed the last leaves. */
START_TEST(all_complete)
{
    static const nicbarrier_schedule_kind_t kinds[] = {
        NICBARRIER_DISSEMINATION, NICBARRIER_PAIRWISE, NICBARRIER_GATHER_BROADCAST};
    group_t g;

    reset((uint64_t)_i);
    wire.at_once = unit_once_in(&wire.random, 8);
    wire.overtaken = unit_once_in(&wire.random, 3);
    const uint64_t last = 1 + unit_below(&wire.random, 12);
    const int n = 2 + (int)unit_below(&wire.random, MEMBERS_MAX - 1);
    connect_all(&g, n, kinds[unit_below(&wire.random, 3)]);
    for (int left = 200000; anybody(&g); left--) {
        UNIT_CHECK(left > 0);
        if (unit_once_in(&wire.random, 2))
            random_member(&g, last);
        else
            (void)put_wire_progress(unit_once_in(&wire.random, 2));
    }
    put_wire_drain();
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
    connect_most(&g, 3, NICBARRIER_DISSEMINATION, _i == 2);
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
    abandon(&g, 2);
    put_wire_drain();
    abandon(&g, 0);
    abandon(&g, 1);
    put_wire_drain();
    close_all();
}
END_TEST

/* Whoever cannot reach a partner says so; the partner does not. */
START_TEST(lost_before_a_put)
{
    group_t g;

    reset(0);
    wire.at_once = true;
    connect_all(&g, 2, NICBARRIER_DISSEMINATION);
    ck_assert(engine->extras->failure(g.net[0]) == NICBARRIER_SOUND);
    cut(0, 1);
    wire.losses = 0;
    enter(&g, 0, 1);
    ck_assert(engine->extras->failure(g.net[0]) != NICBARRIER_SOUND);
    enter(&g, 1, 1);
    put_wire_drain();
    ck_assert(engine->extras->failure(g.net[1]) == NICBARRIER_SOUND);
    end_two(&g);
}
END_TEST

START_TEST(lost_during_a_put)
{
    group_t g;

    (void)begin_put(&g);
    ck_assert(engine->extras->failure(g.net[0]) == NICBARRIER_SOUND);
    cut(0, 1);
    wire.losses = 0;
    put_wire_drain();
    ck_assert(engine->extras->failure(g.net[0]) != NICBARRIER_SOUND);
    ck_assert(engine->extras->failure(g.net[1]) == NICBARRIER_SOUND);
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
    ck_assert(engine->extras->failure(g.net[0]) == NICBARRIER_SOUND);
    cut(0, 1);
    (void)put_wire_progress(false);
    ck_assert(engine->extras->failure(g.net[0]) != NICBARRIER_SOUND);
    ck_assert(engine->extras->failure(g.net[1]) == NICBARRIER_SOUND);
    ck_assert_int_eq(wire.told, 1);
    end_two(&g);
}
END_TEST

/* A partner leaves when nothing is awaited of it: it may be in MPI_Finalize. */
START_TEST(lost_in_good_order)
{
    group_t g;

    reset(0);
    wire.at_once = true;
    connect_all(&g, 2, NICBARRIER_DISSEMINATION);
    enter(&g, 0, 1);
    enter(&g, 1, 1);
    put_wire_drain();
    (void)put_wire_progress(false);
    ck_assert_uint_eq(engine->completed(g.net[0]), 1);
    cut(0, 1);
    (void)put_wire_progress(false);
    ck_assert_int_eq(wire.told, 0);
    ck_assert(engine->extras->failure(g.net[0]) != NICBARRIER_SOUND);
    end_two(&g);
}
END_TEST

/* The process ends with a put that UCX could not send: of which it may still say so. */
START_TEST(closed_in_flight)
{
    group_t g;

    (void)begin_put(&g);
    leave(&g, 0);
    leave(&g, 1);
    engine->close();
    for (int i = 0; i < wire.regions; i++)
        ck_assert(wire.region[i]->freed);
    wire.put[0].cb(wire.put[0].arg, -12);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nicbarrier_put");
    TCase *tcase = tcase_create("nicbarrier_put");

    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, all_complete, 0, 400);
    tcase_add_loop_test(tcase, giving_up, 0, 4);
    tcase_add_test(tcase, word_behind_another);
    tcase_add_test(tcase, lost_before_a_put);
    tcase_add_test(tcase, lost_during_a_put);
    tcase_add_test(tcase, lost_after_a_put);
    tcase_add_test(tcase, lost_in_good_order);
    tcase_add_test(tcase, closed_in_flight);
    suite_add_tcase(suite, tcase);
    return unit_run_suite(suite);
}
