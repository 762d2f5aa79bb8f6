/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* p2p: auto */
/* timeout: 200 */
/* retry: start spawn connect disconnect */
/**
 * @file
 * Processes that meet and part as MPI-3.1, chapter 10, lets them: parts of a job that connect,
 * disconnect and connect again; several ports at once; names that are published and taken back;
 * children of all processes at the same time; a master who hands out tasks to a child for each;
 * intercommunicators between groups that have met. Wherever they meet, what is sent first is sent
 * right before a call that waits for others within Open MPI's runtime, which makes no progress:
 * nobody who waits for it calls anything else. Windows over what was merged.
 *
 * The program starts itself with the arguments -child and what the child is to do.
 */
#include "test/mpi/phase.h"
#include "test/mpi/testlib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHILD_OPTION "-child"
enum { ROUNDS = 3, MOST = 8, LONG = 300000 };

/* ---- what those who have met do -------------------------------------------------------------- */

static void part(MPI_Comm *comm)
{
    phase("disconnect");
    TL_MPI(MPI_Comm_disconnect(comm));
    phase("messages");
}

static int tag_of(int round, bool first)
{
    return 10 * round + first;
}

/** A process that waits for all is not watched: another one hangs. */
static void meet(void)
{
    phase(NULL);
    MPI_Barrier(MPI_COMM_WORLD);
}

/** The first says something and leaves it at that; the second waits for it, and says something
 *  longer. Between each two of the same rank. */
static void say_and_hear(MPI_Comm inter, bool first, int round)
{
    static char out[LONG], in[LONG];
    int me, there, said = -1;

    MPI_Comm_rank(inter, &me);
    MPI_Comm_remote_size(inter, &there);
    if (me >= there)
        return;
    if (first) {
        said = 100 * round + me;
        TL_MPI(MPI_Send(&said, 1, MPI_INT, me, tag_of(round, true), inter));
        TL_MPI(MPI_Recv(in, LONG, MPI_BYTE, me, tag_of(round, false), inter, MPI_STATUS_IGNORE));
        TL_CHECK(in[0] == (char)round && in[LONG - 1] == (char)round, "round %d: got %d", round,
                 in[0]);
    } else {
        memset(out, round, LONG);
        TL_MPI(MPI_Recv(&said, 1, MPI_INT, me, tag_of(round, true), inter, MPI_STATUS_IGNORE));
        TL_CHECK(said == 100 * round + me, "round %d: got %d", round, said);
        TL_MPI(MPI_Send(out, LONG, MPI_BYTE, me, tag_of(round, false), inter));
    }
}

/** Each puts its rank to the next, and fetches it from there. */
static void use_window(MPI_Comm all)
{
    int me, size, back = -1, *base;
    MPI_Win win;

    MPI_Comm_rank(all, &me);
    MPI_Comm_size(all, &size);
    if (!TL_MPI(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, all, &base, &win)))
        return;
    *base = -1;
    TL_MPI(MPI_Win_fence(0, win));
    TL_MPI(MPI_Put(&me, 1, MPI_INT, (me + 1) % size, 0, 1, MPI_INT, win));
    TL_MPI(MPI_Win_fence(0, win));
    TL_CHECK(*base == (me + size - 1) % size, "put: got %d", *base);
    TL_MPI(MPI_Get(&back, 1, MPI_INT, (me + 1) % size, 0, 1, MPI_INT, win));
    TL_MPI(MPI_Win_fence(0, win));
    TL_CHECK(back == me, "get: got %d", back);
    TL_MPI(MPI_Win_free(&win));
}

/** A window over both, and an intercommunicator between the same two by way of what was merged. */
static void use_merged(MPI_Comm inter, bool first)
{
    MPI_Comm all, mine, again;
    int lowest, here, there;

    MPI_Comm_size(inter, &here);
    MPI_Comm_remote_size(inter, &there);
    TL_MPI(MPI_Intercomm_merge(inter, !first, &all));
    use_window(all);
    /* The first are the lower ranks of all. */
    lowest = first ? here : 0;
    TL_MPI(MPI_Comm_split(all, first, 0, &mine));
    TL_MPI(MPI_Intercomm_create(mine, 0, all, lowest, 77, &again));
    say_and_hear(again, first, 9);
    TL_MPI(MPI_Comm_free(&again));
    TL_MPI(MPI_Comm_free(&mine));
    /* With two jobs in it Open MPI 4.1 never comes back from MPI_Comm_disconnect of this, whoever
     * sends messages: all are in PMIx_Fence. */
    TL_MPI(MPI_Comm_free(&all));
}

