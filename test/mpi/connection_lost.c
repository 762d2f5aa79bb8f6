/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 6 */
/* windows: create dynamic */
/* methods: auto */
/* arguments: waits */
/* arguments: pscw */
/* arguments: locks */
/* leaks: expected */
/* apart: transport */
/**
 * @file
 * Connections that break while both processes live: one shuts down all that it has over TCP.
 *
 *  - `waits`: the last rank does when the others wait for its answers, each in its way: in a flush,
 *    for an old value, for a request, for a long put, for a lock. All must end, with an error. Once
 *    they waited for ever, unless something more was sent.
 *  - `pscw`: rank 1 does when rank 0 has posted to it and to rank 2. Rank 0's MPI_Win_wait, and its
 *    MPI_Win_test in windows of the second kind, must end with an error, and the notice of rank 2
 * be used up, so that the next epoch, with rank 2 alone, is right.
 *  - `locks`: who held the target's lock, or waited for it, is forgotten there, and the others get
 *    it. Once they waited for ever. What was to be done under a lock that never came is not done.
 */
#include "test/mpi/testlib.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/transport/transport.h"
#include "test/mpi/shutdown.h"

/* ---- waits ----------------------------------------------------------------------------------- */

enum { MUCH = 8 << 20 };
static const int five = 5;

static int failed(int code)
{
    return code != MPI_SUCCESS;
}

static int flush(const tl_window_t *w, int target)
{
    int errors =
        failed(MPI_Put(&five, 1, MPI_INT, target, tl_disp(w, target, 0), 1, MPI_INT, w->win));

    return errors + failed(MPI_Win_flush(target, w->win));
}

static int fetch(const tl_window_t *w, int target)
{
    static int old;
    int errors = failed(
        MPI_Fetch_and_op(&five, &old, MPI_INT, target, tl_disp(w, target, 0), MPI_SUM, w->win));

    return errors + failed(MPI_Win_flush(target, w->win));
}

/** Nothing but MPI_Wait waits, which knows nothing of windows. */
static int request(const tl_window_t *w, int target)
{
    static int got;
    MPI_Request r;

    if (failed(MPI_Rget(&got, 1, MPI_INT, target, tl_disp(w, target, 0), 1, MPI_INT, w->win, &r)))
        return 1;
    return failed(MPI_Wait(&r, MPI_STATUS_IGNORE));
}

/** Much data, which UCX itself may wait for. */
static int long_put(const tl_window_t *w, int target)
{
    static char data[MUCH];
    MPI_Request r;

    if (failed(MPI_Rput(data, MUCH, MPI_BYTE, target, tl_disp(w, target, 0), MUCH, MPI_BYTE, w->win,
                        &r)))
        return 1;
    return failed(MPI_Wait(&r, MPI_STATUS_IGNORE)) + failed(MPI_Win_flush(target, w->win));
}

static int lock(const tl_window_t *w, int target)
{
    if (failed(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win)))
        return 1;
    return failed(MPI_Win_unlock(target, w->win));
}

static const struct {
    const char *name;
    int (*run)(const tl_window_t *, int target);
    bool locks; /**< it takes the lock itself */
} waits[] = {{"flush", flush, false},
             {"fetch", fetch, false},
             {"request", request, false},
             {"long put", long_put, false},
             {"lock", lock, true}};

/** The last rank lets the first begin, with its last call of MPI for a while; that one the next. */
static void tell_to_begin(const tl_window_t *w, int me)
{
    int next = (me + 1) % w->size;

    if (me < w->size - 1) {
        TL_MPI(MPI_Recv(NULL, 0, MPI_BYTE, me == 0 ? w->size - 1 : me - 1, 0, w->comm,
                        MPI_STATUS_IGNORE));
    }
    if (next < w->size - 1)
        TL_MPI(MPI_Send(NULL, 0, MPI_BYTE, next, 0, w->comm));
}

