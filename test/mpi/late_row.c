/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-3 */
/* windows: create */
/* methods: auto */
/**
 * @file
 * A row of methods that only this program has: all of it is in this file. Long puts do what an
 * adapter would do: they land some time after the call, while the target knows nothing of them and
 * counts no message. Shorter ones go by a message of its own, which its handler at the target
 * answers by another. Flushes, the ends of epochs, and what is about the same bytes wait for both.
 * When it asks for it, it is called behind the transport's progress, and in an MPI thread.
 *
 * It is also asked for short puts that are waited for alone, to a target that is away, and leaves
 * these to messages.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/window/module.h"

#include "ompi/mca/osc/base/base.h"

#include "test/mpi/testlib.h"

enum {
    LENGTH = 64 << 10,
    MEDIUM = 8 << 10,
    SHORT = 8,
    LATE_USEC = 20000,
    ROUNDS = 3,
    MAX_RANKS = 3
};

static pid_t pids[MAX_RANKS];
static _Atomic int under_way[MAX_RANKS];
static int begun, refused, finished;
static _Atomic int progressed, handled;

/* Messages of its own. */
enum { DATA = NICSTRIDE_MSG_ROWS, LANDED };

typedef struct job {
    int rank;
    struct iovec from, to;
    unsigned char bytes[LENGTH]; /**< so that it is locally complete when it is begun */
} job_t;

static void *copy(void *arg)
{
    job_t *job = arg;

    usleep(LATE_USEC);
    if (process_vm_writev(pids[job->rank], &job->from, 1, &job->to, 1, 0) != LENGTH)
        tl_die("the copy failed");
    atomic_fetch_sub(&under_way[job->rank], 1);
    free(job);
    return NULL;
}

static bool reach(const nicstride_transfer_t *t)
{
    return t->type == NICSTRIDE_MSG_PUT && t->peer->rank != t->m->rank &&
           (t->target.size == LENGTH || t->target.size == MEDIUM || t->target.size == SHORT);
}

static double cost(const nicstride_case_t *c)
{
    (void)c;
    return 1;
}

/* ---- by message --------------------------------------------------------------------------------
 */

static void sent_cb(void *arg, int status)
{
    (void)status;
    free(arg);
}

static void send_locked(nicstride_peer_t *p, unsigned kind, int64_t disp, const void *data,
                        size_t len)
{
    void *bytes = malloc(len + 1);
    const onic_payload_t payload = {.base = bytes, .len = len};
    nicstride_msg_t msg;

    nicstride_msg_init(&msg, (nicstride_msg_type_t)kind, p->win, p->me);
    msg.disp = disp;
    msg.len = len;
    if (bytes == NULL)
        tl_die("no memory");
    memcpy(bytes, data, len);
    if (onic_peer_send(p->peer, ONIC_AM_OSC, &msg, sizeof(msg), &payload, 0, sent_cb, bytes) != 0)
        free(bytes);
}

/** Flushes wait for what is entered. */
static void enter_locked(const nicstride_transfer_t *t)
{
    nicstride_enter_locked(t->peer, t->way, false, t->from, t->to);
    atomic_fetch_add(&under_way[t->peer->rank], 1);
}

static int start_by_message(const nicstride_transfer_t *t)
{
    onic_transport_lock();
    enter_locked(t);
    send_locked(t->peer, DATA, t->disp, t->origin_base, MEDIUM);
    onic_transport_unlock();
    return OMPI_SUCCESS;
}

static void on_data(const struct nicstride_incoming *in)
{
    memcpy((char *)in->m->base + in->msg->disp, in->data, in->len);
    handled++;
    send_locked(in->p, LANDED, 0, "", 0);
}

static void on_landed(const struct nicstride_incoming *in)
{
    atomic_fetch_sub(&under_way[in->p->rank], 1);
}

static const nicstride_handler_t handlers[] = {{.kind = DATA, .handle = on_data},
                                               {.kind = LANDED, .handle = on_landed}};

/* ---- by a thread -------------------------------------------------------------------------------
 */

