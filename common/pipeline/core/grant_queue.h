/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Whose turn it is to be granted buffers, of processes that cannot lease them by themselves
 *  (strided-RMA paper, section 5.1): of the process that has fewest, its requests in order. So one
 *  that is stopped with buffers of its own starves nobody. One to which the connection is lost may
 *  be alive, and what it has put, or goes on to put, may come whenever it likes: what it was
 *  granted is its own for as long as there is the receive pool. Pure; one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Requests that a process has waiting at another one at most; who asks sees to that. */
#define ONIC_GRANT_REQUESTS_MAX 16

/** A process that asks. All 0 at first. */
typedef struct onic_asker {
    uint64_t held; /**< the buffers that it has; its caller adds them */
    bool lost;     /**< nothing that it has is given to others any more */
} onic_asker_t;

/** A transfer with that process does without these buffers. Returns those that others may have. */
static inline uint64_t onic_asker_release(onic_asker_t *asker, uint64_t buffers)
{
    buffers = asker->lost ? 0 : buffers & asker->held;
    asker->held &= ~buffers;
    return buffers;
}

/** A request, while it waits. */
typedef struct onic_grant_request {
    struct onic_grant_request *next;
    onic_asker_t *asker;
    unsigned wanted; /**< buffers */
} onic_grant_request_t;

/** All requests that wait, in the order in which they came. All 0 at first. */
typedef struct onic_grant_queue {
    onic_grant_request_t *first;
} onic_grant_queue_t;

/** A request waits for `wanted` > 0 buffers. */
static inline void onic_grant_queue_add(onic_grant_queue_t *queue, onic_grant_request_t *request,
                                        onic_asker_t *asker, unsigned wanted)
{
    onic_grant_request_t **at = &queue->first;

    while (*at != NULL)
        at = &(*at)->next;
    *at = request;
    *request = (onic_grant_request_t){.asker = asker, .wanted = wanted};
}

/** The request whose turn it is, which stays where it is; NULL where none waits. */
static inline onic_grant_request_t *onic_grant_queue_next(const onic_grant_queue_t *queue)
{
    onic_grant_request_t *next = queue->first;

    for (onic_grant_request_t *r = next; r != NULL; r = r->next)
        if (__builtin_popcountll(r->asker->held) < __builtin_popcountll(next->asker->held))
            next = r;
    return next;
}

/** This request waits no more. */
static inline void onic_grant_queue_remove(onic_grant_queue_t *queue, onic_grant_request_t *request)
{
    onic_grant_request_t **at = &queue->first;

    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
}

/** The connection to that process is lost: none of its requests waits any more. */
static inline void onic_grant_queue_lose(onic_grant_queue_t *queue, onic_asker_t *asker)
{
    asker->lost = true;
    for (onic_grant_request_t **at = &queue->first; *at != NULL;)
        if ((*at)->asker == asker)
            onic_grant_queue_remove(queue, *at);
        else
            at = &(*at)->next;
}