/** All but the last rank wait for it, each in its way, and once more after that. */
static void run_waits(const tl_window_t *w)
{
    const int me = w->rank;
    int target = w->size - 1, broken = 0, errors = 0;

    if (me < target && !waits[me].locks)
        TL_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, w->win));
    if (me < target)
        TL_CHECK(waits[me].run(w, target) == 0, "%s before", waits[me].name);
    MPI_Barrier(w->comm);
    tell_to_begin(w, me);
    if (me < target) {
        errors = waits[me].run(w, target);
    } else {
        /* Nothing is answered until it is too late, by a server thread neither: one is started
         * where a socket was full, whatever the parameter says. */
        onic_transport_lock();
        usleep(500000);
        broken = shutdown_connections();
        onic_transport_unlock();
    }
    MPI_Bcast(&broken, 1, MPI_INT, target, w->comm);
    if (me < target) {
        TL_CHECK(broken == 0 || errors > 0, "%s: no error", waits[me].name);
        TL_CHECK(broken == 0 || waits[me].run(w, target) > 0, "%s: no error later", waits[me].name);
        if (!waits[me].locks)
            (void)MPI_Win_unlock_all(w->win);
    }
}

/* ---- post and start -------------------------------------------------------------------------- */

static MPI_Group group_of_two(const tl_window_t *w)
{
    const int ranks[] = {1, 2};
    MPI_Group all, two;

    MPI_Comm_group(w->comm, &all);
    MPI_Group_incl(all, 2, ranks, &two);
    MPI_Group_free(&all);
    return two;
}

/** An access epoch of rank 1 or 2 to rank 0, in which it puts `value`. */
static void access_epoch(const tl_window_t *w, int value)
{
    MPI_Group zero = tl_group_of(w->comm, 0);

    TL_MPI(MPI_Win_start(zero, 0, w->win));
    TL_MPI(MPI_Put(&value, 1, MPI_INT, 0, tl_disp(w, 0, w->rank * (MPI_Aint)sizeof(int)), 1,
                   MPI_INT, w->win));
    TL_MPI(MPI_Win_complete(w->win));
    MPI_Group_free(&zero);
}

static int value_of(const tl_window_t *w, int rank)
{
    return ((const volatile int *)(const void *)w->base)[rank];
}

/** Ends an exposure epoch by MPI_Win_wait or MPI_Win_test. */
static int end_exposure(const tl_window_t *w, bool by_test)
{
    int flag = 0, rc = MPI_SUCCESS;

    if (!by_test)
        return MPI_Win_wait(w->win);
    while (!flag && rc == MPI_SUCCESS)
        rc = MPI_Win_test(w->win, &flag);
    TL_CHECK(flag, "MPI_Win_test gives an error and no flag");
    return rc;
}

/** What rank 0 sees: a good epoch, one with the loss, and one more with rank 2 alone. */
static void expose(const tl_window_t *w, bool by_test)
{
    MPI_Group both = group_of_two(w), two = tl_group_of(w->comm, 2);

    TL_MPI(MPI_Win_post(both, 0, w->win));
    TL_CHECK(end_exposure(w, by_test) == MPI_SUCCESS, "an error before the loss");
    TL_CHECK(value_of(w, 1) == 1 && value_of(w, 2) == 1, "%d and %d", value_of(w, 1),
             value_of(w, 2));
    TL_MPI(MPI_Win_post(both, 0, w->win));
    TL_CHECK(end_exposure(w, by_test) != MPI_SUCCESS, "no error of the loss");
    TL_CHECK(value_of(w, 2) == 2, "rank 2 has put %d", value_of(w, 2));
    TL_MPI(MPI_Win_post(two, 0, w->win));
    TL_CHECK(end_exposure(w, by_test) == MPI_SUCCESS, "an error of the epoch after the loss");
    TL_CHECK(value_of(w, 2) == 3, "the epoch after the loss ends early: %d", value_of(w, 2));
    MPI_Group_free(&both);
    MPI_Group_free(&two);
}

/** Rank 1: leaves its second epoch by force. */
static void be_lost(const tl_window_t *w)
{
    MPI_Group zero = tl_group_of(w->comm, 0);

    access_epoch(w, 1);
    TL_MPI(MPI_Win_start(zero, 0, w->win));
    TL_CHECK(shutdown_connections() > 0, "there is no connection to break");
    MPI_Group_free(&zero);
    /* The window has this epoch open for ever. */
}

