/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* p2p: */
/**
 * @file
 * One message in all ways: each mode of sending, by a call that blocks, a request or a persistent
 * one, with each way of receiving, of each size, in many layouts on both sides, named or by
 * wildcards, from the rank before, oneself or nobody, completed by every call. The message fits or
 * is too long; the receive may be cancelled, in time or too late; requests may be freed while they
 * are active. What must come of it follows from these alone: data, source, tag, count, the class of
 * the error, and that calls which complete one request leave MPI_ERROR as it was (MPI-3.1, 3.2.5).
 */
#include "test/mpi/p2p.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Bytes above which not all combinations are tried. */
enum { LONG = 50000, RANDOM_ROUNDS = 50, ROUNDS = 3 };

typedef enum mode { STANDARD, SYNCHRONOUS, READY, BUFFERED, MODES } send_mode_t;
typedef enum kind { BLOCKS, REQUEST, PERSISTENT, KINDS } send_kind_t;
typedef enum fate { FITS, TOO_LONG, CANCELLED, CANCELLED_LATE, FREED, FATES } fate_t;

/** The last ones are posted before the message is sent. */
typedef enum way {
    SENDRECV,
    REPLACE,
    RECV,
    IRECV_LATE,
    PROBE,
    IPROBE,
    MPROBE_MRECV,
    IMPROBE_IMRECV,
    IRECV,
    RECV_INIT,
    WAYS
} way_t;

static const char *const mode_names[] = {"standard", "synchronous", "ready", "buffered"};
static const char *const kind_names[] = {"blocking", "immediate", "persistent"};
static const char *const way_names[] = {"Sendrecv",     "Sendrecv_replace", "Recv",  "late Irecv",
                                        "Probe",        "Iprobe",           "Mrecv", "Imrecv",
                                        "posted Irecv", "Recv_init"};
static const char *const fate_names[] = {"", ", too long", ", cancelled", ", cancelled too late",
                                         ", freed"};

/** What is tried, the same on all ranks. */
typedef struct trial {
    send_mode_t mode;
    send_kind_t kind;
    way_t way;
    fate_t fate;
    int complete, tag, to, from;
    bool any_source, any_tag;
    tr_side_t out_side, in_side;
} trial_t;

/** One trial under way. */
typedef struct run {
    const trial_t *t;
    p2p_buffer_t in, out;
    MPI_Request send, receive;
    int source, tag; /**< what is asked for */
    int error;
    size_t bytes; /**< that must come */
    char what[160];
} run_t;

/** Of its own, so that wildcards meet nothing else. */
static MPI_Comm comm;

static bool is_posted(way_t way)
{
    return way >= IRECV;
}

/** Does MPI allow it, and can it not wait for itself? */
static bool is_possible(send_mode_t mode, send_kind_t kind, way_t way)
{
    /* ob1 sends anything when it starts one of MPI_Bsend_init again that is not eager. */
    if (mode == BUFFERED && kind == PERSISTENT && p2p_layer("ob1"))
        return false;
    if (way == SENDRECV || way == REPLACE)
        return mode == STANDARD && kind == BLOCKS;
    return is_posted(way) || mode == BUFFERED || (mode != READY && kind != BLOCKS);
}

static bool is_fate_possible(fate_t fate, send_kind_t kind, way_t way)
{
    switch (fate) {
    case TOO_LONG:
        /* Of messages to itself ob1 does not say that they were too long. pml/ucx does not say
         * whose communicator the request of Imrecv has, and crashes. A persistent request is freed
         * by Open MPI when it fails. */
        return way != SENDRECV && way != REPLACE && way != RECV_INIT &&
               !(p2p_layer("ucx") && way == IMPROBE_IMRECV) && !p2p_layer("ob1");
    case CANCELLED:
    case CANCELLED_LATE:
        return is_posted(way);
    case FREED:
        return is_posted(way) || kind != BLOCKS;
    default:
        return true;
    }
}

static MPI_Status prepared(void)
{
    return (MPI_Status){.MPI_SOURCE = -99, .MPI_TAG = -99, .MPI_ERROR = P2P_KEPT};
}

/** The status of a call for one message: says what is expected, and no error. */
static void check_status(const run_t *r, const MPI_Status *status, size_t bytes, const char *call)
{
    char what[200];

    snprintf(what, sizeof(what), "%s: %s", r->what, call);
    if (r->t->from == MPI_PROC_NULL)
        p2p_check_status(status, MPI_PROC_NULL, MPI_ANY_TAG, 0, what);
    else
        p2p_check_status(status, r->t->from, r->t->tag, bytes, what);
    TL_CHECK(status->MPI_ERROR == P2P_KEPT, "%s writes %d into MPI_ERROR", what, status->MPI_ERROR);
}

