/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-3 */
/* p2p: auto pipeline */
/* retry: start spawn */
/**
 * @file
 * Messages between processes that do not have MPI_COMM_WORLD in common: with spawned ones, over the
 * intercommunicator and merged with it, with two sets of them at once that have the same ranks; and
 * between two parts of a job that meet by connect and accept. All sizes, in both directions. And
 * children that send and leave at once: what they have sent arrives, though part of it is a copy
 * that their parents ask for much later.
 *
 * MPI_Comm_spawn of Open MPI 4.1.4 sometimes waits forever inside PMIx, with any component: then,
 * and only then, the run is made again. The program starts itself with the argument -child.
 */
#include "test/mpi/p2p.h"
#include "test/mpi/phase.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CHILDREN = 2, ROUNDS = 2, MOST = 8 };
#define CHILD_OPTION "-child"
#define LEAVE_OPTION "-leave"
enum { LEAVING_SHORTS = 500, LEAVING_SHORT = 3000, LEAVING_LONG = 1 << 20 };

/** What a rank of one side sends to one of the other, in the order of `i`. */
static uint64_t seed_of(bool second, int from, int to, int i)
{
    return p2p_seed(from + (second ? 1000 : 0), to, i);
}

/** All of one side send to all of the other, and receive by name or from anybody. */
static void use_inter(MPI_Comm inter, bool second)
{
    p2p_buffer_t out[MOST], in;
    MPI_Request sends[MOST];
    int me, remote;

    MPI_Comm_rank(inter, &me);
    MPI_Comm_remote_size(inter, &remote);
    for (int i = 0; i < p2p_nsizes * ROUNDS; i++) {
        int bytes = p2p_sizes[i % p2p_nsizes];

        for (int r = 0; r < remote; r++) {
            out[r] = p2p_buffer(p2p_side((p2p_shape_t)(i % P2P_SHAPES), bytes));
            p2p_write(&out[r], seed_of(second, me, r, i));
            TL_MPI((i % 3 ? MPI_Isend : MPI_Issend)(out[r].at, out[r].side.count, out[r].side.type,
                                                    r, i, inter, &sends[r]));
        }
        for (int r = 0; r < remote; r++) {
            MPI_Status status;

            in = p2p_buffer(p2p_side(P2P_VECTOR_1024, bytes));
            TL_MPI(MPI_Recv(in.at, in.side.count, in.side.type, i % 2 ? r : MPI_ANY_SOURCE, i,
                            inter, &status));
            p2p_check_status(&status, i % 2 ? r : status.MPI_SOURCE, i, in.bytes, "between jobs");
            p2p_check(&in, in.bytes, seed_of(!second, status.MPI_SOURCE, me, i), "between jobs");
            p2p_free(&in);
        }
        TL_MPI(MPI_Waitall(remote, sends, MPI_STATUSES_IGNORE));
        for (int r = 0; r < remote; r++)
            p2p_free(&out[r]);
    }
}

/** Over one communicator of both sides, to every distance. */
static void use_merged(MPI_Comm inter, bool second)
{
    MPI_Comm all;
    int me, size;

    TL_MPI(MPI_Intercomm_merge(inter, second, &all));
    MPI_Comm_rank(all, &me);
    MPI_Comm_size(all, &size);
    for (int i = 0; i < p2p_nsizes; i++) {
        for (int distance = 1; distance < size; distance++) {
            p2p_buffer_t out = p2p_buffer(p2p_side((p2p_shape_t)(i % P2P_SHAPES), p2p_sizes[i]));
            p2p_buffer_t in = p2p_buffer(p2p_side(P2P_PLAIN, p2p_sizes[i]));
            int from = (me + size - distance) % size;
            MPI_Status status;

            p2p_write(&out, p2p_seed(me, distance, i));
            TL_MPI(MPI_Sendrecv(out.at, out.side.count, out.side.type, (me + distance) % size, i,
                                in.at, p2p_sizes[i], MPI_BYTE, from, i, all, &status));
            p2p_check_status(&status, from, i, in.bytes, "merged");
            p2p_check(&in, in.bytes, p2p_seed(from, distance, i), "merged");
            p2p_free(&out);
            p2p_free(&in);
        }
    }
    TL_MPI(MPI_Comm_free(&all));
}

/* ---- parents and children ---- */

static int child(void)
{
    MPI_Comm parent;

    MPI_Comm_get_parent(&parent);
    MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
    use_inter(parent, true);
    use_merged(parent, true);
    MPI_Comm_disconnect(&parent);
    return tl_finish();
}

/** Sends what it may without a word, more than that, and a long message in a buffer; then ends.
 *  Where a protocol is forced, which may wait for the receiver, all of them are in the buffer. */
