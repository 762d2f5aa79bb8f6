/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Method rdma: contiguous bytes to and from the memory of a target on another node, by UCX's
 *  remote memory access. An adapter moves them without the target's processor. Without an adapter
 *  UCX emulates it in the progress of both sides; then the method is used only if it is forced.
 *
 *  A put is locally complete when UCX says so; a get is then over. All puts to a process are known
 *  to have landed when UCX has flushed the connection. A flush of the connection begins when a
 *  flush or the end of an epoch asks for it, and only if something was put since the last one. */
#include <math.h>
#include <stdlib.h>

#include "common/transport/put.h"
#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/methods/pack/parts.h"
#include "osc_nicstride/queue/keys.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/window/state.h"

#define ME NICSTRIDE_METHOD_RDMA

/** The puts to a process, in all windows: a nicstride_process_t's `of_row`. */
typedef struct puts {
    uint64_t begun;    /**< puts begun */
    uint64_t landed;   /**< puts known to have landed */
    uint64_t flushing; /**< the puts that the flush under way is for; 0: there is none */
} puts_t;

/** What goes with the question for keys: it says that this process understands what this file
 *  writes. */
static const unsigned char form = 1;

/* ---- cost ------------------------------------------------------------------------------------ */

static bool fits(const nicstride_case_t *c)
{
    return c->dir != NICSTRIDE_ACC && c->origin->size > 0 && onic_layout_is_contig(c->origin) &&
           onic_layout_is_contig(c->target);
}

