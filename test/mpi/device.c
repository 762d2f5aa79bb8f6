/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic */
/* methods: auto direct cma pack pipeline */
/**
 * @file
 * Memory of devices is refused where it can be told. There is no device: some pages of this
 * program count as one, first by what Open MPI 4.1 calls in a build for CUDA, then by the hook of
 * the library. Every call with such a buffer must fail and move nothing, with others it must work.
 * Only of use with the component of this package.
 */
#include "common/ompi_compat.h"
#include "common/support/device.h"
#include "test/mpi/rma.h"
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>

#include "opal/datatype/opal_convertor.h"
#include "opal/runtime/opal_params.h"

enum { LONGS = 600 };

static struct {
    long device[LONGS];
    long managed[LONGS]; /**< of a device, but everybody can reach it */
    long host[LONGS];
} memory;

static long asked;

static bool within(const void *p, const long *longs)
{
    return (uintptr_t)p >= (uintptr_t)longs && (uintptr_t)p < (uintptr_t)(longs + LONGS);
}

static bool hook(const void *p)
{
    asked++;
    return within(p, memory.device);
}

#if !ONIC_OMPI_AT_LEAST(5, 0)
/* What Open MPI has under this name in a build for CUDA. */
ONIC_EXPORT bool opal_cuda_check_one_buf(char *buffer, opal_convertor_t *convertor);

bool opal_cuda_check_one_buf(char *buffer, opal_convertor_t *convertor)
{
    asked++;
    if (within(buffer, memory.managed))
        convertor->flags |= CONVERTOR_CUDA_UNIFIED;
    return within(buffer, memory.device) || within(buffer, memory.managed);
}
#endif

static void fill(void)
{
    for (int i = 0; i < LONGS; i++) {
        memory.device[i] = 1000 + i;
        memory.managed[i] = 2000 + i;
        memory.host[i] = 3000 + i;
    }
}

