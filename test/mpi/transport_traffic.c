/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/mpi/transport_traffic.h"

#include <stdlib.h>
#include <string.h>

#include "test/mpi/testlib.h"

traffic_t traffic;

static atomic_long wrong_bytes, wrong_lengths, failed_sends;

/* ---- payloads ------------------------------------------------------------------------------- */

static unsigned char byte_of(const traffic_header_t *h, uint64_t i)
{
    return (unsigned char)(h->seq * 31 + h->from * 101 + i * 7 + (i >> 8));
}

/** Block `b` of 8 bytes stands at 16 * b: the bytes between must not travel. */
static void fill(const traffic_header_t *h, unsigned char *memory, bool strided)
{
    for (uint64_t i = 0; i < h->len; i++)
        memory[strided ? i / 8 * 16 + i % 8 : i] = byte_of(h, i);
}

static void verify(const traffic_header_t *h, const unsigned char *data)
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
    traffic_header_t h;
    unsigned char data[];
} meeting_t;

static void met(void *arg, int status)
{
    meeting_t *m = arg;

    if (status != 0)
        atomic_fetch_add(&failed_sends, 1);
    else
        verify(&m->h, m->data);
    free(m);
    atomic_fetch_add(&traffic.arrived, 1);
}

static void meet(const traffic_header_t *h, onic_rndv_t *rndv)
{
    meeting_t *m = malloc(sizeof(*m) + h->len);
    int rc;

    m->h = *h;
    rc = onic_rndv_recv(rndv, m->data, h->len, met, m);
    if (rc != 0)
        met(m, rc == 1 ? 0 : rc);
}

static void answer(const traffic_header_t *h)
{
    traffic_header_t pong = {.kind = PONG, .from = (uint32_t)tl_rank(), .seq = h->seq};

    if (!pthread_equal(pthread_self(), traffic.mpi_thread))
        atomic_fetch_add(&traffic.foreign_pings, 1);
    if (onic_peer_send(traffic.peers[h->from], ONIC_AM_COLL, &pong, sizeof(pong), NULL, 0, NULL,
                       NULL) < 0)
        atomic_fetch_add(&failed_sends, 1);
}

void traffic_handle(onic_peer_t *from, const void *header, size_t header_len, const void *data,
                    size_t len, onic_rndv_t *rndv)
{
    traffic_header_t h;

    (void)from;
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
        atomic_fetch_add(&traffic.aways, 1);
    } else if (h.kind == PONG) {
        atomic_fetch_add(&traffic.pongs, 1);
    } else if (rndv == NULL) {
        verify(&h, data);
        atomic_fetch_add(&traffic.arrived, 1);
    } else if (h.kind == MEET) {
        meet(&h, rndv);
    } else {
        atomic_fetch_add(&traffic.arrived, 1);
    }
}

/* ---- sending -------------------------------------------------------------------------------- */

static void sent(void *arg, int status)
{
    free(arg);
    if (status != 0)
        atomic_fetch_add(&failed_sends, 1);
    atomic_fetch_add(&traffic.completed, 1);
}

/** What a send needs until it is complete. */
typedef struct sent {
    onic_layout_t layout;
    unsigned char memory[];
} parcel_t;

static parcel_t *make_parcel(const traffic_header_t *h, bool strided)
{
    parcel_t *p = calloc(1, sizeof(*p) + (strided ? 2 * h->len + 16 : h->len));

    fill(h, p->memory, strided);
    onic_layout_contig(&p->layout, 0, strided ? 8 : h->len);
    if (strided)
        onic_layout_repeat(&p->layout, (h->len + 7) / 8, 16);
    return p;
}

void traffic_send(int to, traffic_kind_t kind, uint64_t seq, uint64_t len, size_t header_len,
                  bool strided)
{
    traffic_header_t h = {.kind = kind, .from = (uint32_t)tl_rank(), .seq = seq, .len = len};
    unsigned char *header = calloc(1, header_len);
    parcel_t *p = make_parcel(&h, strided);
    onic_payload_t payload = {.base = p->memory, .len = len};
    int rc;

    memcpy(header, &h, sizeof(h));
    if (strided)
        onic_cursor_init(&payload.cursor, &p->layout, 0);
    onic_transport_lock();
    rc = onic_peer_send(traffic.peers[to], ONIC_AM_COLL, header, header_len,
                        len > 0 ? &payload : NULL, kind == BYTES ? 0 : ONIC_SEND_RNDV, sent, p);
    onic_transport_unlock();
    /* The header was copied: spoil it at once. */
    memset(header, 0xEE, header_len);
    free(header);
    if (rc != 0)
        sent(p, rc == 1 ? 0 : rc);
}

void traffic_wait(atomic_long *counter, long want, const char *what)
{
    double end = MPI_Wtime() + TRAFFIC_PATIENCE;

    while (atomic_load(counter) < want && MPI_Wtime() < end)
        onic_transport_progress();
    TL_CHECK(atomic_load(counter) == want, "%s: %ld instead of %ld", what, atomic_load(counter),
             want);
}

void traffic_check(const char *what)
{
    TL_CHECK(atomic_load(&wrong_bytes) == 0, "%s: %ld payloads are wrong", what,
             atomic_load(&wrong_bytes));
    TL_CHECK(atomic_load(&wrong_lengths) == 0, "%s: %ld headers or lengths are wrong", what,
             atomic_load(&wrong_lengths));
    TL_CHECK(atomic_load(&failed_sends) == 0, "%s: %ld sends failed", what,
             atomic_load(&failed_sends));
}

void traffic_reset(void)
{
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    atomic_store(&traffic.arrived, 0);
    atomic_store(&traffic.completed, 0);
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
}
