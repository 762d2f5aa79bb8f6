/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* retry: start spawn */
/**
 * @file
 * What a point-to-point layer asks of the transport: peers by the name of their process, without a
 * collective; messages that name their sender, which handlers answer though they have never looked
 * him up; messages to oneself; processes that were spawned, twice, and that meet by connect and
 * accept; and a transport that is closed when there is nothing left to send a barrier with, while
 * one process is late.
 *
 * MPI_Comm_spawn of Open MPI 4.1.4 sometimes waits forever inside PMIx: then the run is made again.
 * The program starts itself with the argument -child.
 */
#include "common/ompi_compat.h"
#include "test/mpi/phase.h"
#include "test/mpi/testlib.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ompi/communicator/communicator.h"
#include "ompi/group/group.h"

#include "common/support/modex.h"
#include "common/transport/transport.h"
#include "common/transport/internal.h"
#include "test/mpi/peers.h"

#define CHILD_OPTION "-child"
/** No wait takes longer where all is well, in seconds. */
#define PATIENCE      TL_PATIENCE
#define PATIENCE_USEC 60000000U

/** What is done with a message: it is answered; it is an answer; its bytes are verified, by
 *  rendezvous or not; it is refused. */
typedef enum word_kind { ASK = 1, ANSWER, BYTES, MEET, REFUSE } word_kind_t;

typedef struct word {
    uint64_t from;
    uint32_t kind;
    uint32_t len; /**< bytes of payload */
} word_t;

/** Counted by the handler. */
static atomic_long asked, answers, arrived, wrong;

/* ---- messages ------------------------------------------------------------------------------- */

static unsigned char byte_of(uint64_t from, uint32_t i)
{
    return (unsigned char)(from * 31 + i * 7 + (i >> 8));
}

static void verify(const word_t *w, const unsigned char *data)
{
    for (uint32_t i = 0; i < w->len; i++) {
        if (data[i] != byte_of(w->from, i)) {
            atomic_fetch_add(&wrong, 1);
            break;
        }
    }
    atomic_fetch_add(&arrived, 1);
}

/** A rendezvous on its way into memory. */
typedef struct meeting {
    word_t w;
    unsigned char data[];
} meeting_t;

static void met(void *arg, int status)
{
    meeting_t *m = arg;

    atomic_fetch_add(&wrong, status != 0);
    verify(&m->w, m->data);
    free(m);
}

static void meet(const word_t *w, onic_rndv_t *rndv)
{
    meeting_t *m = calloc(1, sizeof(*m) + w->len);

    m->w = *w;
    const int rc = onic_rndv_recv(rndv, m->data, w->len, met, m);
    if (rc != 0)
        met(m, rc == 1 ? 0 : rc);
}

static int send_word(onic_peer_t *to, word_kind_t kind)
{
    const word_t w = {.from = onic_transport_me(), .kind = kind};

    return onic_peer_send(to, ONIC_AM_PML, &w, sizeof(w), NULL, 0, NULL, NULL);
}

static void handle(onic_peer_t *from, const void *header, size_t header_len, const void *data,
                   size_t len, onic_rndv_t *rndv)
{
    word_t w;

    if (header_len < sizeof(w)) {
        atomic_fetch_add(&wrong, 1);
        return;
    }
    memcpy(&w, header, sizeof(w));
    if (w.from != onic_peer_name(from) || w.len != len ||
        (rndv != NULL) != (w.kind == MEET || w.kind == REFUSE)) {
        atomic_fetch_add(&wrong, 1);
    } else if (w.kind == ASK) {
        atomic_fetch_add(&asked, 1);
        atomic_fetch_add(&wrong, send_word(from, ANSWER) < 0);
    } else if (w.kind == ANSWER) {
        atomic_fetch_add(&answers, 1);
    } else if (w.kind == BYTES) {
        verify(&w, data);
    } else if (w.kind == MEET) {
        meet(&w, rndv);
    } else {
        atomic_fetch_add(&arrived, 1);
    }
}

static void ask(onic_peer_t *to)
{
    onic_transport_lock();
    TL_CHECK(send_word(to, ASK) >= 0, "a word could not be sent");
    onic_transport_unlock();
}

static void wait_for(atomic_long *count, long want, const char *what)
{
    const double end = MPI_Wtime() + PATIENCE;

    while (atomic_load(count) < want && MPI_Wtime() < end)
        onic_transport_progress();
    TL_CHECK(atomic_load(count) == want && atomic_load(&wrong) == 0,
             "%s: %ld instead of %ld; %ld wrong", what, atomic_load(count), want,
             atomic_load(&wrong));
}

static void freed(void *arg, int status)
{
    atomic_fetch_add(&wrong, status != 0);
    free(arg);
}

