/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file All communicators; see comm.h. */
#include "pml_superpipe/matching/comm.h"

#include <stdlib.h>
#include <string.h>

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
