/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What happens in the simulation; see pipeline_sim.h. */
#include "test/unit/pipeline_sim.h"

#include <string.h>

/* ---- what happens ---------------------------------------------------------------------------- */

static void start(unsigned p)
{
    const uint64_t len = 1 + any(any(2) ? LONGEST : BUFFER), seed = any(1000);

    /* A message that found no room would be in the way of those behind it. */
    if (w.dead[p] || w.asker[p].lost || used(w.receivers, RECEIVERS) >= RECEIVERS / 2)
        return;
    if (any(2)) {
        side_t *s = used(w.senders[p], SENDERS) < SIDES ? new_sender(p, len, seed) : NULL;
        if (s == NULL)
            return;
        s->handshake.waits = true;
        w.requests[p]++;
        post(&w.up[p], (message_t){.type = REQUEST, .from = s->name, .value = seed, .len = len});
    } else {
        side_t *r = new_side(w.receivers, RECEIVERS, p, len, seed);
        const uint64_t buffers = r != NULL ? sim_take(r) : 0;
        if (buffers == 0) {
            if (r != NULL)
                r->used = false;
            return;
        }
        post(&w.down[p], (message_t){.type = REQUEST_GET,
                                     .from = r->name,
                                     .buffer = (unsigned)seed,
                                     .value = buffers,
                                     .len = len});
    }
    w.starts++;
}

/** False where it has to wait. */
static bool receiver_handles(unsigned p, const message_t *m)
{
    side_t *r = receiver_named(m->to);

    if (m->type == REQUEST) {
        r = new_side(w.receivers, RECEIVERS, p, m->len, m->value);
        if (r == NULL)
            return false;
        r->other = m->from;
        r->handshake.waits = true;
        serve();
    } else if (r != NULL) {
        r->other = m->from;
        onic_rma_handshake_on_word(&r->handshake, m->buffer, m->value);
    }
    return true;
}

static bool sender_handles(unsigned p, const message_t *m)
{
    side_t *s = find(w.senders[p], SENDERS, m->to);

    if (m->type == REQUEST_GET) {
        s = new_sender(p, m->len, m->buffer);
        if (s == NULL)
            return false;
        s->other = m->from;
        s->handshake.lease = m->value;
        s->s.lease.buffers = m->value;
        s->s.buffer = (unsigned)__builtin_ctzll(m->value);
    } else if (s != NULL && m->type == GRANT) {
        const onic_granted_t granted =
            onic_rma_handshake_on_grant(&s->handshake, m->value, UINT64_MAX);

        s->other = m->from;
        w.requests[p]--;
        if (granted == ONIC_GRANT_REFUSED) {
            s->refused = true;
            (void)onic_sender_fail(&s->s);
            drop(s);
            return true;
        }
        UNIT_CHECK(granted == ONIC_GRANT_TAKEN || granted == ONIC_GRANT_LATE);
        put_word(s, (unsigned)__builtin_ctzll(m->value),
                 granted == ONIC_GRANT_TAKEN ? onic_sender_replace_lease(&s->s, m->value, s->early)
                                             : s->early);
    } else if (s != NULL) {
        onic_rma_handshake_on_ack(&s->handshake, m->buffer, m->value);
    }
    return true;
}

static void handle(unsigned p, bool up)
{
    channel_t *c = up ? &w.up[p] : &w.down[p];

    if (c->n == 0 || (up ? w.asker[p].lost : w.dead[p]))
        return;
    const message_t m = c->m[c->first];
    if (up ? receiver_handles(p, &m) : sender_handles(p, &m)) {
        c->first = (c->first + 1) % QUEUE;
        c->n--;
    }
}

/** A put arrives, or the word behind it gets under way; a dead sender's does not. */
static void fly(void)
{
    if (w.nflights == 0 || any(w.lazy) != 0)
        return;
    flight_t *f = &w.flight[any(w.nflights)];
    side_t *s = f->side;

    if (!f->landed) {
        UNIT_CHECK(w.holder[f->buffer] == s->other);
        memcpy(w.memory[f->buffer] + f->from, f->chunk, f->bytes);
        f->landed = true;
        return;
    }
    /* Behind a flush: it goes when all puts before it have arrived. */
    for (unsigned i = 0; i < w.nflights; i++)
        if (w.flight[i].side == s && !w.flight[i].landed && w.flight[i].number < f->number)
            return;
    if (!w.dead[s->peer])
        to_receiver(s, WORD, f->buffer, f->word);
    s->refs--;
    *f = w.flight[--w.nflights];
    drop(s);
}

static void step(side_t *x)
{
    if (!x->used)
        return;
    if (!x->ended) {
        x->handshake.sends ? sim_send(x) : sim_receive(x);
    } else if (!x->handshake.over) {
        x->handshake.over = true;
        drop(x);
    }
}

static void cancel(side_t *x)
{
    if (!x->used || x->ended || x->cancelled)
        return;
    w.cancels++;
    x->cancelled = true;
    if (!x->handshake.sends) { /* what comes is thrown away */
        x->told++;
        w.bad++;
    }
}

static void die(unsigned p)
{
    w.dead[p] = true;
    /* Some of what it has sent still comes. */
    w.up[p].n = any(w.up[p].n + 1);
}

/** The receiver's connection is lost: the sender is dead, or knows nothing of it. */
static void lose(unsigned p)
{
    if (w.asker[p].lost)
        return;
    w.asker[p].lost = true;
    for (unsigned i = 0; i < RECEIVERS; i++) {
        side_t *r = &w.receivers[i];
        if (r->used && r->peer == p) {
            onic_rma_handshake_lose(&r->handshake);
            drop(r);
        }
    }
    serve();
}

static side_t *any_side(void)
{
    const unsigned p = any(PEERS + 1);

    if (p == PEERS)
        return &w.receivers[any(RECEIVERS)];
    return w.dead[p] ? &w.receivers[p] : &w.senders[p][any(SENDERS)];
}

/** Is nothing left of those who live? */
bool sim_is_quiet(void)
{
    bool quiet = w.nflights == 0;

    quiet = quiet && used(w.receivers, RECEIVERS) == 0;
    for (unsigned p = 0; p < PEERS; p++)
        quiet = quiet && (w.asker[p].lost || (!w.dead[p] && w.up[p].n + w.down[p].n == 0 &&
                                              used(w.senders[p], SENDERS) == 0));
    return quiet;
}

void sim_happen(unsigned most, bool cancels, bool deaths)
{
    const unsigned p = any(PEERS), what = any(100);

    if (what < 10 && w.starts < most)
        start(p);
    else if (what < 30)
        handle(p, any(2));
    else if (what < 50)
        fly();
    else if (what < 95)
        step(any_side());
    else if (what < 96 && cancels)
        cancel(any_side());
    else if (what == 96 && deaths && any(50) == 0)
        die(p);
    else if (w.dead[p] || (deaths && any(100) == 0))
        lose(p);
}

void sim_begin(uint64_t seed, unsigned total)
{
    memset(&w, 0, sizeof(w));
    w.random.state = unit_seed() + seed;
    w.total = total;
    /* With a slow network more is under way when something ends. */
    w.lazy = seed % 2 == 0 ? 1 : 30;
    w.free = onic_buffers_first(total);
}