static void send_bytes(onic_peer_t *to, word_kind_t kind, uint32_t len)
{
    const word_t w = {.from = onic_transport_me(), .kind = kind, .len = len};
    unsigned char *data = malloc(len + 1);
    const onic_payload_t payload = {.base = data, .len = len};

    for (uint32_t i = 0; i < len; i++)
        data[i] = byte_of(w.from, i);
    onic_transport_lock();
    const int rc = onic_peer_send(to, ONIC_AM_PML, &w, sizeof(w), &payload,
                                  kind == BYTES ? 0 : ONIC_SEND_RNDV, freed, data);
    onic_transport_unlock();
    if (rc != 0)
        freed(data, rc == 1 ? 0 : rc);
}

/* ---- names ---------------------------------------------------------------------------------- */

static uint64_t name_of(ompi_group_t *group, int rank)
{
    const opal_process_name_t name = ompi_group_get_proc_name(group, rank);

    return onic_name(name.jobid, name.vpid);
}

static uint64_t world_name(int rank)
{
    return name_of(ompi_mpi_comm_world.comm.c_local_group, rank);
}

static uint64_t remote_name(MPI_Comm inter, int rank)
{
    return name_of(inter->c_remote_group, rank);
}

static onic_peer_t *get_peer(uint64_t name)
{
    int rc = -1;
    onic_peer_t *peer = onic_transport_get_peer(name, &rc);

    if (!TL_CHECK(peer != NULL && rc == 0 && onic_peer_name(peer) == name, "no peer: %d", rc))
        tl_die("no peer");
    return peer;
}

static bool is_known(uint64_t name)
{
    onic_transport_lock();
    const bool known = onic_peer_named(name) != NULL;
    onic_transport_unlock();
    return known;
}

/** The transport, with what a point-to-point layer would have published in MPI_Init. */
static void open_wire(void)
{
    const onic_transport_config_t config = {.publish = true};

    TL_CHECK(onic_transport_open(&config) == 0, "the transport does not open");
    onic_transport_set_fns(ONIC_AM_PML, &(onic_transport_fns_t){.am = handle});
    TL_CHECK(onic_modex_fence_begin(), "no fence");
    while (!onic_modex_fence_ended())
        onic_transport_progress();
}

/* ---- tests: one job ------------------------------------------------------------------------- */

static void test_self(void)
{
    onic_peer_t *me = get_peer(onic_transport_me());
    const word_t other = {.from = onic_transport_me() + 1, .kind = ASK};
    int rc = 0;

    TL_CHECK(onic_transport_me() == world_name(tl_rank()) && onic_peer_is_self(me), "I am another");
    TL_CHECK(onic_transport_get_peer(onic_name(UINT32_MAX - 5, 3), &rc) == NULL && rc < 0,
             "nobody is found: %d", rc);
    onic_transport_lock();
    TL_CHECK(onic_peer_send(me, ONIC_AM_PML, &other, sizeof(other), NULL, 0, NULL, NULL) < 0 &&
                 onic_peer_send(me, ONIC_AM_PML, &other, 4, NULL, 0, NULL, NULL) < 0,
             "a message in another's name, or in nobody's");
    onic_transport_unlock();
    ask(me);
    wait_for(&answers, 1, "answers of mine");
    send_bytes(me, BYTES, 1000);
    send_bytes(me, MEET, 100000);
    send_bytes(me, REFUSE, 100000);
    wait_for(&arrived, 3, "messages to myself");
    atomic_store(&asked, 0);
    atomic_store(&answers, 0);
    atomic_store(&arrived, 0);
}

