/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Puts of peers. */
#include <stdlib.h>

#include "common/layout/pack.h"
#include "osc_nicstride/target/target.h"

/** A rendezvous put that is being received. Names the window instead of pointing at it, because
 *  the window may be gone when the wire is torn down. */
typedef struct landing {
    nicstride_msg_t msg;
} landing_t;

static void landed_cb(void *arg, int status)
{
    landing_t *l = arg;
    nicstride_module_t *m = nicstride_find_window(l->msg.win);

    if (m != NULL && m->peer[l->msg.origin] != NULL)
        nicstride_applied_locked(m, m->peer[l->msg.origin], &l->msg,
                                 status == OMPI_SUCCESS ? 0 : MPI_ERR_OTHER);
    free(l);
}

/** Receives straight into the window. */
static void receive(const nicstride_incoming_t *in, const onic_layout_t *l, char *base, uint64_t at)
{
    landing_t *landing = onic_layout_is_contig(l) ? malloc(sizeof(*landing)) : NULL;
    int rc;

    if (landing == NULL) {
        onic_rndv_drop(in->rndv);
        nicstride_applied_locked(in->m, in->p, in->msg,
                                 onic_layout_is_contig(l) ? MPI_ERR_NO_MEM : MPI_ERR_OTHER);
        return;
    }
    landing->msg = *in->msg;
    rc = onic_rndv_recv(in->rndv, base + l->offset + (int64_t)at, in->msg->len, landed_cb, landing);
    if (rc != 0)
        landed_cb(landing, rc < 0 ? rc : OMPI_SUCCESS);
}

static void put_in_layout(const nicstride_incoming_t *in)
{
    onic_layout_t l;
    onic_cursor_t c;
    char *base;
    uint64_t at;
    const int error = nicstride_open_target(in, &l, &base, &at);

    if (error != 0) {
        if (in->rndv != NULL)
            onic_rndv_drop(in->rndv);
        nicstride_applied_locked(in->m, in->p, in->msg, error);
        return;
    }
    if (in->rndv != NULL) {
        receive(in, &l, base, at);
    } else {
        onic_cursor_init(&c, &l, at);
        onic_unpack(&c, base, in->data, in->len);
        nicstride_applied_locked(in->m, in->p, in->msg, 0);
    }
    onic_layout_fini(&l);
}

void nicstride_on_put(const nicstride_incoming_t *in)
{
    char *at = in->rndv == NULL ? nicstride_contiguous_target(in, in->len) : NULL;

    if (at == NULL) {
        put_in_layout(in);
        return;
    }
    onic_copy_few(at, in->data, in->len);
    nicstride_applied_locked(in->m, in->p, in->msg, 0);
}