/* ---- sending ---- */

static void start(run_t *r)
{
    static int (*const blocks[])(const void *, int, MPI_Datatype, int, int,
                                 MPI_Comm) = {MPI_Send, MPI_Ssend, MPI_Rsend, MPI_Bsend};
    static int (*const immediate[])(const void *, int, MPI_Datatype, int, int, MPI_Comm,
                                    MPI_Request *) = {MPI_Isend, MPI_Issend, MPI_Irsend,
                                                      MPI_Ibsend};
    static int (*const init[])(const void *, int, MPI_Datatype, int, int, MPI_Comm,
                               MPI_Request *) = {MPI_Send_init, MPI_Ssend_init, MPI_Rsend_init,
                                                 MPI_Bsend_init};
    const trial_t *t = r->t;
    const p2p_buffer_t *b = &r->out;

    if (t->kind == BLOCKS) {
        TL_MPI(blocks[t->mode](b->at, b->side.count, b->side.type, t->to, t->tag, comm));
        /* Whoever has buffered it owns it. */
        if (t->mode == BUFFERED)
            p2p_wipe(&r->out);
        return;
    }
    if (t->kind == REQUEST) {
        TL_MPI(
            immediate[t->mode](b->at, b->side.count, b->side.type, t->to, t->tag, comm, &r->send));
        return;
    }
    if (r->send == MPI_REQUEST_NULL)
        TL_MPI(init[t->mode](b->at, b->side.count, b->side.type, t->to, t->tag, comm, &r->send));
    TL_MPI(MPI_Start(&r->send));
}

/** A synchronous send is not complete before there is a receive, whatever comes in meanwhile. */
static void check_not_complete(run_t *r)
{
    int done = 0;

    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 200 && !done; k++)
            TL_MPI(MPI_Test(&r->send, &done, MPI_STATUS_IGNORE));
        TL_CHECK(!done, "%s: complete without a receive", r->what);
        /* First the message has time to come, then all have looked. */
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/** An inactive request is still there, complete, and says nothing. */
static void check_inactive(const run_t *r, MPI_Request *request)
{
    MPI_Status status = prepared();
    int done = 0;

    TL_CHECK(*request != MPI_REQUEST_NULL, "%s: the persistent request is gone", r->what);
    TL_MPI(MPI_Test(request, &done, &status));
    TL_CHECK(done, "%s: an inactive request is not complete", r->what);
    p2p_check_empty(&status, r->what);
}

/* ---- receiving ---- */

static void post(run_t *r)
{
    const p2p_buffer_t *b = &r->in;

    if (r->t->way != RECV_INIT) {
        TL_MPI(MPI_Irecv(b->at, b->side.count, b->side.type, r->source, r->tag, comm, &r->receive));
        return;
    }
    if (r->receive == MPI_REQUEST_NULL) {
        TL_MPI(MPI_Recv_init(b->at, b->side.count, b->side.type, r->source, r->tag, comm,
                             &r->receive));
    }
    TL_MPI(MPI_Start(&r->receive));
}

/** Cancels what was posted before anything was sent, and posts it again. */
static void cancel(run_t *r)
{
    MPI_Status status;
    int cancelled = 0;

    TL_MPI(MPI_Cancel(&r->receive));
    p2p_complete(&r->receive, &status, r->t->complete);
    TL_MPI(MPI_Test_cancelled(&status, &cancelled));
    TL_CHECK(cancelled, "%s: was not cancelled", r->what);
    if (r->t->way == RECV_INIT)
        check_inactive(r, &r->receive);
    post(r);
}

/** Finds the message by one of the four calls; its handle is null for the first two. */
static MPI_Message find(const run_t *r, way_t way)
{
    MPI_Status status = prepared();
    const MPI_Message message = p2p_find((int)way - PROBE, r->source, r->tag, comm, &status);

    check_status(r, &status, r->out.bytes, "found");
    TL_CHECK((message == MPI_MESSAGE_NULL) == (way == PROBE || way == IPROBE) &&
                 (message == MPI_MESSAGE_NO_PROC) ==
                     (message != MPI_MESSAGE_NULL && r->t->from == MPI_PROC_NULL),
             "%s: the handle of what was found", r->what);
    return message;
}

