/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Method direct: load and store in memory that is mapped here. */
#include <stddef.h>

#include "common/layout/pack.h"
#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/window/component.h"
#include "osc_nicstride/window/transfer.h"

int nicstride_direct_start(nicstride_transfer_t *t, bool *done_p)
{
    onic_cursor_t here, there;

    *done_p = true;
    nicstride_count(NICSTRIDE_METHOD_DIRECT, t->target.size);
    onic_cursor_init(&here, &t->origin, 0);
    onic_cursor_init(&there, &t->target, 0);
    if (t->type == NICSTRIDE_MSG_PUT)
        onic_copy(&there, t->direct, &here, t->origin_base, t->target.size);
    else
        onic_copy(&here, t->origin_base, &there, t->direct, t->target.size);
    return 0;
}