static void follow(const tl_window_t *w)
{
    access_epoch(w, 1);
    access_epoch(w, 2);
    /* Rank 0 must wait for this one. */
    usleep(300000);
    access_epoch(w, 3);
}

static void run_pscw(const tl_window_t *w)
{
    if (w->rank == 0)
        expose(w, w->kind == TL_DYNAMIC);
    else if (w->rank == 1)
        be_lost(w);
    else if (w->rank == 2)
        follow(w);
}

/* ---- locks ----------------------------------------------------------------------------------- */

/** CPU time after which who waits for the lock breaks its connections. */
#define WAITED_USEC 300000

/** After the flush the lock is held for sure. */
static void take(const tl_window_t *w)
{
    static long got;

    TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w->win));
    TL_MPI(MPI_Get(&got, 1, MPI_LONG, 0, tl_disp(w, 0, 0), 1, MPI_LONG, w->win));
    TL_MPI(MPI_Win_flush(0, w->win));
}

static void say(const tl_window_t *w, int to)
{
    TL_MPI(MPI_Send(NULL, 0, MPI_BYTE, to, 0, w->comm));
}

static void hear(const tl_window_t *w, int from)
{
    TL_MPI(MPI_Recv(NULL, 0, MPI_BYTE, from, 0, w->comm, MPI_STATUS_IGNORE));
}

/** Rank 1 breaks its connections as the holder. */
static void holder(const tl_window_t *w)
{
    take(w);
    say(w, 3);
    hear(w, 3);
    TL_CHECK(shutdown_connections() > 0, "there is no connection to break");
}

static void break_off(int signal)
{
    (void)signal;
    (void)shutdown_connections();
}

/** Rank 2 does while it waits. */
static void waiter(const tl_window_t *w)
{
    const struct itimerval time = {.it_value = {.tv_usec = WAITED_USEC}};
    static const long value = 5;
    int errors = 0;

    signal(SIGPROF, break_off);
    hear(w, 3);
    setitimer(ITIMER_PROF, &time, NULL);
    errors += MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w->win) != MPI_SUCCESS;
    errors += MPI_Put(&value, 1, MPI_LONG, 0, tl_disp(w, 0, 0), 1, MPI_LONG, w->win) != MPI_SUCCESS;
    errors += MPI_Win_unlock(0, w->win) != MPI_SUCCESS;
    TL_CHECK(errors > 0, "no error of the waiter");
    say(w, 3);
}

/** Rank 3 waits for the first, and is waited for by the second. */
static void third(const tl_window_t *w)
{
    hear(w, 1);
    say(w, 1);
    take(w);
    say(w, 2);
    hear(w, 2);
    TL_MPI(MPI_Win_unlock(0, w->win));
    say(w, 0);
}

static void run_locks(const tl_window_t *w)
{
    if (w->rank == 1) {
        holder(w);
    } else if (w->rank == 2) {
        waiter(w);
    } else if (w->rank == 3) {
        third(w);
    } else if (w->rank == 0) {
        hear(w, 3);
        take(w);
        TL_MPI(MPI_Win_unlock(0, w->win));
        TL_CHECK(*(const long *)w->base == 0, "the waiter has put something");
        /* Who was lost does not stay in the window's lock either: that is got. Its end may tell of
         * the connection that was lost. */
        TL_MPI(MPI_Win_lock_all(0, w->win));
        (void)MPI_Win_unlock_all(w->win);
    }
}

static const struct {
    const char *name;
    void (*run)(const tl_window_t *);
} cases[] = {{"waits", run_waits}, {"pscw", run_pscw}, {"locks", run_locks}};

int main(int argc, char **argv)
{
    shutdown_set_up();
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    shutdown_begin(6);
    /* One window: what is broken stays so. */
    tl_window_t w = tl_win_make(tl_first_kind(), MUCH, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (argc > 1 && tl_asked_for(cases[i].name, argc, argv))
            cases[i].run(&w);
    MPI_Barrier(w.comm);
    /* In the others epochs are open for ever. */
    if (tl_asked_for("waits", argc, argv))
        tl_win_free(&w);
    return tl_finish();
}