static int start(nicstride_transfer_t *t, bool *done_p)
{
    job_t *job;
    pthread_t thread;

    if (t->target.size == SHORT) {
        refused++;
        return OMPI_ERR_NOT_AVAILABLE;
    }
    *done_p = true;
    if (t->target.size == MEDIUM)
        return start_by_message(t);
    job = malloc(sizeof(*job));
    if (job == NULL)
        return OMPI_ERR_NOT_AVAILABLE;
    job->rank = t->peer->rank;
    job->from = (struct iovec){job->bytes, LENGTH};
    job->to = (struct iovec){(void *)(uintptr_t)t->remote, LENGTH};
    memcpy(job->bytes, t->origin_base, LENGTH);
    onic_transport_lock();
    enter_locked(t);
    onic_transport_unlock();
    begun++;
    onic_transport_ask(ONIC_AM_OSC, ONIC_LOCKED);
    if (pthread_create(&thread, NULL, copy, job) != 0)
        tl_die("no thread");
    pthread_detach(thread);
    return OMPI_SUCCESS;
}

static bool flush(nicstride_peer_t *p)
{
    return atomic_load(&under_way[p->rank]) == 0;
}

static bool needs_peer(nicstride_peer_t *p)
{
    return !flush(p);
}

static int go_on(void)
{
    progressed++;
    onic_transport_ask(ONIC_AM_OSC, ONIC_MPI);
    return 0;
}

static int finish(void)
{
    finished++;
    return 0;
}

static const nicstride_method_row_t row = {.name = "late",
                                           .cost = cost,
                                           .reach = reach,
                                           .start = start,
                                           .progress = go_on,
                                           .finish = finish,
                                           .flush = flush,
                                           .needs_peer = needs_peer,
                                           .handlers = handlers,
                                           .nhandlers = 2};

/** Puts the row behind the component's own. False where the component is not there. */
static bool add_row(void)
{
    mca_base_component_list_item_t *item;

    OPAL_LIST_FOREACH(item, &ompi_osc_base_framework.framework_components,
                      mca_base_component_list_item_t)
    {
        const nicstride_osc_t *osc = (const void *)item->cli_component;

        if (strcmp(item->cli_component->mca_component_name, "nicstride") == 0) {
            osc->methods[NICSTRIDE_METHOD_LAST] = &row;
            return true;
        }
    }
    return false;
}

static int next(const tl_window_t *w)
{
    return (w->rank + 1) % w->size;
}

static void put(const tl_window_t *w, unsigned char *mine, unsigned char value)
{
    memset(mine, value, LENGTH);
    TL_MPI(
        MPI_Put(mine, LENGTH, MPI_BYTE, next(w), tl_disp(w, next(w), 0), LENGTH, MPI_BYTE, w->win));
}

static void check(const tl_window_t *w, const char *what, unsigned char value)
{
    int wrong = 0;

    for (int i = 0; i < LENGTH; i++)
        wrong += w->base[i] != value;
    TL_CHECK(wrong == 0, "%s: %d bytes are wrong", what, wrong);
}

static void in_passive(const tl_window_t *w, unsigned char *mine, unsigned char value)
{
    TL_MPI(MPI_Win_lock_all(0, w->win));
    put(w, mine, value);
    TL_MPI(MPI_Win_flush(next(w), w->win));
    MPI_Barrier(w->comm);
    check(w, "flush", value);
    MPI_Barrier(w->comm);
    put(w, mine, (unsigned char)(value + 1));
    TL_MPI(MPI_Win_flush_local(next(w), w->win));
    memset(mine, 0, LENGTH);
    TL_MPI(MPI_Win_unlock_all(w->win));
    MPI_Barrier(w->comm);
    check(w, "flush_local and unlock_all", (unsigned char)(value + 1));
    MPI_Barrier(w->comm);
}

/** What comes behind a put that has not landed finds it, or lands behind it, whichever way it goes.
 */
static void behind_late(const tl_window_t *w, unsigned char *mine, unsigned char value)
{
    unsigned char got[SHORT] = {0}, few = (unsigned char)(value + 1);
    MPI_Request request;

    TL_MPI(MPI_Win_lock_all(0, w->win));
    put(w, mine, value);
    TL_MPI(MPI_Rget(got, SHORT, MPI_BYTE, next(w), tl_disp(w, next(w), 0), SHORT, MPI_BYTE, w->win,
                    &request));
    TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    TL_FILL(got, value, SHORT, "a get behind a late put");
    put(w, mine, value);
    TL_MPI(MPI_Put(&few, 1, MPI_BYTE, next(w), tl_disp(w, next(w), 0), 1, MPI_BYTE, w->win));
    TL_MPI(MPI_Win_unlock_all(w->win));
    MPI_Barrier(w->comm);
    TL_CHECK(w->base[0] == value + 1, "a put behind a late one: %d", w->base[0]);
    MPI_Barrier(w->comm);
}

