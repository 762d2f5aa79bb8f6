/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/mpi/rma.h"

const char *const rma_names[RMA_CALLS] = {
    "put",  "get",  "accumulate",  "get_accumulate", "fetch_and_op", "compare_and_swap",
    "rput", "rget", "raccumulate", "rget_accumulate"};

rma_given_t rma_plain(void *origin, void *result, int n, MPI_Datatype type, int target,
                      MPI_Aint disp, MPI_Win win)
{
    return (rma_given_t){.origin = {origin, n, type},
                         .result = {result, n, type},
                         .target = target,
                         .disp = disp,
                         .n = n,
                         .type = type,
                         .op = MPI_SUM,
                         .win = win};
}

int rma_call(rma_t call, const rma_given_t *g, MPI_Request *request)
{
#define ORIGIN g->origin.at, g->origin.n, g->origin.type
#define RESULT g->result.at, g->result.n, g->result.type
#define TARGET g->target, g->disp, g->n, g->type
    switch (call) {
    case RMA_PUT:
        return MPI_Put(ORIGIN, TARGET, g->win);
    case RMA_GET:
        return MPI_Get(RESULT, TARGET, g->win);
    case RMA_ACCUMULATE:
        return MPI_Accumulate(ORIGIN, TARGET, g->op, g->win);
    case RMA_GET_ACCUMULATE:
        return MPI_Get_accumulate(ORIGIN, RESULT, TARGET, g->op, g->win);
    case RMA_FETCH_AND_OP:
        return MPI_Fetch_and_op(g->origin.at, g->result.at, g->type, g->target, g->disp, g->op,
                                g->win);
    case RMA_COMPARE_AND_SWAP:
        return MPI_Compare_and_swap(g->origin.at, g->compare, g->result.at, g->type, g->target,
                                    g->disp, g->win);
    case RMA_RPUT:
        return MPI_Rput(ORIGIN, TARGET, g->win, request);
    case RMA_RGET:
        return MPI_Rget(RESULT, TARGET, g->win, request);
    case RMA_RACCUMULATE:
        return MPI_Raccumulate(ORIGIN, TARGET, g->op, g->win, request);
    default:
        return MPI_Rget_accumulate(ORIGIN, RESULT, TARGET, g->op, g->win, request);
    }
}

int rma_call_and_wait(rma_t call, const rma_given_t *g)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = rma_call(call, g, &request);

    return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

bool rma_fetches(rma_t call)
{
    return call != RMA_PUT && call != RMA_RPUT && call != RMA_ACCUMULATE && call != RMA_RACCUMULATE;
}

bool rma_writes(rma_t call)
{
    return call != RMA_GET && call != RMA_RGET;
}

bool rma_is_single(rma_t call)
{
    return call == RMA_FETCH_AND_OP || call == RMA_COMPARE_AND_SWAP;
}

bool rma_has_op(rma_t call)
{
    return call != RMA_PUT && call != RMA_RPUT && rma_writes(call) && call != RMA_COMPARE_AND_SWAP;
}
