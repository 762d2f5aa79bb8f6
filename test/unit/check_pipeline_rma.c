/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Transfers by puts of one process, whose peers and wire are the test: whom it grants
 *  buffers, and whom not when connections are lost. */
#include "common/pipeline/rma/carrier_rma.h"
#include "common/pipeline/transfers.h"

#include <string.h>

#include "ompi/constants.h"

#include "test/unit/unit.h"

enum { BUFFER = 65536, SENT = 4096, PUTS = 64 };

/* ---- the transport
 * -------------------------------------------------------------------------------- */

struct onic_peer {
    bool lost;
};

struct onic_region {
    void *base;
};

struct onic_remote {
    onic_peer_t *peer;
};

/** A message that was sent. */
typedef struct sent {
    const onic_peer_t *to;
    onic_rma_message_t m;
} sent_t;

/** Bytes that were put into a receive pool. */
typedef struct put {
    size_t at, len;
    bool flushed;
} put_t;

static put_t made[PUTS];
static unsigned nmade;
static onic_peer_t near, far;
static onic_remote_t remote;
static onic_region_t regions[2];
static unsigned nregions, nsent, losses;
static sent_t sent[SENT];

static const bool one_thread;

onic_guard_t onic_transport_guard = {.threads = &one_thread};

void onic_transport_lock_wait(void)
{
    UNIT_CHECK(!"the lock is not taken twice");
}

bool onic_transport_drains(void)
{
    return false;
}

unsigned onic_transport_losses(void)
{
    return losses;
}

void onic_transport_flush(void)
{
}

void onic_transport_ask(unsigned am_id, onic_place_t place)
{
    UNIT_CHECK(am_id == ONIC_AM_PIPELINE && place == ONIC_LOCKED);
}

bool onic_peer_is_lost(const onic_peer_t *peer)
{
    return peer->lost;
}

void onic_peer_give_up(onic_peer_t *peer)
{
    losses += !peer->lost;
    peer->lost = true;
}

bool onic_peer_is_self(const onic_peer_t *peer)
{
    (void)peer;
    return false;
}

bool onic_peer_puts_by_rdma(onic_peer_t *peer)
{
    (void)peer;
    return true;
}

int onic_peer_send(onic_peer_t *peer, unsigned am_id, const void *header, size_t header_len,
                   const onic_payload_t *payload, unsigned flags, onic_send_cb_t cb, void *arg)
{
    (void)payload;
    (void)flags;
    (void)cb;
    (void)arg;
    UNIT_CHECK(am_id == ONIC_AM_PIPELINE && header_len >= sizeof(onic_rma_message_t));
    UNIT_CHECK(!peer->lost && nsent < SENT);
    sent[nsent].to = peer;
    memcpy(&sent[nsent++].m, header, sizeof(onic_rma_message_t));
    return 1;
}

int onic_peer_flush(onic_peer_t *peer, onic_send_cb_t cb, void *arg)
{
    (void)peer;
    (void)cb;
    (void)arg;
    UNIT_CHECK(nmade == 0 || !made[nmade - 1].flushed);
    if (nmade > 0)
        made[nmade - 1].flushed = true;
    return 1;
}

int onic_remote_put(onic_remote_t *to, size_t offset, const void *data, size_t len,
                    const onic_region_t *from, onic_send_cb_t cb, void *arg)
{
    (void)data;
    (void)from;
    (void)cb;
    (void)arg;
    UNIT_CHECK(to == &remote && nmade < PUTS);
    made[nmade++] = (put_t){offset, len, false};
    return 1;
}

onic_remote_t *onic_remote_open(onic_peer_t *peer, const void *bytes, size_t len, int *rc_p)
{
    (void)bytes;
    (void)len;
    UNIT_CHECK(peer == NULL);
    *rc_p = OMPI_SUCCESS;
    return &remote;
}

void onic_remote_close(onic_remote_t *r)
{
    UNIT_CHECK(r == &remote);
}

onic_peer_t *onic_remote_peer(const onic_remote_t *r)
{
    return r->peer;
}

onic_region_t *onic_region_new(size_t bytes)
{
    onic_region_t *r = &regions[nregions++];

    r->base = calloc(1, bytes);
    UNIT_CHECK(r->base != NULL);
    return r;
}

onic_region_t *onic_region_over_locked(void *base, size_t bytes)
{
    (void)base;
    (void)bytes;
    return &regions[nregions++];
}

void onic_region_free(onic_region_t *region)
{
    free(region->base);
}

void onic_region_leave(onic_region_t *region)
{
    onic_region_free(region);
}

void *onic_region_base(const onic_region_t *region)
{
    return region->base;
}