/* ---- connect and accept ---------------------------------------------------------------------- */

/** Two parts of the job meet again and again; in every second round what is said is heard only
 *  while the other is on its way to part. */
static void test_reconnect(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    const bool server = tl_rank() % 2 == 0;
    MPI_Comm half, inter;

    if (tl_rank() == 0)
        TL_MPI(MPI_Open_port(MPI_INFO_NULL, port));
    MPI_Bcast(port, sizeof(port), MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, server, 0, &half);
    MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN);
    for (int round = 1; round <= ROUNDS; round++) {
        phase("connect");
        const int rc = server ? MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter)
                              : MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter);
        phase("messages");
        if (!TL_MPI(rc))
            break;
        say_and_hear(inter, server == (round % 2 == 0), round);
        if (round == ROUNDS)
            use_merged(inter, server);
        part(&inter);
    }
    MPI_Comm_free(&half);
    if (tl_rank() == 0)
        MPI_Close_port(port);
}

/** Rank 0 has a port for each of the others, which it tells them in its first message to them, and
 *  takes them from the last to the first. What each says at once is heard after all have been
 *  taken: the others go into MPI_Comm_disconnect. */
static void test_ports(void)
{
    char port[MOST][MPI_MAX_PORT_NAME];
    MPI_Comm inter[MOST];

    for (int i = 1; tl_rank() == 0 && i < tl_size(); i++) {
        TL_MPI(MPI_Open_port(MPI_INFO_NULL, port[i]));
        TL_MPI(MPI_Send(port[i], MPI_MAX_PORT_NAME, MPI_CHAR, i, 0, MPI_COMM_WORLD));
    }
    if (tl_rank() != 0) {
        const int said = tl_rank();
        TL_MPI(MPI_Recv(port[0], MPI_MAX_PORT_NAME, MPI_CHAR, 0, 0, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE));
        phase("connect");
        TL_MPI(MPI_Comm_connect(port[0], MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter[0]));
        phase("messages");
        TL_MPI(MPI_Send(&said, 1, MPI_INT, 0, 0, inter[0]));
        part(&inter[0]);
        return;
    }
    for (int i = tl_size() - 1; i > 0; i--) {
        phase("connect");
        TL_MPI(MPI_Comm_accept(port[i], MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter[i]));
        phase("messages");
    }
    for (int i = 1; i < tl_size(); i++) {
        int said = -1;
        TL_MPI(MPI_Recv(&said, 1, MPI_INT, 0, 0, inter[i], MPI_STATUS_IGNORE));
        TL_CHECK(said == i, "port %d: got %d", i, said);
        part(&inter[i]);
        MPI_Close_port(port[i]);
    }
}

/** A name is found while it is published, and not before or after. */
static void test_names(void)
{
    char port[MPI_MAX_PORT_NAME] = "", found[MPI_MAX_PORT_NAME] = "", name[64];

    snprintf(name, sizeof(name), "ompi-nic-jobs-%llu", (unsigned long long)tl_seed());
    if (tl_rank() == 0) {
        TL_MPI(MPI_Open_port(MPI_INFO_NULL, port));
        TL_MPI(MPI_Publish_name(name, MPI_INFO_NULL, port));
    }
    MPI_Bcast(port, sizeof(port), MPI_CHAR, 0, MPI_COMM_WORLD);
    TL_MPI(MPI_Lookup_name(name, MPI_INFO_NULL, found));
    TL_CHECK(strcmp(found, port) == 0, "the port \"%s\" is not \"%s\"", found, port);
    MPI_Barrier(MPI_COMM_WORLD);
    if (tl_rank() == 0)
        TL_MPI(MPI_Unpublish_name(name, MPI_INFO_NULL, port));
    MPI_Barrier(MPI_COMM_WORLD);
    TL_CHECK(MPI_Lookup_name(name, MPI_INFO_NULL, found) != MPI_SUCCESS,
             "a name is found that was taken back");
    if (tl_rank() == 0)
        MPI_Close_port(port);
}

/* ---- children -------------------------------------------------------------------------------- */

