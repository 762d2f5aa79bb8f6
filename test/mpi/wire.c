/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* timeout: 300 */
/* ranks: 1-4 */
/**
 * @file
 * The wire without a component: peers over two communicators, active messages of all sizes from
 * contiguous and strided memory, rendezvous received and refused, bursts to a peer that does not
 * progress, answers of the server thread, single copy.
 */
#define _GNU_SOURCE
#include "test/mpi/testlib.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/wire.h"
#include "common/wire_internal.h"

/** No wait of this program takes longer where all is well, be the machine ever so busy. */
#define PATIENCE 60.0
/** Questions to the server threads. */
#define PINGS 20

typedef enum kind { BYTES = 1, MEET, REFUSE, PING, PONG, AWAY } kind_t;

typedef struct header {
    uint32_t kind;
    uint32_t from;
    uint64_t seq;
    uint64_t len;
} header_t;

/** What handlers and callbacks count; they may run in the server thread. */
static atomic_long arrived, completed, pongs, foreign_pings, aways;
static atomic_long wrong_bytes, wrong_lengths, failed_sends;

static onic_peer_t **peers;
static pthread_t main_thread;

/* ---- payloads ------------------------------------------------------------------------------- */

static unsigned char byte_of(const header_t *h, uint64_t i)
{
    return (unsigned char)(h->seq * 31 + h->from * 101 + i * 7 + (i >> 8));
}

/** Block `b` of 8 bytes stands at 16 * b: the bytes between must not travel. */
static void fill(const header_t *h, unsigned char *memory, bool strided)
{
    for (uint64_t i = 0; i < h->len; i++) {
        memory[strided ? i / 8 * 16 + i % 8 : i] = byte_of(h, i);
    }
}

static void verify(const header_t *h, const unsigned char *data)
{
    for (uint64_t i = 0; i < h->len; i++) {
        if (data[i] != byte_of(h, i)) {
            atomic_fetch_add(&wrong_bytes, 1);
            return;
        }
    }
}

/* ---- handler -------------------------------------------------------------------------------- */

/** A rendezvous on its way into memory. */
typedef struct meeting {
    header_t h;
    unsigned char data[];
} meeting_t;

static void met(void *arg, int status)
{
    meeting_t *m = arg;

    if (status != 0) {
        atomic_fetch_add(&failed_sends, 1);
    } else {
        verify(&m->h, m->data);
    }
    free(m);
    atomic_fetch_add(&arrived, 1);
}

static void meet(const header_t *h, onic_rndv_t *rndv)
{
    meeting_t *m = malloc(sizeof(*m) + h->len);
    int rc;

    m->h = *h;
    rc = onic_rndv_recv(rndv, m->data, h->len, met, m);
    if (rc != 0) {
        met(m, rc == 1 ? 0 : rc);
    }
}

static void answer(const header_t *h)
{
    header_t pong = {.kind = PONG, .from = (uint32_t)tl_rank(), .seq = h->seq};

    if (!pthread_equal(pthread_self(), main_thread)) {
        atomic_fetch_add(&foreign_pings, 1);
    }
    if (onic_peer_send(peers[h->from], ONIC_AM_COLL, &pong, sizeof(pong), NULL, 0, NULL, NULL) <
        0) {
        atomic_fetch_add(&failed_sends, 1);
    }
}

static void handle(const void *header, size_t header_len, const void *data, size_t len,
                   onic_rndv_t *rndv)
{
    header_t h;

    if (header_len < sizeof(h)) {
        atomic_fetch_add(&wrong_lengths, 1);
        return;
    }
    memcpy(&h, header, sizeof(h));
    if (len != h.len || (rndv != NULL) != (h.len > 0 && (h.kind == MEET || h.kind == REFUSE))) {
        atomic_fetch_add(&wrong_lengths, 1);
        return;
    }
    if (h.kind == PING) {
        answer(&h);
    } else if (h.kind == AWAY) {
        atomic_fetch_add(&aways, 1);
    } else if (h.kind == PONG) {
        atomic_fetch_add(&pongs, 1);
    } else if (rndv == NULL) {
        verify(&h, data);
        atomic_fetch_add(&arrived, 1);
    } else if (h.kind == MEET) {
        meet(&h, rndv);
    } else {
        onic_rndv_drop(rndv);
        atomic_fetch_add(&arrived, 1);
    }
}

/* ---- sending -------------------------------------------------------------------------------- */

static void sent(void *arg, int status)
{
    free(arg);
    if (status != 0) {
        atomic_fetch_add(&failed_sends, 1);
    }
    atomic_fetch_add(&completed, 1);
}

