/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Whose turn it is to be granted slots, of processes that cannot lease them by themselves
 *  (strided-RMA paper, section 5.1): of the process that has fewest, its requests in order. So one
 *  that is stopped with slots of its own starves nobody. One to which the connection is lost may be
 *  alive, and what it has put, or goes on to put, may come whenever it likes: what it was granted
 *  is its own for as long as there is the area. Pure; one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Requests that a process has waiting at another one at most; who asks sees to that. */
#define ONIC_TURNS_REQUESTS 16

/** A process that asks. All 0 at first. */
typedef struct onic_asker {
    uint64_t held; /**< the slots that it has; its caller adds them */
    bool lost;     /**< nothing that it has is given to others any more */
} onic_asker_t;

/** A transfer with that process does without these slots. Returns those that others may have. */
static inline uint64_t onic_asker_release(onic_asker_t *asker, uint64_t slots)
{
    slots = asker->lost ? 0 : slots & asker->held;
    asker->held &= ~slots;
    return slots;
}

/** A request, while it waits. */
typedef struct onic_turn_request {
    struct onic_turn_request *next;
    onic_asker_t *asker;
    unsigned wanted; /**< slots */
} onic_turn_request_t;

/** All requests that wait, in the order in which they came. All 0 at first. */
typedef struct onic_turns {
    onic_turn_request_t *first;
} onic_turns_t;

/** A request waits for `wanted` > 0 slots. */
static inline void onic_turns_add(onic_turns_t *turns, onic_turn_request_t *request,
                                  onic_asker_t *asker, unsigned wanted)
{
    onic_turn_request_t **at = &turns->first;

    while (*at != NULL)
        at = &(*at)->next;
    *at = request;
    *request = (onic_turn_request_t){.asker = asker, .wanted = wanted};
}

/** The request whose turn it is, which stays where it is; NULL where none waits. */
static inline onic_turn_request_t *onic_turns_next(const onic_turns_t *turns)
{
    onic_turn_request_t *next = turns->first;

    for (onic_turn_request_t *r = next; r != NULL; r = r->next)
        if (__builtin_popcountll(r->asker->held) < __builtin_popcountll(next->asker->held))
            next = r;
    return next;
}

/** This request waits no more. */
static inline void onic_turns_remove(onic_turns_t *turns, onic_turn_request_t *request)
{
    onic_turn_request_t **at = &turns->first;

    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
}

/** The connection to that process is lost: none of its requests waits any more. */
static inline void onic_turns_lose(onic_turns_t *turns, onic_asker_t *asker)
{
    asker->lost = true;
    for (onic_turn_request_t **at = &turns->first; *at != NULL;)
        if ((*at)->asker == asker)
            onic_turns_remove(turns, *at);
        else
            at = &(*at)->next;
}
