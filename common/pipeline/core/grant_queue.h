/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Who is next to be granted buffers, among processes that cannot lease them by themselves
 *  (strided-RMA paper, section 5.1): the process that has fewest; its requests are served in order.
 *  So a process that is stopped while it has buffers starves nobody. A process whose connection is
 * lost may still be alive, and its puts may arrive at any time: it keeps its buffers as long as the
 *  receive pool exists. Pure; one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Most requests of a process waiting at another one; the asking process keeps to that. */
#define ONIC_GRANT_REQUESTS_MAX 16

/** A process that asks for buffers. Initially all 0. */
typedef struct onic_asker {
    uint64_t held; /**< its buffers; the caller adds them */
    bool lost;     /**< its buffers are never given to others again */
} onic_asker_t;

/** A transfer with that process gives up these buffers. Returns those that others may have. */
static inline uint64_t onic_asker_release(onic_asker_t *asker, uint64_t buffers)
{
    buffers = asker->lost ? 0 : buffers & asker->held;
    asker->held &= ~buffers;
    return buffers;
}

/** A waiting request. */
typedef struct onic_grant_request {
    struct onic_grant_request *next;
    onic_asker_t *asker;
    unsigned wanted; /**< number of buffers */
} onic_grant_request_t;

/** All waiting requests, in the order of arrival. Initially all 0. */
typedef struct onic_grant_queue {
    onic_grant_request_t *first;
} onic_grant_queue_t;

/** Adds a request for `wanted` > 0 buffers. */
static inline void onic_grant_queue_add(onic_grant_queue_t *queue, onic_grant_request_t *request,
                                        onic_asker_t *asker, unsigned wanted)
{
    onic_grant_request_t **at = &queue->first;

    while (*at != NULL)
        at = &(*at)->next;
    *at = request;
    *request = (onic_grant_request_t){.asker = asker, .wanted = wanted};
}

/** The request to be served next, which stays in the queue; NULL if none waits. */
static inline onic_grant_request_t *onic_grant_queue_next(const onic_grant_queue_t *queue)
{
    onic_grant_request_t *next = queue->first;

    for (onic_grant_request_t *r = next; r != NULL; r = r->next)
        if (__builtin_popcountll(r->asker->held) < __builtin_popcountll(next->asker->held))
            next = r;
    return next;
}

/** Removes a request. */
static inline void onic_grant_queue_remove(onic_grant_queue_t *queue, onic_grant_request_t *request)
{
    onic_grant_request_t **at = &queue->first;

    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
}

/** The connection to that process is lost: removes all its requests. */
static inline void onic_grant_queue_lose(onic_grant_queue_t *queue, onic_asker_t *asker)
{
    asker->lost = true;
    for (onic_grant_request_t **at = &queue->first; *at != NULL;)
        if ((*at)->asker == asker)
            onic_grant_queue_remove(queue, *at);
        else
            at = &(*at)->next;
}