/** The cost of one request. */
static double cost(const nicstride_case_t *c)
{
    if (c->path->costs != NULL)
        return INFINITY;
    return onic_link_requests(&c->path->link, c->dir == NICSTRIDE_GET, 1, 1,
                              (double)c->target->size);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static bool usable(nicstride_peer_t *p)
{
    (void)p;
    return onic_transport_puts();
}

static size_t ask(nicstride_peer_t *p, void *bytes, size_t cap)
{
    (void)p;
    (void)cap;
    *(unsigned char *)bytes = form;
    return sizeof(form);
}

static size_t answer(nicstride_peer_t *p, void *memory, const void *question, size_t len,
                     void *bytes, size_t cap)
{
    (void)p;
    (void)question;
    (void)len;
    return onic_region_key_locked(memory, bytes, cap);
}

static void *take_key(nicstride_peer_t *p, const void *bytes, size_t len)
{
    int rc;

    return onic_remote_open(p->peer, bytes, len, &rc);
}

static void *register_memory(void *base, uint64_t bytes)
{
    return onic_region_over_locked(base, bytes);
}

static void withdraw(void *memory)
{
    onic_region_free_locked(memory);
}

static void drop(void *key)
{
    onic_remote_close(key);
}

static const nicstride_rkey_ops_t rkey_ops = {.usable = usable,
                                              .register_memory = register_memory,
                                              .withdraw = withdraw,
                                              .ask = ask,
                                              .answer = answer,
                                              .accept = take_key,
                                              .drop = drop};

static bool reach(const nicstride_transfer_t *t)
{
    bool reaches;

    if ((t->type != NICSTRIDE_MSG_PUT && t->type != NICSTRIDE_MSG_GET) || t->peer->local >= 0 ||
        !nicstride_may_have_keys(t->peer))
        return false;
    onic_transport_lock();
    reaches = nicstride_key_locked(t->peer, ME) != NULL;
    onic_transport_unlock();
    return reaches;
}

/* ---- transfers ------------------------------------------------------------------------------- */

/** The puts to the process; NULL if memory is exhausted. */
static puts_t *puts_of(nicstride_peer_t *p)
{
    void **kept = &p->process->of_row[ME];

    if (*kept == NULL)
        *kept = calloc(1, sizeof(puts_t));
    return *kept;
}

static void over_cb(void *arg, int status)
{
    nicstride_op_t *op = arg;

    op->peer->keys->begun[ME].under_way--;
    nicstride_op_sent_cb(op, status);
}

/** Begins an operation, for which there is a key. False if UCX refuses it, for instance because
 *  the program's memory is read-only: then it goes by message. */
static bool begin(nicstride_op_t *op)
{
    nicstride_peer_t *p = op->peer;
    const bool get = op->type == NICSTRIDE_MSG_GET;
    char *here = get ? op->result_base + op->result.offset : op->origin_base + op->origin.offset;
    const uint64_t there = (uint64_t)op->disp + (uint64_t)op->target.offset;
    onic_remote_t *key = nicstride_key_locked(p, ME);

    if (!get)
        p->keys->begun[ME].put = ++puts_of(p)->begun;
    const int rc = get ? onic_remote_get(key, there, here, op->size, over_cb, op)
                       : onic_remote_put(key, there, here, op->size, NULL, over_cb, op);
    op->in_flight += rc == 0;
    p->keys->begun[ME].under_way += rc == 0;
    return rc >= 0;
}

/* ---- starting -------------------------------------------------------------------------------- */

/** False if a thread flushes the peer: the operation must not overtake what that waits for. */
static bool may_start(nicstride_peer_t *p)
{
    return puts_of(p) != NULL && !p->failed && !p->queue.flushing &&
           nicstride_key_locked(p, ME) != NULL;
}

static int start_locked(nicstride_transfer_t *t, bool *done_p)
{
    nicstride_op_t *op = may_start(t->peer) ? nicstride_op_of_locked(t) : NULL;

    if (op == NULL)
        return OMPI_ERR_NOT_AVAILABLE;
    op->sent = op->received = op->size;
    op->row = &nicstride_rdma;
    nicstride_op_enter_locked(t, op);
    *done_p = false;
    if (!begin(op)) {
        nicstride_op_by_message_locked(op);
        return OMPI_SUCCESS;
    }
    *done_p = op->in_flight == 0 && op->error == 0;
    if (*done_p)
        op->request = NULL;
    nicstride_op_finish_locked(op);
    return OMPI_SUCCESS;
}

static int start(nicstride_transfer_t *t, bool *done_p)
{
    int rc;

    onic_transport_lock();
    rc = start_locked(t, done_p);
    onic_transport_unlock();
    return rc;
}

/* ---- arrival --------------------------------------------------------------------------------- */

/** Gives the peer up if it is not known what became of its puts. */
static void give_up(nicstride_peer_t *p, void *arg)
{
    const nicstride_process_t *process = arg;
    const puts_t *puts = process->of_row[ME];

    if (p->process == process && p->keys != NULL && p->keys->begun[ME].put > puts->landed)
        nicstride_give_up_locked(p);
}

static void flushed_cb(void *arg, int status)
{
    nicstride_process_t *process = arg;
    puts_t *puts = process->of_row[ME];

    /* Each window's flush must report an error. */
    if (status != OMPI_SUCCESS)
        nicstride_peers_each_locked(give_up, process);
    puts->landed = puts->flushing;
    puts->flushing = 0;
}

static void flush_puts(nicstride_peer_t *p, puts_t *puts)
{
    puts->flushing = puts->begun;
    const int rc = onic_peer_flush(p->peer, flushed_cb, p->process);
    if (rc != 0)
        flushed_cb(p->process, rc < 0 ? rc : OMPI_SUCCESS);
}

static bool flush(nicstride_peer_t *p)
{
    puts_t *puts = p->process->of_row[ME];
    const nicstride_begun_t *begun = p->keys != NULL ? &p->keys->begun[ME] : NULL;

    if (begun == NULL)
        return true;
    if (puts != NULL && puts->landed < begun->put && puts->flushing == 0)
        flush_puts(p, puts);
    return (puts == NULL || puts->landed >= begun->put) && begun->under_way == 0;
}

/** True if the peer must take part. If the method is forced there may be no adapter; then UCX uses
 *  messages. */
static bool needs_peer(nicstride_peer_t *p)
{
    return !flush(p) && !onic_peer_puts_by_rdma(p->peer);
}

const nicstride_method_row_t nicstride_rdma = {.name = "rdma",
                                               .fits = fits,
                                               .cost = cost,
                                               .reach = reach,
                                               .start = start,
                                               .flush = flush,
                                               .needs_peer = needs_peer,
                                               .rkey_ops = &rkey_ops,
                                               .leave = free};