static void receive_found(run_t *r, MPI_Status *status)
{
    const p2p_buffer_t *b = &r->in;
    MPI_Message message = find(r, r->t->way);
    int flag = 1;

    if (message == MPI_MESSAGE_NULL) {
        /* It is still there, for each call. */
        find(r, r->t->way == PROBE ? IPROBE : PROBE);
        TL_MPI_ERROR(MPI_Recv(b->at, b->side.count, b->side.type, r->source, r->tag, comm, status),
                     r->error);
        return;
    }
    /* Where it is too long another one follows. */
    if (r->t->fate != TOO_LONG) {
        TL_MPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, MPI_STATUS_IGNORE));
        TL_CHECK(!flag, "%s: a matched message is found again", r->what);
    }
    if (r->t->way == MPROBE_MRECV) {
        TL_MPI_ERROR(MPI_Mrecv(b->at, b->side.count, b->side.type, &message, status), r->error);
    } else {
        TL_MPI(MPI_Imrecv(b->at, b->side.count, b->side.type, &message, &r->receive));
        p2p_complete_as(&r->receive, status, r->t->complete, r->error);
    }
    TL_CHECK(message == MPI_MESSAGE_NULL, "%s: the message is still there", r->what);
}

static void receive(run_t *r, MPI_Status *status)
{
    const p2p_buffer_t *b = &r->in;
    const trial_t *t = r->t;
    int done = 0;

    switch (t->way) {
    case SENDRECV:
        TL_MPI(MPI_Sendrecv(r->out.at, r->out.side.count, r->out.side.type, t->to, t->tag, b->at,
                            b->side.count, b->side.type, r->source, r->tag, comm, status));
        return;
    case REPLACE:
        TL_MPI(MPI_Sendrecv_replace(b->at, b->side.count, b->side.type, t->to, t->tag, r->source,
                                    r->tag, comm, status));
        return;
    case RECV:
        TL_MPI_ERROR(MPI_Recv(b->at, b->side.count, b->side.type, r->source, r->tag, comm, status),
                     r->error);
        return;
    case IRECV_LATE:
        post(r);
        break;
    case PROBE:
    case IPROBE:
    case MPROBE_MRECV:
    case IMPROBE_IMRECV:
        receive_found(r, status);
        return;
    default:
        while (t->fate == CANCELLED_LATE && !done)
            TL_MPI(MPI_Request_get_status(r->receive, &done, MPI_STATUS_IGNORE));
        if (t->fate == CANCELLED_LATE)
            TL_MPI(MPI_Cancel(&r->receive));
    }
    p2p_complete_as(&r->receive, status, t->complete, r->error);
}

/** Frees both requests while they are active. That the message has come is then seen in memory
 *  only, while MPI is called. */
static void free_active(run_t *r, uint64_t seed)
{
    int flag;

    if (r->send != MPI_REQUEST_NULL)
        TL_MPI(MPI_Request_free(&r->send));
    if (r->receive == MPI_REQUEST_NULL)
        return;
    TL_MPI(MPI_Request_free(&r->receive));
    while (!p2p_holds(r->in.at, r->bytes, seed))
        TL_MPI(MPI_Iprobe(MPI_ANY_SOURCE, r->t->tag + 1, comm, &flag, MPI_STATUS_IGNORE));
}

/* ---- trials ---- */

