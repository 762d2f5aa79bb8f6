/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Method direct: load and store in memory that is mapped here. Accumulates are applied under
 *  the target's accumulate lock, which it takes, too, for those that come by message. */

#include "common/layout/pack.h"
#include "osc_nicstride/methods/methods.h"

#include "osc_nicstride/window/control.h"
#include "osc_nicstride/window/op.h"

/* Source bytes gathered at a time. */
#define CHUNK 8192
/* Pieces of the source from so many bytes on are read where they are. */
#define PIECE 256

/** Nothing that another method would not do as well. */
static double cost(const nicstride_case_t *c)
{
    (void)c;
    return 0;
}

static bool reach(const nicstride_transfer_t *t)
{
    return t->mapped;
}

/** Packed bytes of the target that the origin has something for. */
static uint64_t given(const nicstride_transfer_t *t)
{
    return t->has_origin ? t->origin.size : 0;
}

/** Packed bytes of the source from position `pos` on, `*n_p` of them: in place as far as they lie
 *  together, up to `*n_p`, which is set, or some of them gathered in `tmp`. Whole elements of
 * `size` bytes. */
static const void *source(const nicstride_transfer_t *t, onic_cursor_t *c, void *tmp, size_t size,
                          uint64_t *n_p)
{
    const uint64_t chunk = CHUNK - CHUNK % size;
    onic_cursor_t next = *c;
    int64_t offset;
    uint64_t n;

    if (onic_cursor_next(&next, *n_p, &offset, &n) && n % size == 0 && (n >= PIECE || n == *n_p)) {
        *c = next;
        *n_p = n;
        return t->origin_base + offset;
    }
    *n_p = *n_p < chunk ? *n_p : chunk;
    onic_pack(c, t->origin_base, tmp, *n_p);
    return tmp;
}

static int accumulate(const nicstride_transfer_t *t)
{
    onic_owned_lock_t *lock = &nicstride_ctl(t->m, t->peer->local)->acc_lock;
    const bool fetch = t->type == NICSTRIDE_MSG_GET_ACC;
    const bool in_place = fetch && onic_layout_is_contig(&t->result);
    nicstride_accop_t given_op, no_op; /* the latter for what the origin does not reach */
    onic_cursor_t from, to, old_to;
    uint64_t held = 0;

    if (!nicstride_accop_init(&given_op, t->op, t->dtype) ||
        !nicstride_accop_init(&no_op, (unsigned)nicstride_op_index(&ompi_mpi_op_no_op.op),
                              t->dtype))
        return nicstride_error(t->m, t->call, MPI_ERR_OP, "the operation is not defined");
    const size_t size = given_op.apply.size;
    /* What is fetched elsewhere has its room for a while. */
    const uint64_t span = fetch && !in_place ? CHUNK : NICSTRIDE_LOCK_SPAN,
                   most = span - span % size;
    if (given(t) > 0)
        onic_cursor_init(&from, &t->origin, 0);
    onic_cursor_init(&to, &t->target, 0);
    if (fetch)
        onic_cursor_init(&old_to, &t->result, 0);
    if (nicstride_ctl_lock(t->m, lock) != OMPI_SUCCESS)
        return nicstride_broken_error(t->m, t->call);
    for (uint64_t pos = 0; pos < t->target.size;) {
        _Alignas(64) char tmp[CHUNK], old[CHUNK];
        const uint64_t end = pos < given(t) ? given(t) : t->target.size;
        const nicstride_accop_t *op = pos < given(t) ? &given_op : &no_op;
        uint64_t n = end - pos < most ? end - pos : most;
        const void *src = pos < given(t) ? source(t, &from, tmp, size, &n) : NULL;
        char *result = in_place ? t->result_base + t->result.offset + (int64_t)pos : old;

        nicstride_apply(&op->apply, &to, t->direct, src, fetch ? result : NULL, n);
        if (fetch && !in_place)
            onic_unpack(&old_to, t->result_base, old, n);
        pos += n;
        held += n;
        if (held >= NICSTRIDE_LOCK_SPAN && pos < t->target.size) {
            nicstride_ctl_unlock(lock);
            /* What was put off for the lock has its turn, and the rest of the node some time. */
            onic_transport_progress();
            if (nicstride_ctl_lock(t->m, lock) != OMPI_SUCCESS)
                return nicstride_broken_error(t->m, t->call);
            held = 0;
        }
    }
    nicstride_ctl_unlock(lock);
    return OMPI_SUCCESS;
}

static int compare_and_swap(const nicstride_transfer_t *t)
{
    onic_owned_lock_t *lock = &nicstride_ctl(t->m, t->peer->local)->acc_lock;

    if (nicstride_ctl_lock(t->m, lock) != OMPI_SUCCESS)
        return nicstride_broken_error(t->m, t->call);
    nicstride_apply_cas(t->direct, t->target.size, t->origin_base, t->swap, t->result_base);
    nicstride_ctl_unlock(lock);
    return OMPI_SUCCESS;
}

static int copy(const nicstride_transfer_t *t)
{
    onic_cursor_t here, there;

    onic_cursor_init(&here, &t->origin, 0);
    onic_cursor_init(&there, &t->target, 0);
    if (t->type == NICSTRIDE_MSG_PUT)
        onic_copy(&there, t->direct, &here, t->origin_base, t->target.size);
    else
        onic_copy(&here, t->origin_base, &there, t->direct, t->target.size);
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
