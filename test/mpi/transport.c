/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/**
 * @file
 * The transport without a component: peers over two communicators, active messages of all sizes
 * from contiguous and strided memory, rendezvous received and refused, bursts to a peer that does
 * not progress, answers of the server thread, single copy.
 */
#define _GNU_SOURCE
#include "test/mpi/testlib.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/transport/transport.h"
#include "common/transport/internal.h"
#include "test/mpi/peers.h"
#include "test/mpi/transport_traffic.h"

/** Questions to the server threads. */
#define PINGS 20

/* ---- tests ---------------------------------------------------------------------------------- */

static void test_peers(void)
{
    int n = tl_size();
    MPI_Comm reversed, half;
    onic_peer_t *other[64];

    TL_CHECK(peers_get(MPI_COMM_WORLD, traffic.peers) == 0, "no peers");
    TL_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, -tl_rank(), &reversed));
    TL_CHECK(peers_get(reversed, other) == 0, "no peers of the reversed communicator");
    for (int i = 0; i < n; i++)
        TL_CHECK(other[i] == traffic.peers[n - 1 - i], "peer %d is not the same process", i);
    TL_MPI(MPI_Comm_free(&reversed));

    TL_MPI(MPI_Comm_split(MPI_COMM_WORLD, tl_rank() % 2, 0, &half));
    TL_CHECK(peers_get(half, other) == 0, "no peers of the half communicator");
    TL_CHECK(other[0] == traffic.peers[tl_rank() % 2], "the first of my half is another process");
    MPI_Comm_size(half, &n);
    TL_MPI(MPI_Comm_free(&half));
}

static size_t frag_max_of(int rank)
{
    onic_transport_lock();
    size_t max = onic_peer_message_max(traffic.peers[rank], 0);
    onic_transport_unlock();
    return max;
}

/** A header of so many bytes is no header, before so much data. */
static void refuse_header(size_t len, size_t data_len)
{
    char *header = calloc(1, len + 1), data = 0;
    const onic_payload_t payload = {.base = &data, .len = data_len};

    onic_transport_lock();
    for (int to = 0; to < tl_size(); to++) {
        TL_CHECK(onic_peer_send(traffic.peers[to], ONIC_AM_COLL, header, len,
                                data_len > 0 ? &payload : NULL, 0, NULL, NULL) < 0,
                 "a header of %zu bytes was sent to %d", len, to);
    }
    onic_transport_unlock();
    free(header);
}

static void test_sizes(void)
{
    size_t h = sizeof(traffic_header_t), max = onic_transport_header_max(), frag = frag_max_of(0);
    size_t header_lens[] = {h, h + 1, 64, 128, 129, 200, 321, max};
    uint64_t lens[] = {0,    1,    7,        8,    63,    64,    100,           1000,
                       1024, 4096, frag - h, 8000, 20000, 65536, (1 << 20) + 3, frag - h + 1};
    long n = 0;

    traffic_reset();
    TL_CHECK(max >= 1024 && frag >= 4096, "header at most %zu, fragment at most %zu", max, frag);
    refuse_header(0, 0);
    refuse_header(max + 1, 1);
    /* Without data it may be longer than UCX's. */
    for (int to = 0; to < tl_size(); to++, n++) {
        traffic_send(to, BYTES, (uint64_t)n, 0, max + 1, false);
        traffic_send(to, BYTES, (uint64_t)n, 0, 10 * max, false);
    }
    traffic_wait(&traffic.arrived, 2 * n, "long headers arrived");
    traffic_wait(&traffic.completed, 2 * n, "long headers completed");
    traffic_reset();
    n = 0;
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        for (size_t k = 0; k < sizeof(header_lens) / sizeof(header_lens[0]); k++) {
            for (int to = 0; to < tl_size(); to++) {
                traffic_send(to, BYTES, (uint64_t)n, lens[i], header_lens[k], false);
                traffic_send(to, BYTES, (uint64_t)n, lens[i], header_lens[k], lens[i] > 0);
            }
            n += 2;
        }
    }
    traffic_wait(&traffic.arrived, n * tl_size(), "messages arrived");
    traffic_wait(&traffic.completed, n * tl_size(), "sends completed");
    traffic_check("sizes");
}

