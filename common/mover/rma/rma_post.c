/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The carrier between hosts: posting what is to be done with the wire lock, in order. */
#include "common/mover/rma/carrier_rma.h"

#include <sched.h>
#include <stdlib.h>

#include "common/support/pause.h"

static atomic_bool queue_lock;
static onic_rma_work_t *first, **last = &first;

static void lock_queue(void)
{
    for (unsigned spins = 1; atomic_exchange_explicit(&queue_lock, true, memory_order_acquire);
         spins++)
        if (spins % 64 == 0)
            sched_yield();
        else
            onic_pause();
}

static void unlock_queue(void)
{
    atomic_store_explicit(&queue_lock, false, memory_order_release);
}

void onic_rma_post(onic_rma_work_t *work)
{
    work->next = NULL;
    atomic_fetch_add(&work->r->refs, 1);
    lock_queue();
    *last = work;
    last = &work->next;
    unlock_queue();
    atomic_store(&onic_rma_state.pending, true);
}

onic_rma_work_t *onic_rma_next_work(void)
{
    lock_queue();
    onic_rma_work_t *work = first;
    if (work != NULL) {
        first = work->next;
        last = first == NULL ? &first : last;
    }
    unlock_queue();
    return work;
}

static void post_copy(const onic_rma_work_t *what)
{
    onic_rma_work_t *work = malloc(sizeof(*work));
    if (work == NULL) {
        onic_rma_fail(what->r->peer);
        return;
    }
    *work = *what;
    onic_rma_post(work);
}

static void post_put(onic_rma_t *r, unsigned slot, uint64_t word)
{
    post_copy(&(onic_rma_work_t){.what = ONIC_RMA_PUT, .r = r, .slot = slot, .word = word});
}

void onic_rma_post_message(onic_rma_t *r, const onic_rma_message_t *m)
{
    post_copy(&(onic_rma_work_t){.what = ONIC_RMA_SEND, .r = r, .message = *m});
}

void onic_rma_post_release(onic_rma_t *r, uint64_t slots)
{
    post_copy(&(onic_rma_work_t){.what = ONIC_RMA_RELEASE, .r = r, .word = slots});
}

void onic_rma_post_close(onic_rma_t *r, bool withdrawn)
{
    r->close = (onic_rma_work_t){.what = ONIC_RMA_CLOSE, .r = r, .word = withdrawn};
    onic_rma_post(&r->close);
}

/* ---- the sender's words and its commitment --------------------------------------------------- */

void onic_rma_put_word(onic_rma_t *r, unsigned slot, uint64_t word)
{
    if (r->ordered && !onic_word_fails(word))
        onic_blocks_mark(&r->blocks, onic_rma_bounce(r, slot), word);
    if (onic_word_fails(word) || onic_word_ends(word))
        post_put(r, slot, word);
}

void onic_rma_commit(onic_rma_t *r, onic_sender_t *s)
{
    const unsigned slots = (unsigned)__builtin_popcountll(onic_terms_granted(&r->terms));
    if (slots > r->nbounce)
        (void)onic_rma_take_bounce(r, slots - r->nbounce);
    const uint64_t word = onic_terms_commit(&r->terms, s, r->nbounce);
    onic_rma_post_message(r, &(onic_rma_message_t){.type = ONIC_RMA_COMMIT,
                                                   .flags = r->ordered ? ONIC_RMA_IN_ORDER : 0,
                                                   .size = r->blocks.data,
                                                   .value = r->terms.lease});
    if (word != 0)
        onic_rma_put_word(r, (unsigned)__builtin_ctzll(r->terms.lease), word);
}
