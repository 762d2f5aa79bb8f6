/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Buffers that a process grants to others which put into them: the carrier between hosts,
 *  as it stands, at both sides, over a network whose flushes end in any order. Transfers begin, are
 *  stopped and withdrawn, connections are lost, at any time. In all states: nobody puts into a
 *  buffer that another one may have; an asker's requests are answered in order, and who has fewest
 *  buffers is first. From all states: if nothing new begins all transfers end, and all buffers that
 *  no lost process had are free again. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/pipeline/rma/carrier_rma.h"
#include "common/layout/pack.h"
#include "common/pipeline/transfers.c"
#include "ompi/constants.h"

enum {
    ASKERS = 2,
    TRANSFERS = 3,
    BUFFERS = 2,
    BUFFER = 64,
    MESSAGES = 12,
    BLOCKS = 16,
    FLUSHES = 8
};
enum { UP, DOWN, WAYS };

/** Memory of records and of announcements, each in a block of its own. */
typedef struct block {
    _Alignas(16) unsigned char bytes[sizeof(onic_rma_t) + 16];
} block_t;

struct onic_peer {
    bool lost;
    bool unflushed; /**< what was put there last */
    uint8_t asker;
    uint8_t way; /**< of what is sent to it */
};

struct onic_remote {
    uint8_t asker;
};

/** What begins a transfer at the other side, or says that none will be, is a message, too. */
enum { ASKS = 100, OFFERS, REFUSES };

typedef struct flush {
    onic_send_cb_t cb;
    void *arg;
    uint8_t asker;
} flush_t;

/** Both sides of it. */
typedef struct pair {
    bool begun, gets, withdrawn, open[2], reported[2];
    uint8_t asker;
    uint64_t name; /**< of the sender's record */
    onic_transfer_t t[2];
} pair_t;

typedef struct state {
    struct onic_peer peer[ASKERS][WAYS];
    onic_rma_peer_t record[ASKERS][WAYS];
    onic_pool_words_t words;
    onic_rx_buffer_words_t buffer[BUFFERS];
    onic_handle_slot_t slot[2 * TRANSFERS];
    bool used[BLOCKS];
    block_t block[BLOCKS];
    onic_rma_message_t message[ASKERS][WAYS][MESSAGES];
    uint8_t nmessages[ASKERS][WAYS], nflushes;
    flush_t flush[FLUSHES];
    pair_t pair[TRANSFERS];
    uint8_t user[BUFFERS];    /**< whose transfer may put into it: the pair's number + 1 */
    uint8_t answered[ASKERS]; /**< the last request that was granted likewise */
    bool refused[ASKERS];     /**< has heard that it is granted nothing */
    uint8_t nstops, nlost;
    /* Of the carrier's own. */
    onic_handles_t records;
    onic_grant_queue_t queue;
    unsigned losses, seen;
    uint64_t bounces;
} state_t;

#include "test/explore/states.h"

/** The state in whose memory the product works: it holds pointers, and so stands in one place. */
static state_t now;

static void fails(const char *what)
{
    if (broken == NULL)
        broken = what;
}

/* ---- memory ---------------------------------------------------------------------------------- */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void __real_free(void *p);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void __wrap_free(void *p);

/** The product works, not the search. */
static bool working;

static void *take_block(size_t bytes)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        if (!now.used[i] && bytes <= sizeof(block_t)) {
            now.used[i] = true;
            return now.block[i].bytes;
        }
    fails("more memory is used than these transfers need");
    return NULL;
}

void *__wrap_malloc(size_t bytes)
{
    return working ? take_block(bytes) : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    return working ? take_block(n * bytes) : __real_calloc(n, bytes);
}

void __wrap_free(void *p)
{
    const uintptr_t offset = (uintptr_t)p - (uintptr_t)now.block;
    if (offset >= sizeof(now.block)) {
        __real_free(p);
        return;
    }
    if (!now.used[offset / sizeof(block_t)])
        fails("what is freed was free");
    now.used[offset / sizeof(block_t)] = false;
    memset(p, 0, sizeof(block_t));
}

/* ---- stands-in ------------------------------------------------------------------------------- */

static const bool one_thread;
onic_guard_t onic_transport_guard = {.threads = &one_thread};
static struct onic_remote remotes[ASKERS];