static int leaving_child(void)
{
    static char buffer[LEAVING_LONG + LEAVING_SHORTS * (LEAVING_SHORT + 1000)], out[LEAVING_LONG];
    MPI_Comm parent;
    int me;

    MPI_Comm_get_parent(&parent);
    MPI_Comm_rank(parent, &me);
    MPI_Buffer_attach(buffer, sizeof(buffer));
    for (int i = 0; i < LEAVING_SHORTS; i++) {
        p2p_fill(out, LEAVING_SHORT, seed_of(true, me, 0, i));
        TL_MPI((p2p_waits() ? MPI_Bsend : MPI_Send)(out, LEAVING_SHORT, MPI_BYTE, 0, i, parent));
    }
    p2p_fill(out, LEAVING_LONG, seed_of(true, me, 0, LEAVING_SHORTS));
    TL_MPI(MPI_Bsend(out, LEAVING_LONG, MPI_BYTE, 0, LEAVING_SHORTS, parent));
    MPI_Finalize();
    return tl_failed() > 0;
}

static bool spawn(const char *program, char *option, MPI_Comm *inter)
{
    char seed_option[] = "-s", seed[24];
    char *argv[] = {option, seed_option, seed, NULL};
    int good, all_good = 0;

    phase("spawn");
    snprintf(seed, sizeof(seed), "%llu", (unsigned long long)tl_seed());
    good = MPI_Comm_spawn(program, argv, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, inter,
                          MPI_ERRCODES_IGNORE) == MPI_SUCCESS;
    MPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    phase("messages");
    return all_good;
}

/** A second set of children, which have the ranks of the first, before and after these go. */
static void test_children(const char *program)
{
    char option[] = CHILD_OPTION;
    MPI_Comm first, second;

    if (!spawn(program, option, &first))
        tl_skip("processes cannot be spawned here");
    if (!TL_CHECK(spawn(program, option, &second), "no second set of children"))
        second = MPI_COMM_NULL;
    else
        use_inter(second, false);
    use_inter(first, false);
    use_merged(first, false);
    TL_MPI(MPI_Comm_disconnect(&first));
    if (second != MPI_COMM_NULL) {
        use_merged(second, false);
        TL_MPI(MPI_Comm_disconnect(&second));
    }
}

/** The last messages first, when the children have been waiting for a while. */
static void test_leaving(const char *program)
{
    static char in[LEAVING_LONG];
    char option[] = LEAVE_OPTION;
    MPI_Comm inter;

    if (!TL_CHECK(spawn(program, option, &inter), "no children that leave"))
        return;
    usleep(300000);
    for (int i = LEAVING_SHORTS; i >= 0 && tl_rank() == 0; i--) {
        const int bytes = i == LEAVING_SHORTS ? LEAVING_LONG : LEAVING_SHORT;

        for (int from = 0; from < CHILDREN; from++) {
            MPI_Status status;

            TL_MPI(MPI_Recv(in, LEAVING_LONG, MPI_BYTE, from, i, inter, &status));
            p2p_check_status(&status, from, i, (size_t)bytes, "from one that leaves");
            TL_CHECK(p2p_holds(in, (size_t)bytes, seed_of(true, from, 0, i)),
                     "message %d from child %d, which leaves", i, from);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    TL_MPI(MPI_Comm_free(&inter));
}

/* ---- connect and accept ---- */

/** The job falls into halves that know each other's port only, and meet by it. */
static void test_connect(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    bool server = tl_rank() % 2 == 0;
    MPI_Comm half, inter;
    int code;

    if (tl_rank() == 0)
        TL_MPI(MPI_Open_port(MPI_INFO_NULL, port));
    MPI_Bcast(port, sizeof(port), MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, server, 0, &half);
    MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN);
    code = server ? MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter)
                  : MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter);
    if (TL_MPI(code)) {
        use_inter(inter, !server);
        use_merged(inter, !server);
        MPI_Comm_disconnect(&inter);
    }
    MPI_Comm_free(&half);
    if (tl_rank() == 0)
        MPI_Close_port(port);
}

int main(int argc, char **argv)
{
    phase("start");
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    phase("messages");
    if (argc > 1 && strcmp(argv[1], CHILD_OPTION) == 0)
        return child();
    if (argc > 1 && strcmp(argv[1], LEAVE_OPTION) == 0)
        return leaving_child();
    /* Over several hosts Open MPI 4.1 fails or hangs in MPI_Comm_spawn, whoever sends messages. */
    if (tl_one_host()) {
        test_children(argv[0]);
        test_leaving(argv[0]);
    }
    if (tl_size() > 1) {
        phase("connect");
        test_connect();
    }
    return tl_finish();
}