static bool spawn(const char *program, const char *task, int n, MPI_Comm comm, MPI_Comm *inter)
{
    char option[] = CHILD_OPTION, what[16];
    char *argv[] = {option, what, NULL};

    snprintf(what, sizeof(what), "%s", task);
    phase("spawn");
    const bool good = TL_MPI(
        MPI_Comm_spawn(program, argv, n, MPI_INFO_NULL, 0, comm, inter, MPI_ERRCODES_IGNORE));
    phase("messages");
    if (good)
        MPI_Comm_set_errhandler(*inter, MPI_ERRORS_RETURN);
    return good;
}

/** All have children of their own at the same time, twice; these speak first, and leave. */
static void test_all_spawn(const char *program)
{
    for (int round = 1; round < (tl_slow() ? 2 : 3); round++) {
        MPI_Comm inter;
        if (spawn(program, "speak", 1, MPI_COMM_SELF, &inter)) {
            TL_MPI(MPI_Send(&round, 1, MPI_INT, 0, 0, inter));
            say_and_hear(inter, false, round);
            part(&inter);
        }
    }
    meet();
}

/** Rank 0 has a child for each task, several at once, and hears from whoever is done first. */
static void test_tasks(const char *program)
{
    enum { TASKS = 6, AT_ONCE = 3 };
    MPI_Comm child[AT_ONCE];
    MPI_Request done[AT_ONCE];
    int answer[AT_ONCE], task[AT_ONCE], begun = 0, sum = 0, i;

    for (i = 0; i < AT_ONCE; i++)
        done[i] = MPI_REQUEST_NULL;
    for (i = 0; i != MPI_UNDEFINED;) {
        if (begun < TASKS && i < AT_ONCE && done[i] == MPI_REQUEST_NULL) {
            task[i] = ++begun;
            if (!spawn(program, "task", 1, MPI_COMM_SELF, &child[i]))
                return;
            TL_MPI(MPI_Send(&task[i], 1, MPI_INT, 0, 0, child[i]));
            TL_MPI(MPI_Irecv(&answer[i], 1, MPI_INT, MPI_ANY_SOURCE, 1, child[i], &done[i]));
            if (begun < AT_ONCE) {
                i++;
                continue;
            }
        }
        TL_MPI(MPI_Waitany(AT_ONCE, done, &i, MPI_STATUS_IGNORE));
        if (i != MPI_UNDEFINED) {
            TL_CHECK(answer[i] == task[i] * task[i], "task %d: got %d", task[i], answer[i]);
            sum += answer[i];
            part(&child[i]);
        }
    }
    TL_CHECK(sum == 91, "the sum of %d tasks is %d", TASKS, sum);
}

/** Children of all together, who are then one group with them. */
static void test_family(const char *program)
{
    MPI_Comm inter;

    if (spawn(program, "family", 2, MPI_COMM_WORLD, &inter)) {
        use_merged(inter, false);
        part(&inter);
    }
}

static int child(const char *what)
{
    MPI_Comm parent;
    int n = 0;

    MPI_Comm_get_parent(&parent);
    MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
    if (strcmp(what, "family") == 0)
        use_merged(parent, true);
    else
        TL_MPI(MPI_Recv(&n, 1, MPI_INT, 0, 0, parent, MPI_STATUS_IGNORE));
    if (strcmp(what, "speak") == 0) {
        say_and_hear(parent, true, n);
    } else if (strcmp(what, "task") == 0) {
        n *= n;
        TL_MPI(MPI_Send(&n, 1, MPI_INT, 0, 1, parent));
    }
    part(&parent);
    return tl_finish();
}

int main(int argc, char **argv)
{
    phase("start");
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    phase("messages");
    if (argc > 2 && strcmp(argv[1], CHILD_OPTION) == 0)
        return child(argv[2]);
    tl_need_ranks(2, MOST);
    /* First of all: nobody knows anybody. */
    test_ports();
    meet();
    test_names();
    test_reconnect();
    meet();
    /* Over several hosts Open MPI 4.1 fails or hangs in MPI_Comm_spawn, whoever sends messages. */
    if (tl_one_host()) {
        test_all_spawn(argv[0]);
        if (tl_rank() == 0)
            test_tasks(argv[0]);
        meet();
        test_family(argv[0]);
    }
    return tl_finish();
}
