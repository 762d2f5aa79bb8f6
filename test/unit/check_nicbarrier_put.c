/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Engine put without UCX: all members of a group in this process, over a wire of the test's own
 * (put_transport.h). What every engine must do, and what only this one does.
 */
#include "coll_nicbarrier/engines/put/put.h"
#include "test/unit/nicbarrier_here.h"
#include "test/unit/put_transport.h"

static const nicbarrier_engine_t *const engine = &nicbarrier_engine_put;

static int first_remote[CONFORMANCE_MEMBERS_MAX]; /**< of each member, in put_transport's list */

/* ---- what every engine must do -------------------------------------------------------------- */

static void reset(uint64_t seed)
{
    memset(&wire, 0, sizeof(wire));
    wire.random.state = seed;
}

static void put_begin(int n, nicbarrier_schedule_kind_t schedule, uint64_t seed)
{
    reset(seed);
    wire.at_once = unit_once_in(&wire.random, 8);
    wire.overtaken = unit_once_in(&wire.random, 3);
    wire.silent = unit_once_in(&wire.random, 4);
    here_begin(engine, n, schedule);
}

static void put_connect(int i)
{
    first_remote[i] = wire.remotes;
    here_connect(i);
}

static void put_pass(void)
{
    (void)put_wire_progress(true);
}

/** Cuts all that goes from a to b; -1: to anybody. A member opens its remotes in the order of its
 *  steps. */
static void cut_from(int a, int b)
{
    nicbarrier_step_t step[NICBARRIER_STEPS_MAX];
    const int n = nicbarrier_schedule(here.schedule, a, here.n, step);
    onic_remote_t **remote = &wire.remote[first_remote[a]];

    for (int k = 0; k < n; k++) {
        if (step[k].send_to == NICBARRIER_NOBODY)
            continue;
        (*remote++)->cut |= b < 0 || step[k].send_to == b;
    }
    wire.losses++;
}

static int any(int n)
{
    return (int)unit_below(&wire.random, (uint64_t)n);
}

/** To whom member `a` puts. */
static int a_partner(int a)
{
    nicbarrier_step_t step[NICBARRIER_STEPS_MAX];
    const int n = nicbarrier_schedule(here.schedule, a, here.n, step);
    int k = any(n);

    while (step[k].send_to == NICBARRIER_NOBODY)
        k = (k + 1) % n;
    return step[k].send_to;
}

/** Both directions: what it puts, and what others put to it; or only two cannot reach each other
 *  any more. */
static void put_cut(int lost)
{
    const int partner = unit_once_in(&wire.random, 3) ? a_partner(lost) : -1;

    cut_from(lost, partner);
    for (int i = 0; i < here.n; i++)
        if (partner < 0 || i == partner)
            cut_from(i, lost);
}

static void drain(void)
{
    put_wire_drain();
    (void)put_wire_progress(false);
}

/** Nothing is held any more. Each put was tried once, and who leaves has not waited for those that
 *  could not go out. */
static void put_end(void)
{
    for (int i = 0; i < wire.remotes; i++)
        UNIT_CHECK(wire.remote[i]->failures <= 1);
    for (int left = 10000; wire.wants_server > 0; left--) {
        UNIT_CHECK(left > 0);
        put_pass();
    }
    wire.silent = false;
    drain();
    here_end();
    UNIT_CHECK(wire.wants_server == 0 && wire.references == 0 && wire.open_remotes == 0);
    for (int i = 0; i < wire.regions; i++) {
        UNIT_CHECK(wire.region[i]->freed);
        free(wire.region[i]);
    }
    for (int i = 0; i < wire.remotes; i++)
        free(wire.remote[i]);
}

static const conformance_row_t put = {
    .name = "put",
    .begin = put_begin,
    .pass = put_pass,
    .end = put_end,
    .fail = here_fail,
    .cut = put_cut,
    .connect = put_connect,
    IN_THIS_PROCESS,
    .cannot = {[CONFORMANCE_TOGETHER] = "the tests' wire is for one thread"},
};

/* ---- a group -------------------------------------------------------------------------------- */

static void connect_all(void)
{
    for (int i = 0; i < here.n; i++) {
        first_remote[i] = wire.remotes;
        connect_with(i, NULL);
    }
}

/** `n` members whose puts are locally complete when they are made. */
static void begin_at_once(int n)
{
    reset(unit_seed());
    wire.at_once = true;
    here_begin(engine, n, NICBARRIER_DISSEMINATION);
}

