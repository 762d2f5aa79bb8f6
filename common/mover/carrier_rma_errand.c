/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What the carrier between hosts has to do with UCX, in the order in which it was asked for; and
 * the bounce slots.
 */
#include "common/mover/carrier_rma.h"

#include <sched.h>
#include <stdlib.h>

#include "ompi/constants.h"

#include "common/support/pause.h"

static atomic_bool queue_lock;
static onic_rma_errand_t *first, **last = &first;

static void lock_queue(void)
{
    for (unsigned spins = 1; atomic_exchange_explicit(&queue_lock, true, memory_order_acquire);
         spins++) {
        if (spins % 64 == 0) {
            sched_yield();
        } else {
            onic_pause();
        }
    }
}

static void unlock_queue(void)
{
    atomic_store_explicit(&queue_lock, false, memory_order_release);
}

/* ---- bounce slots ---------------------------------------------------------------------------- */

static unsigned count(uint64_t slots)
{
    return (unsigned)__builtin_popcountll(slots);
}

unsigned onic_rma_take_bounce(onic_rma_t *r, unsigned most)
{
    _Atomic(uint64_t) *mask = &onic_rma_state.bounce_free;
    uint64_t free = atomic_load_explicit(mask, memory_order_relaxed);
    unsigned taken = 0;
    /* Half of what is free, so that others find some; one at least. */
    most = count(free) / 2 < most && count(free) > 1 ? count(free) / 2 : most;
    while (taken < most && free != 0 && r->nbounce < ONIC_SLOTS_MAX) {
        const uint64_t slot = free & -free;
        if (atomic_compare_exchange_weak_explicit(mask, &free, free & ~slot, memory_order_acquire,
                                                  memory_order_relaxed)) {
            r->bounce[r->nbounce++] = (unsigned char)__builtin_ctzll(slot);
            taken++;
            free &= ~slot;
        }
    }
    return taken;
}

static void give_bounce(onic_rma_t *r)
{
    uint64_t slots = 0;
    while (r->nbounce > 0) {
        slots |= UINT64_C(1) << r->bounce[--r->nbounce];
    }
    atomic_fetch_or_explicit(&onic_rma_state.bounce_free, slots, memory_order_release);
}

char *onic_rma_bounce(const onic_rma_t *r, unsigned slot)
{
    const unsigned rank = r->terms.let ? count(r->terms.lease & ((UINT64_C(1) << slot) - 1)) : 0;
    return onic_rma_state.bounce + (size_t)r->bounce[rank] * onic_rma_state.slot_bytes;
}

