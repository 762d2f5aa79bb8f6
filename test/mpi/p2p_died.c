/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 4 */
/* p2p: auto stream pipeline copy rendezvous */
/* mpirun: --enable-recovery --mca orte_allowed_exit_without_sync 1 */
/* leaks: expected */
/**
 * @file
 * A process dies while the others, of its node and of other hosts, wait for messages from it and
 * for it to receive, and in the middle of long ones. All of these end, with an error where the
 * message cannot have come over, and so does what is begun later. Those who live go on among
 * themselves.
 *
 * The launcher would end the job where it sees a rank die: see meet_begin_as_child.
 */
#include "test/mpi/meet.h"
#include "test/mpi/p2p.h"
#include "test/mpi/phase.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { VICTIM = 1, MOST = 8 };
/** Bytes of what is announced, and of what is cut off on its way. */
enum { LONG = 1 << 20, HALF = 8 << 20 };
/** Tags; nothing is ever sent with NEVER. */
enum { READY, SHORT_LEFT, LONG_LEFT, LONG_PROBED, HALF_FROM, HALF_TO, UNRECEIVED, NEVER, AMONG };
/** Microseconds for which the dying one lives when all has been begun, so that most of the others
 *  wait by then, and for which it takes part in the long messages. */
enum { LIFE = 150000, TAKES_PART = 1000 };

static unsigned char data[LONG], in[LONG];

/* ---- before ---------------------------------------------------------------------------------- */

typedef struct begun {
    MPI_Request from, to, never, unreceived, persistent, anybody;
    unsigned char *half_in, *half_out;
} begun_t;

static unsigned char *half_new(int from, int to)
{
    unsigned char *half = tl_alloc(HALF);

    p2p_fill(half, HALF, p2p_seed(from, to, HALF));
    return half;
}