static void exchange(run_t *r, int round)
{
    const trial_t *t = r->t;
    const bool calls_once = t->way == SENDRECV || t->way == REPLACE;
    long after = -1, word = 1000 + tl_rank();
    MPI_Request next = MPI_REQUEST_NULL;
    MPI_Status status;
    int flag = 1;

    p2p_wipe(&r->in);
    p2p_write(t->way == REPLACE ? &r->in : &r->out, p2p_seed(tl_rank(), t->tag, round));
    if (is_posted(t->way)) {
        post(r);
        if (t->fate == CANCELLED)
            cancel(r);
    }
    TL_MPI(MPI_Iprobe(MPI_ANY_SOURCE, t->tag + 1, comm, &flag, MPI_STATUS_IGNORE));
    TL_CHECK(!flag, "%s: there is no message with that tag", r->what);
    /* Ready sends need receives that are there, and cancelled ones must not be sent to. */
    MPI_Barrier(MPI_COMM_WORLD);
    if (!calls_once)
        start(r);
    if (t->fate == TOO_LONG)
        TL_MPI(MPI_Isend(&word, 1, MPI_LONG, t->to, t->tag, comm, &next));
    if (t->mode == SYNCHRONOUS && !is_posted(t->way) && t->to != MPI_PROC_NULL)
        check_not_complete(r);

    status = prepared();
    if (t->fate == FREED)
        free_active(r, p2p_seed(t->from, t->tag, round));
    if (t->fate != FREED || !is_posted(t->way))
        receive(r, &status);
    if (r->error == MPI_SUCCESS) {
        if (t->fate != FREED || !is_posted(t->way))
            check_status(r, &status, r->bytes, "received");
        p2p_check(&r->in, r->bytes, p2p_seed(t->from, t->tag, round), r->what);
    } else {
        /* Others say how long the message was, or nothing of use. */
        if (p2p_layer("superpipe"))
            check_status(r, &status, r->in.bytes, "received in part");
        p2p_check_outside(&r->in, r->what);
        TL_MPI(MPI_Recv(&after, 1, MPI_LONG, t->from, t->tag, comm, MPI_STATUS_IGNORE));
        TL_CHECK(after == 1000 + t->from, "%s: %ld came after it", r->what, after);
        TL_MPI(MPI_Wait(&next, MPI_STATUS_IGNORE));
    }
    if (r->send != MPI_REQUEST_NULL)
        p2p_complete(&r->send, &status, t->complete + 1);
    if (t->way != REPLACE && !(t->mode == BUFFERED && t->kind == BLOCKS))
        p2p_check(&r->out, r->out.bytes, p2p_seed(tl_rank(), t->tag, round), "what was sent");
    if (t->kind == PERSISTENT && t->fate != FREED)
        check_inactive(r, &r->send);
    else
        TL_CHECK(r->send == MPI_REQUEST_NULL, "%s: the send is still there", r->what);
    if (t->way == RECV_INIT && t->fate != FREED)
        check_inactive(r, &r->receive);
    else
        TL_CHECK(r->receive == MPI_REQUEST_NULL, "%s: the receive is still there", r->what);
}