size_t onic_region_describe(const onic_region_t *region, void *bytes, size_t cap)
{
    UNIT_CHECK(cap > 0);
    (void)region;
    *(char *)bytes = 1;
    return 1;
}

/* ---- the process ----------------------------------------------------------------------------- */

static onic_pool_words_t pool_words;
static onic_rx_buffer_words_t buffer_words[ONIC_RX_BUFFERS_MAX];
static onic_pool_t pool;
static char memory[ONIC_RX_BUFFERS_MAX * BUFFER];
static int ends, last_status;

/** With a receive pool of so many buffers. */
static void begin(unsigned nbuffers)
{
    pool = (onic_pool_t){&pool_words, buffer_words, nbuffers};
    onic_pool_init(&pool);
    onic_rma_open(&pool, memory, BUFFER,
                  &(onic_schedule_choice_t){.kind = ONIC_SCHEDULE_MEASURED,
                                            .link = {.chunk = 12288, .growth = 1.5}},
                  false);
    ck_assert(onic_rma_state.open);
}

static void finish(void)
{
    onic_transport_lock();
    onic_transfers_end();
    onic_transport_unlock();
    onic_rma_close();
}

static void done(void *arg, int status)
{
    (void)arg;
    ends++;
    last_status = status;
}

static void progress(void)
{
    onic_transport_lock();
    for (int i = 0; i < 4; i++)
        (void)(onic_rma_serve() + onic_transfers_progress());
    onic_transport_unlock();
}

typedef int (*start_t)(onic_transfer_t *t, void *record, onic_ticket_t *ticket);

/** As pipeline.c begins one, with an end of `buffers` buffers. */
static int start(onic_peer_t *peer, onic_role_t role, start_t by, unsigned buffers,
                 onic_ticket_t *ticket)
{
    const uint64_t len = (uint64_t)buffers * BUFFER;
    static char end_memory[ONIC_RX_BUFFERS_MAX * BUFFER];
    onic_pipeline_end_t end = {.len = len, .base = end_memory, .done = done};
    int rc = OMPI_ERR_UNREACH;

    UNIT_CHECK(onic_layout_contig(&end.layout, 0, len) == ONIC_LAYOUT_OK);
    onic_transport_lock();
    void *record = onic_carrier_rma.reach(peer);
    onic_transfer_t *t =
        record != NULL ? onic_transfer_new(role, &onic_carrier_rma, peer, &end) : NULL;
    if (t != NULL) {
        if (role == ONIC_RECEIVES)
            t->receiver.len = len;
        rc = by(t, record, ticket);
        if (rc == OMPI_SUCCESS)
            onic_transfer_begun(t, &end);
        else
            free(t);
    }
    onic_transport_unlock();
    return rc;
}

/** A message comes. */
static void come(onic_peer_t *from, onic_rma_message_t m)
{
    char bytes[sizeof(m) + 1] = {0};

    memcpy(bytes, &m, sizeof(m));
    onic_transport_lock();
    onic_rma_on_message(from, bytes, m.type == ONIC_RMA_RX_POOL ? sizeof(bytes) : sizeof(m), NULL,
                        0, NULL);
    onic_transport_unlock();
}

/** Its receive pool is known from now on. */
static void learn(onic_peer_t *peer)
{
    remote.peer = peer;
    come(peer, (onic_rma_message_t){.type = ONIC_RMA_RX_POOL, .buffer = 8, .size = BUFFER});
}

/** A peer asks for buffers. Those that it is granted; 0: none yet. */
static uint64_t ask(onic_peer_t *peer, unsigned buffers, uint64_t *name_p)
{
    const unsigned before = nsent;
    onic_ticket_t ticket = {.len = (uint64_t)buffers * BUFFER, .name = 77};

    ck_assert_int_eq(start(peer, ONIC_RECEIVES, onic_carrier_rma.receive, buffers, &ticket),
                     OMPI_SUCCESS);
    if (nsent == before)
        return 0;
    const sent_t *s = &sent[before];
    UNIT_CHECK(s->to == peer && s->m.type == ONIC_RMA_GRANT && s->m.to == 77);
    *name_p = s->m.from;
    return s->m.value;
}

static void lose(onic_peer_t *peer)
{
    peer->lost = true;
    losses++;
    onic_transport_lock();
    (void)onic_rma_serve();
    onic_transport_unlock();
}

/* ---- tests ----------------------------------------------------------------------------------- */

