/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "perf/sim/transfer.h"

#include "common/pipeline/core/pipe.h"
#include "common/pipeline/core/pool.h"
#include "perf/sim/events.h"

double sim_copy_speed(const sim_machine_t *m, double bytes)
{
    int level = 0;

    while (level < SIM_LEVELS - 1 && bytes > m->copy[level].bytes)
        level++;
    return m->copy[level].speed;
}

/** PACKED and UNPACKED: a piece; PUT: a word has come, with the bytes before it; FREED: an
 *  acknowledgement has come. */
enum { PACKED, PUT, UNPACKED, FREED, GRANTED };

typedef struct world {
    sim_events_t events;
    const sim_transfer_t *t;
    double pack, unpack; /**< nanoseconds for a byte */
    onic_sender_t sender;
    onic_receiver_t receiver;
    onic_piece_t packs, unpacks; /**< the current pieces */
    bool packing, unpacking;     /**< true while there is one */
    bool waiting, stalled, granted;
    double adapter; /**< time from which it is free */
    uint64_t word[ONIC_RX_BUFFERS_MAX], acknowledged[ONIC_RX_BUFFERS_MAX];
    /** Of the present chunk: the words behind its blocks, and where that is. */
    uint64_t early; /**< the word of a first chunk waiting for its grant; 0: none */
    unsigned early_buffer;
    sim_transferred_t result;
} world_t;

static void add(world_t *w, double at, uint16_t kind, unsigned buffer, uint64_t value)
{
    sim_add(&w->events, (sim_event_t){.at = at, .kind = kind, .who = buffer, .value = value});
}

/* ---- sender ---------------------------------------------------------------------------------- */

/** The adapter takes a chunk, which ends with this word. If blocks have flags, the receiver sees
 *  each one as it arrives. */
static double put(world_t *w, unsigned buffer, uint64_t word)
{
    const sim_machine_t *m = w->t->machine;
    const double now = w->events.now, bytes = onic_word_bytes(word),
                 begins = (now > w->adapter ? now : w->adapter) + m->gap;
    const uint32_t block = w->t->block;

    for (uint32_t at = block; block > 0 && at < onic_word_bytes(word); at += block)
        add(w, begins + at / m->bnet + m->latency, PUT, buffer,
            ((uint64_t)onic_word_round(word) << 32) | at);
    w->adapter = begins + bytes / m->bnet;
    add(w, w->adapter + m->latency + w->t->announce, PUT, buffer, word);
    w->result.chunks++;
    return m->overhead;
}

/** Continues after `after` nanoseconds. */
static void send(world_t *w, double after)
{
    onic_sender_t *s = &w->sender;
    const uint64_t seen = onic_sender_asks(s) ? w->acknowledged[s->buffer] : 0;

    switch (onic_sender_next(s, seen, &w->packs)) {
    case ONIC_PIPE_MOVE:
        w->packing = true;
        w->waiting = false;
        add(w, w->events.now + after + w->packs.len * w->pack, PACKED, w->packs.buffer, 0);
        break;
    case ONIC_PIPE_WAIT:
        w->result.waits += !w->waiting;
        w->waiting = true;
        break;
    default:
        break;
    }
}

static void packed(world_t *w)
{
    const uint64_t word = onic_sender_filled(&w->sender, &w->packs, w->packs.len);
    double after = 0;

    w->packing = false;
    if (!w->granted)
        w->early = word;
    else if (onic_word_ends(word))
        after = put(w, w->packs.buffer, word);
    send(w, after);
}

static void grant(world_t *w)
{
    double after = 0;

    w->granted = true;
    w->early = onic_sender_replace_lease(&w->sender, onic_buffers_first(w->t->buffers), w->early);
    if (onic_word_ends(w->early))
        after = put(w, 0, w->early);
    if (!w->packing)
        send(w, after);
}

/* ---- receiver -------------------------------------------------------------------------------- */

static void receive(world_t *w)
{
    switch (onic_receiver_next(&w->receiver, w->word[w->receiver.buffer], &w->unpacks)) {
    case ONIC_PIPE_MOVE:
        w->unpacking = true;
        w->stalled = false;
        add(w, w->events.now + w->unpacks.len * w->unpack, UNPACKED, w->unpacks.buffer, 0);
        break;
    case ONIC_PIPE_WAIT:
        w->result.stalls += !w->stalled && w->receiver.pos > 0;
        w->stalled = true;
        break;
    default:
        break;
    }
}

static void unpacked(world_t *w)
{
    const onic_consumed_t c = onic_receiver_taken(&w->receiver, &w->unpacks, w->unpacks.len);

    w->unpacking = false;
    if (c.acknowledge != 0)
        add(w, w->events.now + w->t->machine->latency, FREED, w->unpacks.buffer, c.acknowledge);
    receive(w);
}

/* ---- both ------------------------------------------------------------------------------------ */

static void handle(world_t *w, const sim_event_t *e)
{
    switch (e->kind) {
    case PACKED:
        packed(w);
        break;
    case GRANTED:
        grant(w);
        break;
    case PUT:
        w->word[e->who] = e->value;
        if (!w->unpacking)
            receive(w);
        break;
    case UNPACKED:
        unpacked(w);
        break;
    default: /* FREED */
        w->acknowledged[e->who] = e->value;
        if (!w->packing && w->granted)
            send(w, 0);
    }
}

sim_transferred_t sim_transfer(const sim_transfer_t *t)
{
    const double speed = sim_copy_speed(t->machine, (double)t->bytes);
    const onic_lease_t lease = {onic_buffers_first(t->buffers), t->buffer_bytes},
                       one = {1, t->buffer_bytes};
    world_t w = {.t = t,
                 .pack = 1 / speed + t->gather_here / (double)t->bytes,
                 .unpack = 1 / speed + t->gather_there / (double)t->bytes,
                 .granted = t->grant <= 0};
    sim_event_t e;

    sim_events_init(&w.events, 0);
    /* A word for each block would be one for each piece here, so the adapter makes them. */
    onic_sender_init(&w.sender, t->bytes, w.granted ? &lease : &one, &t->schedule, 0, 1);
    onic_receiver_init(&w.receiver, t->bytes, &lease);
    if (!w.granted)
        add(&w, t->grant, GRANTED, 0, 0);
    send(&w, 0);
    while (w.receiver.pos < t->bytes && sim_next(&w.events, &e))
        handle(&w, &e);
    w.result.time = w.receiver.pos < t->bytes ? -1 : w.events.now;
    sim_events_fini(&w.events);
    return w.result;
}

/* ---- transfers in one piece
 * ---------------------------------------------------------------------------- */

double sim_raw(const sim_machine_t *m, double bytes)
{
    return m->gap + bytes / m->bnet + m->latency;
}

double sim_registered(const sim_machine_t *m, double bytes, bool overlapped)
{
    const double pin = m->pin + bytes * m->pin_byte;

    return (overlapped ? 1 : 2) * pin + sim_raw(m, bytes) + m->unpin + bytes * m->unpin_byte;
}

double sim_copied(const sim_machine_t *m, double bytes)
{
    return sim_raw(m, bytes) + 2 * bytes / sim_copy_speed(m, bytes);
}