static void try(const trial_t *t)
{
    run_t r = {.t = t,
               .in = p2p_buffer(t->in_side),
               .out = p2p_buffer(t->out_side),
               .send = MPI_REQUEST_NULL,
               .receive = MPI_REQUEST_NULL,
               .source = t->any_source ? MPI_ANY_SOURCE : t->from,
               .tag = t->any_tag ? MPI_ANY_TAG : t->tag,
               .error = t->fate == TOO_LONG ? MPI_ERR_TRUNCATE : MPI_SUCCESS};
    const bool again = t->kind == PERSISTENT || t->way == RECV_INIT;
    int size = (int)r.out.bytes + MPI_BSEND_OVERHEAD, detached_size = 0;
    void *space = NULL, *detached = NULL;

    r.bytes = t->from == MPI_PROC_NULL ? 0 : t->way == REPLACE ? r.in.bytes : r.out.bytes;
    snprintf(r.what, sizeof(r.what), "%s %s send of %zu, %s into %zu, completion %d%s%s%s",
             kind_names[t->kind], mode_names[t->mode], r.out.bytes, way_names[t->way], r.in.bytes,
             t->complete, fate_names[t->fate], t->any_source ? ", any source" : "",
             t->any_tag ? ", any tag" : "");
    for (int round = 0; round < (again ? ROUNDS : 1); round++) {
        if (t->mode == BUFFERED) {
            space = tl_alloc((size_t)size);
            TL_MPI(MPI_Buffer_attach(space, size));
        }
        exchange(&r, round);
        if (t->mode == BUFFERED) {
            TL_MPI(MPI_Buffer_detach(&detached, &detached_size));
            TL_CHECK(detached == space && detached_size == size, "%s: %d bytes detached, not %d",
                     r.what, detached_size, size);
            free(space);
        }
        /* Wildcards must not meet what another rank sends next. */
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (r.send != MPI_REQUEST_NULL)
        TL_MPI(MPI_Request_free(&r.send));
    if (r.receive != MPI_REQUEST_NULL)
        TL_MPI(MPI_Request_free(&r.receive));
    TL_CHECK(r.send == MPI_REQUEST_NULL && r.receive == MPI_REQUEST_NULL, "%s: a freed request",
             r.what);
    p2p_free(&r.in);
    p2p_free(&r.out);
}

/** The turn-th trial of a mode, a kind and a way; turns go through all that is left open. */
static trial_t trial(send_mode_t mode, send_kind_t kind, way_t way, int turn)
{
    const int distance = turn % 5 != 0;

    return (trial_t){.mode = mode,
                     .kind = kind,
                     .way = way,
                     .complete = turn % P2P_COMPLETIONS,
                     .tag = turn % 30000,
                     .to = (tl_rank() + distance) % tl_size(),
                     .from = (tl_rank() + tl_size() - distance) % tl_size(),
                     .any_source = turn / 4 % 2,
                     .any_tag = turn / 8 % 2};
}

/** Room for a message that is too long, or for one that fits. */
static int room_for(int bytes, bool fits, int turn)
{
    const int less[] = {bytes - 1, 0, bytes / 2, bytes < 8 ? 0 : 7}, more[] = {0, 0, 1, 1000};

    return fits ? bytes + more[turn % 4] : less[turn % 4];
}

static void try_size(send_mode_t mode, send_kind_t kind, way_t way, int bytes, int turn)
{
    for (int f = 0; f < FATES; f++) {
        trial_t t = trial(mode, kind, way, turn + f);
        /* Of what is long one fate by turns. */
        bool skipped = bytes > LONG && f != turn % FATES;

        if (skipped || !is_fate_possible((fate_t)f, kind, way) || (f == TOO_LONG && bytes == 0))
            continue;
        t.fate = (fate_t)f;
        t.out_side = p2p_side((p2p_shape_t)(turn % P2P_SHAPES), bytes);
        t.in_side = p2p_side(f == FREED ? P2P_PLAIN : (p2p_shape_t)((turn / 3 + f) % P2P_SHAPES),
                             way == REPLACE ? bytes : room_for(bytes, f != TOO_LONG, turn / 5));
        try(&t);
    }
}

static void test_sizes(void)
{
    /* Each way with one in so many sizes, and with fewer long ones. */
    const int step = tl_slow() ? 15 : tl_large() ? 1 : 3, long_step = step > 1 ? 2 * step : 3;
    int turn = 0;

    for (int s = 0; s < p2p_nsizes; s++) {
        for (int i = 0; i < MODES * KINDS * WAYS; i++) {
            send_mode_t mode = (send_mode_t)(i % MODES);
            send_kind_t kind = (send_kind_t)(i / MODES % KINDS);
            way_t way = (way_t)(i / MODES / KINDS);

            if (!is_possible(mode, kind, way) ||
                (i + s) % (p2p_sizes[s] > LONG ? long_step : step) != 0)
                continue;
            try_size(mode, kind, way, p2p_sizes[s], turn++);
        }
    }
}

/** Types of many constructors, over elements with gaps that differ by side. */
static void test_types(void)
{
    for (int i = 0, turn = 0; i < (tl_slow() ? RANDOM_ROUNDS / 5 : RANDOM_ROUNDS) * tl_factor();
         turn++) {
        tl_rng_t out = tl_rng(tl_seed(), (uint64_t)turn),
                 in = tl_rng(tl_seed() + 1, (uint64_t)turn);
        int n = (int)tl_range(&out, 0, turn % 8 == 0 ? 20000 : 600);
        trial_t t = trial((send_mode_t)(turn % MODES), (send_kind_t)(turn % KINDS),
                          (way_t)(RECV + turn % (WAYS - RECV)), turn);

        if (!is_possible(t.mode, t.kind, t.way))
            continue;
        t.out_side = tr_shape(&out, (tr_element_t)(turn % TR_ELEMENTS), n, TR_ORIGIN);
        t.in_side = tr_shape(&in, (tr_element_t)(turn % TR_ELEMENTS), n, 0);
        try(&t);
        i++;
    }
}

static void test_nobody(void)
{
    for (int i = 0; i < MODES * KINDS * WAYS; i++) {
        trial_t t = trial((send_mode_t)(i % MODES), (send_kind_t)(i / MODES % KINDS),
                          (way_t)(i / MODES / KINDS), i);

        /* Nothing replaces what was there; MPI_Sendrecv has one mode. */
        if (t.way == REPLACE || (t.way == SENDRECV && i % (MODES * KINDS) != 0))
            continue;
        t.to = t.from = MPI_PROC_NULL;
        t.any_source = false;
        t.out_side = p2p_side(P2P_PLAIN, 100);
        t.in_side = p2p_side(P2P_PLAIN, 100);
        try(&t);
    }
}

int main(int argc, char **argv)
{
    const char *ranks = getenv("OMPI_COMM_WORLD_SIZE");

    /* Where no protocol is forced the first bytes of long messages come without being asked for, as
     * over a network, and often are all that is received; with odd numbers of ranks they do not. */
    if (ranks != NULL && atoi(ranks) % 2 == 0)
        setenv("OMPI_MCA_pml_superpipe_cost", "latency=20000", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    test_nobody();
    test_sizes();
    test_types();
    MPI_Comm_free(&comm);
    return tl_finish();
}
