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
    nicstride_process_t *process;
    onic_peer_t *peer;
    uint64_t begun;    /**< puts begun */
    uint64_t landed;   /**< puts known to have landed */
    uint64_t flushing; /**< the puts that the flush under way is for; 0: there is none */
} puts_t;

/** A read of a dynamic window's word, before an operation: the operation's `of_row`. */
typedef struct reading {
    uint64_t generation; /**< the generation for which there are keys */
    uint64_t word;       /**< the value read from the word */
} reading_t;

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
    return onic_link_requests(&c->path->link, c->dir == NICSTRIDE_GET, 1, 1,
                              (double)c->target->size);
}

/* ---- keys ------------------------------------------------------------------------------------ */

/** True if the user has forced this method. */
static bool is_forced(void)
{
    return nicstride_component.params.method == NICSTRIDE_METHOD_RDMA;
}

static bool usable(nicstride_peer_t *p)
{
    return onic_transport_puts() && (is_forced() || onic_peer_puts_by_rdma(p->peer));
}

static void *register_memory(nicstride_module_t *m, void *base, uint64_t bytes)
{
    (void)m;
    return onic_region_over_locked(base, bytes);
}

static void withdraw(void *memory)
{
    onic_region_free_locked(memory);
}

static size_t offer(nicstride_peer_t *p, void *memory, void *bytes, size_t cap)
{
    (void)p;
    if (memory != NULL)
        return onic_region_key_locked(memory, bytes, cap);
    *(unsigned char *)bytes = form;
    return sizeof(form);
}

static void *take_key(nicstride_peer_t *p, const nicstride_span_t *span, const void *bytes,
                      size_t len)
{
    int rc;

    return span != NULL ? onic_remote_open(p->peer, bytes, len, &rc) : NULL;
}

static void drop(void *key)
{
    onic_remote_close(key);
}

static const nicstride_rkey_ops_t rkey_ops = {.usable = usable,
                                              .register_memory = register_memory,
                                              .withdraw = withdraw,
                                              .offer = offer,
                                              .accept = take_key,
                                              .drop = drop};

/** Where the target's bytes begin in its window. */
static uint64_t place(int64_t disp, const onic_layout_t *target)
{
    return (uint64_t)disp + (uint64_t)target->offset;
}

/** True if there are keys for all of the bytes, and for the word of a dynamic window. Asks the
 *  target for missing ones. */
static bool has_keys_locked(nicstride_peer_t *p, uint64_t from, uint64_t size)
{
    const uint64_t end = from + size;
    nicstride_span_t span;

    for (uint64_t at = from; at < end; at = span.at + span.size)
        if (nicstride_key_locked(p, ME, at, end, &span) == NULL)
            return false;
    return p->module->flavor != MPI_WIN_FLAVOR_DYNAMIC || nicstride_word_key_locked(p, ME) != NULL;
}

static bool reach(const nicstride_transfer_t *t)
{
    bool reaches;

    if ((t->type != NICSTRIDE_MSG_PUT && t->type != NICSTRIDE_MSG_GET) || t->peer->local >= 0 ||
        !nicstride_may_have_keys(t->peer))
        return false;
    onic_transport_lock();
    reaches = (is_forced() || onic_peer_puts_by_rdma(t->peer->peer)) &&
              has_keys_locked(t->peer, place(t->disp, &t->target), t->target.size);
    onic_transport_unlock();
    return reaches;
}

/* ---- transfers ------------------------------------------------------------------------------- */

/** The puts to the process; NULL if memory is exhausted. */
static puts_t *puts_of(nicstride_peer_t *p)
{
    puts_t *puts = p->process->of_row[ME];

    if (puts == NULL)
        puts = p->process->of_row[ME] = calloc(1, sizeof(*puts));
    if (puts != NULL) {
        puts->process = p->process;
        puts->peer = p->peer;
    }
    return puts;
}

static void over_cb(void *arg, int status)
{
    nicstride_op_t *op = arg;

    op->peer->keys->begun[ME].under_way--;
    nicstride_op_sent_cb(op, status);
}

/** Begins all parts of an operation, for which there are keys. False if UCX refuses any, such as
 *  read-only memory of the program: then everything goes by message. */
