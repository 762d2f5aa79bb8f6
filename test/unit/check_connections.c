/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Reliable connections without a device (verbs_library.h). Both ends are here.
 */
#include "common/config.h"

#if OMPI_NIC_HAVE_VERBS

#include "common/transport/verbs/connections.h"
#include "test/unit/verbs_library.h"

enum { PROCESS = 7, CONNECTIONS = 3, BYTES = 4096 };

/* ---- transfers ------------------------------------------------------------------------------- */

static const onic_rc_spec_t spec = {.connections = CONNECTIONS,
                                    .window = 8,
                                    .batch = 4,
                                    .signal = 2,
                                    .pieces = 16,
                                    .inline_bytes = 32};

static onic_rc_adapter_t adapter;
static onic_rc_served_t served[8]; /* of each process */
static onic_rdma_counts_t counts;
static int lost, closed, ended, failed;
static char last_reason[200];

static void on_lost(void *owner, const char *why)
{
    (*(onic_rc_t **)owner) = NULL;
    if (why != NULL)
        snprintf(last_reason, sizeof(last_reason), "%s", why);
    lost += why != NULL;
    closed += why == NULL;
}

static void on_ended(onic_rdma_transfer_t *t, bool bad)
{
    (void)t;
    ended++;
    failed += bad;
}

static void open_adapter(void)
{
    onic_verbs_reason_t why;

    lib_reset(1);
    lost = closed = ended = failed = 0;
    memset(&counts, 0, sizeof(counts));
    ck_assert_int_eq(onic_rc_open(&adapter, &spec, &counts, on_lost, &why), 0);
}

/** As two processes would, that tell each other. */
static bool connect_as(uint64_t process, onic_rc_t **owner)
{
    onic_rc_terms_t answer;

    *owner = onic_rc_make(&adapter, owner);
    if (*owner == NULL)
        return false;
    if (!onic_rc_serve(&adapter, &served[process], &(*owner)->terms, &answer)) {
        onic_rc_drop(*owner);
        *owner = NULL;
        return false;
    }
    return onic_rc_connect(*owner, &answer);
}

static void begin(onic_rc_t *c, onic_rdma_transfer_t *t, bool read, const onic_layout_t *layout,
                  void *near, void *far)
{
    const onic_rdma_side_t here = {layout, (uintptr_t)near, 5};
    const onic_rdma_side_t there = {layout, (uintptr_t)far, 5};

    t->ended = on_ended;
    onic_rdma_walk_init(&t->walk, &c->limits, read, &here, &there);
    onic_rc_begin(c, t);
}

static void poll_all(void)
{
    while (onic_rc_poll(&adapter) > 0) {
    }
}

START_TEST(writes_and_reads)
{
    static unsigned char mine[BYTES], theirs[BYTES];
    onic_rdma_transfer_t t[2];
    onic_layout_t blocks;
    onic_rc_t *c;

    for (size_t block = 8; block <= 128; block *= 16) {
        const size_t n = BYTES / 2 / block;

        open_adapter();
        ck_assert(connect_as(PROCESS, &c));
        ck_assert_int_eq(onic_layout_contig(&blocks, 0, block), ONIC_LAYOUT_OK);
        ck_assert_int_eq(onic_layout_repeat(&blocks, n, (int64_t)block * 2), ONIC_LAYOUT_OK);
        for (size_t i = 0; i < BYTES; i++) {
            mine[i] = (unsigned char)(i * 7);
            theirs[i] = 0;
        }
        begin(c, &t[0], false, &blocks, mine, theirs);
        ck_assert_uint_eq(lib.requests, 8); /* the window */
        begin(c, &t[1], true, &blocks, mine + block, theirs);
        poll_all();
        ck_assert(ended == 2 && failed == 0 && lost == 0);
        for (size_t i = 0; i < BYTES; i++) {
            const bool in = i / block % 2 == 0;

            ck_assert_uint_eq(theirs[i], in ? mine[i] : 0);
            ck_assert_uint_eq(mine[i], (unsigned char)((in ? i : i - block) * 7));
        }
        ck_assert_uint_eq(counts.requests, 2 * n);
        ck_assert_uint_eq(counts.requests, lib.requests);
        ck_assert_uint_eq(counts.doorbells, 2 * n / 4);
        ck_assert_uint_eq(counts.doorbells, lib.doorbells);
        ck_assert_uint_eq(counts.completions, 2 * n / 2);
        ck_assert_uint_eq(counts.bytes, BYTES);
        onic_rc_close(&adapter);
        check_all_closed();
    }
}
END_TEST

