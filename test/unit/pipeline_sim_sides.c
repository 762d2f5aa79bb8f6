/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The sides of the simulated transfers; see pipeline_sim.h. */
#include "test/unit/pipeline_sim.h"

#include <string.h>

world_t w;

unsigned any(unsigned n)
{
    return (unsigned)unit_below(&w.random, n);
}

static unsigned char byte_of(uint64_t seed, uint64_t pos)
{
    return (unsigned char)((seed + pos) * 0x9e3779b97f4a7c15U >> 40);
}

static unsigned lowest(uint64_t buffers)
{
    return (unsigned)__builtin_ctzll(buffers);
}

/* ---- buffers --------------------------------------------------------------------------------- */

unsigned sim_free(void)
{
    return (unsigned)__builtin_popcountll(w.free);
}

uint64_t sim_take(side_t *r)
{
    const unsigned half = sim_free() > 1 ? sim_free() / 2 : 1;
    uint64_t taken = 0;

    for (unsigned n = r->wanted < half ? r->wanted : half; n > 0 && w.free != 0; n--) {
        const uint64_t buffer = w.free & -w.free;
        UNIT_CHECK(w.holder[lowest(buffer)] == 0);
        w.holder[lowest(buffer)] = r->name;
        taken |= buffer;
        w.free &= ~buffer;
    }
    w.asker[r->peer].held |= taken;
    r->handshake.lease = taken;
    return taken;
}

void sim_release(uint64_t buffers)
{
    UNIT_CHECK((w.free & buffers) == 0);
    for (uint64_t left = buffers; left != 0; left &= left - 1)
        w.holder[lowest(left)] = 0;
    w.free |= buffers;
}

/* ---- sides and messages ---------------------------------------------------------------------- */

side_t *find(side_t *sides, unsigned n, uint32_t name)
{
    for (unsigned i = 0; i < n; i++)
        if (sides[i].used && sides[i].name == name)
            return &sides[i];
    return NULL;
}

unsigned used(const side_t *sides, unsigned n)
{
    unsigned some = 0;

    for (unsigned i = 0; i < n; i++)
        some += sides[i].used;
    return some;
}

side_t *receiver_named(uint32_t name)
{
    return find(w.receivers, RECEIVERS, name);
}

side_t *new_side(side_t *sides, unsigned n, unsigned peer, uint64_t len, uint64_t seed)
{
    for (unsigned i = 0; i < n; i++) {
        if (!sides[i].used) {
            memset(&sides[i], 0, sizeof(sides[i]));
            sides[i].used = true;
            sides[i].name = ++w.names;
            sides[i].peer = peer;
            sides[i].len = len;
            sides[i].seed = seed;
            sides[i].wanted = 1 + any(8);
            onic_receiver_init(&sides[i].r, len, &(onic_lease_t){1, BUFFER});
            return &sides[i];
        }
    }
    return NULL;
}

void post(channel_t *c, message_t m)
{
    UNIT_CHECK(c->n < QUEUE);
    c->m[(c->first + c->n++) % QUEUE] = m;
}

static void to_peer(const side_t *r, type_t type, unsigned buffer, uint64_t value)
{
    if (!w.asker[r->peer].lost)
        post(&w.down[r->peer],
             (message_t){
                 .type = type, .to = r->other, .from = r->name, .buffer = buffer, .value = value});
}

void to_receiver(const side_t *s, type_t type, unsigned buffer, uint64_t value)
{
    /* Who has ended well may make no progress any more. */
    UNIT_CHECK(!s->ended || s->cancelled);
    if (!w.asker[s->peer].lost)
        post(&w.up[s->peer],
             (message_t){
                 .type = type, .to = s->other, .from = s->name, .buffer = buffer, .value = value});
}

void drop(side_t *x)
{
    if (onic_rma_handshake_done(&x->handshake) && x->refs == 0)
        x->used = false;
}

static void end(side_t *x, bool good)
{
    UNIT_CHECK(!x->ended);
    x->ended = true;
    if (x->told == 0) {
        x->told++;
        w.good += good;
        w.bad += !good;
    }
}

/* ---- the receiver ---------------------------------------------------------------------------- */

/** The one that has waited longest. */
static side_t *next_waiting(void)
{
    side_t *first = NULL;

    for (unsigned i = 0; i < RECEIVERS; i++) {
        side_t *r = &w.receivers[i];
        if (r->used && r->handshake.waits && (first == NULL || r->name < first->name))
            first = r;
    }
    return first;
}

uint64_t sim_lost(void)
{
    uint64_t lost = 0;

    for (unsigned p = 0; p < PEERS; p++)
        lost |= w.asker[p].lost ? w.asker[p].held : 0;
    return lost;
}

