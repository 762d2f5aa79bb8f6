/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Transfers as RDMA requests, and the sliding window over them, against copies byte by byte. What
 * the adapter is given (requests_sim.h) is counted and compared with what the algorithm needs.
 */
#include "test/unit/requests_sim.h"

enum { ROUNDS = 3000 };

/* ---- rounds ---------------------------------------------------------------------------------- */

static void make_moves(void)
{
    int64_t low = 0, high = 0;

    adapter.moves = (int)rnd(1, TRANSFERS);
    for (int i = 0; i < adapter.moves; i++) {
        move_t *v = &adapter.move[i];

        random_layouts(v);
        v->read = rnd(0, 1) == 1;
        v->memory = make_memory(v->near.l.lb, v->near.l.ub, NEAR_KEY);
        v->memory.base += (uint64_t)(i + 1) << 42;
        low = v->far.l.lb < low ? v->far.l.lb : low;
        high = v->far.l.ub > high ? v->far.l.ub : high;
    }
    adapter.far = make_memory(low, high, FAR_KEY);
}

static void begin_move(move_t *v)
{
    const memory_t *far = &adapter.far;
    onic_rdma_side_t here = {&v->near.l, v->memory.base, v->memory.key};
    const onic_rdma_side_t there = {&v->far.l, far->base, far->key};

    v->limits = adapter.limits;
    v->registered = v->read || !onic_rdma_carry_all(&v->limits, &v->far.l);
    if (!v->registered)
        here.key = 0;
    onic_rdma_walk_init(&v->t.walk, &v->limits, v->read, &here, &there);
    v->t.ended = ended;
    v->begun = true;
    onic_request_queue_begin(&adapter.q, &v->t);
}

static void begin_round(void)
{
    onic_request_queue_spec_t spec = {.window = (uint32_t)rnd(2, WINDOW)};

    memset(&adapter, 0, sizeof(adapter));
    spec.batch = (uint32_t)rnd(1, spec.window / 2);
    spec.signal = (uint32_t)rnd(1, spec.batch);
    spec.pieces = (uint32_t)rnd(1, MOST_PIECES);
    adapter.limits = (onic_rdma_limits_t){.pieces = spec.pieces,
                                          .inline_bytes = rnd(0, 1) ? 0 : (uint32_t)rnd(1, 300),
                                          .message = (uint32_t)rnd(16, rnd(0, 1) ? 200 : 16000)};
    if (adapter.limits.inline_bytes > adapter.limits.message)
        adapter.limits.inline_bytes = adapter.limits.message;
    UNIT_CHECK(onic_request_queue_init(&adapter.q, &spec));
    adapter.q.post = post;
    adapter.q.arg = &adapter;
    adapter.q.counts = &adapter.counts;
    make_moves();
}

static void end_round(void)
{
    UNIT_CHECK(onic_request_queue_is_empty(&adapter.q));
    for (int i = 0; i < adapter.moves; i++) {
        UNIT_CHECK(adapter.move[i].ended == adapter.move[i].begun);
        tree_free(&adapter.move[i].near);
        tree_free(&adapter.move[i].far);
        free_memory(&adapter.move[i].memory);
    }
    free_memory(&adapter.far);
    onic_request_queue_fini(&adapter.q);
}

/** Begins all, now and then, and runs the adapter until nothing is left, or it fails. */
static void run(void)
{
    int begun = 0;

    while (!adapter.broken && (begun < adapter.moves || !onic_request_queue_is_empty(&adapter.q)))
        if (begun < adapter.moves && rnd(0, 3) == 0)
            begin_move(&adapter.move[begun++]);
        else
            run_adapter();
}

static void check_counts(void)
{
    const onic_request_queue_spec_t *spec = &adapter.q.spec;
    onic_rdma_counts_t want = {0};

    for (int i = 0; i < adapter.moves; i++) {
        const move_t *v = &adapter.move[i];
        const uint32_t n = needed(v, &adapter.far), whole = n / spec->batch, rest = n % spec->batch;

        want.requests += n;
        want.doorbells += whole + (rest > 0);
        want.completions += (uint64_t)whole * ((spec->batch + spec->signal - 1) / spec->signal) +
                            (rest + spec->signal - 1) / spec->signal;
        want.bytes += v->far.ref.n;
    }
    UNIT_CHECK(memcmp(&adapter.counts, &adapter.seen, sizeof(want)) == 0);
    UNIT_CHECK(memcmp(&adapter.counts, &want, sizeof(want)) == 0);
}

