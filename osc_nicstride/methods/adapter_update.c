/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/methods/methods.h"

#include <stdlib.h>
#include <string.h>

#include "common/layout/pack.h"
#include "common/wire/put.h"
#include "osc_nicstride/protocol/apply.h"
#include "osc_nicstride/queue/keys.h"
#include "osc_nicstride/queue/wait.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/window/op.h"
#include "osc_nicstride/window/state.h"

#define ME NICSTRIDE_METHOD_RDMA

/** Elements that are under way at a time. */
enum { TOGETHER = 32, WORD = sizeof(uint64_t) };

struct work;

typedef struct element {
    struct work *work;
    nicstride_atomic_t atomic;
    uint64_t at; /**< in the window */
} element_t;

/** Some elements on their way. */
typedef struct work {
    nicstride_peer_t *peer;
    nicstride_op_t *op; /**< that ends with them; NULL: a thread waits for them */
    nicstride_accop_t reduction;
    nicstride_update_t update;
    unsigned left;
    int error;
    element_t element[];
} work_t;

/* ---- what is to be done ---------------------------------------------------------------------- */

static void set_reduction(work_t *w)
{
    nicstride_update_t *u = &w->update;
    const bool integer = (w->reduction.dt->super.flags & OMPI_DATATYPE_FLAG_DATA_INT) != 0;

    if (w->reduction.apply.kind == NICSTRIDE_APPLY_NO_OP)
        u->kind = NICSTRIDE_UPDATE_FETCH;
    else if (w->reduction.apply.kind == NICSTRIDE_APPLY_REPLACE)
        u->kind = NICSTRIDE_UPDATE_REPLACE;
    else if (integer && w->reduction.op == &ompi_mpi_op_sum.op)
        u->kind = NICSTRIDE_UPDATE_ADD;
    else
        u->kind = NICSTRIDE_UPDATE_LOOP;
}

/** Sizes of an element. */
static bool describe(work_t *w, const nicstride_transfer_t *t)
{
    size_t extent;

    if (t->type == NICSTRIDE_MSG_CAS) {
        w->update.kind = NICSTRIDE_UPDATE_COMPARE;
        w->reduction.apply.extent = t->target.size;
        return nicstride_dtype_size(t->dtype, &w->update.size, &extent);
    }
    if (!nicstride_accop_init(&w->reduction, t->op, t->dtype))
        return false;
    w->update.size = w->reduction.apply.size;
    w->update.apply = &w->reduction.apply;
    set_reduction(w);
    return true;
}

/* ---- elements under way ---------------------------------------------------------------------- */

/** The old value of the one element goes where the call wants it. */
static void end_op(work_t *w)
{
    nicstride_op_t *op = w->op;

    if (w->error != 0 && op->error == 0)
        op->error = w->error;
    if (w->error == 0 && op->type != NICSTRIDE_MSG_ACC)
        memcpy(op->result_base + op->result.offset, &w->element[0].atomic.value, w->update.size);
    w->peer->keys->begun[ME].under_way--;
    free(w);
    op->in_flight--;
    nicstride_op_finish_locked(op);
}

static void end_element(work_t *w, int status)
{
    if (status != OMPI_SUCCESS)
        w->error = MPI_ERR_OTHER;
    if (--w->left == 0 && w->op != NULL)
        end_op(w);
}

static void stepped_cb(void *arg, int status);

/** 1: done, 0: the callback comes, or an error. */
static int step(element_t *e)
{
    work_t *w = e->work;
    nicstride_span_t span;
    onic_remote_t *key = nicstride_key_locked(w->peer, ME, e->at, e->at + 1, &span);

    nicstride_add(&nicstride_counters.adapter_atomics, 1);
    return key == NULL ? OMPI_ERR_UNREACH
                       : onic_remote_atomic(key, e->atomic.op, e->at - span.at, w->update.size,
                                            &e->atomic.operand, &e->atomic.value, stepped_cb, e);
}

/** Goes on as far as it gets without waiting, with what the last step has come to. */
static void go_on(element_t *e, int rc)
{
    work_t *w = e->work;

    while (rc == 1 && !nicstride_atomic_is_over(&e->atomic, &w->update))
        rc = step(e);
    if (rc != 0)
        end_element(w, rc < 0 ? rc : OMPI_SUCCESS);
}

static void stepped_cb(void *arg, int status)
{
    go_on(arg, status == OMPI_SUCCESS ? 1 : status);
}

