/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Who may use which slots of this process's landing area, of those that cannot lease them by
 * themselves: senders of other hosts. They ask, and are granted slots in turn (paper 000, section
 * 5.1: a source asks for a receive buffer before it sends).
 *
 * The bytes at the receiver never exceed the area, however many there are that send. Each sender
 * has one place in the queue, and takes its next turn behind the others, so that who asks for much
 * and often delays each of the others by one grant. Memory grows with the senders that are known,
 * by one record each, which belongs to the caller.
 *
 * Pure. The caller has a lock.
 */
#ifndef ONIC_GRANT_H
#define ONIC_GRANT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/support/export.h"

/** Asks of one sender that may be waiting. It keeps count: what is asked beyond is an error. */
#define ONIC_GRANT_ASKS 16

/** Where slots come from: the pool of a landing area of at most 64 slots. A set of slots is a mask,
 *  bit s for slot s. */
typedef struct onic_grant_source {
    unsigned total; /**< slots of the area, 1 .. 64 */
    /** Takes up to `max` > 0 free slots; 0 where there is none. */
    uint64_t (*take)(void *arg, unsigned max);
    void (*give)(void *arg, uint64_t slots);
    /** Slots that are free now; others may take them meanwhile. */
    unsigned (*count)(void *arg);
    void *arg;
} onic_grant_source_t;

/** What a sender wants: `slots` of them, 1 .. 64, for its transfer `name`. */
typedef struct onic_ask {
    uint32_t name;
    uint32_t slots;
} onic_ask_t;

/** A sender: the caller's record, zero at first. It must stay where it is until onic_grants_forget.
 */
typedef struct onic_asker {
    struct onic_asker *next; /**< in the queue, behind this one */
    uint64_t held;           /**< slots that it has been granted and not given back */
    bool lost;               /**< asks no more, and what it gives back rests */
    unsigned first, n;       /**< its asks: a ring */
    onic_ask_t ask[ONIC_GRANT_ASKS];
} onic_asker_t;

typedef struct onic_grants {
    onic_grant_source_t source;
    onic_asker_t *head, *tail; /**< those that wait, in the order of their turns */
    unsigned waiting;          /**< length of the queue */
    unsigned active;           /**< senders that wait or hold slots */
} onic_grants_t;

/** A grant: these slots for transfer `name` of that sender. */
typedef struct onic_grant {
    onic_asker_t *asker;
    uint32_t name;
    uint64_t slots;
} onic_grant_t;

void onic_grants_init(onic_grants_t *g, const onic_grant_source_t *source);

/** A sender asks for slots; 0 counts as 1, and more than there are as all. False where it has more
 *  asks waiting than it may: nothing is changed. */
bool onic_grants_ask(onic_grants_t *g, onic_asker_t *a, uint32_t name, uint32_t slots);

/**
 * The next grant, to be told to its sender; false where nobody waits or no slot is free. To be
 * called until then after each ask, and whenever slots may have become free.
 *
 * A grant is at most half of what is free, and while others wait no more than the sender's share,
 * which is the area divided by those that wait or hold slots; one slot at least. Who has his share
 * already lets those pass that have not.
 */
bool onic_grants_next(onic_grants_t *g, onic_grant_t *grant_p);

/**
 * Slots at once, for data that this process fetches from `a`: reserved before it asks for them.
 * Returns 0 where none is free, and where others wait for theirs: who then asks has its turn.
 */
uint64_t onic_grants_reserve(onic_grants_t *g, onic_asker_t *a, uint32_t slots);

/** Slots come back. False where they are not all held by that sender, as its message may wrongly
 *  say: nothing is changed. */
bool onic_grants_give(onic_grants_t *g, onic_asker_t *a, uint64_t slots);

/** An ask of a transfer that has ended otherwise. False where none is waiting. */
bool onic_grants_withdraw(onic_grants_t *g, onic_asker_t *a, uint32_t name);

/**
 * A sender is lost: its asks are gone, and the record is the caller's alone. Returns the slots that
 * it held, which are NOT free yet, since something of it may still be on its way to them: the
 * caller gives them to the source when nothing can come any more.
 */
uint64_t onic_grants_forget(onic_grants_t *g, onic_asker_t *a);

/** Likewise where transfers still look at the slots in `in_use`: returns the others, and these as
 *  they come back. To be called once. */
uint64_t onic_grants_lose(onic_grants_t *g, onic_asker_t *a, uint64_t in_use);

/** Slots come back from a transfer here. Returns those that are not free yet, since who held them
 *  is lost. Slots that are not held are not looked at. */
uint64_t onic_grants_back(onic_grants_t *g, onic_asker_t *a, uint64_t slots);

#endif
