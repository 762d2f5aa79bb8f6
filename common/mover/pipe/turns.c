/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/mover/pipe/turns.h"

#include <stddef.h>

bool onic_turns_add(onic_turns_t *turns, onic_turn_request_t *request, onic_asker_t *asker,
                    unsigned wanted)
{
    onic_turn_request_t **at = &turns->first;

    if (asker->waiting == ONIC_TURNS_REQUESTS)
        return false;
    while (*at != NULL)
        at = &(*at)->next;
    *at = request;
    *request = (onic_turn_request_t){.asker = asker, .wanted = wanted};
    asker->waiting++;
    return true;
}

static int slots(const onic_turn_request_t *request)
{
    return __builtin_popcountll(request->asker->held);
}

onic_turn_request_t *onic_turns_next(const onic_turns_t *turns)
{
    onic_turn_request_t *next = turns->first;

    for (onic_turn_request_t *r = next; r != NULL; r = r->next)
        if (slots(r) < slots(next))
            next = r;
    return next;
}

void onic_turns_remove(onic_turns_t *turns, onic_turn_request_t *request)
{
    onic_turn_request_t **at = &turns->first;

    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
    request->asker->waiting--;
}

void onic_turns_forget(onic_turns_t *turns, onic_asker_t *asker)
{
    for (onic_turn_request_t **at = &turns->first; *at != NULL;)
        if ((*at)->asker == asker)
            onic_turns_remove(turns, *at);
        else
            at = &(*at)->next;
}