void serve(void)
{
    side_t *r;

    while ((r = next_waiting()) != NULL &&
           (sim_take(r) != 0 || sim_lost() == onic_buffers_first(w.total))) {
        if (r->handshake.lease != 0) {
            r->handshake.waits = false;
        } else {
            onic_rma_handshake_refuse(&r->handshake);
            w.refused++;
        }
        to_peer(r, GRANT, 0, r->handshake.lease);
        drop(r);
    }
}

void released(unsigned peer, uint64_t buffers)
{
    sim_release(onic_asker_release(&w.asker[peer], buffers));
    serve();
}

static void end_receiver(side_t *r, bool good)
{
    end(r, good);
    r->handshake.lease &= ~r->buffers;
    released(r->peer, r->buffers);
    r->buffers = 0;
}

static uint64_t word_of(side_t *r)
{
    const onic_lease_t lease = {r->handshake.lease, BUFFER};

    if (r->buffers == 0 && lease.buffers != 0) {
        onic_receiver_init(&r->r, r->len, &lease);
        r->buffers = lease.buffers;
    }
    return r->handshake.word[r->r.buffer];
}

void sim_receive(side_t *r)
{
    onic_piece_t piece;
    const onic_pipe_action_t action = onic_receiver_next(&r->r, word_of(r), &piece);

    if (action == ONIC_PIPE_MOVE) {
        const uint32_t n = 1 + any(piece.len);

        for (uint32_t i = 0; i < n; i++)
            UNIT_CHECK(w.memory[piece.buffer][piece.offset + i] == byte_of(r->seed, piece.pos + i));
        const onic_consumed_t c = onic_receiver_taken(&r->r, &piece, n);
        if (c.acknowledge != 0)
            to_peer(r, ACK, piece.buffer, c.acknowledge);
        if (c.free) {
            r->buffers &= ~(UINT64_C(1) << piece.buffer);
            r->handshake.lease &= r->buffers;
            released(r->peer, UINT64_C(1) << piece.buffer);
        }
    } else if (action == ONIC_PIPE_DONE) {
        end_receiver(r, true);
    } else if (action == ONIC_PIPE_FAILED) {
        UNIT_CHECK(r->r.given_up);
        end_receiver(r, false);
    } else if (w.asker[r->peer].lost) {
        end_receiver(r, false);
    }
}

/* ---- senders --------------------------------------------------------------------------------- */

void put_word(side_t *s, unsigned buffer, uint64_t word)
{
    if (word != 0) {
        UNIT_CHECK(w.nflights < FLIGHTS);
        uint32_t from;
        const uint32_t bytes = onic_rma_handshake_put(&s->handshake, word, &from);
        flight_t *f = &w.flight[w.nflights++];
        *f = (flight_t){s, word, w.puts++, buffer, from, bytes, bytes == 0, {0}};
        memcpy(f->chunk, s->chunk + from, bytes);
        s->refs++;
    }
}

static void publish(side_t *s, unsigned buffer, uint64_t word)
{
    if (s->handshake.lease != 0)
        put_word(s, buffer, word);
    else
        s->early = word;
}

void sim_send(side_t *s)
{
    onic_piece_t piece;
    const unsigned buffer = s->s.buffer;

    if (s->cancelled) {
        publish(s, buffer, onic_sender_fail(&s->s));
        end(s, false);
        return;
    }
    const uint64_t seen = onic_sender_asks(&s->s) ? s->handshake.word[s->s.buffer] : 0;
    const onic_pipe_action_t action = onic_sender_next(&s->s, seen, &piece);
    if (action == ONIC_PIPE_FAILED) {
        UNIT_CHECK(s->refused);
        end(s, false);
    } else if (action == ONIC_PIPE_MOVE) {
        const bool whole = piece.pos + piece.len == s->len;
        const uint32_t n = whole ? piece.len : piece.len - any(piece.len < 8 ? piece.len : 8);
        for (uint32_t i = 0; i < n; i++)
            s->chunk[piece.offset + i] = byte_of(s->seed, piece.pos + i);
        publish(s, piece.buffer, onic_sender_filled(&s->s, &piece, n));
    } else if (action == ONIC_PIPE_DONE && onic_rma_handshake_left(&s->handshake, s->refs)) {
        end(s, true);
    }
}

side_t *new_sender(unsigned p, uint64_t len, uint64_t seed)
{
    side_t *s = new_side(w.senders[p], SENDERS, p, len, seed);
    const onic_lease_t lease = {1, BUFFER};
    onic_schedule_t schedule;

    if (s != NULL) {
        s->handshake.sends = true;
        onic_schedule_growing(&schedule, 1 + any(BUFFER), 1.5, 1, BUFFER);
        onic_sender_init(&s->s, len, &lease, &schedule, any(3) * 4, 1);
    }
    return s;
}
