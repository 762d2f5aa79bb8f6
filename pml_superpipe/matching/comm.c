/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Messages in their turn; see comm.h. */
#include "pml_superpipe/matching/comm.h"

#include <stdlib.h>
#include <string.h>

static uint64_t key(int32_t source, uint32_t sequence)
{
    return (uint64_t)(uint32_t)source << 32 | sequence;
}

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

superpipe_arrival_t superpipe_comm_arrive(superpipe_comm_t *c, int32_t source, int32_t tag,
                                          uint32_t sequence, superpipe_receive_t **receive_p)
{
    if ((uint32_t)source >= c->nranks || tag == SUPERPIPE_ANY_TAG)
        return SUPERPIPE_REFUSED;
    const uint32_t ahead = sequence - c->turn[source];
    if (ahead > INT32_MAX)
        return SUPERPIPE_REFUSED;
    if (ahead > 0)
        return superpipe_rings_first(&c->held, key(source, sequence)) == NULL ? SUPERPIPE_WAITS
                                                                              : SUPERPIPE_REFUSED;
    *receive_p = superpipe_match_message(&c->match, source, tag);
    if (*receive_p == NULL)
        return SUPERPIPE_WAITS;
    c->turn[source]++;
    return SUPERPIPE_MATCHED;
}

void superpipe_comm_keep(superpipe_comm_t *c, superpipe_message_t *message)
{
    if (message->sequence == c->turn[message->source]) {
        c->turn[message->source]++;
        superpipe_match_keep(&c->match, message);
        return;
    }
    superpipe_rings_append(&c->held, message->link, key(message->source, message->sequence));
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
    return c->all_held.head == NULL ? NULL
                                    : (superpipe_message_t *)superpipe_rings_first(
                                          &c->held, key(source, c->turn[source]));
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