static void leave(int i)
{
    here_disconnect(i);
    here.net[i] = NULL;
}

static void leave_all(void)
{
    for (int i = 0; i < here.n; i++)
        if (here.net[i] != NULL)
            leave(i);
}

/** Two members, and member 0 enters until a put of its own is under way; returns its epoch. */
static uint64_t begin_put(void)
{
    uint64_t epoch = 1;

    reset(unit_seed());
    here_begin(engine, 2, NICBARRIER_DISSEMINATION);
    connect_all();
    /* Those before it were locally complete at once. */
    for (here_enter(0, epoch); wire.put[0].word == NULL; here_enter(0, ++epoch))
        put_wire_drain();
    ck_assert_int_eq(wire.puts, 1);
    return epoch;
}

/* ---- tests ---------------------------------------------------------------------------------- */

/* Groups come and go: what they need is used again. Some end while puts are on their way that come
 * in the time of later ones: what these complete, all have entered. */
START_TEST(come_and_go)
{
    reset(unit_seed());
    here_begin(engine, 3, NICBARRIER_DISSEMINATION);
    for (int i = 0; i < 1000; i++) {
        if (i > 0)
            here_prepare();
        connect_all();
        const bool whole = i % 100 != 0;
        here_enter(0, whole ? 2 : 1);
        here_enter(1, 2);
        if (whole)
            here_enter(2, 2);
        for (int k = 0; whole && k < 3; k += here_completed(k) == 2) {
            UNIT_CHECK(!here_failed(k));
            (void)put_wire_progress(unit_once_in(&wire.random, 2));
        }
        leave_all();
        for (int puts = any(100); puts > 0; puts--)
            put_pass();
    }
    /* Those of the ten that were left before they were complete are not used again. */
    ck_assert_int_le(wire.regions, 16 + 3 + 10 * 3);
    put_end();
}
END_TEST

/* A put is still under way when member 0 has completed the next epoch and leaves: the other must
 * get its word of that. */
START_TEST(word_behind_another)
{
    const uint64_t last = begin_put() + 1;

    here_enter(0, last);
    ck_assert_int_eq(wire.puts, 1);
    wire.at_once = true;
    here_enter(1, last);
    ck_assert_int_eq(wire.puts, 2);
    onic_transport_lock();
    put_wire_step(1);
    onic_transport_unlock();
    (void)put_wire_progress(false);
    ck_assert_uint_eq(here_completed(0), last);
    leave(0);
    /* Which takes the server thread, where the application goes away now. */
    ck_assert_int_eq(wire.wants_server, 2);
    drain();
    ck_assert_int_eq(wire.wants_server, 1);
    ck_assert_uint_eq(here_completed(1), last);
    leave(1);
    put_end();
}
END_TEST

/* ---- failures ------------------------------------------------------------------------------- */

/* Member 0 loses its partner before a put, during it, or behind it, when all that it had to say has
 * gone out, but what it waits for cannot come. It says so; the partner does not, if nobody else can
 * tell it. */
START_TEST(lost_at_a_put)
{
    if (_i == 1) {
        (void)begin_put();
    } else {
        begin_at_once(2);
        connect_all();
    }
    if (_i == 2) {
        here_enter(0, 1);
        put_wire_drain();
    }
    ck_assert(!here_failed(0));
    cut_from(0, 1);
    if (_i == 2)
        (void)put_wire_progress(false);
    else
        wire.losses = 0;
    if (_i == 0)
        here_enter(0, 1);
    if (_i == 1)
        put_wire_drain();
    ck_assert(here_failed(0));
    ck_assert(_i != 2 || wire.told == 1);
    if (_i == 0)
        here_enter(1, 1);
    put_wire_drain();
    ck_assert(!here_failed(1));
    leave_all();
    put_end();
}
END_TEST

/** All that look hear of the failure. */
static void all_hear(void)
{
    for (int i = 0, left = 200000; i < here.n; i += here_failed(i)) {
        UNIT_CHECK(left-- > 0);
        here_progress(any(here.n));
    }
}

/* A partner leaves when nothing is awaited of it: it may be in MPI_Finalize. Nobody hears of it,
 * unless another barrier is entered. */