static void test_rendezvous(void)
{
    uint64_t lens[] = {0, 1, 100, 8192, 65536, (1 << 20) + 5, 4 << 20};
    long n = 0;

    traffic_reset();
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        for (int to = 0; to < tl_size(); to++) {
            traffic_send(to, MEET, (uint64_t)n, lens[i], sizeof(traffic_header_t), false);
            traffic_send(to, REFUSE, (uint64_t)n, lens[i], 100, false);
            traffic_send(to, BYTES, (uint64_t)n, lens[i] % 1000, 100, false);
        }
        n += 3;
    }
    traffic_wait(&traffic.arrived, n * tl_size(), "rendezvous arrived");
    traffic_wait(&traffic.completed, n * tl_size(), "rendezvous completed");
    traffic_check("rendezvous");
}

/** Rank after rank keeps still while all the others pile messages up for it. */
static void test_bursts(void)
{
    int each = (tl_slow() ? 300 : 1500) * tl_factor();

    for (int still = 0; still < tl_size(); still++) {
        traffic_reset();
        if (tl_rank() != still) {
            for (int i = 0; i < each; i++) {
                traffic_send(still, BYTES, (uint64_t)i, (uint64_t)(i * 37 % 3000),
                             sizeof(traffic_header_t), i % 2 == 1);
            }
            traffic_wait(&traffic.completed, each, "burst completed");
        } else {
            usleep(20000);
            traffic_wait(&traffic.arrived, (long)each * (tl_size() - 1), "burst arrived");
        }
        traffic_check("burst");
    }
}

/* ---- the server thread ---------------------------------------------------------------------- */

static void compute(double seconds)
{
    double end = MPI_Wtime() + seconds;

    for (volatile double x = 1; MPI_Wtime() < end;)
        for (int i = 0; i < 1000; i++)
            x = x * 1.0000001 + 1e-9;
}

static void send_word(traffic_kind_t kind, int to)
{
    traffic_header_t h = {.kind = kind, .from = (uint32_t)tl_rank()};

    onic_transport_lock();
    TL_CHECK(onic_peer_send(traffic.peers[to], ONIC_AM_COLL, &h, sizeof(h), NULL, 0, NULL, NULL) >=
                 0,
             "a word could not be sent");
    onic_transport_unlock();
}

static void ping_all(void)
{
    for (int to = 1; to < tl_size(); to++)
        send_word(PING, to);
}

/** Away from MPI until the server thread has answered all pings, and 0.2 s at least. */
static void stay_away(bool busy)
{
    double start = MPI_Wtime(), away = 0;

    while (away < 0.2 || (atomic_load(&traffic.foreign_pings) < PINGS && away < TRAFFIC_PATIENCE)) {
        if (busy)
            compute(0.01);
        else
            usleep(10000);
        away = MPI_Wtime() - start;
    }
    TL_CHECK(atomic_load(&traffic.foreign_pings) == PINGS,
             "the server thread has answered %ld of %d", atomic_load(&traffic.foreign_pings),
             PINGS);
}