static void begin(element_t *e, work_t *w, uint64_t at, uint64_t origin, uint64_t compare)
{
    e->work = w;
    e->at = at;
    nicstride_atomic_begin(&e->atomic, &w->update, origin, compare);
    go_on(e, step(e));
}

static uint64_t word_of(const void *bytes, size_t size)
{
    uint64_t word = 0;

    memcpy(&word, bytes, size);
    return word;
}

/* ---- the way there --------------------------------------------------------------------------- */

/** The error of an accumulate to a target that is lost. */
static int lost(const nicstride_transfer_t *t)
{
    onic_peer_t *wire = t->peer->wire;

    return nicstride_error(t->m, t->call, nicstride_lost_class(wire), "target rank %d: %s",
                           t->peer->rank,
                           onic_peer_has_died(wire) ? "it has died" : "the communication failed");
}

typedef struct way {
    nicstride_peer_t *p;
    uint64_t at;
    bool there;
    bool lost; /**< the target is */
} way_t;

/** Will there be no key? Another row may have told the target's answer one. */
static bool is_keyless(nicstride_peer_t *p, uint64_t at)
{
    return p->keys == NULL || p->keys->refused || (p->keys->rows & NICSTRIDE_REACH(ME)) == 0 ||
           nicstride_key_piece_find(&p->keys->pieces, at) != NULL;
}

/** There is a key, and no thread waits for what stands before; or there will not be one. The whole
 *  of a target's window has one key, which stays while it is used here. */
static bool found(void *arg)
{
    way_t *way = arg;
    nicstride_peer_t *p = way->p;
    nicstride_span_t span;
    bool has;

    way->lost = nicstride_peer_failed_locked(p);
    has = !way->lost && nicstride_key_locked(p, ME, way->at, way->at + 1, &span) != NULL;
    way->there = has && !p->queue.flushing;
    if (way->there)
        p->keys->begun[ME].under_way++;
    return way->there || way->lost || (!has && is_keyless(p, way->at));
}

static int find_way(const nicstride_transfer_t *t, way_t *way)
{
    if (nicstride_await_lock(t->peer) != OMPI_SUCCESS)
        return lost(t);
    *way = (way_t){.p = t->peer, .at = (uint64_t)t->disp + (uint64_t)t->target.lb};
    nicstride_wait(t->peer, NICSTRIDE_WAKE, found, way);
    if (way->there)
        return OMPI_SUCCESS;
    if (way->lost)
        return lost(t);
    return nicstride_error(t->m, t->call, MPI_ERR_OTHER,
                           "no adapter reaches the window of target rank %d for accumulates; "
                           "osc_nicstride_adapter_atomics off does without adapters",
                           t->peer->rank);
}

/* ---- one element, left to the adapter -------------------------------------------------------- */