START_TEST(lost_in_good_order)
{
    begin_at_once(4);
    connect_all();
    for (int i = 0; i < 4; i++)
        here_enter(i, 1);
    drain();
    ck_assert_uint_eq(here_completed(0), 1);
    cut_from(0, 1);
    (void)put_wire_progress(false);
    ck_assert_int_eq(wire.told, 0);
    ck_assert_int_eq(wire.puts, 0);
    /* Who knew of it now would give up without a word to the others. */
    ck_assert(!here_failed(0));
    if (_i == 1) {
        here_enter(0, 2);
        ck_assert_int_eq(wire.told, 1);
        ck_assert(here_failed(0));
        all_hear();
    }
    leave_all();
    put_end();
}
END_TEST

/* A member is lost, or only two cannot reach each other any more, in the middle of puts: all hear
 * of it, also those that had nothing to do with it. */
START_TEST(lost_at_any_time)
{
    conformance_cut_off(&put, _i);
}
END_TEST

/* UCX says nothing of a put that is under way to a partner that is lost: who leaves does not wait
 * for that. When UCX says it at last, the word is still there. */
START_TEST(lost_in_silence)
{
    (void)begin_put();
    wire.silent = true;
    cut_from(0, 1);
    (void)put_wire_progress(false);
    ck_assert(here_failed(0));
    leave(0);
    ck_assert_int_eq(wire.wants_server, 1);
    leave(1);
    ck_assert_int_eq(wire.wants_server, 0);
    if (_i == 0) {
        put_end();
    } else {
        wire.ends = true;
        here_end();
        ck_assert_int_eq(wire.references, 0);
    }
}
END_TEST

/* The process ends with a put that UCX could not send: of which it may still say so. */
START_TEST(closed_in_flight)
{
    (void)begin_put();
    leave_all();
    wire.ends = true;
    here_end();
    for (int i = 0; i < wire.regions; i++)
        ck_assert(wire.region[i]->freed);
}
END_TEST

/** Does the server thread look on? */
static bool is_looked_after(void)
{
    put_wire_drain();
    (void)put_wire_progress(false);
    (void)put_wire_progress(false);
    return wire.defer;
}

/* The server thread looks on as long as something is waited for, also of processes behind a member,
 * and no longer. */
START_TEST(looked_after)
{
    static _Alignas(128) unsigned char memory[NODE_ROOM];
    nicbarrier_shm_t node;

    /* Another process is there, which never enters. */
    ck_assert_uint_le(nicbarrier_shm_bytes(2, 2), sizeof(memory));
    memset(memory, 0, sizeof(memory));
    nicbarrier_shm_attach(&node, memory, 2, 0, 2, true);
    begin_at_once(2);
    connect_with(0, &node);
    connect_with(1, NULL);
    ck_assert(!is_looked_after());
    for (uint64_t epoch = 1; epoch <= 3; epoch++) {
        nicbarrier_shm_enter(&node, epoch);
        here_progress(0);
        ck_assert(is_looked_after());
        here_enter(1, epoch);
        ck_assert(is_looked_after());
        here_enter(0, epoch);
        ck_assert(!is_looked_after());
        ck_assert(here_completed(0) == epoch && here_completed(1) == epoch);
    }
    nicbarrier_shm_enter(&node, 4);
    here_fail(1);
    here_progress(0);
    ck_assert(!is_looked_after() && here_failed(0));
    leave_all();
    put_end();
}
END_TEST

/* A word may still come into the flags of a group that has failed: no other group gets them. */
START_TEST(failed_flags)
{
    begin_at_once(2);
    connect_all();
    here_enter(0, 1);
    here_fail(0);
    onic_region_t *const region = here.net[0]->region;
    leave_all();
    for (int i = 0; i < 200; i++) {
        onic_region_t *other = nicbarrier_put_flags_take();
        ck_assert_ptr_ne(other, region);
        nicbarrier_put_flags_give(other, true);
    }
    put_end();
}
END_TEST

int main(void)
{
    const conformance_row_t *const row = &put;
    Suite *suite =
        UNIT_SUITE("nicbarrier_put", UNIT_ONCE(come_and_go), UNIT_ONCE(word_behind_another),
                   UNIT_LOOP(lost_at_a_put, 0, 3), UNIT_LOOP(lost_in_good_order, 0, 2),
                   UNIT_LOOP(lost_at_any_time, 0, 600), UNIT_LOOP(lost_in_silence, 0, 2),
                   UNIT_ONCE(closed_in_flight), UNIT_ONCE(looked_after), UNIT_ONCE(failed_flags));

    unit_in_one_process();
    conformance_add(suite, &row, 1);
    return unit_run_suite(suite);
}
