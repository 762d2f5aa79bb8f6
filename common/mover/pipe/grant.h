/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Grants of slots of this process's landing area to senders that cannot lease them by themselves,
 * those of other hosts. They ask, and are granted slots in turn (paper 000, section 5.1: a source
 * asks for a receive buffer before it sends).
 *
 * The bytes at the receiver never exceed the area, however many processes send. Each sender has one
 * place in the queue, and takes its next turn behind the others, so that one that asks for much and
 * often delays each of the others by one grant. Memory grows with the senders that are known, by
 * one record each, which belongs to the caller.
 *
 * Pure. The caller has a lock.
 */
#ifndef ONIC_GRANT_H
#define ONIC_GRANT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/support/export.h"

/** Requests of one sender that may be waiting. It keeps count: one beyond that is an error. */
#define ONIC_GRANT_REQUESTS 16

/** Where slots come from: the pool of a landing area of at most 64 slots. A set of slots is a mask,
 *  bit s for slot s. */
typedef struct onic_grant_source {
    unsigned total; /**< slots of the area, 1 .. 64 */
    /** Takes up to `max` > 0 free slots; 0 where there is none. */
    uint64_t (*take)(void *arg, unsigned max);
    void (*release)(void *arg, uint64_t slots);
    /** Slots that are free now; others may take them meanwhile. */
    unsigned (*count)(void *arg);
    void *arg;
} onic_grant_source_t;

/** What a sender wants: `slots` of them, 1 .. 64, for its transfer `name`. */
typedef struct onic_slot_request {
    uint32_t name;
    uint32_t slots;
} onic_slot_request_t;

/** A sender: the caller's record, zero at first. It must stay where it is until it is lost. */
typedef struct onic_requester {
    struct onic_requester *next; /**< in the queue, behind this one */
    uint64_t held;               /**< slots that it has been granted and not released */
    bool lost;                   /**< requests nothing more */
    unsigned first, n;           /**< its requests: a ring */
    onic_slot_request_t request[ONIC_GRANT_REQUESTS];
} onic_requester_t;

typedef struct onic_grants {
    onic_grant_source_t source;
    onic_requester_t *head, *tail; /**< those that wait, in the order of their turns */
    unsigned waiting;              /**< length of the queue */
    unsigned active;               /**< senders that wait or hold slots */
} onic_grants_t;

/** A grant: these slots for transfer `name` of that sender. */
typedef struct onic_grant {
    onic_requester_t *requester;
    uint32_t name;
    uint64_t slots;
} onic_grant_t;

void onic_grants_init(onic_grants_t *g, const onic_grant_source_t *source);

/** A sender requests slots; 0 counts as 1, and more than there are as all. False where it has more
 *  requests waiting than it may: nothing is changed. */
bool onic_grants_request(onic_grants_t *g, onic_requester_t *a, uint32_t name, uint32_t slots);

/**
 * The next grant, to be sent to its sender; false where no request waits or no slot is free. To be
 * called until then after each request, and whenever slots may have become free.
 *
 * A grant is at most half of what is free, and while others wait no more than the sender's share,
 * which is the area divided by those that wait or hold slots; one slot at least. A sender that has
 * its share already lets those pass that have not.
 */
bool onic_grants_next(onic_grants_t *g, onic_grant_t *grant_p);

/** Slots at once, for data that this process fetches from `a`: reserved before it asks for them.
 *  Returns 0 where none is free, and where others wait for theirs: a request then has its turn. */
uint64_t onic_grants_reserve(onic_grants_t *g, onic_requester_t *a, uint32_t slots);

/** A transfer here releases slots of a sender. Returns those that are not free yet, since the
 *  sender is lost. Slots that it does not hold are not looked at. */
uint64_t onic_grants_release(onic_grants_t *g, onic_requester_t *a, uint64_t slots);

/**
 * A sender is lost: its requests are gone. Of the slots that it held, those in `in_use`, which
 * transfers still look at, stay its own until they are released. Returns the others, which are NOT
 * free yet, since something of the sender may still be on its way to them: the caller gives them to
 * the source when nothing can come any more. To be called once.
 */
uint64_t onic_grants_lose(onic_grants_t *g, onic_requester_t *a, uint64_t in_use);

#endif
