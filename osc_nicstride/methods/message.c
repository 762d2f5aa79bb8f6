/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Methods pack, mover and zcopy: the target is sent messages; see queue/start.h. */
#include <stddef.h>

#include "osc_nicstride/queue/start.h"
#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/window/component.h"
#include "osc_nicstride/window/transfer.h"

/** What comes back goes where the origin's buffer is. */
static void prepare(nicstride_transfer_t *t)
{
    t->op = t->dtype = 0;
    if (t->type == NICSTRIDE_MSG_GET) {
        onic_layout_move(&t->result, &t->origin);
        t->result_base = t->origin_base;
    }
}

static int start(nicstride_transfer_t *t, nicstride_method_t method, bool *done_p)
{
    prepare(t);
    nicstride_count(method, t->target.size);
    return nicstride_message_start(t, method == NICSTRIDE_METHOD_ZCOPY, done_p);
}

int nicstride_pack_start(nicstride_transfer_t *t, bool *done_p)
{
    return start(t, NICSTRIDE_METHOD_PACK, done_p);
}

/** Where no slot can be had now the data goes in the messages themselves. */
int nicstride_mover_start(nicstride_transfer_t *t, bool *done_p)
{
    int rc;

    prepare(t);
    rc = nicstride_move_start(t, done_p);
    if (rc != OMPI_ERR_NOT_AVAILABLE) {
        nicstride_count(NICSTRIDE_METHOD_MOVER, t->target.size);
        return rc;
    }
    t->cell = NULL;
    nicstride_count(NICSTRIDE_METHOD_PACK, t->target.size);
    return nicstride_message_start(t, false, done_p);
}

int nicstride_zcopy_start(nicstride_transfer_t *t, bool *done_p)
{
    return start(t, NICSTRIDE_METHOD_ZCOPY, done_p);
}