void onic_transport_lock_wait(void)
{
}

unsigned onic_transport_losses(void)
{
    return now.losses;
}

bool onic_transport_drains(void)
{
    return false;
}

void onic_transport_flush(void)
{
}

void onic_transport_ask(unsigned am_id, onic_place_t place)
{
    (void)am_id, (void)place;
}

bool onic_peer_is_lost(const onic_peer_t *peer)
{
    return peer->lost;
}

void onic_peer_give_up(onic_peer_t *peer)
{
    now.losses += !peer->lost;
    peer->lost = true;
}

bool onic_peer_is_self(const onic_peer_t *peer)
{
    (void)peer;
    return false;
}

/** All peers have records. */
static void *kept;

void **onic_peer_slot(onic_peer_t *peer, unsigned am_id)
{
    (void)am_id;
    kept = &now.record[peer->asker][peer->way];
    return &kept;
}

const onic_presence_t *onic_peer_presence(onic_peer_t *peer)
{
    (void)peer;
    return NULL;
}

bool onic_peer_puts_by_rdma(onic_peer_t *peer)
{
    (void)peer;
    return true;
}

onic_remote_t *onic_remote_open(onic_peer_t *peer, const void *bytes, size_t len, int *rc_p)
{
    (void)peer, (void)bytes, (void)len, (void)rc_p;
    return NULL;
}

void onic_remote_close(onic_remote_t *r)
{
    (void)r;
}

onic_peer_t *onic_remote_peer(const onic_remote_t *r)
{
    return &now.peer[r->asker][UP];
}

onic_region_t *onic_region_new(size_t bytes)
{
    (void)bytes;
    return NULL;
}

onic_region_t *onic_region_over_locked(void *base, size_t bytes)
{
    (void)base, (void)bytes;
    return NULL;
}

void onic_region_free(onic_region_t *region)
{
    (void)region;
}

void onic_region_leave(onic_region_t *region)
{
    (void)region;
}

void *onic_region_base(const onic_region_t *region)
{
    (void)region;
    return NULL;
}

size_t onic_region_describe(const onic_region_t *region, void *bytes, size_t cap)
{
    (void)region, (void)bytes, (void)cap;
    return 0;
}

/** Of what is put at once. */
static uint32_t block;

uint32_t onic_schedule_block(const onic_link_t *link, uint64_t bytes)
{
    (void)link, (void)bytes;
    return block;
}

void onic_schedule_make(onic_schedule_t *s, const onic_schedule_choice_t *choice, uint32_t unit,
                        uint32_t buffer)
{
    (void)choice;
    onic_schedule_growing(s, buffer, 1, unit, buffer);
}

void onic_list_release(onic_layout_t *l)
{
    (void)l;
}

void onic_cursor_init(onic_cursor_t *c, const onic_layout_t *l, uint64_t pos)
{
    (void)c, (void)l, (void)pos;
}

uint64_t onic_layout_whole(const onic_layout_t *l, uint64_t base, uint64_t pos, uint64_t n)
{
    (void)l, (void)base, (void)pos;
    return n;
}

uint64_t onic_pack(onic_cursor_t *c, const void *base, void *to, uint64_t n)
{
    (void)c, (void)base, (void)to;
    return n;
}

uint64_t onic_pack_streaming(onic_cursor_t *c, const void *base, void *to, uint64_t n)
{
    return onic_pack(c, base, to, n);
}

uint64_t onic_unpack(onic_cursor_t *c, void *base, const void *from, uint64_t n)
{
    (void)c, (void)base, (void)from;
    return n;
}

/* ---- the network ----------------------------------------------------------------------------- */

static unsigned pair_of(uint64_t name)
{
    unsigned i = 0;
    while (i < TRANSFERS && now.pair[i].name != name)
        i++;
    return i;
}

static void push(unsigned asker, unsigned way, onic_rma_message_t m)
{
    if (now.nmessages[asker][way] == MESSAGES)
        fails("more messages are sent than these transfers need");
    else
        now.message[asker][way][now.nmessages[asker][way]++] = m;
}

