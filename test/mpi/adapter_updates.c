/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate shared */
/* methods: auto pack rdma */
/* mpirun: --mca osc_nicstride_adapter_atomics on */
/**
 * @file
 * Windows whose accumulates an adapter does, here as UCX emulates it: all ranks, with several
 * threads each, update all ranks, their own memory and that of neighbours among it, by what is one
 * operation of the adapter and by what takes several. No update is lost, no ticket given twice,
 * those of one origin keep their order, what an adapter cannot do is an error, and a target that is
 * away from MPI is not waited for.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/mpi/counter.h"
#include "test/mpi/testlib.h"

enum { THREADS = 3, UPDATES = 60, SLOW_UPDATES = 10, FIELD = 64, ASLEEP_USEC = 1000000 };

/** The memory of each rank. */
typedef struct values {
    int64_t ticket, swapped;
    double sum;
    uint32_t word, bits;
    float most;
    int32_t index;
    int32_t field[FIELD]; /**< every second one is added to */
    int32_t kept[FIELD];
    int64_t order;
} values_t;

#define AT(w, target, member) tl_disp((w), (target), offsetof(values_t, member))

typedef struct worker {
    const tl_window_t *w;
    MPI_Datatype every_second;
    int number;
    int n; /**< tickets, of all targets */
    int64_t ticket[UPDATES];
    int target[UPDATES];
} worker_t;

static int updates(void)
{
    return tl_slow() ? SLOW_UPDATES : UPDATES;
}

/* ---- what each thread does ------------------------------------------------------------------- */

static int64_t take_ticket(const tl_window_t *w, int target, int how)
{
    static const int64_t one = 1;
    const MPI_Aint at = AT(w, target, ticket);
    MPI_Request request;
    int64_t old = -1;

    if (how == 0) {
        TL_MPI(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, target, at, MPI_SUM, w->win));
    } else if (how == 1) {
        TL_MPI(MPI_Get_accumulate(&one, 1, MPI_INT64_T, &old, 1, MPI_INT64_T, target, at, 1,
                                  MPI_INT64_T, MPI_SUM, w->win));
    } else {
        TL_MPI(MPI_Rget_accumulate(&one, 1, MPI_INT64_T, &old, 1, MPI_INT64_T, target, at, 1,
                                   MPI_INT64_T, MPI_SUM, w->win, &request));
        TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        return old;
    }
    TL_MPI(MPI_Win_flush_local(target, w->win));
    return old;
}

/** One more by compare and swap. */
static void swap_up(const tl_window_t *w, int target)
{
    const MPI_Aint at = AT(w, target, swapped);
    int64_t expected, found = 0, wanted;

    do {
        expected = found;
        wanted = expected + 1;
        TL_MPI(MPI_Compare_and_swap(&wanted, &expected, &found, MPI_INT64_T, target, at, w->win));
        TL_MPI(MPI_Win_flush(target, w->win));
    } while (found != expected && tl_failed() == 0);
}

static uint32_t bit_of(const tl_window_t *w, int thread)
{
    return 1u << (w->rank * THREADS + thread);
}

static void add_all(const worker_t *me, int target, int i)
{
    static const int32_t ones[FIELD / 2] = {[0 ... FIELD / 2 - 1] = 1};
    const tl_window_t *w = me->w;
    const uint32_t word = 3, bit = bit_of(w, me->number);
    const double half = 0.5;
    const float mine = (float)(i + w->rank);

    TL_MPI(MPI_Accumulate(&word, 1, MPI_UINT32_T, target, AT(w, target, word), 1, MPI_UINT32_T,
                          MPI_SUM, w->win));
    TL_MPI(MPI_Accumulate(&bit, 1, MPI_UINT32_T, target, AT(w, target, bits), 1, MPI_UINT32_T,
                          MPI_BXOR, w->win));
    TL_MPI(MPI_Accumulate(&half, 1, MPI_DOUBLE, target, AT(w, target, sum), 1, MPI_DOUBLE, MPI_SUM,
                          w->win));
    TL_MPI(MPI_Accumulate(&mine, 1, MPI_FLOAT, target, AT(w, target, most), 1, MPI_FLOAT, MPI_MAX,
                          w->win));
    TL_MPI(MPI_Accumulate(ones, FIELD / 2, MPI_INT32_T, target, AT(w, target, field), 1,
                          me->every_second, MPI_SUM, w->win));
    TL_MPI(MPI_Win_flush(target, w->win));
}

static void *update(void *arg)
{
    worker_t *me = arg;
    tl_rng_t rng = tl_rng(tl_seed(), (uint64_t)(me->w->rank * THREADS + me->number));

    for (int i = 0; i < updates(); i++) {
        me->target[i] = (int)tl_range(&rng, 0, me->w->size - 1);
        me->ticket[i] = take_ticket(me->w, me->target[i], i % 3);
        add_all(me, me->target[i], i);
        swap_up(me->w, me->target[i]);
        me->n++;
    }
    return NULL;
}