/** What a send needs until it is complete. */
typedef struct parcel {
    onic_layout_t layout;
    unsigned char memory[];
} parcel_t;

static parcel_t *make_parcel(const header_t *h, bool strided)
{
    parcel_t *p = calloc(1, sizeof(*p) + (strided ? 2 * h->len + 16 : h->len));

    fill(h, p->memory, strided);
    onic_layout_contig(&p->layout, 0, strided ? 8 : h->len);
    if (strided) {
        onic_layout_repeat(&p->layout, (h->len + 7) / 8, 16);
    }
    return p;
}

/** Sends one message with `header_len` bytes of header, of which ours are the first. */
static void send_one(int to, kind_t kind, uint64_t seq, uint64_t len, size_t header_len,
                     bool strided)
{
    header_t h = {.kind = kind, .from = (uint32_t)tl_rank(), .seq = seq, .len = len};
    unsigned char *header = calloc(1, header_len);
    parcel_t *p = make_parcel(&h, strided);
    onic_payload_t payload = {.base = p->memory, .len = len};
    int rc;

    memcpy(header, &h, sizeof(h));
    if (strided) {
        onic_cursor_init(&payload.cursor, &p->layout, 0);
    }
    onic_wire_lock();
    rc = onic_peer_send(peers[to], ONIC_AM_COLL, header, header_len, len > 0 ? &payload : NULL,
                        kind == BYTES ? 0 : ONIC_SEND_RNDV, sent, p);
    onic_wire_unlock();
    /* The header was copied: spoil it at once. */
    memset(header, 0xEE, header_len);
    free(header);
    if (rc != 0) {
        sent(p, rc == 1 ? 0 : rc);
    }
}

/** Progresses until a counter has reached `want`. */
static void wait_for(atomic_long *counter, long want, const char *what)
{
    double end = MPI_Wtime() + PATIENCE;

    while (atomic_load(counter) < want && MPI_Wtime() < end) {
        onic_wire_progress();
    }
    TL_CHECK(atomic_load(counter) == want, "%s: %ld instead of %ld", what, atomic_load(counter),
             want);
}

static void check_errors(const char *what)
{
    TL_CHECK(atomic_load(&wrong_bytes) == 0, "%s: %ld payloads are wrong", what,
             atomic_load(&wrong_bytes));
    TL_CHECK(atomic_load(&wrong_lengths) == 0, "%s: %ld headers or lengths are wrong", what,
             atomic_load(&wrong_lengths));
    TL_CHECK(atomic_load(&failed_sends) == 0, "%s: %ld sends failed", what,
             atomic_load(&failed_sends));
}

static void reset(void)
{
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    atomic_store(&arrived, 0);
    atomic_store(&completed, 0);
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void test_peers(void)
{
    int n = tl_size();
    MPI_Comm reversed, half;
    onic_peer_t *other[64];

    TL_CHECK(onic_wire_get_peers(MPI_COMM_WORLD, peers) == 0, "no peers");
    TL_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, -tl_rank(), &reversed));
    TL_CHECK(onic_wire_get_peers(reversed, other) == 0, "no peers of the reversed communicator");
    for (int i = 0; i < n; i++) {
        TL_CHECK(other[i] == peers[n - 1 - i], "peer %d is not the same process", i);
    }
    onic_wire_put_peers(other, n);
    TL_MPI(MPI_Comm_free(&reversed));

    TL_MPI(MPI_Comm_split(MPI_COMM_WORLD, tl_rank() % 2, 0, &half));
    TL_CHECK(onic_wire_get_peers(half, other) == 0, "no peers of the half communicator");
    TL_CHECK(other[0] == peers[tl_rank() % 2], "the first of my half is another process");
    MPI_Comm_size(half, &n);
    onic_wire_put_peers(other, n);
    TL_MPI(MPI_Comm_free(&half));
}

static size_t frag_max_of(int rank)
{
    onic_wire_lock();
    size_t max = onic_peer_frag_max(peers[rank]);
    onic_wire_unlock();
    return max;
}

static void test_sizes(void)
{
    size_t h = sizeof(header_t), max = onic_wire_header_max(), frag = frag_max_of(0);
    size_t header_lens[] = {h, h + 1, 64, 200, 321, max};
    uint64_t lens[] = {0,    1,    7,        8,    63,    64,    100,           1000,
                       1024, 4096, frag - h, 8000, 20000, 65536, (1 << 20) + 3, frag - h + 1};
    long n = 0;

    reset();
    TL_CHECK(max >= 1024 && frag >= 4096, "header at most %zu, fragment at most %zu", max, frag);
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        for (size_t k = 0; k < sizeof(header_lens) / sizeof(header_lens[0]); k++) {
            for (int to = 0; to < tl_size(); to++) {
                send_one(to, BYTES, (uint64_t)n, lens[i], header_lens[k], false);
                send_one(to, BYTES, (uint64_t)n, lens[i], header_lens[k], lens[i] > 0);
            }
            n += 2;
        }
    }
    wait_for(&arrived, n * tl_size(), "messages arrived");
    wait_for(&completed, n * tl_size(), "sends completed");
    check_errors("sizes");
}

