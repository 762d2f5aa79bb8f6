/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/config.h"

#if OMPI_NIC_HAVE_VERBS

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/transport/verbs/connect.h"
#include "common/transport/verbs/rc_terms.h"

/** Completions that are fetched at once. */
#define BATCH 16

/** A request's name: its connection's id, and the last bits of its number. */
#define NUMBER_BITS 40
#define NUMBER_MASK (((uint64_t)1 << NUMBER_BITS) - 1)
#define ID_MASK     (((uint32_t)1 << (64 - NUMBER_BITS)) - 1)

_Static_assert(ONIC_RC_MOST <= 1 << 8, "the places of connections in their ids");

/* ---- the adapter ----------------------------------------------------------------------------- */

static const char *make_all(onic_rc_adapter_t *a)
{
    const onic_rc_spec_t *s = &a->spec;
    a->mine = calloc(s->connections, sizeof(*a->mine));
    a->wr = calloc(s->batch, sizeof(*a->wr));
    a->sge = calloc((size_t)s->batch * s->pieces, sizeof(*a->sge));
    if (a->mine == NULL || a->wr == NULL || a->sge == NULL)
        return "memory";
    for (unsigned i = 0; i < s->connections; i++)
        a->mine[i].id = i;
    a->completions =
        ibv_create_cq(a->port.context, (int)(s->connections * s->window), NULL, NULL, 0);
    return a->completions != NULL ? NULL : "a completion queue";
}

int onic_rc_open(onic_rc_adapter_t *a, const onic_rc_spec_t *spec, onic_rdma_counts_t *counts,
                 onic_rc_lost_fn_t lost, onic_verbs_reason_t *why)
{
    memset(a, 0, sizeof(*a));
    a->spec = *spec;
    a->counts = counts;
    a->lost = lost;
    if (onic_verbs_port_open(&a->port, why) != 0)
        return -1;
    errno = 0;
    const char *obstacle = onic_rc_survey(a) != 0 ? "its limits" : make_all(a);
    if (obstacle != NULL) {
        snprintf(why->text, sizeof(why->text), "verbs: device %s: %s: %s",
                 ibv_get_device_name(a->port.context->device), obstacle, strerror(errno));
        onic_rc_close(a);
        return -1;
    }
    return 0;
}

void onic_rc_stop(onic_rc_adapter_t *a)
{
    for (unsigned i = 0; a->completions != NULL && i < a->spec.connections; i++) {
        onic_rc_t *c = &a->mine[i];
        void *owner = c->owner;
        if (c->state != ONIC_RC_FREE) {
            onic_rc_drop(c);
            a->lost(owner, NULL);
        }
    }
    while (!LIST_EMPTY(&a->served))
        onic_rc_unserve(a, LIST_FIRST(&a->served));
}

void onic_rc_close(onic_rc_adapter_t *a)
{
    onic_rc_stop(a);
    if (a->completions != NULL)
        ibv_destroy_cq(a->completions);
    free(a->mine);
    free(a->wr);
    free(a->sge);
    onic_verbs_port_close(&a->port);
    memset(a, 0, sizeof(*a));
}

/* ---- requests -------------------------------------------------------------------------------- */

static void translate(const onic_rc_t *c, const onic_rdma_batch_t *b, uint32_t i, uint64_t number)
{
    const onic_rdma_request_t *r = &b->request[i];
    struct ibv_send_wr *wr = &c->adapter->wr[i];
    struct ibv_sge *sge = &c->adapter->sge[r->first];
    for (uint32_t k = 0; k < r->pieces; k++) {
        const onic_rdma_piece_t *p = &b->piece[r->first + k];
        sge[k] = (struct ibv_sge){.addr = p->addr, .length = p->bytes, .lkey = p->key};
    }
    *wr = (struct ibv_send_wr){.wr_id = (uint64_t)c->id << NUMBER_BITS | (number & NUMBER_MASK),
                               .next = i + 1 < b->n ? wr + 1 : NULL,
                               .sg_list = sge,
                               .num_sge = (int)r->pieces,
                               .opcode = b->read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
                               .send_flags = (r->signalled ? IBV_SEND_SIGNALED : 0U) |
                                             (r->carries ? IBV_SEND_INLINE : 0U),
                               .wr.rdma = {.remote_addr = r->far, .rkey = r->key}};
}

/** One list, and so one doorbell. */
static bool post(void *arg, const onic_rdma_batch_t *b, uint64_t first)
{
    const onic_rc_t *c = arg;
    struct ibv_send_wr *bad;
    for (uint32_t i = 0; i < b->n; i++)
        translate(c, b, i, first + i);
    return ibv_post_send(c->qp, c->adapter->wr, &bad) == 0;
}

/** Its place becomes free; completions that are still to come name another id. */
static void release(onic_rc_t *c)
{
    onic_rc_adapter_t *a = c->adapter;
    const uint32_t id = (c->id + ONIC_RC_MOST) & ID_MASK;
    onic_request_queue_fini(&c->queue);
    *c = (onic_rc_t){.adapter = a, .id = id};
}

void onic_rc_drop(onic_rc_t *c)
{
    /* First the queue pair: after that the adapter touches nothing any more. */
    ibv_destroy_qp(c->qp);
    c->qp = NULL;
    onic_request_queue_fail(&c->queue);
    release(c);
}

