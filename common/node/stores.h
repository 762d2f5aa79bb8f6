/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file How a sender writes the memory that it shares with a peer, slots and rings: by plain
 *  stores, or by streaming ones, which go past the caches. A plain store takes its line from the
 *  receiver's cache: cheap between near processors, while between far ones streaming stores are 5
 *  to 8 times as fast. Learned from what the pieces take; both are tried again and again, since
 *  virtual processors move. Pure; threads that meet may lose a note. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/** Bytes of the shortest pieces that are noted, or written by streaming stores. */
#define ONIC_STORES_LEAST 4096
/** Most pieces from one trial of the other stores to the next: it may take eight times as long. */
#define ONIC_STORES_TRIAL 256

/** So many times as long as usual is odd. */
#define ONIC_STORES_ODD 3

/** One of so many pieces is timed: the clock takes some percent of a short one. */
#define ONIC_STORES_TIMED 4

/** What is known of one peer and one kind of pieces. All zero: nothing. */
typedef struct onic_stores {
    _Atomic uint32_t cost[2]; /**< time of a KiB by plain and by streaming stores; 0: not known */
    _Atomic uint32_t left;    /**< pieces to the next trial */
    _Atomic uint32_t gap;     /**< from that to the one after it */
    atomic_bool odd[2];       /**< the last piece was: one by itself was preempted */
    atomic_bool streams;      /**< which is cheaper, as far as is known */
} onic_stores_t;

/** Is the next piece to be written by streaming stores? `*timed_p`: it is to be noted. */
static inline bool onic_stores_choose(onic_stores_t *s, bool *timed_p)
{
    const bool streams = atomic_load_explicit(&s->streams, memory_order_relaxed);
    const uint32_t left = atomic_load_explicit(&s->left, memory_order_relaxed);
    const uint32_t gap = atomic_load_explicit(&s->gap, memory_order_relaxed);

    *timed_p = left % ONIC_STORES_TIMED == 0;
    if (left > 0) {
        atomic_store_explicit(&s->left, left - 1, memory_order_relaxed);
        return streams;
    }
    atomic_store_explicit(&s->left, gap, memory_order_relaxed);
    atomic_store_explicit(&s->gap, gap < ONIC_STORES_TRIAL / 2 ? 2 * gap + 1 : ONIC_STORES_TRIAL,
                          memory_order_relaxed);
    /* The first piece of all is by plain stores. */
    return gap > 0 && !streams;
}

/** A piece of `bytes`, at least ONIC_STORES_LEAST, took `time`, in any unit. */
static inline void onic_stores_note(onic_stores_t *s, bool streaming, uint64_t bytes, uint64_t time)
{
    uint32_t cost[2] = {atomic_load_explicit(&s->cost[0], memory_order_relaxed),
                        atomic_load_explicit(&s->cost[1], memory_order_relaxed)};
    const uint32_t old = cost[streaming];
    uint64_t now = time * 1024 / bytes + 1;
    const bool odd = old > 0 && now >= ONIC_STORES_ODD * (uint64_t)old;
    const bool again = atomic_load_explicit(&s->odd[streaming], memory_order_relaxed);

    if (odd != again)
        atomic_store_explicit(&s->odd[streaming], odd, memory_order_relaxed);
    if (odd && !again)
        return;
    if (odd)
        now = 2 * (uint64_t)old;
    else if (old > 0 && now > old / 2)
        now = (3 * (uint64_t)old + now) / 4;
    cost[streaming] = now < UINT32_MAX / 4 ? (uint32_t)now : UINT32_MAX / 4;
    atomic_store_explicit(&s->cost[streaming], cost[streaming], memory_order_relaxed);
    if (cost[0] == 0 || cost[1] == 0)
        return;
    /* The receiver's loads come from memory after streaming stores. Near processors have up to 2.8
     * times as fast stores and yet slower transfers then; far ones have 6 to 11 times as fast
     * stores. */
    const bool streams = cost[1] < cost[0] / 4;

    if (streams != atomic_load_explicit(&s->streams, memory_order_relaxed)) {
        atomic_store_explicit(&s->streams, streams, memory_order_relaxed);
        atomic_store_explicit(&s->gap, 4, memory_order_relaxed);
        atomic_store_explicit(&s->left, 4, memory_order_relaxed);
    }
}