static void test_rendezvous(void)
{
    uint64_t lens[] = {0, 1, 100, 8192, 65536, (1 << 20) + 5, 4 << 20};
    long n = 0;

    reset();
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        for (int to = 0; to < tl_size(); to++) {
            send_one(to, MEET, (uint64_t)n, lens[i], sizeof(header_t), false);
            send_one(to, REFUSE, (uint64_t)n, lens[i], 100, false);
            send_one(to, BYTES, (uint64_t)n, lens[i] % 1000, 100, false);
        }
        n += 3;
    }
    wait_for(&arrived, n * tl_size(), "rendezvous arrived");
    wait_for(&completed, n * tl_size(), "rendezvous completed");
    check_errors("rendezvous");
}

/** Rank after rank keeps still while all the others pile messages up for it. */
static void test_bursts(void)
{
    int each = 1500 * tl_factor();

    for (int still = 0; still < tl_size(); still++) {
        reset();
        if (tl_rank() != still) {
            for (int i = 0; i < each; i++) {
                send_one(still, BYTES, (uint64_t)i, (uint64_t)(i * 37 % 3000), sizeof(header_t),
                         i % 2 == 1);
            }
            wait_for(&completed, each, "burst completed");
        } else {
            usleep(20000);
            wait_for(&arrived, (long)each * (tl_size() - 1), "burst arrived");
        }
        check_errors("burst");
    }
}

/* ---- the server thread ---------------------------------------------------------------------- */

static void compute(double seconds)
{
    double end = MPI_Wtime() + seconds;

    for (volatile double x = 1; MPI_Wtime() < end;) {
        for (int i = 0; i < 1000; i++) {
            x = x * 1.0000001 + 1e-9;
        }
    }
}

static void send_word(kind_t kind, int to)
{
    header_t h = {.kind = kind, .from = (uint32_t)tl_rank()};

    onic_wire_lock();
    TL_CHECK(onic_peer_send(peers[to], ONIC_AM_COLL, &h, sizeof(h), NULL, 0, NULL, NULL) >= 0,
             "a word could not be sent");
    onic_wire_unlock();
}

static void ping_all(void)
{
    for (int to = 1; to < tl_size(); to++) {
        send_word(PING, to);
    }
}

/** Away from MPI until the server thread has answered all pings, and 0.2 s at least. */
static void stay_away(bool busy)
{
    double start = MPI_Wtime(), away = 0;

    while (away < 0.2 || (atomic_load(&foreign_pings) < PINGS && away < PATIENCE)) {
        if (busy) {
            compute(0.01);
        } else {
            usleep(10000);
        }
        away = MPI_Wtime() - start;
    }
    TL_CHECK(atomic_load(&foreign_pings) == PINGS, "the server thread has answered %ld of %d",
             atomic_load(&foreign_pings), PINGS);
}