static void lose(onic_rc_t *c, const char *what)
{
    const onic_rc_adapter_t *a = c->adapter;
    void *owner = c->owner;
    char why[200];
    snprintf(why, sizeof(why), "verbs: device %s: a connection is given up: %s",
             ibv_get_device_name(a->port.context->device), what);
    onic_rc_drop(c);
    a->lost(owner, why);
}

/** After anything that may have issued requests, or ended them. */
static void look_after(onic_rc_t *c)
{
    if (c->queue.failed)
        lose(c, "it does not take requests");
}

void onic_rc_begin(onic_rc_t *c, onic_rdma_transfer_t *t)
{
    onic_request_queue_begin(&c->queue, t);
    if (c->qp != NULL)
        look_after(c);
}

static void handle(onic_rc_adapter_t *a, const struct ibv_wc *wc)
{
    const uint32_t id = (uint32_t)(wc->wr_id >> NUMBER_BITS);
    onic_rc_t *c = &a->mine[id % ONIC_RC_MOST];
    if (c->id != id || c->qp == NULL)
        return;
    if (wc->status != IBV_WC_SUCCESS) {
        lose(c, ibv_wc_status_str(wc->status));
        return;
    }
    const uint64_t known = c->queue.processed;
    onic_request_queue_processed(&c->queue, known + ((wc->wr_id - known) & NUMBER_MASK));
    look_after(c);
}

int onic_rc_poll(onic_rc_adapter_t *a)
{
    struct ibv_wc wc[BATCH];
    const int n = ibv_poll_cq(a->completions, BATCH, wc);
    for (int i = 0; i < n; i++)
        handle(a, &wc[i]);
    return n > 0 ? n : 0;
}

/* ---- connections that this process begins ---------------------------------------------------- */

static onic_rc_t *free_place(const onic_rc_adapter_t *a)
{
    for (unsigned i = 0; i < a->spec.connections; i++)
        if (a->mine[i].state == ONIC_RC_FREE)
            return &a->mine[i];
    return NULL;
}

onic_rc_t *onic_rc_make(onic_rc_adapter_t *a, void *owner)
{
    /* What a connection that is gone has left in the completion queue makes room for what this one
     * may leave there. */
    while (onic_rc_poll(a) == BATCH) {
    }
    onic_rc_t *c = free_place(a);
    if (c == NULL)
        return NULL;
    c->adapter = a;
    c->qp = onic_rc_issuing_pair(a, &c->limits);
    if (c->qp == NULL)
        return NULL;
    const onic_request_queue_spec_t spec = {a->spec.window, a->spec.batch, a->spec.signal,
                                            c->limits.pieces};
    if (!onic_request_queue_init(&c->queue, &spec)) {
        ibv_destroy_qp(c->qp);
        release(c);
        return NULL;
    }
    c->queue.post = post;
    c->queue.arg = c;
    c->queue.counts = a->counts;
    c->terms = a->terms;
    c->terms.address.qpn = c->qp->qp_num;
    c->owner = owner;
    c->state = ONIC_RC_MADE;
    return c;
}

bool onic_rc_connect(onic_rc_t *c, const onic_rc_terms_t *answer)
{
    onic_rc_terms_agree(&c->terms, answer);
    if (!onic_verbs_reaches(&c->terms.address, &answer->address) ||
        !onic_rc_pair_connect(&c->adapter->port, c->qp, &c->terms, &answer->address, true)) {
        onic_rc_drop(c);
        return false;
    }
    c->state = ONIC_RC_CONNECTED;
    return true;
}

/* ---- connections that others begin ----------------------------------------------------------- */

bool onic_rc_serve(onic_rc_adapter_t *a, onic_rc_served_t *s, const onic_rc_terms_t *asked,
                   onic_rc_terms_t *answer)
{
    if (!onic_verbs_reaches(&a->port.mine, &asked->address))
        return false;
    if (s->qp == NULL || memcmp(&s->address, &asked->address, sizeof(s->address)) != 0) {
        onic_rc_unserve(a, s);
        s->qp = a->nserved < a->spec.connections ? onic_rc_serving_pair(a) : NULL;
        if (s->qp == NULL)
            return false;
        LIST_INSERT_HEAD(&a->served, s, list);
        a->nserved++;
        s->address = asked->address;
        s->terms = a->terms;
        s->terms.reads = a->reads_served;
        s->terms.address.qpn = s->qp->qp_num;
        onic_rc_terms_agree(&s->terms, asked);
        if (!onic_rc_pair_connect(&a->port, s->qp, &s->terms, &asked->address, false)) {
            onic_rc_unserve(a, s);
            return false;
        }
    }
    *answer = s->terms;
    return true;
}

void onic_rc_unserve(onic_rc_adapter_t *a, onic_rc_served_t *s)
{
    if (s->qp == NULL)
        return;
    ibv_destroy_qp(s->qp);
    s->qp = NULL;
    LIST_REMOVE(s, list);
    a->nserved--;
}

/* ---- memory ---------------------------------------------------------------------------------- */

struct ibv_mr *onic_rc_expose(const onic_rc_adapter_t *a, void *base, size_t bytes)
{
    return ibv_reg_mr(a->port.pd, base, bytes,
                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
}

void onic_rc_conceal(struct ibv_mr *mr)
{
    (void)ibv_dereg_mr(mr);
}

#endif
