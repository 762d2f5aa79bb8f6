/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/protocol/update.h"

void nicstride_atomic_begin(nicstride_atomic_t *a, const nicstride_update_t *u, uint64_t origin,
                            uint64_t compare)
{
    *a = (nicstride_atomic_t){.op = ONIC_ATOMIC_ADD, .origin = origin};
    switch (u->kind) {
    case NICSTRIDE_UPDATE_FETCH:
    case NICSTRIDE_UPDATE_LOOP:
        break;
    case NICSTRIDE_UPDATE_REPLACE:
        a->op = ONIC_ATOMIC_SWAP;
        a->operand = origin;
        break;
    case NICSTRIDE_UPDATE_COMPARE:
        a->op = ONIC_ATOMIC_COMPARE_SWAP;
        a->operand = compare;
        a->value = origin;
        break;
    case NICSTRIDE_UPDATE_ADD:
        a->operand = origin;
        break;
    }
}

bool nicstride_atomic_is_over(nicstride_atomic_t *a, const nicstride_update_t *u)
{
    uint64_t reduced = a->value;

    if (u->kind != NICSTRIDE_UPDATE_LOOP || (a->read && a->value == a->operand))
        return true;
    u->apply->reduce(u->apply->ctx, &a->origin, &reduced, 1);
    if (reduced == a->value)
        return true;
    a->read = true;
    a->op = ONIC_ATOMIC_COMPARE_SWAP;
    a->operand = a->value;
    a->value = reduced;
    return false;
}