void onic_rma_drop(onic_rma_t *r)
{
    if (r->terms.over && r->peer->asker.lost) {
        /* UCX may never end what it cannot send: whatever it sends still goes to nobody. */
        give_bounce(r);
    }
    if (!onic_terms_done(&r->terms) || atomic_load(&r->refs) > 0) {
        return;
    }
    onic_rma_t **at = &onic_rma_state.bucket[r->name % 256];
    while (*at != r) {
        at = &(*at)->next;
    }
    *at = r->next;
    give_bounce(r);
    free(r);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void push(onic_rma_errand_t *e)
{
    e->next = NULL;
    atomic_fetch_add(&e->r->refs, 1);
    lock_queue();
    *last = e;
    last = &e->next;
    unlock_queue();
    atomic_store(&onic_rma_state.hungry, true);
}

/** At once, where the lock is free. This thread may hold it. */
static void do_soon(void)
{
    if (onic_wire_trylock()) {
        (void)onic_rma_do_errands();
        onic_wire_unlock();
    }
}

static void ask_for(const onic_rma_errand_t *what)
{
    onic_rma_errand_t *e = malloc(sizeof(*e));
    if (e == NULL) {
        onic_rma_fail(what->r->peer);
        return;
    }
    *e = *what;
    push(e);
    do_soon();
}

void onic_rma_put(onic_rma_t *r, unsigned slot, uint64_t word)
{
    ask_for(&(onic_rma_errand_t){.what = ONIC_RMA_DO_PUT, .r = r, .slot = slot, .word = word});
}

void onic_rma_tell(onic_rma_t *r, const onic_rma_message_t *m)
{
    ask_for(&(onic_rma_errand_t){.what = ONIC_RMA_DO_TELL, .r = r, .message = *m});
}

void onic_rma_give(onic_rma_t *r, uint64_t slots)
{
    ask_for(&(onic_rma_errand_t){.what = ONIC_RMA_DO_GIVE, .r = r, .word = slots});
}

void onic_rma_over(onic_rma_t *r, bool withdrawn)
{
    r->close = (onic_rma_errand_t){.what = ONIC_RMA_DO_CLOSE, .r = r, .word = withdrawn};
    push(&r->close);
}

/* ---- doing; the wire lock is held ------------------------------------------------------------ */

static void forget(onic_rma_errand_t *e)
{
    onic_rma_t *r = e->r;
    if (e != &r->close) {
        free(e);
    }
    atomic_fetch_sub(&r->refs, 1);
    onic_rma_drop(r);
}

/** Is there nobody any more whom it could send to? */
static bool is_off(const onic_rma_t *r)
{
    return r->peer->asker.lost || atomic_load(&r->peer->failed);
}

static void tell(onic_rma_t *r, const onic_rma_message_t *message)
{
    onic_rma_message_t m = *message;
    m.to = r->other;
    m.from = r->name;
    if (!is_off(r) && onic_rma_send_message(r->peer, &m) < 0) {
        onic_rma_fail(r->peer);
    }
}

/** UCX is done with a put or a flush; nothing may be sent in here. */
static void completed(void *arg, int status)
{
    onic_rma_errand_t *e = arg;
    if (status < 0) {
        onic_rma_fail(e->r->peer);
    }
    if (e->what == ONIC_RMA_DO_TELL) {
        push(e);
        onic_wire_defer(ONIC_AM_MOVER);
        atomic_fetch_sub(&e->r->refs, 1);
    } else {
        forget(e);
    }
}

/** Takes over the errand. */
static void started(onic_rma_errand_t *e, int rc)
{
    if (rc != 0) {
        completed(e, rc);
    } /* else it is called when UCX is done */
}

/** Bytes [from, to) of a slot, for an errand that is taken over. */
static void write_bytes(onic_rma_errand_t *e, size_t from, size_t to)
{
    const onic_rma_t *r = e->r;
    e->put = (onic_put_t){.cb = completed, .arg = e};
    started(e, onic_remote_write(r->peer->remote, (size_t)e->slot * r->peer->slot_bytes + from,
                                 onic_rma_bounce(r, e->slot) + from, to - from,
                                 onic_rma_state.bounce_region, &e->put));
}

/** A gap of so many bytes before a word travels along: it is shorter than another put. */
#define GAP 1024

/** One put for a chunk. Where the word of the last block stands far behind its data it is put by
 *  itself, and not at all where the receiver does not look at it. */
static void write_blocks(onic_rma_errand_t *e, bool ordered)
{
    const onic_blocks_t *b = &e->r->blocks;
    const uint32_t bytes = onic_word_bytes(e->word);
    const size_t data = onic_blocks_at(b, bytes - 1) + 1;
    const size_t all = (size_t)onic_blocks_of(b, bytes) * b->bytes;
    onic_rma_errand_t *second = NULL;
    if (ordered && all - data > GAP) {
        second = malloc(sizeof(*second));
        if (second == NULL) {
            onic_rma_fail(e->r->peer);
            forget(e);
            return;
        }
        *second = *e;
        atomic_fetch_add(&e->r->refs, 1);
    }
    write_bytes(e, 0, ordered && second == NULL ? all : data);
    if (second != NULL) {
        write_bytes(second, all - sizeof(uint64_t), all);
    }
}

/** A message that follows when all puts so far can be seen. */
static void announce(onic_rma_t *r, const onic_rma_message_t *m)
{
    onic_rma_errand_t *e = malloc(sizeof(*e));
    if (e == NULL) {
        onic_rma_fail(r->peer);
        return;
    }
    *e = (onic_rma_errand_t){.what = ONIC_RMA_DO_TELL, .r = r, .message = *m};
    e->put = (onic_put_t){.cb = completed, .arg = e};
    atomic_fetch_add(&r->refs, 1);
    started(e, onic_remote_settle(r->peer->remote, &e->put));
}

/** Is this the last chunk before the sender waits, or ends? */
static bool is_last(const onic_rma_t *r, unsigned slot)
{
    return r->put == r->len || (slot < 63 ? r->terms.lease >> (slot + 1) : 0) == 0;
}

static void put(onic_rma_errand_t *e)
{
    onic_rma_t *r = e->r;
    const unsigned slot = e->slot;
    const bool fails = onic_word_fails(e->word), ordered = r->ordered && !fails;
    const onic_rma_message_t word = {
        .type = ONIC_RMA_WORD, .slot = (uint16_t)slot, .value = e->word};
    const onic_rma_message_t knock = {.type = ONIC_RMA_KNOCK};
    if (is_off(r)) {
        forget(e);
        return;
    }
    atomic_fetch_add(&r->refs, 1);
    if (fails) {
        forget(e);
    } else {
        r->put += onic_word_bytes(e->word);
        write_blocks(e, ordered);
    }
    if (!ordered) {
        announce(r, &word);
    } else if (is_last(r, slot)) {
        tell(r, &knock);
    }
    atomic_fetch_sub(&r->refs, 1);
    onic_rma_drop(r);
}

static void close_record(onic_rma_errand_t *e)
{
    onic_rma_t *r = e->r;
    const bool waited = r->terms.waits;
    const onic_closing_t closing = onic_terms_close(&r->terms, e->word != 0);
    if (r->terms.sends) {
        r->peer->asks -= waited && !r->terms.waits;
    }
    if (closing.let) {
        onic_rma_let(r, &r->sender);
    }
    if (closing.give != 0) {
        onic_rma_given(r->peer, closing.give);
    }
    forget(e);
}

static onic_rma_errand_t *next_errand(void)
{
    lock_queue();
    onic_rma_errand_t *e = first;
    if (e != NULL) {
        first = e->next;
        last = first == NULL ? &first : last;
    }
    unlock_queue();
    return e;
}

int onic_rma_do_errands(void)
{
    int done = 0;
    for (onic_rma_errand_t *e; (e = next_errand()) != NULL; done++) {
        switch (e->what) {
        case ONIC_RMA_DO_PUT:
            put(e);
            break;
        case ONIC_RMA_DO_TELL:
            tell(e->r, &e->message);
            forget(e);
            break;
        case ONIC_RMA_DO_GIVE:
            e->r->terms.lease &= ~e->word;
            onic_rma_given(e->r->peer, e->word);
            forget(e);
            break;
        default:
            close_record(e);
        }
    }
    return done;
}