START_TEST(bytes_and_counts)
{
    for (int round = 0; round < ROUNDS; round++) {
        begin_round();
        run();
        for (int i = 0; i < adapter.moves; i++)
            copy_as_wanted(&adapter.move[i], &adapter.far);
        UNIT_CHECK(memcmp(adapter.far.byte, adapter.far.wanted, adapter.far.n) == 0);
        for (int i = 0; i < adapter.moves; i++) {
            const memory_t *m = &adapter.move[i].memory;

            UNIT_CHECK(memcmp(m->byte, m->wanted, m->n) == 0);
            UNIT_CHECK(adapter.move[i].failed == 0);
        }
        check_counts();
        end_round();
    }
}
END_TEST

/** A connection that fails ends all transfers, each once; those that had ended before are whole. */
START_TEST(failures)
{
    int failed = 0;

    for (int round = 0; round < ROUNDS; round++) {
        int whole = 0;

        begin_round();
        adapter.breaks_at = (uint64_t)rnd(1, rnd(0, 1) ? 10 : 200);
        adapter.refuses = rnd(0, 1) == 1;
        run();
        if (adapter.broken) {
            UNIT_CHECK(adapter.q.failed == adapter.refuses);
            onic_request_queue_fail(&adapter.q);
            failed++;
        }
        while (whole < adapter.moves && adapter.move[whole].ended == 1 &&
               adapter.move[whole].failed == 0)
            copy_as_wanted(&adapter.move[whole++], &adapter.far);
        for (int i = whole; i < adapter.moves; i++)
            UNIT_CHECK(adapter.move[i].failed == adapter.move[i].begun);
        if (whole == adapter.moves)
            UNIT_CHECK(memcmp(adapter.far.byte, adapter.far.wanted, adapter.far.n) == 0);
        /* What comes later ends at once. */
        for (int i = whole; i < adapter.moves; i++)
            if (!adapter.move[i].begun)
                begin_move(&adapter.move[i]);
        end_round();
    }
    ck_assert_int_gt(failed, ROUNDS / 4);
}
END_TEST

/** A strided put as the paper has it: blocks of a matrix, of which each is a request. */
START_TEST(columns_of_a_matrix)
{
    enum { ROWS = 100, BLOCK = 64, ROW = 512 };
    const onic_request_queue_spec_t spec = {.window = 16, .batch = 8, .signal = 4, .pieces = 4};
    move_t *v = &adapter.move[0];

    memset(&adapter, 0, sizeof(adapter));
    adapter.limits = (onic_rdma_limits_t){.pieces = 4, .message = 1 << 14};
    adapter.moves = 1;
    v->near = tree_block(0, (uint64_t)ROWS * BLOCK);
    v->far = tree_block(0, BLOCK);
    tree_repeat(&v->far, ROWS, ROW);
    v->memory = make_memory(0, (int64_t)ROWS * BLOCK, NEAR_KEY);
    adapter.far = make_memory(0, (int64_t)ROWS * ROW, FAR_KEY);
    UNIT_CHECK(onic_request_queue_init(&adapter.q, &spec));
    adapter.q.post = post;
    adapter.q.arg = &adapter;
    adapter.q.counts = &adapter.counts;
    begin_move(v);
    ck_assert_uint_eq(adapter.counts.requests, spec.window);
    while (!onic_request_queue_is_empty(&adapter.q))
        run_adapter();
    ck_assert_uint_eq(adapter.counts.requests, ROWS);
    ck_assert_uint_eq(adapter.counts.doorbells, 13);
    ck_assert_uint_eq(adapter.counts.completions, 25);
    ck_assert_uint_eq(adapter.counts.bytes, (uint64_t)ROWS * BLOCK);
    end_round();
}
END_TEST

int main(void)
{
    tree_seed();
    return UNIT_RUN("requests", UNIT_ONCE(bytes_and_counts), UNIT_ONCE(failures),
                    UNIT_ONCE(columns_of_a_matrix));
}