/** The other side tells the same again to who asks again; to who asks anew, something new. */
START_TEST(asks_again)
{
    onic_rc_terms_t first, again;
    onic_rc_t *c, *other;

    open_adapter();
    c = onic_rc_make(&adapter, &c);
    ck_assert(onic_rc_serve(&adapter, &served[PROCESS], &c->terms, &first));
    ck_assert(onic_rc_serve(&adapter, &served[PROCESS], &c->terms, &again));
    ck_assert_uint_eq(first.address.qpn, again.address.qpn);
    ck_assert_int_eq(pairs(), 2);
    ck_assert_uint_eq(first.reads, 3);
    other = onic_rc_make(&adapter, &other);
    ck_assert(onic_rc_serve(&adapter, &served[PROCESS], &other->terms, &again));
    ck_assert_uint_ne(first.address.qpn, again.address.qpn);
    ck_assert_int_eq(pairs(), 3);
    onic_rc_close(&adapter);
    check_all_closed();
}
END_TEST

/** One more than there can be finds no place, until one goes. */
START_TEST(all_places_taken)
{
    onic_rc_t *c[CONNECTIONS + 1];

    open_adapter();
    for (uint64_t i = 0; i < CONNECTIONS; i++)
        ck_assert(connect_as(i, &c[i]));
    ck_assert(!connect_as(CONNECTIONS, &c[CONNECTIONS]));
    onic_rc_drop(c[0]);
    onic_rc_unserve(&adapter, &served[0]);
    ck_assert(connect_as(CONNECTIONS, &c[CONNECTIONS]));
    ck_assert(lost == 0 && pairs() == 2 * CONNECTIONS);
    onic_rc_close(&adapter);
    check_all_closed();
}
END_TEST

/** The other side goes away: what is under way there ends as failed, and nothing else. */
START_TEST(a_lost_peer)
{
    static unsigned char mine[BYTES], theirs[BYTES];
    onic_rdma_transfer_t t[3];
    onic_layout_t blocks;
    onic_rc_t *c, *other;

    open_adapter();
    ck_assert(connect_as(1, &c) && connect_as(2, &other));
    ck_assert_int_eq(onic_layout_contig(&blocks, 0, 16), ONIC_LAYOUT_OK);
    ck_assert_int_eq(onic_layout_repeat(&blocks, 20, 32), ONIC_LAYOUT_OK);
    lib.pair[((pair_t *)c->qp)->to % QPS].state = IBV_QPS_RESET;
    begin(c, &t[0], false, &blocks, mine, theirs);
    begin(c, &t[1], true, &blocks, mine, theirs);
    begin(other, &t[2], false, &blocks, mine, theirs);
    poll_all();
    ck_assert(ended == 3 && failed == 2 && lost == 1 && c == NULL && other != NULL);
    ck_assert_str_eq(last_reason, "verbs: device fake0: a connection is given up: transport retry "
                                  "counter exceeded");
    /* The next one in that place is another one. */
    ck_assert(connect_as(1, &c));
    begin(c, &t[0], false, &blocks, mine, theirs);
    poll_all();
    ck_assert(ended == 4 && failed == 2 && lost == 1);
    lib.fails = POST_SEND;
    begin(c, &t[0], false, &blocks, mine, theirs);
    ck_assert(ended == 5 && failed == 3 && lost == 2 && c == NULL);
    onic_rc_close(&adapter);
    check_all_closed();
}
END_TEST

/** What connections that are lost one after another leave in the completion queue never fills it
 *  (verbs_library.h checks that). */
