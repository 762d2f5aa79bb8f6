/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Messages in their turn; see comm.h. */
#include "pml_superpipe/matching/comm.h"

#include <stdlib.h>
#include <string.h>

int superpipe_comm_init(superpipe_comm_t *c, uint64_t context, uint32_t nranks)
{
    memset(c, 0, sizeof(*c));
    c->sent = calloc(2 * (size_t)nranks, sizeof(uint32_t));
    if (c->sent == NULL)
        return -1;
    c->turn = c->sent + nranks;
    c->nranks = nranks;
    c->context = context;
    superpipe_match_init(&c->match);
    superpipe_rings_init(&c->held);
    return 0;
}

void superpipe_comm_fini(superpipe_comm_t *c)
{
    superpipe_match_fini(&c->match);
    superpipe_rings_fini(&c->held);
    free(c->sent);
    c->sent = c->turn = NULL;
}

void superpipe_comm_keep(superpipe_comm_t *c, superpipe_message_t *message)
{
    if (message->sequence == c->turn[message->source]) {
        c->turn[message->source]++;
        superpipe_match_keep(&c->match, message);
        return;
    }
    superpipe_rings_append(&c->held, message->link,
                           superpipe_match_key(message->source, (int32_t)message->sequence));
    superpipe_list_append(&c->all_held, message);
}

static void release(superpipe_comm_t *c, superpipe_message_t *message)
{
    superpipe_rings_remove(&c->held, message->link);
    superpipe_list_remove(&c->all_held, message);
}

/** The message of that source whose turn it is, if it is held. */
static superpipe_message_t *held(superpipe_comm_t *c, int32_t source)
{
    /* The link is the first member. */
    return c->all_held.head == NULL
               ? NULL
               : (superpipe_message_t *)superpipe_rings_first(
                     &c->held, superpipe_match_key(source, (int32_t)c->turn[source]));
}

superpipe_message_t *superpipe_comm_next(superpipe_comm_t *c, int32_t source,
                                         superpipe_receive_t **receive_p)
{
    superpipe_message_t *message;

    while ((message = held(c, source)) != NULL) {
        release(c, message);
        c->turn[source]++;
        *receive_p = superpipe_match_message(&c->match, source, message->tag);
        if (*receive_p != NULL)
            return message;
        superpipe_match_keep(&c->match, message);
    }
    return NULL;
}

bool superpipe_comm_take(superpipe_comm_t *c, const superpipe_taker_t *taker,
                         superpipe_sender_t *sender, const superpipe_incoming_t *in)
{
    if (!superpipe_comm_may_take(c) || in->prefix.context != c->context ||
        in->source != taker->source || in->sequence != c->turn[taker->source] ||
        (taker->tag == SUPERPIPE_ANY_TAG ? in->tag < 0 : in->tag != taker->tag) ||
        in->bytes > taker->room || !superpipe_pool_arrived(sender, SUPERPIPE_RECORD + in->bytes))
        return false;
    c->turn[taker->source]++;
    return true;
}

superpipe_message_t *superpipe_comm_discard(superpipe_comm_t *c)
{
    superpipe_message_t *message = superpipe_match_discard(&c->match);

    if (message == NULL && (message = c->all_held.head) != NULL)
        release(c, message);
    return message;
}

/* ---- all communicators ----------------------------------------------------------------------- */

void superpipe_comms_init(superpipe_comms_t *t)
{
    superpipe_rings_init(&t->known);
    superpipe_rings_init(&t->parked);
    t->found = NULL;
    t->all_parked = (superpipe_list_t){NULL, NULL};
}

void superpipe_comms_fini(superpipe_comms_t *t)
{
    superpipe_rings_fini(&t->known);
    superpipe_rings_fini(&t->parked);
}

superpipe_comm_t *superpipe_comms_search(superpipe_comms_t *t, uint64_t context)
{
    /* The link is the first member. */
    return (superpipe_comm_t *)superpipe_rings_first(&t->known, context);
}

void superpipe_comms_add(superpipe_comms_t *t, superpipe_comm_t *comm)
{
    superpipe_rings_append(&t->known, &comm->link, comm->context);
}

void superpipe_comms_remove(superpipe_comms_t *t, superpipe_comm_t *comm)
{
    superpipe_rings_remove(&t->known, &comm->link);
    t->found = NULL;
}

superpipe_comm_t *superpipe_comms_next(const superpipe_comms_t *t, const superpipe_comm_t *comm)
{
    return (superpipe_comm_t *)superpipe_rings_next(&t->known, comm != NULL ? &comm->link : NULL);
}

/* ---- messages for communicators to come ------------------------------------------------------ */

void superpipe_comms_park(superpipe_comms_t *t, superpipe_message_t *message)
{
    superpipe_rings_append(&t->parked, message->link, message->context);
    superpipe_list_append(&t->all_parked, message);
}

static superpipe_message_t *take_parked(superpipe_comms_t *t, superpipe_message_t *message)
{
    if (message != NULL) {
        superpipe_rings_remove(&t->parked, message->link);
        superpipe_list_remove(&t->all_parked, message);
    }
    return message;
}

superpipe_message_t *superpipe_comms_unpark(superpipe_comms_t *t, uint64_t context)
{
    return take_parked(t, (superpipe_message_t *)superpipe_rings_first(&t->parked, context));
}

superpipe_message_t *superpipe_comms_discard(superpipe_comms_t *t)
{
    return take_parked(t, t->all_parked.head);
}