static void begin_all(begun_t *b)
{
    b->half_in = tl_alloc(HALF);
    b->half_out = half_new(tl_rank(), VICTIM);
    TL_MPI(MPI_Recv(NULL, 0, MPI_BYTE, VICTIM, READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    TL_MPI(MPI_Isend(data, LONG, MPI_BYTE, VICTIM, UNRECEIVED, MPI_COMM_WORLD, &b->unreceived));
    TL_MPI(MPI_Irecv(in, LONG, MPI_BYTE, VICTIM, NEVER, MPI_COMM_WORLD, &b->never));
    TL_MPI(MPI_Recv_init(in, LONG, MPI_BYTE, VICTIM, NEVER, MPI_COMM_WORLD, &b->persistent));
    TL_MPI(MPI_Start(&b->persistent));
    TL_MPI(MPI_Irecv(in, LONG, MPI_BYTE, MPI_ANY_SOURCE, NEVER, MPI_COMM_WORLD, &b->anybody));
    TL_MPI(MPI_Send(NULL, 0, MPI_BYTE, VICTIM, READY, MPI_COMM_WORLD));
    TL_MPI(MPI_Irecv(b->half_in, HALF, MPI_BYTE, VICTIM, HALF_FROM, MPI_COMM_WORLD, &b->from));
    TL_MPI(MPI_Isend(b->half_out, HALF, MPI_BYTE, VICTIM, HALF_TO, MPI_COMM_WORLD, &b->to));
}

/** Sends what the others will not receive before it is dead, and dies in the middle of the rest. */
static void die(void)
{
    MPI_Request halves[2 * MOST], left;
    double end;
    int n = 0, done;

    for (int r = 0; r < tl_size(); r++) {
        if (r != VICTIM) {
            p2p_fill(data, LONG, p2p_seed(VICTIM, 0, 0));
            TL_MPI(MPI_Isend(data, 100, MPI_BYTE, r, SHORT_LEFT, MPI_COMM_WORLD, &left));
            TL_MPI(MPI_Isend(data, LONG, MPI_BYTE, r, LONG_LEFT, MPI_COMM_WORLD, &left));
            TL_MPI(MPI_Isend(data, LONG, MPI_BYTE, r, LONG_PROBED, MPI_COMM_WORLD, &left));
            TL_MPI(MPI_Send(NULL, 0, MPI_BYTE, r, READY, MPI_COMM_WORLD));
            TL_MPI(MPI_Isend(half_new(VICTIM, r), HALF, MPI_BYTE, r, HALF_FROM, MPI_COMM_WORLD,
                             &halves[n++]));
            TL_MPI(MPI_Irecv(tl_alloc(HALF), HALF, MPI_BYTE, r, HALF_TO, MPI_COMM_WORLD,
                             &halves[n++]));
        }
    }
    for (int r = 0; r < tl_size(); r++)
        if (r != VICTIM)
            TL_MPI(MPI_Recv(NULL, 0, MPI_BYTE, r, READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    usleep(LIFE);
    end = MPI_Wtime() + TAKES_PART * 1e-6;
    do {
        MPI_Testall(n, halves, &done, MPI_STATUSES_IGNORE);
    } while (MPI_Wtime() < end);
    raise(SIGKILL);
}

/* ---- waits for the dead ---------------------------------------------------------------------- */

static void receive(void)
{
    TL_MPI_ERROR(MPI_Recv(in, LONG, MPI_BYTE, VICTIM, NEVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                 GONE);
}

static void send_long(void)
{
    TL_MPI_ERROR(MPI_Send(data, LONG, MPI_BYTE, VICTIM, NEVER, MPI_COMM_WORLD), GONE);
}

static void send_synchronously(void)
{
    TL_MPI_ERROR(MPI_Ssend(data, 1, MPI_BYTE, VICTIM, NEVER, MPI_COMM_WORLD), GONE);
}

static void probe(void)
{
    TL_MPI_ERROR(MPI_Probe(VICTIM, NEVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE), GONE);
}

static void probe_matched(void)
{
    MPI_Message message;

    TL_MPI_ERROR(MPI_Mprobe(VICTIM, NEVER, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE), GONE);
}

static const struct {
    const char *name;
    void (*run)(void);
} kinds[] = {{"receive", receive},
             {"send of a long message", send_long},
             {"synchronous send", send_synchronously},
             {"probe", probe},
             {"matched probe", probe_matched}};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/** Ends by itself, with an error, and leaves no request unless that is persistent. */
static void must_fail(MPI_Request *request, const char *what)
{
    phase(what);
    TL_MPI_ERROR(MPI_Wait(request, MPI_STATUS_IGNORE), GONE);
}

/** Open MPI frees a persistent request that has failed. */
static void free_unless_gone(MPI_Request *request)
{
    if (*request != MPI_REQUEST_NULL)
        TL_MPI(MPI_Request_free(request));
}

/** What was under way may have come over. */
static void may_fail(MPI_Request *request, const unsigned char *half, int from, int to,
                     const char *what)
{
    phase(what);
    const int rc = MPI_Wait(request, MPI_STATUS_IGNORE);

    TL_CHECK(rc != MPI_SUCCESS || p2p_holds(half, HALF, p2p_seed(from, to, HALF)),
             "%s: it is complete, but other data", what);
}

static void end_all(begun_t *b)
{
    must_fail(&b->unreceived, "a send that nobody will receive");
    must_fail(&b->never, "a receive of what nobody has sent");
    must_fail(&b->anybody, "a receive from anybody that was there before");
    must_fail(&b->persistent, "a persistent receive");
    free_unless_gone(&b->persistent);
    may_fail(&b->from, b->half_in, VICTIM, tl_rank(), "a receive that is cut off");
    may_fail(&b->to, b->half_out, tl_rank(), VICTIM, "a send that is cut off");
    free(b->half_in);
    free(b->half_out);
}

/* ---- what the dead has left ------------------------------------------------------------------ */

/** An announcement is all that has come of a long message. */
static void receive_what_is_left(void)
{
    MPI_Message message;

    phase("a receive of a short message of the dead");
    if (MPI_Recv(in, LONG, MPI_BYTE, VICTIM, SHORT_LEFT, MPI_COMM_WORLD, MPI_STATUS_IGNORE) ==
        MPI_SUCCESS)
        TL_CHECK(p2p_holds(in, 100, p2p_seed(VICTIM, 0, 0)), "a short message of the dead");
    phase("a receive of a long message of the dead");
    TL_MPI_ERROR(MPI_Recv(in, LONG, MPI_BYTE, VICTIM, LONG_LEFT, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                 GONE);
    phase("a receive of what a probe has found");
    if (MPI_Mprobe(VICTIM, LONG_PROBED, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE) == MPI_SUCCESS)
        TL_MPI_ERROR(MPI_Mrecv(in, LONG, MPI_BYTE, &message, MPI_STATUS_IGNORE), GONE);
}

/** What is begun when it is known. */
static void begin_later(void)
{
    MPI_Request request;
    int flag;

    phase("what is begun later");
    TL_MPI_ERROR(MPI_Send(data, 1, MPI_BYTE, VICTIM, NEVER, MPI_COMM_WORLD), GONE);
    TL_MPI_ERROR(MPI_Iprobe(VICTIM, NEVER, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE), GONE);
    TL_MPI(MPI_Recv_init(in, LONG, MPI_BYTE, VICTIM, NEVER, MPI_COMM_WORLD, &request));
    TL_CHECK(MPI_Start(&request) != MPI_SUCCESS ||
                 MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS,
             "no error of a persistent receive that is started later");
    free_unless_gone(&request);
    for (int k = 0; k < KINDS; k++) {
        phase(kinds[k].name);
        kinds[k].run();
    }
}

/* ---- waits for anybody ----------------------------------------------------------------------- */

/** What is begun when it is known that one is lost waits for the others. */
static void receive_from_anybody(MPI_Comm living)
{
    MPI_Group group, all;
    MPI_Request request;
    MPI_Status status;
    int me, size, near[2], ranks[2];

    phase("a receive from anybody");
    MPI_Comm_rank(living, &me);
    MPI_Comm_size(living, &size);
    MPI_Comm_group(living, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    near[0] = (me + 1) % size;
    near[1] = (me + size - 1) % size;
    MPI_Group_translate_ranks(group, 2, near, all, ranks);
    TL_MPI(MPI_Irecv(in, LONG, MPI_BYTE, MPI_ANY_SOURCE, AMONG, MPI_COMM_WORLD, &request));
    p2p_fill(data, LONG, p2p_seed(tl_rank(), AMONG, 0));
    TL_MPI(MPI_Send(data, LONG, MPI_BYTE, ranks[0], AMONG, MPI_COMM_WORLD));
    TL_MPI(MPI_Wait(&request, &status));
    p2p_check_status(&status, ranks[1], AMONG, LONG, "from anybody");
    TL_CHECK(p2p_holds(in, LONG, p2p_seed(ranks[1], AMONG, 0)), "from anybody");
    MPI_Group_free(&group);
    MPI_Group_free(&all);
}

/** Begun before, so that the one that is lost might have been meant. */
static void probe_anybody(void)
{
    phase("a probe of anybody's messages");
    TL_MPI_ERROR(MPI_Probe(MPI_ANY_SOURCE, NEVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE), GONE);
}

/* ---- those who live -------------------------------------------------------------------------- */

static void go_on(MPI_Comm living)
{
    int me, size;

    phase("messages among the living");
    MPI_Comm_rank(living, &me);
    MPI_Comm_size(living, &size);
    for (int i = 0; i < p2p_nsizes; i++) {
        p2p_buffer_t out = p2p_buffer(p2p_side((p2p_shape_t)(i % P2P_SHAPES), p2p_sizes[i]));
        p2p_buffer_t got = p2p_buffer(p2p_side(P2P_VECTOR_64, p2p_sizes[i]));
        const int to = (me + 1) % size, from = (me + size - 1) % size;

        p2p_write(&out, p2p_seed(me, AMONG, i));
        TL_MPI(MPI_Sendrecv(out.at, out.side.count, out.side.type, to, AMONG, got.at,
                            got.side.count, got.side.type, i % 2 ? from : MPI_ANY_SOURCE, AMONG,
                            living, MPI_STATUS_IGNORE));
        p2p_check(&got, got.bytes, p2p_seed(from, AMONG, i), "among the living");
        p2p_free(&out);
        p2p_free(&got);
        /* Behind a wildcard the next one's message must not come before it. */
        TL_MPI(MPI_Barrier(living));
    }
}

static int finish(MPI_Comm living)
{
    long failed = tl_failed();

    TL_MPI(MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_LONG, MPI_SUM, living));
    phase("the end");
    MPI_Comm_free(&living);
    MPI_Finalize();
    return failed == 0 ? TL_EXIT_OK : TL_EXIT_FAILED;
}

int main(int argc, char **argv)
{
    MPI_Comm living;
    begun_t begun;

    meet_begin_as_child();
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    if (!p2p_layer("superpipe"))
        tl_skip("this layer does not notice who is dead");
    TL_MPI(MPI_Comm_split(MPI_COMM_WORLD, tl_rank() == VICTIM ? MPI_UNDEFINED : 0, 0, &living));
    if (tl_rank() == VICTIM)
        die();
    phase("before");
    begin_all(&begun);
    if (tl_rank() == tl_size() - 1)
        probe_anybody();
    for (int k = 0; k < KINDS; k++) {
        const int which = (k + tl_rank()) % KINDS;

        phase(kinds[which].name);
        kinds[which].run();
    }
    end_all(&begun);
    receive_what_is_left();
    begin_later();
    receive_from_anybody(living);
    go_on(living);
    return finish(living);
}