START_TEST(many_losses)
{
    static unsigned char mine[BYTES], theirs[BYTES];
    onic_rdma_transfer_t t;
    onic_layout_t blocks;
    onic_rc_t *c;

    open_adapter();
    ck_assert_int_eq(onic_layout_contig(&blocks, 0, 16), ONIC_LAYOUT_OK);
    ck_assert_int_eq(onic_layout_repeat(&blocks, 20, 32), ONIC_LAYOUT_OK);
    for (int i = 0; i < 100; i++) {
        ck_assert(connect_as(1, &c));
        begin(c, &t, false, &blocks, mine, theirs);
        onic_rc_drop(c);
    }
    ck_assert(ended == 100 && failed == 100 && lost == 0);
    onic_rc_close(&adapter);
    check_all_closed();
}
END_TEST

/** Who is served by a full table is refused, unless it is known. A process that has left is not
 *  served any more, and leaves its place to another one. */
START_TEST(a_full_table)
{
    onic_rc_terms_t answer, asked = {.mtu = 4, .reads = 1};

    open_adapter();
    asked.address = adapter.port.mine;
    for (uint32_t i = 0; i < CONNECTIONS; i++) {
        asked.address.qpn = 100 + i;
        ck_assert(onic_rc_serve(&adapter, &served[i], &asked, &answer));
    }
    ck_assert(!onic_rc_serve(&adapter, &served[CONNECTIONS], &asked, &answer));
    asked.address.qpn = 500;
    ck_assert(onic_rc_serve(&adapter, &served[1], &asked, &answer));
    onic_rc_unserve(&adapter, &served[1]);
    ck_assert_int_eq(pairs(), CONNECTIONS - 1);
    onic_rc_unserve(&adapter, &served[1]);
    ck_assert(onic_rc_serve(&adapter, &served[CONNECTIONS], &asked, &answer));
    ck_assert(!onic_rc_serve(&adapter, &served[1], &asked, &answer));
    onic_rc_close(&adapter);
    onic_rc_unserve(&adapter, &served[0]);
    check_all_closed();
}
END_TEST

START_TEST(closed_while_under_way)
{
    static unsigned char mine[BYTES], theirs[BYTES];
    onic_rdma_transfer_t t;
    onic_layout_t blocks;
    onic_rc_t *c;

    open_adapter();
    ck_assert(connect_as(1, &c));
    ck_assert_int_eq(onic_layout_contig(&blocks, 0, 16), ONIC_LAYOUT_OK);
    ck_assert_int_eq(onic_layout_repeat(&blocks, 20, 32), ONIC_LAYOUT_OK);
    begin(c, &t, false, &blocks, mine, theirs);
    onic_rc_close(&adapter);
    ck_assert(ended == 1 && failed == 1 && lost == 0 && closed == 1);
    check_all_closed();
}
END_TEST

/** Adapters that carry nothing, have short lists, or give no queue pairs. */
START_TEST(small_adapters)
{
    onic_verbs_reason_t why;
    onic_rc_t *c;

    open_adapter();
    lib.inline_most = 0;
    ck_assert(connect_as(1, &c));
    ck_assert_uint_eq(c->limits.inline_bytes, 0);
    ck_assert_uint_eq(c->limits.pieces, 8);
    lib.fails = CREATE_QP;
    ck_assert(!connect_as(2, &c));
    onic_rc_close(&adapter);
    check_all_closed();

    /* Fewer pieces for a read. */
    lib_reset(1);
    lib.sge_read = 2;
    ck_assert_int_eq(onic_rc_open(&adapter, &spec, &counts, on_lost, &why), 0);
    ck_assert(connect_as(1, &c));
    ck_assert_uint_eq(c->limits.pieces, 2);
    onic_rc_close(&adapter);
    check_all_closed();
}
END_TEST

int main(void)
{
    return UNIT_RUN("connections", UNIT_ONCE(writes_and_reads), UNIT_ONCE(asks_again),
                    UNIT_ONCE(all_places_taken), UNIT_ONCE(a_full_table), UNIT_ONCE(a_lost_peer),
                    UNIT_ONCE(many_losses), UNIT_ONCE(closed_while_under_way),
                    UNIT_ONCE(small_adapters));
}

#else

#include <stdio.h>

int main(void)
{
    puts("SKIP: check_connections: this build is without libibverbs");
    return 77;
}

#endif
