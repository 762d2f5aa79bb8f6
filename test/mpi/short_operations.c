/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * Short operations that stand alone, or are followed by a few others before anybody waits:
 * whichever way their answers come, by message or by memory that both sides share, each is taken
 * once and by the operation that it is for. All ranks do so to all at the same time.
 */
#include "test/mpi/counter.h"
#include "test/mpi/testlib.h"

#include <mpi-ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** Each origin has so many places at each target, and before it waits uses each of them once. */
enum { PLACES = 4, BYTES = 128, ROUNDS = 1500 };

/** How operations are completed. */
typedef enum completion {
    FLUSH,
    FLUSH_ALL,
    FLUSH_LOCAL, /* what was fetched is there; then the rest */
    UNLOCK,
    COMPLETIONS
} completion_t;

/** An operation under way. */
typedef struct operation {
    int target;
    unsigned char source[BYTES], compare[BYTES], result[BYTES];
    unsigned char expected[BYTES]; /* what the result must be */
    MPI_Request request;
} operation_t;

static unsigned char (*now)[PLACES][BYTES]; /* of each target, as it must be */
static operation_t operations[PLACES];

static MPI_Aint at(const tl_window_t *w, int target, int place)
{
    return tl_disp(w, target, ((MPI_Aint)w->rank * PLACES + place) * BYTES);
}

static void transfer(const tl_window_t *w, tl_rng_t *rng, operation_t *o, int place)
{
    const int n = (int)tl_range(rng, 0, 1) == 0 ? 8 : (int)tl_range(rng, 1, BYTES);
    const MPI_Aint disp = at(w, o->target, place);
    unsigned char *there = now[o->target][place];

    switch (tl_range(rng, 0, 5)) {
    case 0:
    case 1:
        TL_MPI(MPI_Put(o->source, n, MPI_BYTE, o->target, disp, n, MPI_BYTE, w->win));
        memcpy(there, o->source, (size_t)n);
        break;
    case 2:
        TL_MPI(MPI_Rput(o->source, n, MPI_BYTE, o->target, disp, n, MPI_BYTE, w->win, &o->request));
        memcpy(there, o->source, (size_t)n);
        break;
    case 3:
        memcpy(o->expected, there, (size_t)n);
        TL_MPI(MPI_Rget(o->result, n, MPI_BYTE, o->target, disp, n, MPI_BYTE, w->win, &o->request));
        break;
    default:
        memcpy(o->expected, there, (size_t)n);
        TL_MPI(MPI_Get(o->result, n, MPI_BYTE, o->target, disp, n, MPI_BYTE, w->win));
        break;
    }
}

static void update(const tl_window_t *w, tl_rng_t *rng, operation_t *o, int place)
{
    static const MPI_Datatype types[] = {MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T};
    static const MPI_Op ops[] = {MPI_BXOR, MPI_REPLACE, MPI_NO_OP};
    const int kind = (int)tl_range(rng, 0, 3), n = 1 << kind;
    const MPI_Datatype type = types[kind];
    const MPI_Aint disp = at(w, o->target, place);
    const int count = (int)tl_range(rng, 1, BYTES / n), call = (int)tl_range(rng, 0, 3);
    const int op = (int)tl_range(rng, 0, call == 2 ? 1 : 2); /* no MPI_NO_OP in MPI_Accumulate */
    unsigned char *there = now[o->target][place];
    int bytes = n;

    switch (call) {
    case 0:
        memcpy(o->expected, there, (size_t)n);
        TL_MPI(MPI_Fetch_and_op(o->source, o->result, type, o->target, disp, ops[op], w->win));
        break;
    case 1:
        bytes = n * count;
        memcpy(o->expected, there, (size_t)bytes);
        TL_MPI(MPI_Get_accumulate(o->source, count, type, o->result, count, type, o->target, disp,
                                  count, type, ops[op], w->win));
        break;
    case 2:
        bytes = n * count;
        TL_MPI(
            MPI_Accumulate(o->source, count, type, o->target, disp, count, type, ops[op], w->win));
        break;
    default:
        memcpy(o->expected, there, (size_t)n);
        memcpy(o->compare, there, (size_t)n);
        if (tl_range(rng, 0, 2) == 0)
            o->compare[0] ^= 1;
        TL_MPI(
            MPI_Compare_and_swap(o->source, o->compare, o->result, type, o->target, disp, w->win));
        if (memcmp(o->compare, there, (size_t)n) == 0)
            memcpy(there, o->source, (size_t)n);
        return;
    }
    for (int i = 0; i < bytes; i++)
        there[i] = op == 0 ? there[i] ^ o->source[i] : op == 1 ? o->source[i] : there[i];
}