static bool begin(nicstride_op_t *op)
{
    const bool get = op->type == NICSTRIDE_MSG_GET;
    char *here = get ? op->result_base + op->result.offset : op->origin_base + op->origin.offset;
    const uint64_t at = place(op->disp, &op->target);
    nicstride_peer_t *p = op->peer;
    nicstride_span_t span;

    if (!get)
        p->keys->begun[ME].put = ++puts_of(p)->begun;
    for (uint64_t done = 0, n; done < op->size; done += n) {
        onic_remote_t *key = nicstride_key_locked(p, ME, at + done, at + op->size, &span);
        const uint64_t room = span.at + span.size - (at + done), left = op->size - done;

        n = left < room ? left : room;
        const uint64_t there = at + done - span.at;
        const int rc = get ? onic_remote_get(key, there, here + done, n, over_cb, op)
                           : onic_remote_put(key, there, here + done, n, NULL, over_cb, op);
        if (rc < 0)
            return false;
        op->in_flight += rc == 0;
        p->keys->begun[ME].under_way += rc == 0;
    }
    return true;
}

/** The word of a dynamic window was read: moves the data, or sends it by message if the keys are
 *  void. */
static void read_cb(void *arg, int status)
{
    nicstride_op_t *op = arg;
    nicstride_peer_t *p = op->peer;
    const bool right = status == OMPI_SUCCESS && op->error == 0;
    reading_t *r = op->of_row;
    const bool is_void = r->word != r->generation;

    op->of_row = NULL;
    free(r);
    if (right && is_void)
        nicstride_rkey_cache_void_locked(p);
    if (!right || (has_keys_locked(p, place(op->disp, &op->target), op->size) && begin(op))) {
        over_cb(op, status);
        return;
    }
    p->keys->begun[ME].under_way--;
    op->in_flight--;
    nicstride_op_by_message_locked(op);
}

/** Reads the word that counts generations before anything else. If an adapter gets a key of memory
 *  that was given back, it ends the connection, for gets and for puts. */
static void read_word(nicstride_op_t *op, reading_t *r)
{
    nicstride_rkey_cache_t *ring = op->peer->keys;
    int rc;

    r->generation = ring->generation;
    op->of_row = r;
    op->in_flight = 1;
    ring->begun[ME].under_way++;
    rc = onic_remote_get(nicstride_word_key_locked(op->peer, ME), 0, &r->word, sizeof(r->word),
                         read_cb, op);
    if (rc != 0)
        read_cb(op, rc < 0 ? rc : OMPI_SUCCESS);
}

/* ---- starting -------------------------------------------------------------------------------- */

/** False if a thread flushes the peer: the operation must not overtake what that waits for. */
static bool may_start(const nicstride_transfer_t *t)
{
    nicstride_peer_t *p = t->peer;

    return puts_of(p) != NULL && !p->failed && !p->queue.flushing &&

           has_keys_locked(p, place(t->disp, &t->target), t->target.size);
}

static int start_locked(nicstride_transfer_t *t, bool *done_p)
{
    const bool dynamic = t->m->flavor == MPI_WIN_FLAVOR_DYNAMIC;
    reading_t *r = NULL;
    nicstride_op_t *op;

    if (!may_start(t) || (dynamic && (r = calloc(1, sizeof(*r))) == NULL))
        return OMPI_ERR_NOT_AVAILABLE;
    op = nicstride_op_of_locked(t, true);
    if (op == NULL) {
        free(r);
        return OMPI_ERR_NOT_AVAILABLE;
    }
    op->sent = op->received = op->size;
    op->row = &nicstride_rdma;
    nicstride_op_enter_locked(t, op);
    *done_p = false;
    if (dynamic) {
        read_word(op, r);
        return OMPI_SUCCESS;
    }
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

static void flushed_cb(void *arg, int status)
{
    puts_t *puts = arg;
    nicstride_peer_t *p;

    /* It will never be known what became of these puts, so each window's flush must report an
     * error. */
    LIST_FOREACH(p, &puts->process->peers, of_process)
        if (status != OMPI_SUCCESS && p->keys != NULL && p->keys->begun[ME].put > puts->landed)
            nicstride_give_up_locked(p);
    puts->landed = puts->flushing;
    puts->flushing = 0;
}

static void flush_puts(puts_t *puts)
{
    int rc;

    puts->flushing = puts->begun;
    rc = onic_peer_flush(puts->peer, flushed_cb, puts);
    if (rc != 0)
        flushed_cb(puts, rc < 0 ? rc : OMPI_SUCCESS);
}

static bool flush(nicstride_peer_t *p)
{
    puts_t *puts = p->process->of_row[ME];
    const nicstride_begun_t *begun = p->keys != NULL ? &p->keys->begun[ME] : NULL;

    if (begun == NULL)
        return true;
    if (puts != NULL && puts->landed < begun->put && puts->flushing == 0)
        flush_puts(puts);
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
                                               .enters = true,
                                               .in_order = true,
                                               .flush = flush,
                                               .needs_peer = needs_peer,
                                               .rkey_ops = &rkey_ops,
                                               .leave = free};
