/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Messages in the order of their senders; see comm.h. */
#include "pml_superpipe/matching/comm.h"

#include <stdlib.h>
#include <string.h>

int superpipe_comm_init(superpipe_comm_t *c, uint64_t context, uint32_t nranks)
{
    memset(c, 0, sizeof(*c));
    c->sent = calloc(2 * (size_t)nranks, sizeof(uint32_t));
    if (c->sent == NULL)
        return -1;
    c->expected = c->sent + nranks;
    c->nranks = nranks;
    c->context = context;
    superpipe_match_init(&c->match);
    TAILQ_INIT(&c->held);
    return 0;
}

void superpipe_comm_fini(superpipe_comm_t *c)
{
    superpipe_match_fini(&c->match);
    free(c->sent);
    c->sent = c->expected = NULL;
}

void superpipe_comm_keep(superpipe_comm_t *c, superpipe_message_t *message)
{
    if (message->sequence == c->expected[message->source]) {
        c->expected[message->source]++;
        superpipe_match_keep(&c->match, message);
        return;
    }
    TAILQ_INSERT_TAIL(&c->held, message, of_list);
}

/** Finds the held message with that source and number; NULL if there is none. */
static superpipe_message_t *find_held(const superpipe_comm_t *c, int32_t source, uint32_t sequence)
{
    superpipe_message_t *message;

    TAILQ_FOREACH(message, &c->held, of_list)
        if (message->source == source && message->sequence == sequence)
            break;
    return message;
}

superpipe_message_t *superpipe_comm_next(superpipe_comm_t *c, int32_t source,
                                         superpipe_receive_t **receive_p)
{
    superpipe_message_t *message;

    while ((message = find_held(c, source, c->expected[source])) != NULL) {
        TAILQ_REMOVE(&c->held, message, of_list);
        c->expected[source]++;
        *receive_p = superpipe_match_message(&c->match, source, message->tag);
        if (*receive_p != NULL)
            return message;
        superpipe_match_keep(&c->match, message);
    }
    return NULL;
}

superpipe_message_t *superpipe_comm_discard(superpipe_comm_t *c)
{
    superpipe_match_t *m = &c->match;
    superpipe_message_t *message = TAILQ_FIRST(&m->application);

    if (message == NULL)
        message = TAILQ_FIRST(&m->internal);
    if (message != NULL)
        superpipe_match_take(m, message);
    else if ((message = TAILQ_FIRST(&c->held)) != NULL)
        TAILQ_REMOVE(&c->held, message, of_list);
    return message;
}

/* ---- all communicators ----------------------------------------------------------------------- */

int superpipe_comms_add(superpipe_comms_t *t, superpipe_comm_t *comm)
{
    if (comm->context >= t->n) {
        const uint64_t n = 2 * comm->context + 16;
        superpipe_comm_t **longer = realloc(t->known, n * sizeof(superpipe_comm_t *));

        if (longer == NULL)
            return -1;
        memset(longer + t->n, 0, (n - t->n) * sizeof(superpipe_comm_t *));
        t->known = longer;
        t->n = n;
    }
    t->known[comm->context] = comm;
    return 0;
}

superpipe_comm_t *superpipe_comms_next(const superpipe_comms_t *t, const superpipe_comm_t *comm)
{
    for (uint64_t i = comm != NULL ? comm->context + 1 : 0; i < t->n; i++)
        if (t->known[i] != NULL)
            return t->known[i];
    return NULL;
}

superpipe_message_t *superpipe_comms_unpark(superpipe_comms_t *t, uint64_t context,
                                            superpipe_message_t **from)
{
    superpipe_message_t *message = *from;

    while (message != NULL && message->context != context)
        message = TAILQ_NEXT(message, of_list);
    if (message != NULL) {
        *from = TAILQ_NEXT(message, of_list);
        TAILQ_REMOVE(&t->parked, message, of_list);
    }
    return message;
}
