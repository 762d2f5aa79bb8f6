/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Puts of peers. */
#include "common/layout/pack.h"
#include "osc_nicstride/target/target.h"

static void landed_cb(void *arg, int status)
{
    nicstride_use_end(arg, status == OMPI_SUCCESS ? 0 : MPI_ERR_OTHER);
}

/** Receives straight into the window. */
static void receive(const nicstride_incoming_t *in)
{
    void *record;
    int error = nicstride_use_open(in, sizeof(nicstride_use_t), &record);

    if (error == 0) {
        const nicstride_use_t *u = record;
        int rc = OMPI_ERR_BAD_PARAM;

        if (onic_layout_is_contig(&u->layout))
            rc = onic_rndv_recv(in->rndv, u->base + u->layout.offset + (int64_t)u->at, in->msg->len,
                                landed_cb, record);
        if (rc != 0)
            landed_cb(record, rc < 0 ? rc : OMPI_SUCCESS);
        return;
    }
    nicstride_applied_locked(in->m, in->p, in->msg, error);
}

static void put_in_layout(const nicstride_incoming_t *in)
{
    onic_layout_t l;
    onic_cursor_t c;
    char *base;
    uint64_t at;
    const int error = nicstride_open_target(in, &l, &base, &at);

    if (error == 0) {
        onic_cursor_init(&c, &l, at);
        onic_unpack(&c, base, in->data, in->len);
        onic_layout_fini(&l);
    }
    nicstride_applied_locked(in->m, in->p, in->msg, error);
}

void nicstride_on_put(const nicstride_incoming_t *in)
{
    char *at = in->rndv == NULL ? nicstride_contiguous_target(in, in->len) : NULL;

    if (in->rndv != NULL) {
        receive(in);
    } else if (at == NULL) {
        put_in_layout(in);
    } else {
        onic_copy_bytes(at, in->data, in->len);
        nicstride_applied_locked(in->m, in->p, in->msg, 0);
    }
}
