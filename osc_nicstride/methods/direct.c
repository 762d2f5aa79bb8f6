/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Method direct: loads and stores in memory that is mapped here. Accumulates obey the
 *  discipline of the target's memory (window/hold.h), as do those that the target applies for
 *  messages. */

#include "common/layout/pack.h"
#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/window/hold.h"
#include "osc_nicstride/window/op.h"
#include "osc_nicstride/window/transfer.h"

/* Bytes that are fetched at a time and buffered before they go to their place. */
#define CHUNK 8192

/** Chosen only if no other method does as well. */
static double cost(const nicstride_case_t *c)
{
    (void)c;
    return 0;
}

static bool reach(const nicstride_transfer_t *t)
{
    return t->mapped;
}

/** Packed bytes of the target for which the origin has data. */
static uint64_t given(const nicstride_transfer_t *t)
{
    return t->has_origin ? t->origin.size : 0;
}

/** Fetches the target's bytes. Nothing changes, so no lock is needed. */
static int fetch(const nicstride_transfer_t *t)
{
    onic_cursor_t here, there;

    onic_cursor_init(&here, &t->result, 0);
    onic_cursor_init(&there, &t->target, 0);
    onic_copy(&here, t->result_base, &there, t->direct, t->target.size, true);
    return OMPI_SUCCESS;
}

/** An accumulate in progress: its cursors and its locks. */
typedef struct update {
    nicstride_accop_t op;
    nicstride_accop_t no_op; /**< for bytes beyond the origin's data */
    onic_cursor_t from, to, old;
    nicstride_hold_t hold;
} update_t;

/** Updates or fetches `n` packed bytes from `pos` on. The origin has data for all of them, or for
 *  none. */
static void apply(const nicstride_transfer_t *t, update_t *u, uint64_t pos, uint64_t n)
{
    const bool fetches = t->type == NICSTRIDE_MSG_GET_ACC;
    const bool in_place = fetches && onic_layout_is_contig(&t->result);
    _Alignas(64) char old[CHUNK];
    char *result = in_place ? t->result_base + t->result.offset + (int64_t)pos : old;

    if (pos < given(t))
        nicstride_apply_from(&u->op.apply, &u->to, t->direct, &u->from, t->origin_base,
                             fetches ? result : NULL, n);
    else
        nicstride_apply(&u->no_op.apply, &u->to, t->direct, NULL, result, n);
    if (fetches && !in_place)
        onic_unpack(&u->old, t->result_base, old, n);
}

/** True if all sides are contiguous, and short enough to be updated at once. */
static bool is_plain(const nicstride_transfer_t *t, const nicstride_apply_t *a)
{
    return a->size == a->extent && t->target.size <= NICSTRIDE_LOCK_SPAN &&
           given(t) == t->target.size && onic_layout_is_contig(&t->target) &&
           onic_layout_is_contig(&t->origin) &&
           (t->type == NICSTRIDE_MSG_ACC || onic_layout_is_contig(&t->result));
}

static int update_plain(const nicstride_transfer_t *t, const nicstride_apply_t *a)
{
    const bool fetches = t->type == NICSTRIDE_MSG_GET_ACC;
    const int rc = nicstride_update(t->m, t->peer->local, a, t->direct + t->target.offset,
                                    t->disp + t->target.offset, t->origin_base + t->origin.offset,
                                    fetches ? t->result_base + t->result.offset : NULL,
                                    t->target.size / a->size);

    return rc == OMPI_SUCCESS ? rc : nicstride_broken_error(t->m, t->call);
}

static int accumulate(const nicstride_transfer_t *t)
{
    const int no_op = nicstride_op_index(&ompi_mpi_op_no_op.op);
    uint64_t held = 0, n;
    int rc = OMPI_SUCCESS;
    update_t u;

    if (!nicstride_accop_init(&u.op, t->op, t->dtype) ||
        !nicstride_accop_init(&u.no_op, (unsigned)no_op, t->dtype))
        return nicstride_error(t->m, t->call, MPI_ERR_OP, "the operation is not defined");
    if (is_plain(t, &u.op.apply))
        return update_plain(t, &u.op.apply);
    const size_t size = u.op.apply.size;
    const bool aligned = nicstride_hold_aligned(&t->target, t->direct, size);
    const bool keeps = t->type == NICSTRIDE_MSG_GET_ACC && !onic_layout_is_contig(&t->result);
    const uint64_t span = keeps ? CHUNK : NICSTRIDE_LOCK_SPAN, most = span - span % size;
    nicstride_hold_init(&u.hold, t->m, t->peer->local, &u.no_op.apply, aligned);
    if (given(t) == 0 && !u.hold.locks)
        return fetch(t);
    nicstride_hold_init(&u.hold, t->m, t->peer->local, &u.op.apply, aligned);
    if (given(t) > 0)
        onic_cursor_init(&u.from, &t->origin, 0);
    onic_cursor_init(&u.to, &t->target, 0);
    if (t->type == NICSTRIDE_MSG_GET_ACC)
        onic_cursor_init(&u.old, &t->result, 0);
    for (uint64_t pos = 0; pos < t->target.size; pos += n) {
        const uint64_t end = pos < given(t) ? given(t) : t->target.size;

        n = end - pos < most ? end - pos : most;
        if (held >= NICSTRIDE_LOCK_SPAN && u.hold.set != 0) {
            nicstride_hold_give(&u.hold);
            /* Others that wait for the locks get some time. */
            onic_transport_progress();
            held = 0;
        }
        rc = nicstride_hold_take_layout(&u.hold, &t->target, pos, n, t->disp);
        if (rc != OMPI_SUCCESS)
            break;
        apply(t, &u, pos, n);
        held += n;
    }
    nicstride_hold_give(&u.hold);
    return rc == OMPI_SUCCESS ? rc : nicstride_broken_error(t->m, t->call);
}

static int compare_and_swap(const nicstride_transfer_t *t)
{
    const int rc = nicstride_swap(t->m, t->peer->local, t->direct, t->disp, t->target.size,
                                  t->origin_base, t->swap, t->result_base);

    return rc == OMPI_SUCCESS ? rc : nicstride_broken_error(t->m, t->call);
}

static int copy(const nicstride_transfer_t *t)
{
    onic_cursor_t here, there;

    onic_cursor_init(&here, &t->origin, 0);
    onic_cursor_init(&there, &t->target, 0);
    if (t->type == NICSTRIDE_MSG_PUT)
        onic_copy(&there, t->direct, &here, t->origin_base, t->target.size, false);
    else
        onic_copy(&here, t->origin_base, &there, t->direct, t->target.size, true);
    return OMPI_SUCCESS;
}

static int start(nicstride_transfer_t *t, bool *done_p)
{
    *done_p = true;
    switch (t->type) {
    case NICSTRIDE_MSG_PUT:
    case NICSTRIDE_MSG_GET:
        return copy(t);
    case NICSTRIDE_MSG_CAS:
        return compare_and_swap(t);
    default:
        return accumulate(t);
    }
}

const nicstride_method_row_t nicstride_direct = {
    .name = "direct", .cost = cost, .reach = reach, .start = start};