static void check_untouched(const char *what)
{
    for (int i = 0; i < LONGS; i++) {
        TL_CHECK(memory.device[i] == 1000 + i, "%s: long %d of the device is %ld", what, i,
                 memory.device[i]);
        TL_CHECK(memory.host[i] == 3000 + i, "%s: long %d of the host is %ld", what, i,
                 memory.host[i]);
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

/** What the calls below are given: `n` elements of a type, one after another. */
typedef struct given {
    const tl_window_t *w;
    int target, n;
    MPI_Datatype type;
    MPI_Aint disp;
} given_t;

#define REFUSED(call) TL_MPI_ERROR(call, MPI_ERR_BUFFER)

static void wait_for(MPI_Request *r)
{
    if (*r != MPI_REQUEST_NULL)
        TL_MPI(MPI_Wait(r, MPI_STATUS_IGNORE));
}

/** Every call, with one of its buffers on the device; those of one element with MPI_LONG. */
static void refuse_calls(const given_t *g, void *d)
{
    enum { ORIGIN, RESULT, COMPARE, PLACES };
    rma_given_t x = rma_plain(NULL, d, g->n, g->type, g->target, g->disp, g->w->win);
    MPI_Request r = MPI_REQUEST_NULL;

    x.origin.n = 0;
    x.op = MPI_NO_OP;
    REFUSED(rma_call(RMA_GET_ACCUMULATE, &x, &r));
    x.type = MPI_LONG;
    REFUSED(rma_call(RMA_FETCH_AND_OP, &x, &r));
    for (int i = 0; i < PLACES * RMA_CALLS; i++) {
        const rma_t call = (rma_t)(i % RMA_CALLS);
        const int place = i / RMA_CALLS;

        if (place == ORIGIN   ? !rma_writes(call)
            : place == RESULT ? !rma_fetches(call)
                              : call != RMA_COMPARE_AND_SWAP)
            continue;
        x = rma_plain(place == ORIGIN ? d : memory.host, place == RESULT ? d : memory.host, g->n,
                      rma_is_single(call) ? MPI_LONG : g->type, g->target, g->disp, g->w->win);
        x.compare = place == COMPARE ? d : memory.host;
        REFUSED(rma_call(call, &x, &r));
    }
}

/** Buffers that the device has nothing to do with, and none. */
static void take_host(const given_t *g, long *h)
{
    const int n = g->n, t = g->target;
    MPI_Win win = g->w->win;
    long *got = tl_alloc((size_t)n * sizeof(long)), result = -1, zero = 0, one = 1;
    MPI_Request r = MPI_REQUEST_NULL;

    TL_MPI(MPI_Put(h, n, MPI_LONG, t, g->disp, n, MPI_LONG, win));
    TL_MPI(MPI_Win_flush(t, win));
    TL_MPI(MPI_Rget(got, n, MPI_LONG, t, g->disp, n, MPI_LONG, win, &r));
    wait_for(&r);
    TL_BYTES(got, h, (size_t)n * sizeof(long), "what was put");
    TL_MPI(MPI_Fetch_and_op(&one, &result, MPI_LONG, t, g->disp, MPI_SUM, win));
    TL_MPI(MPI_Win_flush(t, win));
    TL_CHECK(result == h[0], "%ld fetched", result);
    one = h[0] + 1;
    TL_MPI(MPI_Compare_and_swap(&zero, &one, &result, MPI_LONG, t, g->disp, win));
    TL_MPI(MPI_Win_flush(t, win));
    TL_CHECK(result == h[0] + 1, "%ld compared", result);
    memset(got, 0, (size_t)n * sizeof(long));
    TL_MPI(MPI_Accumulate(got, n, MPI_LONG, t, g->disp, n, MPI_LONG, MPI_REPLACE, win));
    /* MPI looks at neither of these. */
    TL_MPI(MPI_Put(memory.device, 0, MPI_LONG, t, g->disp, 0, MPI_LONG, win));
    TL_MPI(MPI_Get_accumulate(memory.device, n, MPI_LONG, got, n, MPI_LONG, t, g->disp, n, MPI_LONG,
                              MPI_NO_OP, win));
    TL_MPI(MPI_Win_flush(t, win));
    TL_FILL(got, 0, (size_t)n * sizeof(long), "what was replaced");
    free(got);
}

/** Types whose data is on the device though the pointer that is given is not. */
static void refuse_types(given_t g)
{
    MPI_Aint where[2];
    MPI_Datatype absolute, mixed;
    int lengths[2] = {2, 2};

    MPI_Get_address(memory.device, &where[0]);
    MPI_Get_address(memory.host, &where[1]);
    MPI_Type_create_hindexed(1, lengths, where, MPI_LONG, &absolute);
    MPI_Type_commit(&absolute);
    MPI_Type_create_hindexed(2, lengths, where, MPI_LONG, &mixed);
    MPI_Type_commit(&mixed);
    REFUSED(MPI_Put(MPI_BOTTOM, 1, absolute, g.target, g.disp, 2, MPI_LONG, g.w->win));
    REFUSED(MPI_Get(MPI_BOTTOM, 1, mixed, g.target, g.disp, 4, MPI_LONG, g.w->win));
    MPI_Type_free(&absolute);
    MPI_Type_free(&mixed);

    MPI_Type_vector(20, 2, 5, MPI_LONG, &g.type);
    MPI_Type_commit(&g.type);
    g.n = 1;
    refuse_calls(&g, memory.device);
    MPI_Type_free(&g.type);
}

static void test_calls(const tl_window_t *w)
{
    const int lengths[] = {1, 16, LONGS};

    fill();
    TL_MPI(MPI_Win_lock_all(0, w->win));
    for (int i = 0; i < 3; i++) {
        for (int t = 0; t < w->size; t++) {
            const given_t g = {w, t, lengths[i], MPI_LONG, tl_disp(w, t, 0)};

            refuse_calls(&g, memory.device);
            refuse_types(g);
            TL_MPI(MPI_Win_flush(t, w->win));
        }
    }
    check_untouched("refused calls");
    MPI_Barrier(w->comm);
    TL_FILL(w->base, 0, (size_t)w->bytes, "refused calls wrote to the window");
    MPI_Barrier(w->comm);
    /* Each in the memory of the next: nobody else is there. */
    for (int i = 0; i < 3; i++) {
        const int t = (w->rank + 1) % w->size;
        const given_t g = {w, t, lengths[i], MPI_LONG, tl_disp(w, t, 0)};

        take_host(&g, memory.host);
    }
    TL_MPI(MPI_Win_unlock_all(w->win));
    check_untouched("calls with memory of the host");
    MPI_Barrier(w->comm);
}

/* ---- windows --------------------------------------------------------------------------------- */

/** Where one rank gives memory of the device there is no window for anybody. */
static void test_create(void)
{
    MPI_Win win = MPI_WIN_NULL;

    for (int bad = 0; bad < tl_size(); bad++) {
        long *base = tl_rank() == bad ? memory.device : memory.host;

        TL_MPI_ERROR(
            MPI_Win_create(base, sizeof(memory.host), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win),
            MPI_ERR_WIN);
    }
    TL_MPI(MPI_Win_create(memory.device, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    TL_MPI(MPI_Win_free(&win));
}

static void test_attach(const tl_window_t *w)
{
    const MPI_Aint bytes = sizeof(memory.device);

    TL_MPI_ERROR(MPI_Win_attach(w->win, memory.device, bytes), MPI_ERR_RMA_ATTACH);
    TL_MPI_ERROR(MPI_Win_detach(w->win, memory.device), MPI_ERR_RMA_ATTACH);
    TL_MPI(MPI_Win_attach(w->win, memory.host, bytes));
    TL_MPI(MPI_Win_detach(w->win, memory.host));
}

static void test_kinds(void)
{
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t w = tl_win_make(kind, LONGS * sizeof(long), 1, MPI_COMM_WORLD, MPI_INFO_NULL);

        test_calls(&w);
        if (kind == TL_CREATE)
            test_create();
        else if (kind == TL_DYNAMIC)
            test_attach(&w);
        tl_win_free(&w);
    }
}

/** Where nobody can tell, the buffers that were refused are taken. */
static void test_untold(void)
{
    tl_window_t w =
        tl_win_make(TL_ALLOCATE, LONGS * sizeof(long), 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    const int t = (w.rank + 1) % w.size;
    const given_t g = {&w, t, LONGS, MPI_LONG, tl_disp(&w, t, 0)};

    asked = 0;
    fill();
    TL_MPI(MPI_Win_lock_all(0, w.win));
    take_host(&g, memory.device);
    TL_MPI(MPI_Win_unlock_all(w.win));
    TL_CHECK(asked == 0, "asked %ld times", asked);
    tl_win_free(&w);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
#if !ONIC_OMPI_AT_LEAST(5, 0)
    opal_cuda_support = true;
    test_kinds();
    TL_CHECK(asked > 0, "what Open MPI has for CUDA was not found");
    TL_CHECK(!onic_on_device(memory.managed) && onic_on_device(memory.device + LONGS - 1),
             "managed memory can be reached by all");
    opal_cuda_support = false; /* or MPI_T would not start */
#endif
    __atomic_store_n(&onic_device_fn, hook, __ATOMIC_RELEASE);
    test_kinds();
    __atomic_store_n(&onic_device_fn, NULL, __ATOMIC_RELEASE);
    test_untold();
    return tl_finish();
}
