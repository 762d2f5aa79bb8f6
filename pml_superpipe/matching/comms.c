/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Communicators by context; see comms.h. */
#include "pml_superpipe/matching/comms.h"

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

bool superpipe_comms_add(superpipe_comms_t *t, superpipe_comm_t *comm)
{
    if (superpipe_rings_first(&t->known, comm->context) != NULL)
        return false;
    superpipe_rings_append(&t->known, &comm->link, comm->context);
    return true;
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

/* ---- messages that are early ----------------------------------------------------------------- */

void superpipe_comms_park(superpipe_comms_t *t, superpipe_message_t *message)
{
    superpipe_rings_append(&t->parked, message->link, message->context);
    superpipe_list_append(&t->all_parked, message);
}

static superpipe_message_t *take(superpipe_comms_t *t, superpipe_message_t *message)
{
    if (message != NULL) {
        superpipe_rings_remove(&t->parked, message->link);
        superpipe_list_remove(&t->all_parked, message);
    }
    return message;
}

superpipe_message_t *superpipe_comms_unpark(superpipe_comms_t *t, uint64_t context)
{
    return take(t, (superpipe_message_t *)superpipe_rings_first(&t->parked, context));
}

superpipe_message_t *superpipe_comms_discard(superpipe_comms_t *t)
{
    return take(t, t->all_parked.head);
}