static void begin(const tl_window_t *w, tl_rng_t *rng, int place, int target)
{
    operation_t *o = &operations[place];

    o->target = target;
    o->request = MPI_REQUEST_NULL;
    memset(o->result, 0, BYTES);
    memset(o->expected, 0, BYTES);
    for (int i = 0; i < BYTES; i++)
        o->source[i] = (unsigned char)tl_random(rng);
    if (tl_range(rng, 0, 1) == 0)
        transfer(w, rng, o, place);
    else
        update(w, rng, o, place);
    /* A request's end says nothing of the others. */
    if (o->request != MPI_REQUEST_NULL && tl_range(rng, 0, 1) == 0)
        TL_MPI(MPI_Wait(&o->request, MPI_STATUS_IGNORE));
}

static void complete_targets(const tl_window_t *w, completion_t how, int n)
{
    for (int i = 0; i < n; i++) {
        const int target = operations[i].target;

        if (how == FLUSH) {
            TL_MPI(MPI_Win_flush(target, w->win));
        } else if (how == FLUSH_LOCAL) {
            TL_MPI(MPI_Win_flush_local(target, w->win));
        } else if (how == UNLOCK) {
            /* The same target may be among them more than once. */
            bool again = false;
            for (int k = 0; k < i; k++)
                again = again || operations[k].target == target;
            if (!again)
                TL_MPI(MPI_Win_unlock(target, w->win));
        }
    }
}

static void check(int n)
{
    int wrong = 0;

    for (int i = 0; i < n; i++) {
        operation_t *o = &operations[i];

        wrong += memcmp(o->result, o->expected, BYTES) != 0;
    }
    TL_CHECK(wrong == 0, "%d of %d results are wrong", wrong, n);
}

static void lock(const tl_window_t *w, int n)
{
    for (int i = 0; i < n; i++) {
        bool again = false;

        for (int k = 0; k < i; k++)
            again = again || operations[k].target == operations[i].target;
        if (!again)
            TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, operations[i].target, 0, w->win));
    }
}

/** Some operations, and their completion. */
static void round_of(const tl_window_t *w, tl_rng_t *rng, bool locks)
{
    const completion_t how = locks ? UNLOCK : (completion_t)tl_range(rng, FLUSH, COMPLETIONS - 2);
    const int n = tl_range(rng, 0, 2) > 0 ? 1 : (int)tl_range(rng, 1, PLACES);
    int targets[PLACES];

    targets[0] = (int)tl_range(rng, 0, w->size - 1);
    for (int i = 0; i < n; i++) {
        targets[i] = tl_range(rng, 0, 2) > 0 ? targets[0] : (int)tl_range(rng, 0, w->size - 1);
        operations[i].target = targets[i];
    }
    if (locks)
        lock(w, n);
    for (int i = 0; i < n; i++)
        begin(w, rng, i, targets[i]);
    complete_targets(w, how, n);
    for (int i = 0; i < n; i++)
        TL_MPI(MPI_Wait(&operations[i].request, MPI_STATUS_IGNORE));
    if (how == FLUSH_ALL)
        TL_MPI(MPI_Win_flush_all(w->win));
    check(n);
    if (how == FLUSH_LOCAL && tl_range(rng, 0, 1) == 0)
        complete_targets(w, FLUSH, n);
    else if (how == FLUSH_LOCAL)
        TL_MPI(MPI_Win_flush_all(w->win));
}

/** What this rank wrote is what its targets have. */
static void check_targets(const tl_window_t *w)
{
    unsigned char got[PLACES][BYTES];

    for (int target = 0; target < w->size; target++) {
        TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win));
        for (int place = 0; place < PLACES; place++) {
            TL_MPI(MPI_Get(got[place], BYTES, MPI_BYTE, target, at(w, target, place), BYTES,
                           MPI_BYTE, w->win));
        }
        TL_MPI(MPI_Win_unlock(target, w->win));
        TL_BYTES(got, now[target], sizeof(got), "at rank %d", target);
    }
}

static bool is_set(const char *name, const char *value)
{
    const char *set = getenv(name);

    return set != NULL && strcmp(set, value) == 0;
}

/** Two puts, the first of which is answered where nobody looks now: the second, which waits for
 * more like it, must go out though their origin stays away from MPI; `blocks`: so must all of its
 * blocks, which are more than an adapter is given at once. Rank 1 says by a put that they have
 * come, which rank 0 sees by plain loads. */
