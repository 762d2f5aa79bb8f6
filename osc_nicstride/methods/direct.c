/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Method direct: load and store in memory that is mapped here. */
#include <stddef.h>

#include "common/layout/pack.h"
#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/methods/touch.h"
#include "osc_nicstride/window/component.h"
#include "osc_nicstride/window/transfer.h"

/** Before a put into memory that is mapped from a peer. */
static void touch(const nicstride_transfer_t *t)
{
    const char *at = t->direct + t->target.lb, *end = t->direct + t->target.ub;
    uint64_t from, parts;

    if (t->target.ub - t->target.lb < (int64_t)NICSTRIDE_AROUND || t->peer->rank == t->m->rank)
        return;
    from = (uint64_t)(t->disp + t->target.lb);
    parts = nicstride_touch_parts(nicstride_info(t->m, t->peer->rank)->size, from,
                                  from + (uint64_t)(t->target.ub - t->target.lb));
    if ((__atomic_load_n(&t->peer->touched, __ATOMIC_RELAXED) & parts) == parts ||
        !nicstride_touch_pays(&t->target))
        return;
    __atomic_fetch_or(&t->peer->touched, parts, __ATOMIC_RELAXED);
    for (; at < end; at += NICSTRIDE_AROUND)
        (void)__atomic_load_n(at, __ATOMIC_RELAXED);
}

int nicstride_direct_start(nicstride_transfer_t *t, bool *done_p)
{
    onic_cursor_t here, there;

    *done_p = true;
    nicstride_count(NICSTRIDE_METHOD_DIRECT, t->target.size);
    onic_cursor_init(&here, &t->origin, 0);
    onic_cursor_init(&there, &t->target, 0);
    if (t->type == NICSTRIDE_MSG_PUT) {
        touch(t);
        onic_copy(&there, t->direct, &here, t->origin_base, t->target.size);
    } else {
        onic_copy(&here, t->origin_base, &there, t->direct, t->target.size);
    }
    return 0;
}
