/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/mpi/exchange.h"

#include <stdlib.h>

/** What a slot holds before the epoch. */
static void fill_slot(void *memory, MPI_Aint slot, int round, int origin, int target)
{
    uint64_t seed = ((uint64_t)round << 20) + (uint64_t)(origin << 10) + (uint64_t)target;

    tl_fill_random(memory, (size_t)slot, tl_seed() + seed);
}

static unsigned char *origin_buffer(const exchange_op_t *op)
{
    unsigned char *buffer = tl_alloc((size_t)op->origin.span);

    tl_fill_random(buffer, (size_t)op->origin.span, op->seed);
    return buffer;
}

/** A type that holds the address of its data; its count is 1. */
static MPI_Datatype at_address(const tr_side_t *side, MPI_Aint address)
{
    MPI_Datatype type;

    MPI_Type_create_struct(1, &side->count, &address, &side->type, &type);
    MPI_Type_commit(&type);
    return type;
}

/** The side as one element of a struct. */
static void wrap(tr_side_t *side)
{
    MPI_Datatype type = at_address(side, 0);

    tr_free(side);
    side->type = type;
    side->count = 1;
}

/**
 * The plan, with absolute sides wrapped in a struct already: Open MPI's datatype engine gives some
 * structs of several elements other bytes than a count of those elements has, and a reference
 * made from the latter would blame the window for that.
 */
static exchange_op_t make_op(exchange_plan_t plan, int round, int origin, int target)
{
    exchange_op_t op = plan(round, origin, target);

    if (op.absolute) {
        wrap(&op.origin);
        wrap(&op.target);
    }
    return op;
}

static void transfer(const tl_window_t *w, const exchange_op_t *op, void *address, int count,
                     MPI_Datatype type, int target, MPI_Aint disp, int target_count,
                     MPI_Datatype target_type)
{
    if (op->get)
        TL_MPI(MPI_Get(address, count, type, target, disp, target_count, target_type, w->win));
    else
        TL_MPI(MPI_Put(address, count, type, target, disp, target_count, target_type, w->win));
}

static void issue(const tl_window_t *w, const exchange_op_t *op, int target, MPI_Aint offset,
                  unsigned char *buffer)
{
    const tr_side_t *o = &op->origin, *t = &op->target;
    MPI_Aint disp = tl_disp(w, target, offset + t->start);
    MPI_Datatype origin_type = o->type, target_type = t->type;

    if (!op->absolute) {
        transfer(w, op, buffer + o->start, o->count, o->type, target, disp, t->count, t->type);
        return;
    }
    MPI_Aint address;

    MPI_Get_address(buffer + o->start, &address);
    origin_type = at_address(o, address);
    if (w->kind == TL_DYNAMIC) {
        target_type = at_address(t, disp);
        transfer(w, op, MPI_BOTTOM, 1, origin_type, target, 0, 1, target_type);
        MPI_Type_free(&target_type);
    } else {
        transfer(w, op, MPI_BOTTOM, 1, origin_type, target, disp, t->count, t->type);
    }
    MPI_Type_free(&origin_type);
}

/** A put leaves the origin buffer alone, a get changes what it should. */
static void check_origin(const tl_window_t *w, const exchange_op_t *op, int round, int target,
                         MPI_Aint slot, const unsigned char *buffer)
{
    unsigned char *want = origin_buffer(op), *source = tl_alloc((size_t)slot);

    if (op->get) {
        fill_slot(source, slot, round, w->rank, target);
        tr_copy(&op->target, source, &op->origin, want);
    }
    TL_BYTES(buffer, want, (size_t)op->origin.span, "%s, round %d, buffer of %s rank %d",
             tl_kind_name(w->kind), round, op->get ? "get from" : "put to", target);
    free(want);
    free(source);
}

/** My slot for `origin` has what it put, and all the rest as before. */
static void check_slot(const tl_window_t *w, int round, int origin, MPI_Aint slot,
                       exchange_plan_t plan)
{
    exchange_op_t op = make_op(plan, round, origin, w->rank);
    unsigned char *want = tl_alloc((size_t)slot), *sent = origin_buffer(&op);

    fill_slot(want, slot, round, origin, w->rank);
    if (!op.get)
        tr_copy(&op.origin, sent, &op.target, want);
    TL_BYTES(w->base + origin * slot, want, (size_t)slot, "%s, round %d, window after %s rank %d",
             tl_kind_name(w->kind), round, op.get ? "get by" : "put by", origin);
    free(want);
    free(sent);
    tr_free(&op.origin);
    tr_free(&op.target);
}

void exchange_round(const tl_window_t *w, tl_sync_t sync, int round, MPI_Aint slot,
                    exchange_plan_t plan)
{
    exchange_op_t *ops = tl_alloc((size_t)w->size * sizeof(*ops));
    unsigned char **buffers = tl_alloc((size_t)w->size * sizeof(*buffers));

    for (int r = 0; r < w->size; r++) {
        ops[r] = make_op(plan, round, w->rank, r);
        buffers[r] = origin_buffer(&ops[r]);
        fill_slot(w->base + r * slot, slot, round, r, w->rank);
    }
    tl_begin(w, sync);
    for (int r = 0; r < w->size; r++)
        issue(w, &ops[r], r, w->rank * slot, buffers[r]);
    tl_end(w, sync);
    for (int r = 0; r < w->size; r++) {
        check_origin(w, &ops[r], round, r, slot, buffers[r]);
        check_slot(w, round, r, slot, plan);
        tr_free(&ops[r].origin);
        tr_free(&ops[r].target);
        free(buffers[r]);
    }
    free(ops);
    free(buffers);
    MPI_Barrier(w->comm);
}