/** They were given away a second later, while the process went on to put into them. */
START_TEST(buffers_of_the_lost_are_not_given_away)
{
    uint64_t name = 0;

    begin(8);
    learn(&near);
    learn(&far);
    const uint64_t lost = ask(&far, 8, &name);
    ck_assert(lost != 0);
    lose(&far);
    progress();
    ck_assert_int_eq(ends, 1);
    ck_assert_int_eq(last_status, OMPI_ERR_UNREACH);
    for (int i = 0; i < 200; i++) {
        uint64_t buffers = ask(&near, 8, &name);
        ck_assert(buffers != 0 && (buffers & lost) == 0);
        onic_rma_message_t m = {.type = ONIC_RMA_WORD,
                                .to = name,
                                .buffer = (uint16_t)__builtin_ctzll(buffers),
                                .value = ONIC_WORD_FAILS};
        come(&near, m);
        progress();
        ck_assert_int_eq(ends, 2 + i);
    }
    ck_assert(atomic_load(&pool_words.free) == (onic_pool_all(&pool) & ~lost));
    ck_assert(!near.lost);
    finish();
}
END_TEST

/** A request that waits, and one that comes later: both sides learn that they end. */
START_TEST(requests_end_when_all_buffers_are_lost)
{
    onic_ticket_t ticket;
    uint64_t name = 0;

    begin(1);
    learn(&near);
    learn(&far);
    ck_assert_uint_eq(ask(&far, 1, &name), 1);
    ck_assert_uint_eq(ask(&near, 1, &name), 0);
    const unsigned before = nsent;
    lose(&far);
    ck_assert_uint_eq(nsent, before + 1);
    ck_assert(sent[before].to == &near && sent[before].m.type == ONIC_RMA_GRANT &&
              sent[before].m.value == 0);
    progress();
    ck_assert_int_eq(ends, 2);
    ck_assert_uint_eq(ask(&near, 1, &name), 0);
    ck_assert_uint_eq(nsent, before + 2);
    progress();
    ck_assert_int_eq(ends, 3);
    ck_assert_int_ne(last_status, OMPI_SUCCESS);
    ck_assert_int_eq(start(&near, ONIC_RECEIVES, onic_carrier_rma.expect, 1, &ticket),
                     OMPI_ERR_OUT_OF_RESOURCE);
    ck_assert(!near.lost && onic_pipeline_idle());
    finish();
}
END_TEST

/** What is refused fails, and nothing else is asked of that peer; the connection stays. */
START_TEST(the_refused_do_not_ask_again)
{
    onic_ticket_t ticket;

    begin(8);
    learn(&near);
    ck_assert_int_eq(start(&near, ONIC_SENDS, onic_carrier_rma.send, 2, &ticket), OMPI_SUCCESS);
    progress();
    ck_assert_int_eq(ends, 0);
    come(&near, (onic_rma_message_t){.type = ONIC_RMA_GRANT, .to = ticket.name, .from = 77});
    progress();
    ck_assert_int_eq(ends, 1);
    ck_assert_int_ne(last_status, OMPI_SUCCESS);
    ck_assert_int_eq(start(&near, ONIC_SENDS, onic_carrier_rma.send, 2, &ticket), OMPI_ERR_UNREACH);
    ck_assert(!near.lost && onic_pipeline_idle());
    ck_assert(onic_rma_state.bounce_free == onic_pool_all(&pool));
    finish();
}
END_TEST

/** Each block is put and flushed before the next one is packed; a chunk is one row in a buffer. */
START_TEST(chunks_are_put_block_by_block)
{
    onic_ticket_t ticket = {.buffers = 0xff, .len = 4 * BUFFER, .name = 77};
    size_t bytes = 0, longest = 0;

    begin(8);
    const size_t block = onic_schedule_block(&onic_rma_state.schedule.link, ticket.len);
    learn(&near);
    nmade = 0;
    ck_assert_int_eq(start(&near, ONIC_SENDS, onic_carrier_rma.answer, 4, &ticket), OMPI_SUCCESS);
    progress();
    for (unsigned i = 0; i < nmade; i++) {
        const bool goes_on = made[i].at % BUFFER != 0;
        ck_assert(made[i].flushed && made[i].len > 0 && made[i].len <= block);
        ck_assert(!goes_on || (i > 0 && made[i].at == made[i - 1].at + made[i - 1].len &&
                               made[i - 1].len == block));
        bytes += made[i].len;
        longest = made[i].at % BUFFER + made[i].len > longest ? made[i].at % BUFFER + made[i].len
                                                              : longest;
    }
    ck_assert_uint_eq(bytes, 4 * BUFFER);
    ck_assert_uint_gt(longest, 2 * block);
    onic_peer_give_up(&near);
    finish();
}
END_TEST

int main(void)
{
    return UNIT_RUN("pipeline rma", UNIT_ONCE(buffers_of_the_lost_are_not_given_away),
                    UNIT_ONCE(requests_end_when_all_buffers_are_lost),
                    UNIT_ONCE(the_refused_do_not_ask_again),
                    UNIT_ONCE(chunks_are_put_block_by_block));
}