/** Everybody but rank 0 stays away from MPI: only the server threads can answer. */
static void test_server(bool busy)
{
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    atomic_store(&pongs, 0);
    atomic_store(&foreign_pings, 0);
    atomic_store(&aways, 0);
    onic_wire_want_server(true);
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (tl_rank() == 0) {
        wait_for(&aways, tl_size() - 1, "ranks that are away");
        for (int i = 1; i <= PINGS; i++) {
            ping_all();
            wait_for(&pongs, (long)i * (tl_size() - 1), "answers of the server thread");
            usleep(i == PINGS / 2 ? 3000 : 100);
        }
    } else {
        send_word(AWAY, 0);
        stay_away(busy);
    }
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    onic_wire_want_server(false);
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

/** Nobody wants the server: it must not answer, the MPI thread does when it is back. */
static void test_no_server(void)
{
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    atomic_store(&pongs, 0);
    atomic_store(&foreign_pings, 0);
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (tl_rank() == 0) {
        usleep(5000);
        ping_all();
        wait_for(&pongs, tl_size() - 1, "answers of the MPI threads");
    } else {
        usleep(50000);
    }
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    TL_CHECK(atomic_load(&foreign_pings) == 0, "the server thread answered unasked");
}

/* ---- functions for MPI threads -------------------------------------------------------------- */

static int mpi_fn_runs, deferred_runs;

static int count_mpi_fn(void)
{
    TL_CHECK(pthread_equal(pthread_self(), main_thread), "not on the MPI thread");
    mpi_fn_runs++;
    return 1;
}

static int count_deferred(void)
{
    deferred_runs++;
    return -1;
}

static void test_functions(void)
{
    mpi_fn_runs = deferred_runs = 0;
    onic_wire_set_mpi_fn(ONIC_AM_COLL, count_mpi_fn);
    onic_wire_set_deferred_fn(ONIC_AM_COLL, count_deferred);
    TL_CHECK(onic_wire_progress() >= 0 && mpi_fn_runs == 0, "ran without a kick");
    onic_wire_kick_mpi(ONIC_AM_COLL);
    TL_CHECK(onic_wire_progress() >= 1 && mpi_fn_runs == 1, "%d runs after a kick", mpi_fn_runs);
    TL_CHECK(onic_wire_progress() >= 0 && mpi_fn_runs == 1, "ran again");
    TL_CHECK(deferred_runs >= 3, "deferred function ran %d times", deferred_runs);
    /* Work is left, so the server comes back though there are no events. */
    onic_wire_want_server(true);
    onic_wire_progress();
    onic_wire_lock();
    int before = deferred_runs;
    onic_wire_unlock();
    usleep(50000);
    onic_wire_lock();
    TL_CHECK(deferred_runs > before + 2, "the server thread left deferred work alone");
    onic_wire_unlock();
    onic_wire_want_server(false);
    onic_wire_set_deferred_fn(ONIC_AM_COLL, NULL);
    onic_wire_set_mpi_fn(ONIC_AM_COLL, NULL);
}

/* ---- single copy ---------------------------------------------------------------------------- */

static bool can_cma(onic_peer_t *peer)
{
    onic_wire_lock();
    bool can = onic_peer_can_cma(peer);
    onic_wire_unlock();
    return can;
}

static void test_cma(void)
{
    uint64_t mine[2] = {(uint64_t)(uintptr_t)mine, 1000U + (unsigned)tl_rank()};
    uint64_t *all = tl_alloc(2 * sizeof(uint64_t) * (size_t)tl_size());

    TL_MPI(MPI_Allgather(mine, 2, MPI_UINT64_T, all, 2, MPI_UINT64_T, MPI_COMM_WORLD));
    for (int i = 0; i < tl_size(); i++) {
        uint64_t got[2] = {0, 0};
        struct iovec local = {got, sizeof(got)};
        struct iovec remote = {(void *)(uintptr_t)all[(size_t)i * 2], sizeof(got)};
        onic_peer_t liar = *peers[i];

        if (!can_cma(peers[i])) {
            continue;
        }
        TL_CHECK(process_vm_readv(onic_peer_pid(peers[i]), &local, 1, &remote, 1, 0) ==
                         sizeof(got) &&
                     got[1] == 1000U + (unsigned)i,
                 "read %llu from rank %d", (unsigned long long)got[1], i);
        liar.cma = ONIC_CMA_UNKNOWN;
        liar.cma_id.nonce ^= 1;
        TL_CHECK(!can_cma(&liar), "a wrong nonce was taken for right");
        liar = *peers[i];
        liar.cma = ONIC_CMA_UNKNOWN;
        liar.cma_id.pid_ns++;
        TL_CHECK(!can_cma(&liar) && onic_peer_pid(&liar) == -1, "another pid namespace");
    }
    TL_CHECK(can_cma(peers[tl_rank()]), "not even myself");
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    free(all);
}

/* ---- main ----------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    onic_wire_config_t config = {
        .server_thread = true, .server_idle_usec = 200, .tcp_seg_size = 65536};

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    main_thread = pthread_self();
    peers = tl_alloc((size_t)tl_size() * sizeof(onic_peer_t *));
    /* Twice: the wire must be as good after it was closed once. */
    for (int round = 0; round < 2; round++) {
        TL_CHECK(onic_wire_open(&config) == 0, "the wire does not open");
        TL_CHECK(onic_wire_open(&config) == 0, "nor a second time");
        onic_wire_set_am_fn(ONIC_AM_COLL, handle);
        test_peers();
        test_sizes();
        test_rendezvous();
        test_bursts();
        test_server(false);
        test_server(true);
        test_no_server();
        test_functions();
        test_cma();
        onic_wire_put_peers(peers, tl_size());
        onic_wire_close();
        onic_wire_flush();
        onic_wire_lock();
        TL_CHECK(onic_wire_outstanding() == 0, "%u sends are left", onic_wire_outstanding());
        onic_wire_unlock();
        TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
        onic_wire_close();
    }
    free(peers);
    return tl_finish();
}