/* ---- what has come of it --------------------------------------------------------------------- */

static void run(worker_t *workers)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        TL_CHECK(pthread_create(&threads[i], NULL, update, &workers[i]) == 0, "no thread");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/** All tickets of a target, of all threads and ranks, are 0, 1, 2, ... */
static void check_tickets(const tl_window_t *w, const worker_t *workers, int target, int total)
{
    unsigned char *seen = tl_alloc((size_t)total + 1);
    int outside = 0, wrong = 0;

    for (int i = 0; i < THREADS * updates(); i++) {
        const worker_t *worker = &workers[i / updates()];
        const int64_t ticket = worker->ticket[i % updates()];

        if (worker->target[i % updates()] != target)
            continue;
        if (ticket >= 0 && ticket < total)
            seen[ticket]++;
        else
            outside++;
    }
    MPI_Allreduce(MPI_IN_PLACE, seen, total, MPI_UNSIGNED_CHAR, MPI_SUM, w->comm);
    for (int i = 0; i < total; i++)
        wrong += seen[i] != 1;
    TL_CHECK(wrong == 0 && outside == 0, "of %d tickets of rank %d %d are wrong, and %d outside",
             total, target, wrong, outside);
    free(seen);
}

static void check_sums(const values_t *v, int total, uint32_t bits)
{
    int64_t field = 0;

    TL_CHECK(v->ticket == total, "%ld tickets of %d", (long)v->ticket, total);
    TL_CHECK(v->swapped == total, "%ld swaps of %d", (long)v->swapped, total);
    TL_CHECK(v->sum == 0.5 * total, "%g of %g", v->sum, 0.5 * total);
    TL_CHECK(v->bits == bits, "%x, not %x", v->bits, bits);
    TL_CHECK(v->word == 3 * (uint32_t)total, "%u of %d", v->word, 3 * total);
    for (int i = 0; i < FIELD; i++)
        field += v->field[i] != (i % 2 == 0 ? total : 0);
    TL_CHECK(field == 0, "%ld elements of the field are wrong", (long)field);
}

static void test_updates(const tl_window_t *w, MPI_Datatype every_second)
{
    worker_t *workers = tl_alloc(THREADS * sizeof(*workers));
    int *mine = tl_alloc((size_t)w->size * sizeof(*mine));
    uint32_t *bits = tl_alloc((size_t)w->size * sizeof(*bits)), mine_bits;

    for (int i = 0; i < THREADS; i++)
        workers[i] = (worker_t){.w = w, .every_second = every_second, .number = i};
    TL_MPI(MPI_Win_lock_all(0, w->win));
    run(workers);
    TL_MPI(MPI_Win_unlock_all(w->win));
    for (int i = 0; i < THREADS * updates(); i++) {
        const int target = workers[i / updates()].target[i % updates()];

        mine[target]++;
        bits[target] ^= bit_of(w, i / updates());
    }
    MPI_Allreduce(MPI_IN_PLACE, mine, w->size, MPI_INT, MPI_SUM, w->comm);
    for (int target = 0; target < w->size; target++)
        check_tickets(w, workers, target, mine[target]);
    MPI_Reduce_scatter_block(bits, &mine_bits, 1, MPI_UINT32_T, MPI_BXOR, w->comm);
    check_sums((const values_t *)w->base, mine[w->rank], mine_bits);
    MPI_Barrier(w->comm);
    free(bits);
    free(mine);
    free(workers);
}

/* ---- order, parts, errors -------------------------------------------------------------------- */

/** Those of one origin to one place are done in their order, whatever they take, in all kinds of
 *  epoch. */
static void test_order(const tl_window_t *w)
{
    const int to = (w->rank + 1) % w->size;
    const MPI_Aint at = AT(w, to, order);
    const int64_t five = 5, three = 3, two = 2;
    int64_t old[2] = {-1, -1};

    for (tl_sync_t sync = 0; sync < TL_SYNCS; sync++) {
        tl_begin(w, sync);
        TL_MPI(MPI_Accumulate(&five, 1, MPI_INT64_T, to, at, 1, MPI_INT64_T, MPI_REPLACE, w->win));
        TL_MPI(MPI_Accumulate(&three, 1, MPI_INT64_T, to, at, 1, MPI_INT64_T, MPI_PROD, w->win));
        TL_MPI(MPI_Fetch_and_op(&two, &old[0], MPI_INT64_T, to, at, MPI_SUM, w->win));
        TL_MPI(MPI_Fetch_and_op(NULL, &old[1], MPI_INT64_T, to, at, MPI_NO_OP, w->win));
        tl_end(w, sync);
        TL_CHECK(old[0] == 15 && old[1] == 17, "fetched %ld and %ld in %s", (long)old[0],
                 (long)old[1], tl_sync_name(sync));
        TL_CHECK(((values_t *)w->base)->order == 17, "%ld is left in %s",
                 (long)((values_t *)w->base)->order, tl_sync_name(sync));
        MPI_Barrier(w->comm);
    }
}