/** By messages of the row's own; only the flush says that they have landed. */
static void by_message(const tl_window_t *w, unsigned char *mine, unsigned char value)
{
    TL_MPI(MPI_Win_lock_all(0, w->win));
    memset(mine, value, MEDIUM);
    TL_MPI(
        MPI_Put(mine, MEDIUM, MPI_BYTE, next(w), tl_disp(w, next(w), 0), MEDIUM, MPI_BYTE, w->win));
    memset(mine, 0, MEDIUM);
    TL_MPI(MPI_Win_flush(next(w), w->win));
    MPI_Barrier(w->comm);
    TL_FILL(w->base, value, MEDIUM, "a put by the row's own message");
    TL_MPI(MPI_Win_unlock_all(w->win));
    MPI_Barrier(w->comm);
}

static void in_active(const tl_window_t *w, unsigned char *mine, unsigned char value)
{
    MPI_Group to = tl_group_of(w->comm, next(w));
    MPI_Group from = tl_group_of(w->comm, (w->rank + w->size - 1) % w->size);

    TL_MPI(MPI_Win_fence(0, w->win));
    put(w, mine, value);
    TL_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win));
    check(w, "fence", value);
    TL_MPI(MPI_Win_post(from, 0, w->win));
    TL_MPI(MPI_Win_start(to, 0, w->win));
    put(w, mine, (unsigned char)(value + 1));
    TL_MPI(MPI_Win_complete(w->win));
    TL_MPI(MPI_Win_wait(w->win));
    check(w, "wait", (unsigned char)(value + 1));
    MPI_Group_free(&to);
    MPI_Group_free(&from);
    MPI_Barrier(w->comm);
}

/** The first rank puts while the others are away from MPI. The first of its puts is not known to be
 *  alone. */
static void put_away(const tl_window_t *w, unsigned char *mine)
{
    memset(mine, 0xa5, SHORT);
    TL_MPI(MPI_Win_lock_all(0, w->win));
    MPI_Barrier(w->comm);
    if (w->rank != 0)
        usleep(4 * LATE_USEC);
    else
        usleep(LATE_USEC);
    for (int i = 0; w->rank == 0 && i < ROUNDS; i++) {
        TL_MPI(MPI_Put(mine, SHORT, MPI_BYTE, next(w), tl_disp(w, next(w), 0), SHORT, MPI_BYTE,
                       w->win));
        TL_MPI(MPI_Win_flush(next(w), w->win));
    }
    TL_MPI(MPI_Win_unlock_all(w->win));
    MPI_Barrier(w->comm);
    for (int i = 0; w->rank == 1 && i < SHORT; i++)
        TL_CHECK(w->base[i] == 0xa5, "byte %d of a short put is %d", i, w->base[i]);
    TL_CHECK(w->rank != 0 || refused >= ROUNDS - 1, "the row was asked for %d short puts", refused);
}

int main(int argc, char **argv)
{
    const pid_t pid = getpid();
    unsigned char *mine;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, MAX_RANKS);
    if (!tl_may_copy() || !add_row())
        tl_skip("single copy does not work here, or there is no component");
    MPI_Allgather(&pid, sizeof(pid), MPI_BYTE, pids, sizeof(pid), MPI_BYTE, MPI_COMM_WORLD);
    mine = tl_alloc(LENGTH);
    tl_window_t w = tl_win_make(TL_CREATE, LENGTH, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    for (int i = 0; i < ROUNDS; i++) {
        in_passive(&w, mine, (unsigned char)(10 * i + 1));
        in_active(&w, mine, (unsigned char)(10 * i + 5));
        behind_late(&w, mine, (unsigned char)(10 * i + 7));
        by_message(&w, mine, (unsigned char)(10 * i + 9));
    }
    put_away(&w, mine);
    TL_CHECK(begun > ROUNDS, "the row began %d transfers", begun);
    TL_CHECK(handled == ROUNDS, "%d messages of the row were handled", handled);
    tl_win_free(&w);
    TL_CHECK(progressed > 0 && finished > 0, "called %d and %d times", progressed, finished);
    free(mine);
    return tl_finish();
}