/** Buffers are granted to a request. */
static void check_grant(unsigned asker, const onic_rma_message_t *m)
{
    const unsigned p = pair_of(m->to);
    const uint64_t before = now.record[asker][DOWN].asker.held & ~m->value;
    if (p == TRANSFERS || now.pair[p].asker != asker) {
        fails("buffers are granted to who has not asked");
        return;
    }
    if (p + 1U <= now.answered[asker])
        fails("requests of a process are not answered in their order");
    now.answered[asker] = (uint8_t)(p + 1);
    for (const onic_grant_request_t *r = onic_rma_state.grant_queue.first; r != NULL; r = r->next)
        if (m->value != 0 &&
            __builtin_popcountll(r->asker->held &
                                 ~(r->asker == &now.record[asker][DOWN].asker ? m->value : 0)) <
                __builtin_popcountll(before))
            fails("who has fewest buffers is not the first");
    for (unsigned b = 0; b < BUFFERS; b++)
        if ((m->value >> b & 1) != 0)
            now.user[b] = (uint8_t)(p + 1);
}

int onic_peer_send(onic_peer_t *peer, unsigned am_id, const void *header, size_t header_len,
                   const onic_payload_t *payload, unsigned flags, onic_send_cb_t cb, void *arg)
{
    onic_rma_message_t m;
    (void)am_id, (void)header_len, (void)payload, (void)flags, (void)cb, (void)arg;
    memcpy(&m, header, sizeof(m));
    if (m.type == ONIC_RMA_GRANT)
        check_grant(peer->asker, &m);
    push(peer->asker, peer->way, m);
    return 1;
}

int onic_peer_flush(onic_peer_t *peer, onic_send_cb_t cb, void *arg)
{
    peer->unflushed = false;
    if (now.nflushes == FLUSHES)
        fails("there are more flushes than these transfers need");
    else
        now.flush[now.nflushes++] = (flush_t){cb, arg, peer->asker};
    return 0;
}