/** What is fetched is all of the target, though only a part of it changes. */
static void test_part(const tl_window_t *w)
{
    const int to = (w->rank + 1) % w->size;
    int32_t more[FIELD / 2], got[FIELD];
    values_t *mine = (values_t *)w->base;

    for (int i = 0; i < FIELD; i++) {
        mine->kept[i] = 100 + i;
        more[i / 2] = 1000;
    }
    tl_begin(w, TL_FENCE);
    TL_MPI(MPI_Get_accumulate(more, FIELD / 2, MPI_INT32_T, got, FIELD, MPI_INT32_T, to,
                              AT(w, to, kept), FIELD, MPI_INT32_T, MPI_SUM, w->win));
    tl_end(w, TL_FENCE);
    for (int i = 0; i < FIELD; i++) {
        const int32_t now = 100 + i + (i < FIELD / 2 ? 1000 : 0);

        TL_CHECK(got[i] == 100 + i && mine->kept[i] == now, "fetched %d, and %d is left, at %d",
                 got[i], mine->kept[i], i);
    }
}

static void test_errors(const tl_window_t *w)
{
    const int16_t half = 1;
    const int32_t word = 1;
    const long double extended = 1;

    TL_MPI(MPI_Win_lock_all(0, w->win));
    TL_MPI_ERROR(
        MPI_Accumulate(&half, 1, MPI_INT16_T, 0, AT(w, 0, word), 1, MPI_INT16_T, MPI_SUM, w->win),
        MPI_ERR_TYPE);
    TL_MPI_ERROR(MPI_Accumulate(&extended, 1, MPI_LONG_DOUBLE, 0, AT(w, 0, kept), 1,
                                MPI_LONG_DOUBLE, MPI_SUM, w->win),
                 MPI_ERR_TYPE);
    TL_MPI_ERROR(MPI_Accumulate(&word, 1, MPI_INT32_T, 0, AT(w, 0, word) + 2, 1, MPI_INT32_T,
                                MPI_SUM, w->win),
                 MPI_ERR_TYPE);
    TL_MPI(MPI_Win_unlock_all(w->win));
}

/** The last rank sleeps outside of MPI; the others do not wait for that. */
static void test_asleep(const tl_window_t *w)
{
    const int to = w->size - 1;
    int64_t before;

    TL_MPI(MPI_Win_lock_all(0, w->win));
    before = take_ticket(w, to, 0);
    MPI_Barrier(w->comm);
    if (w->rank == to) {
        usleep(ASLEEP_USEC);
    } else {
        const double begun = MPI_Wtime();

        for (int i = 0; i < 10; i++) {
            const int64_t ticket = take_ticket(w, to, i % 3);

            TL_CHECK(ticket > before, "ticket %ld after %ld", (long)ticket, (long)before);
            before = ticket;
        }
        TL_CHECK(tl_slow() || MPI_Wtime() - begun < 0.75e-6 * ASLEEP_USEC, "it took %.3f s",
                 MPI_Wtime() - begun);
    }
    MPI_Barrier(w->comm);
    TL_MPI(MPI_Win_unlock_all(w->win));
}

int main(int argc, char **argv)
{
    const unsigned long long least = (unsigned long long)(THREADS * updates());
    MPI_Datatype every_second;
    counter_t *steps;
    int index, provided;

    tl_init(&argc, &argv, MPI_THREAD_MULTIPLE);
    TL_MPI(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    if (!counter_find("osc_nicstride_adapter_atomics", &index))
        tl_skip("the component is not there");
    steps = counter_begin("osc_nicstride_adapter_atomics");
    MPI_Type_vector(FIELD / 2, 1, 2, MPI_INT32_T, &every_second);
    MPI_Type_commit(&every_second);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        const unsigned long long before = counter_read(steps);
        tl_window_t w =
            tl_win_make(kind, (MPI_Aint)sizeof(values_t), 1, MPI_COMM_WORLD, MPI_INFO_NULL);

        test_updates(&w, every_second);
        TL_CHECK(counter_read(steps) - before > least * (5 + FIELD / 2), "%llu by the adapter",
                 counter_read(steps) - before);
        test_order(&w);
        test_part(&w);
        test_errors(&w);
        test_asleep(&w);
        tl_win_free(&w);
    }
    MPI_Type_free(&every_second);
    counter_end(steps);
    TL_MPI(MPI_T_finalize());
    return tl_finish();
}