/** All ask rank 0, which knows nobody, or rank 1 from an earlier message. */
static void test_first_message(void)
{
    TL_CHECK(tl_size() < 3 || tl_rank() != 0 || !is_known(world_name(2)), "rank 2 is known");
    MPI_Barrier(MPI_COMM_WORLD);
    if (tl_rank() > 0) {
        onic_peer_t *zero = get_peer(world_name(0));
        ask(zero);
        wait_for(&answers, 1, "the answer of who has never looked me up");
        for (int i = 0; i < 100; i++)
            ask(zero);
        wait_for(&answers, 101, "answers");
    } else {
        wait_for(&asked, 101 * (tl_size() - 1), "questions of strangers");
        for (int i = 1; i < tl_size(); i++)
            TL_CHECK(is_known(world_name(i)), "rank %d has asked and is not known", i);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/** A process has one record, however it was found. */
static void test_one_record(void)
{
    onic_peer_t *by_rank[64];

    TL_CHECK(peers_get(MPI_COMM_WORLD, by_rank) == 0, "no peers of the world");
    for (int i = 0; i < tl_size(); i++) {
        onic_peer_t *by_name = get_peer(world_name(i));
        TL_CHECK(by_name == by_rank[i], "rank %d is not the same process", i);
    }
}

/* ---- tests: several jobs -------------------------------------------------------------------- */

/** This side has looked the others up and asks them; they have not, and answer. */
static void ask_remote(MPI_Comm inter, bool strangers)
{
    int n;

    MPI_Comm_remote_size(inter, &n);
    atomic_store(&answers, 0);
    for (int i = 0; i < n; i++) {
        TL_CHECK(!strangers || !is_known(remote_name(inter, i)), "remote %d is known", i);
        onic_peer_t *peer = get_peer(remote_name(inter, i));
        ask(peer);
    }
    wait_for(&answers, n, "answers of another job");
    MPI_Barrier(inter);
}

static void answer_remote(MPI_Comm inter)
{
    MPI_Barrier(inter);
}

/** A child: who begins is told by its parents, then with whom it is to meet. */
static int child(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm parent, sibling;
    int first;

    open_wire();
    MPI_Comm_get_parent(&parent);
    MPI_Bcast(&first, 1, MPI_INT, 0, parent);
    if (first) {
        ask_remote(parent, true);
        answer_remote(parent);
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Send(port, sizeof(port), MPI_CHAR, 0, 3, parent);
        TL_MPI(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &sibling));
        ask_remote(sibling, true);
    } else {
        answer_remote(parent);
        ask_remote(parent, false);
        MPI_Recv(port, sizeof(port), MPI_CHAR, 0, 3, parent, MPI_STATUS_IGNORE);
        TL_MPI(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &sibling));
        answer_remote(sibling);
    }
    MPI_Comm_disconnect(&sibling);
    MPI_Comm_disconnect(&parent);
    TL_CHECK(onic_transport_leave(PATIENCE_USEC), "my job has not left");
    onic_transport_close();
    return tl_finish();
}

static bool spawn(const char *program, MPI_Comm *inter)
{
    char option[] = CHILD_OPTION, *argv[] = {option, NULL};
    int code, good, all_good = 0;

    phase("spawn");
    good = MPI_Comm_spawn(program, argv, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, inter, &code) ==
           MPI_SUCCESS;
    MPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    phase("names");
    return all_good;
}

static void tell_first(MPI_Comm inter, int first)
{
    MPI_Bcast(&first, 1, MPI_INT, tl_rank() == 0 ? MPI_ROOT : MPI_PROC_NULL, inter);
}

static void test_children(const char *program)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm first, second;

    if (!TL_CHECK(spawn(program, &first) && spawn(program, &second), "nothing is spawned"))
        tl_die("no children");
    tell_first(first, 1);
    answer_remote(first);
    TL_CHECK(is_known(remote_name(first, 0)), "the child has asked and is not known");
    ask_remote(first, false);
    tell_first(second, 0);
    ask_remote(second, true);
    answer_remote(second);
    if (tl_rank() == 0) {
        MPI_Recv(port, sizeof(port), MPI_CHAR, 0, 3, first, MPI_STATUS_IGNORE);
        MPI_Send(port, sizeof(port), MPI_CHAR, 0, 3, second);
    }
    MPI_Comm_disconnect(&first);
    MPI_Comm_disconnect(&second);
}

/* ---- tests: the end ------------------------------------------------------------------------- */

/** Rank 0 does not wait for ever for who does not come. */
static void test_leave_alone(void)
{
    if (tl_rank() == 0 && tl_size() > 1)
        TL_CHECK(!onic_transport_leave(50000), "nobody else can have come");
    MPI_Barrier(MPI_COMM_WORLD);
    if (tl_rank() > 0)
        TL_CHECK(onic_transport_leave(PATIENCE_USEC), "somebody has not come");
    const double end = MPI_Wtime() + PATIENCE;
    while (!onic_modex_fence_ended() && MPI_Wtime() < end)
        onic_transport_progress();
    TL_CHECK(onic_modex_fence_ended(), "the fence has not ended");
}

/** The last rank is late, and still asks all others, who answer while they wait for it. */
static void test_leave_late(void)
{
    atomic_store(&answers, 0);
    atomic_store(&asked, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (tl_rank() == tl_size() - 1) {
        usleep(300000);
        for (int i = 0; i < tl_size() - 1; i++) {
            onic_peer_t *peer = get_peer(world_name(i));
            ask(peer);
        }
        wait_for(&answers, tl_size() - 1, "answers of those who leave");
    }
    TL_CHECK(onic_transport_leave(PATIENCE_USEC), "somebody has not come");
    TL_CHECK(atomic_load(&asked) == (tl_rank() < tl_size() - 1), "left before the last rank");
    TL_CHECK(onic_transport_close(), "somebody else has the transport open");
}

int main(int argc, char **argv)
{
    phase("start");
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    phase("names");
    if (argc > 1 && strcmp(argv[1], CHILD_OPTION) == 0)
        return child();
    open_wire();
    test_self();
    test_first_message();
    test_one_record();
    if (tl_one_host())
        test_children(argv[0]);
    test_leave_alone();
    test_leave_late();
    return tl_finish();
}