static void check_left_alone(const tl_window_t *w, bool blocks)
{
    enum { PATIENCE_SECONDS = TL_PATIENCE, AWAY_USEC = 200000, BLOCKS = (PLACES - 1) * BYTES / 2 };
    /* Not const: UCX cannot register read-only memory for a rendezvous. */
    static unsigned char mark[8] = {0xaa, 0x55, 1, 2, 3, 4, 5, 6};
    const int other = 1 - w->rank, last = blocks ? BYTES + 2 * (BLOCKS - 1) : BYTES;
    const volatile unsigned char *here = w->base + (MPI_Aint)other * PLACES * BYTES;
    const double end = MPI_Wtime() + PATIENCE_SECONDS;
    unsigned char none[BYTES] = {0}, many[BLOCKS];
    MPI_Datatype each_second;

    memset(many, mark[0], BLOCKS);
    TL_MPI(MPI_Type_vector(BLOCKS, 1, 2, MPI_BYTE, &each_second));
    TL_MPI(MPI_Type_commit(&each_second));
    TL_MPI(MPI_Win_lock_all(0, w->win));
    for (int place = 0; w->rank < 2 && place < PLACES; place++) {
        TL_MPI(MPI_Put(none, BYTES, MPI_BYTE, other, at(w, other, place), BYTES, MPI_BYTE, w->win));
        TL_MPI(MPI_Win_flush(other, w->win));
        memset(now[other][place], 0, BYTES);
    }
    TL_MPI(MPI_Barrier(w->comm));
    if (w->rank < 2)
        memcpy(now[other][0], mark, sizeof(mark));
    if (w->rank == 0) {
        usleep(AWAY_USEC);
        TL_MPI(MPI_Put(mark, 8, MPI_BYTE, 1, at(w, 1, 0), 8, MPI_BYTE, w->win));
        if (blocks)
            TL_MPI(MPI_Put(many, BLOCKS, MPI_BYTE, 1, at(w, 1, 1), 1, each_second, w->win));
        else
            TL_MPI(MPI_Put(mark, 8, MPI_BYTE, 1, at(w, 1, 1), 8, MPI_BYTE, w->win));
        for (int i = 0; blocks && i < BLOCKS; i++)
            now[1][1 + 2 * i / BYTES][2 * i % BYTES] = many[i];
        memcpy(now[1][1], mark, blocks ? 0 : sizeof(mark));
        while (here[0] == 0 && MPI_Wtime() < end)
            usleep(1000);
        TL_CHECK(here[0] != 0, "the second put%s has not come while its origin was away",
                 blocks ? ", of blocks," : "");
    } else if (w->rank == 1) {
        while (here[last] == 0 && MPI_Wtime() < end)
            TL_MPI(MPI_Win_sync(w->win));
        if (here[last] != 0)
            TL_MPI(MPI_Put(mark, 8, MPI_BYTE, 0, at(w, 0, 0), 8, MPI_BYTE, w->win));
    }
    TL_MPI(MPI_Win_unlock_all(w->win));
    TL_MPI(MPI_Barrier(w->comm));
    TL_MPI(MPI_Type_free(&each_second));
}

static void try_kind(tl_kind_t kind)
{
    tl_window_t w =
        tl_win_make(kind, (MPI_Aint)tl_size() * PLACES * BYTES, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    tl_rng_t rng = tl_rng(tl_seed(), (uint64_t)w.rank);
    const int rounds = (tl_slow() ? ROUNDS / 10 : ROUNDS) * tl_factor();

    memset(now, 0, (size_t)w.size * sizeof(*now));
    TL_MPI(MPI_Win_lock_all(0, w.win));
    for (int i = 0; i < rounds; i++)
        round_of(&w, &rng, false);
    TL_MPI(MPI_Win_unlock_all(w.win));
    for (int blocks = 0; blocks < 2 && w.size > 1 && !is_set("OMPI_MCA_osc_nicstride_server", "0");
         blocks++)
        check_left_alone(&w, blocks != 0);
    for (int i = 0; i < rounds / 10; i++)
        round_of(&w, &rng, true);
    check_targets(&w);
    tl_win_free(&w);
}

/** Where buffers may be of a device each is asked for, and nothing is copied before that. */
static bool devices(void)
{
#ifdef MPIX_CUDA_AWARE_SUPPORT
    return MPIX_Query_cuda_support() != 0;
#else
    return false;
#endif
}

/** With this method, between processes of a node, answers must have come by memory. */
static bool by_memory(void)
{
    bool neighbour = false;

    for (int rank = 0; rank < tl_size(); rank++) {
        const bool same = tl_same_host(rank);
        neighbour = neighbour || (rank != tl_rank() && same);
    }
    return neighbour && !devices() && is_set("OMPI_MCA_osc_nicstride_method", "pack") &&
           !is_set("OMPI_MCA_osc_nicstride_node", "0");
}

int main(int argc, char **argv)
{
    unsigned long long before = 0;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    counter_t *answers = counter_begin("osc_nicstride_slot_answers");
    const bool must_be = by_memory() && answers != NULL;
    now = tl_alloc((size_t)tl_size() * sizeof(*now));
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        try_kind(kind);
        TL_CHECK(!must_be || kind == TL_DYNAMIC || counter_read(answers) > before,
                 "no answer has come by shared memory (%s)", tl_kind_name(kind));
        before = counter_read(answers);
    }
    counter_end(answers);
    free(now);
    return tl_finish();
}