/** Everybody but rank 0 stays away from MPI: only the server threads can answer. */
static void test_server(bool busy)
{
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    atomic_store(&traffic.pongs, 0);
    atomic_store(&traffic.foreign_pings, 0);
    atomic_store(&traffic.aways, 0);
    onic_transport_want_server(true);
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (tl_rank() == 0) {
        traffic_wait(&traffic.aways, tl_size() - 1, "ranks that are away");
        for (int i = 1; i <= PINGS; i++) {
            ping_all();
            traffic_wait(&traffic.pongs, (long)i * (tl_size() - 1), "answers of the server thread");
            usleep(i == PINGS / 2 ? 3000 : 100);
        }
    } else {
        send_word(AWAY, 0);
        stay_away(busy);
    }
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    onic_transport_want_server(false);
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

/** Nobody wants the server: it must not answer, the MPI thread does when it is back. */
static void test_no_server(void)
{
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    atomic_store(&traffic.pongs, 0);
    atomic_store(&traffic.foreign_pings, 0);
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (tl_rank() == 0) {
        usleep(5000);
        ping_all();
        traffic_wait(&traffic.pongs, tl_size() - 1, "answers of the MPI threads");
    } else {
        usleep(50000);
    }
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    TL_CHECK(atomic_load(&traffic.foreign_pings) == 0, "the server thread answered unasked");
}

static bool can_cma(onic_peer_t *peer)
{
    onic_transport_lock();
    bool can = onic_peer_can_cma(peer);
    onic_transport_unlock();
    return can;
}

static bool can_wake(int rank)
{
    onic_transport_lock();
    bool can = onic_peer_can_wake(traffic.peers[rank]);
    onic_transport_unlock();
    return can;
}

/** Nobody wants the servers, but rank 0 wakes some of them: these answer, each time. */
static void test_wake(void)
{
    const bool can_be_woken = can_wake(0);
    long woken = 0;

    TL_CHECK(!can_wake(tl_rank()), "I can wake my own server thread");
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    atomic_store(&traffic.pongs, 0);
    atomic_store(&traffic.foreign_pings, 0);
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (tl_rank() == 0) {
        usleep(5000);
        for (int to = 1; to < tl_size(); to++) {
            TL_CHECK(can_wake(to) == can_cma(traffic.peers[to]), "rank %d: single copy %d", to,
                     can_cma(traffic.peers[to]));
            for (int i = 0; i < PINGS && can_wake(to); i++) {
                send_word(PING, to);
                onic_peer_wake(traffic.peers[to]);
                traffic_wait(&traffic.pongs, ++woken, "answers of those who were woken");
            }
        }
    } else {
        /* So long that the server thread must have answered, where rank 0 can wake it. */
        for (int ms = 0; ms < 100 || (can_be_woken && atomic_load(&traffic.foreign_pings) == 0 &&
                                      ms < TL_PATIENCE * 1000);
             ms += 10)
            usleep(10000);
    }
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    const long mine = atomic_load(&traffic.foreign_pings);
    long sum = 0;
    TL_MPI(MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    TL_MPI(MPI_Bcast(&woken, 1, MPI_LONG, 0, MPI_COMM_WORLD));
    TL_CHECK(woken == 0 || sum > 0, "no server thread has answered, though %ld were woken", woken);
}

/* ---- functions for MPI threads -------------------------------------------------------------- */

static int mpi_fn_runs, deferred_runs;

static int count_mpi_fn(void)
{
    TL_CHECK(pthread_equal(pthread_self(), traffic.mpi_thread), "not on the MPI thread");
    mpi_fn_runs++;
    return 1;
}

static int count_deferred(void)
{
    deferred_runs++;
    return -1;
}

static int deferred_left;

static int count_down_deferred(void)
{
    deferred_runs++;
    return --deferred_left > 0 ? -1 : 1;
}

/** It runs when it was set, and when it is asked for, until nothing is left. */
static void test_deferred_once(void)
{
    onic_transport_set_fns(
        ONIC_AM_COLL,
        &(onic_transport_fns_t){.am = traffic_handle, .work[ONIC_LOCKED] = count_down_deferred});
    for (int asked = 0; asked < 3; asked++) {
        onic_transport_lock();
        deferred_left = asked;
        deferred_runs = 0;
        if (asked > 0)
            onic_transport_ask(ONIC_AM_COLL, ONIC_LOCKED);
        for (int i = 0; i < 5; i++)
            onic_transport_progress_locked();
        TL_CHECK(deferred_runs == (asked > 1 ? asked : 1), "ran %d times, with work for %d",
                 deferred_runs, asked);
        onic_transport_unlock();
    }
    onic_transport_set_fns(
        ONIC_AM_COLL,
        &(onic_transport_fns_t){.am = traffic_handle, .work[ONIC_LOCKED] = count_deferred});
}

static void test_functions(void)
{
    mpi_fn_runs = deferred_runs = 0;
    onic_transport_set_fns(ONIC_AM_COLL,
                           &(onic_transport_fns_t){.am = traffic_handle,
                                                   .work[ONIC_LOCKED] = count_deferred,
                                                   .work[ONIC_MPI] = count_mpi_fn});
    TL_CHECK(onic_transport_progress() >= 0 && mpi_fn_runs == 0, "ran without a kick");
    onic_transport_ask(ONIC_AM_COLL, ONIC_MPI);
    TL_CHECK(onic_transport_progress() >= 1 && mpi_fn_runs == 1, "%d runs after a kick",
             mpi_fn_runs);
    TL_CHECK(onic_transport_progress() >= 0 && mpi_fn_runs == 1, "ran again");
    TL_CHECK(deferred_runs >= 3, "deferred function ran %d times", deferred_runs);
    test_deferred_once();
    /* Work is left, so the server comes back though there are no events. */
    onic_transport_want_server(true);
    onic_transport_progress();
    onic_transport_lock();
    int before = deferred_runs;
    onic_transport_unlock();
    int after = before;
    for (int ms = 0; after <= before + 2 && ms < TL_PATIENCE * 1000; ms++) {
        usleep(1000);
        onic_transport_lock();
        after = deferred_runs;
        onic_transport_unlock();
    }
    TL_CHECK(after > before + 2, "the server thread left deferred work alone");
    onic_transport_want_server(false);
    onic_transport_set_fns(ONIC_AM_COLL, &(onic_transport_fns_t){.am = traffic_handle});
}

/* ---- single copy ---------------------------------------------------------------------------- */

static void test_cma(void)
{
    uint64_t mine[2] = {(uint64_t)(uintptr_t)mine, 1000U + (unsigned)tl_rank()};
    uint64_t *all = tl_alloc(2 * sizeof(uint64_t) * (size_t)tl_size());

    TL_MPI(MPI_Allgather(mine, 2, MPI_UINT64_T, all, 2, MPI_UINT64_T, MPI_COMM_WORLD));
    for (int i = 0; i < tl_size(); i++) {
        uint64_t got[2] = {0, 0};
        struct iovec local = {got, sizeof(got)};
        struct iovec remote = {(void *)(uintptr_t)all[(size_t)i * 2], sizeof(got)};
        onic_peer_t liar = *traffic.peers[i];

        if (!can_cma(traffic.peers[i]))
            continue;
        TL_CHECK(process_vm_readv(onic_peer_pid(traffic.peers[i]), &local, 1, &remote, 1, 0) ==
                         sizeof(got) &&
                     got[1] == 1000U + (unsigned)i,
                 "read %llu from rank %d", (unsigned long long)got[1], i);
        liar.cma = ONIC_CMA_UNKNOWN;
        liar.cma_id.nonce ^= 1;
        TL_CHECK(!can_cma(&liar), "a wrong nonce was taken for right");
        liar = *traffic.peers[i];
        liar.cma = ONIC_CMA_UNKNOWN;
        liar.cma_id.life.pid_namespace++;
        TL_CHECK(!can_cma(&liar) && onic_peer_pid(&liar) == -1, "another pid namespace");
    }
    TL_CHECK(can_cma(traffic.peers[tl_rank()]), "not even myself");
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    free(all);
}

/* ---- main ----------------------------------------------------------------------------------- */

/** Whoever crashes with the lock in hand may have a debugger started: that must not wait for the
 * lock for ever. */
static void test_fork_with_lock(void)
{
    int status = -1;

    onic_transport_lock();
    pid_t child = fork();
    if (child == 0)
        _exit(3);
    TL_CHECK(!onic_transport_trylock(), "the lock is lost");
    onic_transport_unlock();
    TL_CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3,
             "status %d", status);
}

/** A component gives a peer up: it is told as of any loss, now and when it sends there again. */
static void test_give_up(void)
{
    const int to = (tl_rank() + 1) % tl_size();
    const char word = 0;

    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (to == tl_rank())
        return;
    onic_transport_lock();
    const unsigned before = onic_transport_losses();
    TL_CHECK(!onic_peer_is_lost(traffic.peers[to]), "rank %d is lost already", to);
    onic_peer_give_up(traffic.peers[to]);
    onic_peer_give_up(traffic.peers[to]);
    TL_CHECK(onic_peer_is_lost(traffic.peers[to]), "rank %d is not lost", to);
    TL_CHECK(onic_transport_losses() == before + 1, "%u losses", onic_transport_losses() - before);
    TL_CHECK(!onic_peer_send_now(traffic.peers[to], ONIC_AM_COLL, &word, 1, NULL), "it is sent to");
    TL_CHECK(onic_peer_send(traffic.peers[to], ONIC_AM_COLL, &word, 1, NULL, 0, NULL, NULL) < 0,
             "it is sent to");
    TL_CHECK(onic_transport_losses() == before + 2, "who sends to rank %d is not told", to);
    onic_transport_unlock();
}

/* ---- two components ------------------------------------------------------------------------- */

static atomic_int ptracer_calls;

/** Stands before that of the C library, for the libraries too. */
ONIC_EXPORT int prctl(int option, ...)
{
    unsigned long value[4];
    va_list args;

    va_start(args, option);
    for (int i = 0; i < 4; i++)
        value[i] = va_arg(args, unsigned long);
    va_end(args);
    atomic_fetch_add(&ptracer_calls, option == PR_SET_PTRACER);
    return (int)syscall(SYS_prctl, option, value[0], value[1], value[2], value[3]);
}

/** A component that needs little opens the transport, and the addresses are known before another
 * one comes: which must get all the same what it needs, and nobody before it what it does not. */
static void test_second(bool first_of_all)
{
    const onic_transport_config_t little = {.server_thread = false};
    const onic_transport_config_t much = {
        .server_thread = true, .server_idle_usec = 200, .single_copy = true, .tcp_seg_size = 65536};
    const int other = (tl_rank() + 1) % tl_size(), before = atomic_load(&ptracer_calls);

    TL_CHECK(onic_transport_open(&little) == 0, "the transport does not open");
    TL_CHECK(atomic_load(&ptracer_calls) == before, "others may trace this process without need");
    onic_transport_set_fns(ONIC_AM_COLL, &(onic_transport_fns_t){.am = traffic_handle});
    test_peers();
    TL_CHECK(other == tl_rank() || !can_wake(other), "rank %d has a server thread", other);
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    TL_CHECK(onic_transport_open(&much) == 0, "nor a second time");
    TL_CHECK(!first_of_all || atomic_load(&ptracer_calls) > before, "others may not copy");
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    TL_CHECK(other == tl_rank() || can_wake(other) == can_cma(traffic.peers[other]),
             "rank %d cannot be woken", other);
}

int main(int argc, char **argv)
{

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    traffic.mpi_thread = pthread_self();
    traffic.peers = tl_alloc((size_t)tl_size() * sizeof(onic_peer_t *));
    /* Twice: the transport must be as good after it was closed once. */
    for (int round = 0; round < 2; round++) {
        test_second(round == 0);
        test_sizes();
        test_rendezvous();
        test_bursts();
        test_server(false);
        test_server(true);
        test_no_server();
        test_wake();
        test_functions();
        test_cma();
        if (round == 0)
            test_fork_with_lock();
        else
            test_give_up();
        onic_transport_close();
        onic_transport_flush();
        onic_transport_lock();
        TL_CHECK(onic_transport_outstanding() == 0, "%u sends are left",
                 onic_transport_outstanding());
        onic_transport_unlock();
        TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
        onic_transport_close();
    }
    free(traffic.peers);
    return tl_finish();
}