int onic_remote_put(onic_remote_t *to, size_t offset, const void *data, size_t len,
                    const onic_region_t *from, onic_send_cb_t cb, void *arg)
{
    const unsigned p = pair_of(((onic_rma_t *)arg)->name);
    onic_peer_t *peer = onic_remote_peer(to);
    (void)data, (void)from, (void)cb;
    if (p < TRANSFERS && now.pair[p].gets && len > block)
        fails("more than a block is put at once where nothing was packed before");
    if (peer->unflushed)
        fails("what was put before is not flushed");
    peer->unflushed = true;
    if (p == TRANSFERS || offset / BUFFER >= BUFFERS || now.user[offset / BUFFER] != p + 1)
        fails("a process puts into a buffer that is not its own");
    return 1;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static unsigned ntransfers, nbuffers, length, nstops_most, nlost_most;
static bool gets;
/** The first process is lost with all buffers; then the second one asks, and asks again. */
static bool refusing;

static void begin_work(const state_t *s)
{
    memcpy(&now, s, sizeof(now));
    onic_rma_records = now.records;
    onic_rma_state.grant_queue = now.queue;
    onic_rma_state.losses = now.seen;
    onic_rma_state.bounce_free = now.bounces;
    working = true;
}

static void end_work(void)
{
    working = false;
    now.records = onic_rma_records;
    now.queue = onic_rma_state.grant_queue;
    now.seen = onic_rma_state.losses;
    now.bounces = onic_rma_state.bounce_free;
    for (unsigned b = 0; b < BUFFERS; b++)
        if ((now.words.free >> b & 1) != 0)
            now.user[b] = 0;
}

static void done(void *arg, int status)
{
    const onic_transfer_t *t = arg;
    pair_t *p = now.pair;
    while (&p->t[t->role] != t)
        p++;
    if (p->reported[t->role])
        fails("a transfer is reported twice");
    if (t->role == ONIC_SENDS && status == 0 && !onic_rma_left(t->rma))
        fails("a sender is over before all that it sends has left");
    p->reported[t->role] = true;
}

static onic_transfer_t *new_transfer(pair_t *p, onic_role_t role, bool has_end)
{
    onic_transfer_t *t = &p->t[role];
    *t = (onic_transfer_t){.role = role,
                           .has_end = has_end,
                           .carrier = &onic_carrier_rma,
                           .peer = &now.peer[p->asker][role == ONIC_SENDS ? UP : DOWN],
                           .end = {.len = (uint64_t)length * BUFFER, .done = done, .arg = t}};
    p->open[role] = true;
    return t;
}

static void begin(unsigned i, unsigned asker, bool get)
{
    pair_t *p = &now.pair[i];
    const onic_role_t role = get ? ONIC_RECEIVES : ONIC_SENDS;
    onic_ticket_t ticket;
    p->begun = true;
    p->gets = get;
    p->asker = (uint8_t)asker;
    void *record = onic_rma_reach(&now.peer[asker][get ? DOWN : UP]);
    if (record == NULL)
        return;
    if (!get && now.refused[asker])
        fails("who was refused asks again");
    onic_transfer_t *t = new_transfer(p, role, true);
    if (onic_carrier_rma.lease(t, record, &ticket) != 0) {
        p->open[role] = false;
        p->t[role].rma = NULL;
        return;
    }
    if (!get)
        p->name = ticket.name;
    for (unsigned b = 0; get && b < BUFFERS; b++)
        if ((ticket.buffers >> b & 1) != 0)
            now.user[b] = (uint8_t)(i + 1);
    push(asker, get ? DOWN : UP,
         (onic_rma_message_t){.type = get ? OFFERS : ASKS,
                              .to = i,
                              .from = ticket.name,
                              .value = get ? ticket.buffers : ticket.len});
}

/** The other side begins; false where it says that there will be nothing. */
static void meet(const onic_rma_message_t *m, bool answers)
{
    pair_t *p = &now.pair[m->to];
    const onic_role_t role = p->gets ? ONIC_SENDS : ONIC_RECEIVES;
    onic_ticket_t ticket = {
        .buffers = p->gets ? m->value : 0, .len = (uint64_t)length * BUFFER, .name = m->from};
    onic_rma_peer_t *record =
        answers ? onic_rma_reach(&now.peer[p->asker][p->gets ? UP : DOWN]) : NULL;
    if (record != NULL) {
        onic_transfer_t *t = new_transfer(p, role, true);
        if (onic_carrier_rma.follow(t, record, &ticket) != 0)
            fails("a transfer cannot begin at the other side");
        else if (p->gets)
            p->name = t->rma->name;
    } else if (p->gets) {
        push(p->asker, UP, (onic_rma_message_t){.type = REFUSES, .to = m->to});
    }
}

static void deliver(unsigned asker, unsigned way, bool answers)
{
    const onic_rma_message_t m = now.message[asker][way][0];
    const unsigned n = --now.nmessages[asker][way];
    memmove(&now.message[asker][way][0], &now.message[asker][way][1], n * sizeof(m));
    memset(&now.message[asker][way][n], 0, sizeof(m));
    if (m.type == ASKS || m.type == OFFERS) {
        meet(&m, answers);
    } else if (m.type == REFUSES) {
        pair_t *p = &now.pair[m.to];
        p->withdrawn = true;
        if (p->open[ONIC_RECEIVES])
            (void)onic_pipeline_withdraw_locked(&p->t[ONIC_RECEIVES]);
    } else {
        now.refused[asker] |= m.type == ONIC_RMA_GRANT && m.value == 0 && nstops_most == 0;
        onic_rma_on_message(NULL, &m, sizeof(m), NULL, 0, NULL);
    }
}

static void end_flush(unsigned i)
{
    const flush_t f = now.flush[i];
    now.nflushes--;
    memmove(&now.flush[i], &now.flush[i + 1], (now.nflushes - i) * sizeof(f));
    memset(&now.flush[now.nflushes], 0, sizeof(f));
    f.cb(f.arg, 0);
}

/** As onic_transfers_progress does. */
static void work(pair_t *p, unsigned x)
{
    onic_transfer_t *t = &p->t[x];
    (void)work_on(t, 1);
    (void)report(t);
    if (t->over) {
        t->carrier->closed(t);
        p->open[x] = false;
    }
}

static void lose(unsigned asker, unsigned way)
{
    if (!now.peer[asker][way].lost) {
        now.peer[asker][way].lost = true;
        now.losses++;
    }
    (void)onic_rma_serve();
}

/** Two sums of all words that are not 0, and of where they stand: a state is long, and few are. */
static size_t key_of(const state_t *s, uint8_t key[KEY_BYTES])
{
    uint64_t h[2] = {1, 2}, word[2];
    for (size_t i = 0; i + sizeof(word) <= sizeof(*s); i += sizeof(word)) {
        memcpy(word, (const unsigned char *)s + i, sizeof(word));
        for (unsigned k = 0; (word[0] | word[1]) != 0 && k < 2; k++) {
            h[0] = (h[0] ^ word[k]) * UINT64_C(0x9e3779b97f4a7c15);
            h[0] ^= h[0] >> 32 ^ i;
            h[1] = (h[1] + word[k]) * UINT64_C(0xd6e8feb86659fd93);
            h[1] ^= h[1] >> 29 ^ i;
        }
    }
    memcpy(key, h, sizeof(h));
    return sizeof(h);
}

/* ---- what must hold -------------------------------------------------------------------------- */

/** Everything goes on until nothing can. */
static void drain(void)
{
    bool any = true;
    for (unsigned turns = 0; turns < 64 && any && broken == NULL; turns++) {
        any = false;
        for (unsigned a = 0; a < ASKERS; a++) {
            for (unsigned way = 0; way < WAYS; way++) {
                if (now.peer[a][!way].lost)
                    lose(a, way);
                while (now.nmessages[a][way] > 0 && broken == NULL)
                    deliver(a, way, true);
            }
        }
        while (now.nflushes > 0 && broken == NULL)
            end_flush(0);
        (void)onic_rma_serve();
        for (unsigned i = 0; i < ntransfers; i++)
            for (unsigned x = 0; x < 2; x++)
                if (now.pair[i].open[x]) {
                    work(&now.pair[i], x);
                    any = true;
                }
        any = any || now.nflushes > 0;
        for (unsigned a = 0; a < ASKERS; a++)
            any = any || now.nmessages[a][UP] > 0 || now.nmessages[a][DOWN] > 0;
    }
}

static void check_ends(const state_t *s)
{
    uint64_t lost = 0;
    begin_work(s);
    drain();
    end_work();
    for (unsigned i = 0; i < ntransfers; i++)
        for (unsigned x = 0; x < 2; x++) {
            if (now.pair[i].open[x])
                fails("a transfer does not end");
            if (now.pair[i].t[x].carrier != NULL && now.pair[i].t[x].rma == NULL &&
                now.pair[i].name != 0 && !now.pair[i].reported[x] && !now.pair[i].withdrawn)
                fails("a transfer is not reported");
        }
    for (unsigned a = 0; a < ASKERS; a++) {
        if (now.peer[a][UP].unflushed)
            fails("what was put is not flushed");
        lost |= now.peer[a][DOWN].lost ? now.record[a][DOWN].asker.held : 0;
        if (!now.peer[a][UP].lost && now.record[a][UP].requests != 0)
            fails("a request is counted for ever");
    }
    if (now.queue.first != NULL)
        fails("a request waits for ever");
    if ((now.words.free | lost) != onic_buffers_first(nbuffers) || (now.words.free & lost) != 0)
        fails("a buffer does not come back, or one of a lost process does");
    if (now.bounces != onic_buffers_first(nbuffers))
        fails("a bounce buffer does not come back");
    for (unsigned i = 0; i < BLOCKS; i++)
        if (now.used[i])
            fails("a record is not freed");
}

#define STEP(s, what)                                                                              \
    do {                                                                                           \
        begin_work(s);                                                                             \
        what;                                                                                      \
        end_work();                                                                                \
        if (broken == NULL)                                                                        \
            reach(&now);                                                                           \
    } while (0)

static void look_at(const state_t *s)
{
    check_ends(s);
    /* Where all are of one process that is for their order. */
    const unsigned askers = ntransfers > 2 && nstops_most == 0 && !refusing ? 1 : ASKERS;
    unsigned first = 0;
    while (first < ntransfers && s->pair[first].begun)
        first++;
    for (unsigned a = 0; a < ASKERS && broken == NULL; a++) {
        const bool may_begin = !refusing || (a == (first > 0) && s->nlost == (first > 0));
        for (unsigned get = 0; get < 1U + gets && first < ntransfers && a < askers; get++)
            if (may_begin)
                STEP(s, begin(first, a, get != 0));
        for (unsigned way = 0; way < WAYS; way++) {
            if (s->nmessages[a][way] > 0)
                STEP(s, deliver(a, way, true));
            if (s->nmessages[a][way] > 0 && s->message[a][way][0].type == OFFERS)
                STEP(s, deliver(a, way, false));
            if (s->nlost < nlost_most && !s->peer[a][way].lost &&
                (!refusing || (a == 0 && way == DOWN && s->user[0] != 0)))
                STEP(s, (now.nlost++, lose(a, way)));
        }
    }
    for (unsigned i = 0; i < s->nflushes && broken == NULL; i++)
        STEP(s, end_flush(i));
    if (s->queue.first != NULL)
        STEP(s, onic_rma_serve());
    for (unsigned i = 0; i < ntransfers && broken == NULL; i++)
        for (unsigned x = 0; x < 2; x++) {
            if (!s->pair[i].open[x])
                continue;
            STEP(s, work(&now.pair[i], x));
            if (s->nstops < nstops_most && s->pair[i].t[x].has_end)
                STEP(s, (now.nstops++, stop(&now.pair[i].t[x])));
        }
}

static bool run_all(const char *name, unsigned transfers, unsigned buffers, unsigned len,
                    bool with_gets, unsigned stops, unsigned lost)
{
    static char memory[BUFFERS * BUFFER], bounce[BUFFERS * BUFFER];
    static state_t s;
    ntransfers = transfers;
    nbuffers = buffers;
    length = len;
    gets = with_gets;
    nstops_most = stops;
    nlost_most = lost;
    refusing = strcmp(name, "grants-refused") == 0;
    block = transfers > 1 ? BUFFER : BUFFER / 2;
    memset(&now, 0, sizeof(now));
    memset(&onic_rma_state, 0, sizeof(onic_rma_state));
    onic_rma_state.open = true;
    onic_rma_state.all = true;
    onic_rma_state.pool = (onic_pool_t){&now.words, now.buffer, buffers};
    onic_rma_state.buffers = memory;
    onic_rma_state.bounce = bounce;
    onic_rma_state.buffer_bytes = BUFFER;
    onic_pool_init(&onic_rma_state.pool);
    now.bounces = onic_pool_all(&onic_rma_state.pool);
    for (unsigned a = 0; a < ASKERS; a++) {
        remotes[a].asker = (uint8_t)a;
        for (unsigned way = 0; way < WAYS; way++) {
            onic_rma_peer_t *p = &now.record[a][way];
            now.peer[a][way] = (struct onic_peer){.asker = (uint8_t)a, .way = (uint8_t)way};
            *p = (onic_rma_peer_t){.next = onic_rma_state.peers,
                                   .peer = &now.peer[a][way],
                                   .remote = &remotes[a],
                                   .buffer_bytes = BUFFER,
                                   .nbuffers = buffers};
            onic_rma_state.peers = p;
        }
    }
    now.records = (onic_handles_t){.slot = now.slot, .n = 2 * TRANSFERS, .free = 1};
    for (unsigned i = 0; i < 2 * TRANSFERS; i++)
        now.slot[i] =
            (onic_handle_slot_t){.generation = 1, .next_free = i + 1 < 2 * TRANSFERS ? i + 2 : 0};
    memcpy(&s, &now, sizeof(s));
    char text[80];
    (void)snprintf(text, sizeof(text), "%-16s %u, %u buffers, %u stops, %u lost", name, transfers,
                   buffers, stops, lost);
    return search_states(text, &s);
}

int main(int argc, char **argv)
{
    const bool all = states_options(argc, argv);
    bool good =
        run_all("grants", 2, 1, 1, false, 1, 0) && run_all("grants", 2, 1, 2, false, 0, 0) &&
        run_all("grants-order", 3, 1, 1, false, 0, 0) &&
        run_all("grants-blocks", 1, 2, 2, true, 0, 0) &&
        run_all("grants-gets", 2, 1, 1, true, 1, 0) && run_all("grants-lost", 2, 1, 1, false, 0, 1);
    if (all)
        good = good && run_all("grants-refused", 3, 1, 1, false, 0, 1) &&
               run_all("grants", 3, 2, 2, false, 1, 0) &&
               run_all("grants-lost", 3, 2, 1, true, 1, 2);
    return states_status(good);
}