/** `w` may be gone when this returns. Until it ends it uses the key that was found. */
static int start_one_locked(nicstride_transfer_t *t, work_t *w, bool *done_p)
{
    nicstride_op_t *op = nicstride_op_of_locked(t, false);
    const void *origin = t->type == NICSTRIDE_MSG_CAS ? t->swap : t->origin_base + t->origin.offset;
    const bool given = w->update.kind != NICSTRIDE_UPDATE_FETCH;

    if (op == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    w->op = op;
    w->left = 1;
    op->sent = op->received = op->size;
    op->by_row = true;
    op->in_flight = 2;
    nicstride_op_enter_locked(t, op);
    begin(&w->element[0], w, (uint64_t)t->disp + (uint64_t)t->target.offset,
          given ? word_of(origin, w->update.size) : 0,
          t->type == NICSTRIDE_MSG_CAS ? word_of(t->origin_base, w->update.size) : 0);
    op->in_flight--;
    *done_p = op->in_flight == 0 && op->error == 0;
    if (*done_p)
        op->request = NULL;
    nicstride_op_finish_locked(op);
    return OMPI_SUCCESS;
}

static int start_one(nicstride_transfer_t *t, work_t *w, bool *done_p)
{
    onic_wire_lock();
    const int rc = start_one_locked(t, w, done_p);
    if (rc != OMPI_SUCCESS)
        w->peer->keys->begun[ME].under_way--;
    onic_wire_unlock();
    if (rc != OMPI_SUCCESS)
        free(w);
    return rc;
}

/* ---- several elements, or steps -------------------------------------------------------------- */

static bool are_over(void *arg)
{
    return ((const work_t *)arg)->left == 0;
}

/** The next elements, at most TOGETHER and `max` bytes; returns their bytes. `values`: the
 *  origin's, then the old ones. */
static uint64_t do_some(work_t *w, const nicstride_transfer_t *t, onic_cursor_t *to, uint64_t max,
                        unsigned char *values)
{
    const size_t size = w->update.size;
    uint64_t done = 0, len;
    int64_t offset;
    unsigned n = 0;

    onic_wire_lock();
    w->left = 1;
    while (n < TOGETHER && done < max && onic_cursor_next(to, size, &offset, &len)) {
        w->left++;
        begin(&w->element[n++], w, (uint64_t)t->disp + (uint64_t)offset,
              word_of(values + done, size), 0);
        done += len;
    }
    end_element(w, OMPI_SUCCESS);
    onic_wire_unlock();
    nicstride_wait(w->peer, NICSTRIDE_WAKE_IF_NEEDED, are_over, w);
    for (unsigned i = 0; i < n; i++)
        memcpy(values + i * size, &w->element[i].atomic.value, size);
    return done;
}

static int do_all(const nicstride_transfer_t *t, work_t *w)
{
    const uint64_t given = t->has_origin ? t->origin.size : 0;
    onic_cursor_t from, to, old;

    if (given > 0)
        onic_cursor_init(&from, &t->origin, 0);
    onic_cursor_init(&to, &t->target, 0);
    if (t->type == NICSTRIDE_MSG_GET_ACC)
        onic_cursor_init(&old, &t->result, 0);
    for (uint64_t pos = 0, n; pos < t->target.size && w->error == 0; pos += n) {
        unsigned char values[TOGETHER * WORD] = {0};
        const uint64_t end = pos < given ? given : t->target.size;
        const uint64_t most = TOGETHER * w->update.size;
        const uint64_t max = end - pos < most ? end - pos : most;

        if (pos < given)
            onic_pack(&from, t->origin_base, values, max);
        else
            w->update.kind = NICSTRIDE_UPDATE_FETCH; /* the origin has no more values */
        n = do_some(w, t, &to, max, values);
        if (t->type == NICSTRIDE_MSG_GET_ACC)
            onic_unpack(&old, t->result_base, values, n);
    }
    return w->error == 0 ? OMPI_SUCCESS : lost(t);
}

/* ---- starting -------------------------------------------------------------------------------- */

/** Where all elements of the target are ones that an adapter can update. */
static bool all_fit(const nicstride_transfer_t *t, const work_t *w)
{
    onic_cursor_t c;
    uint64_t len;
    int64_t offset;

    onic_cursor_init(&c, &t->target, 0);
    while (onic_cursor_next(&c, w->update.size, &offset, &len))
        if (len != w->update.size ||
            !nicstride_update_fits(len, w->reduction.apply.extent, t->remote + (uint64_t)offset))
            return false;
    return true;
}

static int refuse(const nicstride_transfer_t *t)
{
    return nicstride_error(t->m, t->call, MPI_ERR_TYPE,
                           "accumulates of this window are done by an adapter, and so must be of "
                           "elements of 4 or 8 bytes, without gaps, at addresses that are a "
                           "multiple of that");
}

static bool is_one(const nicstride_transfer_t *t, const work_t *w)
{
    return t->target.size == w->update.size && w->update.kind != NICSTRIDE_UPDATE_LOOP &&
           onic_layout_is_contig(&t->target) &&
           (t->type == NICSTRIDE_MSG_ACC || onic_layout_is_contig(&t->result)) &&
           (!t->has_origin ||
            (onic_layout_is_contig(&t->origin) && t->origin.size == t->target.size));
}

int nicstride_adapter_update(nicstride_transfer_t *t, bool *done_p)
{
    const uint64_t most = t->target.size / 4 + 1, n = most < TOGETHER ? most : TOGETHER;
    work_t *w = calloc(1, sizeof(*w) + n * sizeof(w->element[0]));
    way_t way;
    int rc;

    if (w == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    w->peer = t->peer;
    rc = describe(w, t) && all_fit(t, w) ? find_way(t, &way) : refuse(t);
    if (rc == OMPI_SUCCESS && is_one(t, w))
        return start_one(t, w, done_p);
    if (rc == OMPI_SUCCESS) {
        *done_p = true;
        rc = do_all(t, w);
        onic_wire_lock();
        w->peer->keys->begun[ME].under_way--;
        onic_wire_unlock();
    }
    free(w);
    return rc;
}
