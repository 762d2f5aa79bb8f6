/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Chains of work requests without an adapter: the bytes of requests, and adapters that read the
 * rings of up to 64 members and do what stands there, in random order, over a network that keeps
 * the order of one queue pair alone.
 */
#include "common/config.h"

#include <string.h>

#if OMPI_NIC_HAVE_MLX5DV
#include <infiniband/mlx5dv.h>
#endif

#include "coll_nicbarrier/engines/mlx5/chain.h"
#include "coll_nicbarrier/schedule/schedule.h"
#include "common/support/bytes.h"
#include "test/unit/unit.h"

/* ---- bytes ---------------------------------------------------------------------------------- */

static const nicbarrier_wqe_place_t place = {.qpn = 0x123456, .index = 0xfedc};
static const nicbarrier_wqe_word_t word = {.addr = 0x1122334455667780, .key = 0x99aabbcc};

START_TEST(the_bytes_of_a_wait)
{
    static const unsigned char golden[NICBARRIER_WQE_BYTES] = {
        0x01, 0xfe, 0xdc, 0x0f, 0x12, 0x34, 0x56, 3,    0,    0,    0,    0,
        0,    0,    0,    0,    0,    0,    0,    0x14, 0x99, 0xaa, 0xbb, 0xcc,
        0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x80, 0x01, 0x02, 0x03, 0x04,
        0x05, 0x06, 0x07, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    nicbarrier_wqe_t wqe;

    nicbarrier_wqe_wait(&wqe, place, word, 0x0102030405060708);
    ck_assert_mem_eq(wqe.bytes, golden, sizeof(golden));
}
END_TEST

START_TEST(the_bytes_of_a_write)
{
    static const unsigned char golden[NICBARRIER_WQE_BYTES] = {
        0x00, 0xfe, 0xdc, 0x08, 0x12, 0x34, 0x56, 3,    0,    0,    0,    0x08, 0,    0,   0,
        0,    0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x80, 0x99, 0xaa, 0xbb, 0xcc, 0,   0,
        0,    0,    0x80, 0x00, 0x00, 0x08, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08};
    nicbarrier_wqe_t wqe;

    nicbarrier_wqe_write(&wqe, place, word, 0x0102030405060708);
    ck_assert_mem_eq(wqe.bytes, golden, sizeof(golden));
}
END_TEST

/** What the vendor's header makes of the same fields, where there is one. */
START_TEST(the_bytes_are_those_of_the_header)
{
#if OMPI_NIC_HAVE_MLX5DV
    struct {
        struct mlx5_wqe_ctrl_seg ctrl;
        struct mlx5_wqe_raddr_seg far;
        struct mlx5_wqe_inl_data_seg data;
        uint32_t value[2];
    } write;
    nicbarrier_wqe_t wqe;

    memset(&write, 0, sizeof(write));
    mlx5dv_set_ctrl_seg(&write.ctrl, place.index, MLX5_OPCODE_RDMA_WRITE, 0, place.qpn,
                        MLX5_WQE_CTRL_CQ_UPDATE, 3, 0, 0);
    write.far = (struct mlx5_wqe_raddr_seg){htobe64(word.addr), htobe32(word.key), 0};
    write.data.byte_count = htobe32(MLX5_INLINE_SEG | 8);
    write.value[1] = htobe32(77);
    nicbarrier_wqe_write(&wqe, place, word, 77);
    ck_assert_mem_eq(wqe.bytes, &write, sizeof(write));
    mlx5dv_set_ctrl_seg(&write.ctrl, place.index, 0x0f, 1, place.qpn, 0, 3, 0, 0);
    nicbarrier_wqe_wait(&wqe, place, word, 77);
    ck_assert_mem_eq(wqe.bytes, &write.ctrl, sizeof(write.ctrl));
    ck_assert_uint_eq(MLX5_SEND_WQE_BB, NICBARRIER_WQE_BYTES);
#endif
}
END_TEST

/* ---- adapters ------------------------------------------------------------------------------- */

enum { MEMBERS = 64, DEPTH = 8, STEPS = 12, PLACES = DEPTH * NICBARRIER_CHAIN_REQUESTS };
/** Of a run: far more than any takes. */
enum { MOST_TURNS = 20000000 };

/** A queue pair: its ring, and what the network has of it. */
typedef struct queue_pair {
    nicbarrier_wqe_t ring[PLACES];
    uint32_t places;       /* in use, all of them */
    uint64_t posted, done; /* requests */
    uint64_t shown;        /* requests that are known to be done */
    struct {
        uint64_t addr, value, through; /* requests: this one and those before */
        uint32_t key;
    } flying[DEPTH];
    uint32_t first, last;
} queue_pair_t;

typedef struct member {
    nicbarrier_chain_t chain;
    nicbarrier_rule_t rule;
    unsigned char words[NICBARRIER_CHAIN_BYTES];
    uint64_t entered;
    uint64_t asleep; /* turns in which its process does nothing */
    queue_pair_t qp[STEPS];
} member_t;

static struct {
    unit_random_t random;
    int n;
    member_t member[MEMBERS];
} sim;

static uint64_t below(uint64_t n)
{
    return unit_below(&sim.random, n);
}

static uint32_t number_of(int i, uint32_t k)
{
    return 0x100 + (uint32_t)i * STEPS + k;
}

/** Keys say whose memory it is, and whether the adapter or others may use them. */
static nicbarrier_wqe_word_t words_of(int i, bool far)
{
    return (nicbarrier_wqe_word_t){(uint64_t)(i + 1) << 32,
                                   (far ? 0x2000U : 0x1000U) + (uint32_t)i};
}

static unsigned char *memory(uint64_t addr, uint32_t key, bool far)
{
    const uint64_t i = (addr >> 32) - 1, at = addr & UINT32_MAX;

    UNIT_CHECK(i < (uint64_t)sim.n && key == words_of((int)i, far).key);
    UNIT_CHECK(at % NICBARRIER_CHAIN_STRIDE == 0 && at < NICBARRIER_CHAIN_BYTES);
    return sim.member[i].words + at;
}

static bool all_zero(const unsigned char *bytes, size_t n)
{
    while (n > 0 && bytes[n - 1] == 0)
        n--;
    return n == 0;
}

static bool wait_is_over(const unsigned char *w)
{
    const uint64_t value = onic_get64(w + 32), mask = onic_get64(w + 40);
    const uint64_t there = onic_get64(memory(onic_get64(w + 24), onic_get32(w + 20), false));

    UNIT_CHECK(onic_get32(w + 16) == 0x14 && mask == UINT64_MAX && all_zero(w + 48, 16));
    return (int64_t)(value - there) <= 0;
}

static void begin_write(queue_pair_t *q, const unsigned char *w)
{
    const uint32_t at = q->last++ % DEPTH;

    UNIT_CHECK(q->last - q->first <= DEPTH && w[11] == 0x08);
    UNIT_CHECK(onic_get32(w + 28) == 0 && onic_get32(w + 32) == 0x80000008);
    UNIT_CHECK(all_zero(w + 44, 20));
    q->flying[at].addr = onic_get64(w + 16);
    q->flying[at].key = onic_get32(w + 24);
    q->flying[at].value = onic_get64(w + 36);
    q->flying[at].through = q->done + 1;
}

/** The adapter looks at the next request of a ring; false where nothing has happened. */
static bool execute(int i, uint32_t k)
{
    queue_pair_t *q = &sim.member[i].qp[k];
    const unsigned char *w = q->ring[q->done % (q->places > 0 ? q->places : 1)].bytes;

    if (q->done == q->posted)
        return false;
    UNIT_CHECK((onic_get32(w) >> 8 & 0xffff) == (q->done & 0xffff));
    UNIT_CHECK(onic_get32(w + 4) == (number_of(i, k) << 8 | 3));
    UNIT_CHECK(all_zero(w + 8, 3) && all_zero(w + 12, 4));
    if (w[3] == 0x0f && w[0] == 1) {
        UNIT_CHECK(w[11] == 0);
        if (!wait_is_over(w))
            return false;
    } else {
        UNIT_CHECK(w[3] == 0x08 && w[0] == 0);
        begin_write(q, w);
    }
    q->done++;
    return true;
}

/** The network brings the next write of a queue pair; false where there is none. */
static bool deliver(queue_pair_t *q)
{
    if (q->first == q->last)
        return false;
    const uint32_t at = q->first++ % DEPTH;
    unsigned char *to = memory(q->flying[at].addr, q->flying[at].key, true);

    UNIT_CHECK(q->flying[at].value == onic_get64(to) + 1);
    onic_put64(to, q->flying[at].value);
    q->shown = q->flying[at].through;
    return true;
}

/* ---- processes ------------------------------------------------------------------------------ */

static void post(void *arg, uint32_t k, uint64_t epoch, const nicbarrier_wqe_t *wqe, uint32_t n,
                 bool more)
{
    queue_pair_t *q = &((member_t *)arg)->qp[k];

    UNIT_CHECK(q->posted == (epoch - 1) * n);
    for (uint32_t j = 0; j < n; j++)
        q->ring[q->posted++ % q->places] = wqe[j];
    UNIT_CHECK(q->posted - q->shown <= q->places);
    (void)more;
}

static uint64_t entered_by_all(void)
{
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < sim.n; i++)
        least = sim.member[i].entered < least ? sim.member[i].entered : least;
    return least;
}

/** Reads the flags, as the process does it. */
static uint64_t completed(member_t *m)
{
    const nicbarrier_wqe_word_t start = {0, 0};

    nicbarrier_rule_enter(&m->rule, m->entered);
    for (uint32_t k = 0; k < m->chain.nsteps; k++)
        if ((m->chain.waits >> k & 1) != 0)
            (void)nicbarrier_rule_receive(
                &m->rule, k, onic_get64(m->words + nicbarrier_chain_word(start, k).addr));
    (void)nicbarrier_rule_advance(&m->rule);
    UNIT_CHECK(m->rule.completed <= entered_by_all());
    return m->rule.completed;
}

/** The process learns what the adapter has shown, of some queue pairs. */
static void take_completions(member_t *m)
{
    for (uint32_t k = 0; k < m->chain.nsteps; k++)
        if (below(3) > 0)
            nicbarrier_chain_shown(&m->chain, k,
                                   m->qp[k].shown / nicbarrier_chain_requests(&m->chain, k));
}

static void enter(member_t *m, uint64_t epoch)
{
    m->entered = epoch;
    onic_put64(m->words + NICBARRIER_CHAIN_ENTERED * NICBARRIER_CHAIN_STRIDE, epoch);
}

static void run_process(member_t *m, uint64_t epochs)
{
    if (m->asleep > 0) {
        m->asleep--;
        return;
    }
    take_completions(m);
    (void)nicbarrier_chain_prepost(&m->chain, (uint32_t)below(DEPTH + 1), post, m);
    if (m->entered < epochs && m->entered - completed(m) < 2 * DEPTH)
        enter(m, m->entered + 1 + (m->entered + 1 < epochs && below(4) == 0));
    m->asleep = below(32) == 0 ? below(200) : 0;
}

/** Something happens at a member. */
static void turn(int i, uint64_t epochs)
{
    member_t *m = &sim.member[i];
    const uint32_t k = (uint32_t)below(m->chain.nsteps);

    switch (below(4)) {
    case 0:
        run_process(m, epochs);
        break;
    case 1:
        (void)deliver(&m->qp[k]);
        break;
    default:
        (void)execute(i, k);
    }
}

/** Adapters and network go on by themselves until nothing happens any more. */
static void settle(void)
{
    bool more = true;

    while (more) {
        more = false;
        for (int i = 0; i < sim.n; i++) {
            for (uint32_t k = 0; k < sim.member[i].chain.nsteps; k++)
                while (execute(i, k) || deliver(&sim.member[i].qp[k]))
                    more = true;
        }
    }
}

/* ---- groups --------------------------------------------------------------------------------- */

static void begin_member(int i, nicbarrier_schedule_kind_t kind)
{
    nicbarrier_step_t steps[NICBARRIER_STEPS_MAX];
    const int n = nicbarrier_schedule(kind, i, sim.n, steps);
    member_t *m = &sim.member[i];
    nicbarrier_chain_t *c = &m->chain;

    ck_assert_int_le(n, STEPS);
    c->nsteps = (uint32_t)n;
    c->words = words_of(i, false);
    c->depth = 1 + (uint32_t)below(DEPTH);
    nicbarrier_schedule_bits(steps, n, &c->sends, &c->waits);
    nicbarrier_rule_init(&m->rule, c->nsteps, c->sends, c->waits);
    for (uint32_t k = 0; k < c->nsteps; k++) {
        if ((c->sends >> k & 1) == 0)
            continue;
        c->ring[k].next.qpn = number_of(i, k);
        c->ring[k].flag = nicbarrier_chain_word(words_of(steps[k].send_to, true), steps[k].send_at);
        m->qp[k].places = c->depth * nicbarrier_chain_requests(c, k);
    }
}

static void begin(int n, nicbarrier_schedule_kind_t kind)
{
    memset(&sim.member, 0, sizeof(sim.member));
    sim.n = n;
    for (int i = 0; i < n; i++)
        begin_member(i, kind);
}

static void end(uint64_t epochs)
{
    uint64_t rounds = 0;

    for (bool more = true; more;) {
        UNIT_CHECK(rounds++ <= 99 * epochs);
        more = false;
        for (int i = 0; i < sim.n; i++) {
            member_t *m = &sim.member[i];

            take_completions(m);
            (void)nicbarrier_chain_prepost(&m->chain, DEPTH, post, m);
            more |= completed(m) < epochs || nicbarrier_chain_written(&m->chain) < epochs;
        }
        settle();
    }
}

/** Many epochs in a row: none is complete before all have entered it (completed), and all become
 *  so. */
static void run(int n, nicbarrier_schedule_kind_t kind, uint64_t epochs)
{
    uint64_t turns = 0;

    begin(n, kind);
    while (entered_by_all() < epochs) {
        UNIT_CHECK(turns++ < MOST_TURNS);
        turn((int)below((uint64_t)n), epochs);
    }
    end(epochs);
}

START_TEST(barriers_in_a_row)
{
    sim.random.state = unit_seed() + (uint64_t)_i;
    run(2 + _i, NICBARRIER_DISSEMINATION, 40);
    run(2 + _i, NICBARRIER_PAIRWISE, 40);
    run(2 + _i, NICBARRIER_GATHER_BROADCAST, 40);
}
END_TEST

/** A member that has entered does nothing more: the last one that comes sets all of it going. */
START_TEST(adapters_go_on_by_themselves)
{
    sim.random.state = unit_seed() + (uint64_t)_i;
    for (int kind = NICBARRIER_DISSEMINATION; kind <= NICBARRIER_GATHER_BROADCAST; kind++) {
        const int n = 2 + _i, last = (int)below((uint64_t)n);

        begin(n, (nicbarrier_schedule_kind_t)kind);
        for (int i = 0; i < n; i++) {
            sim.member[i].chain.depth = DEPTH;
            for (uint32_t k = 0; k < sim.member[i].chain.nsteps; k++)
                sim.member[i].qp[k].places = PLACES;
            ck_assert_uint_eq(
                nicbarrier_chain_prepost(&sim.member[i].chain, 2 * DEPTH, post, &sim.member[i]),
                DEPTH);
            if (i != last)
                enter(&sim.member[i], DEPTH);
        }
        for (uint64_t epoch = 0; epoch <= DEPTH; epoch++) {
            enter(&sim.member[last], epoch);
            settle();
            for (int i = 0; i < n; i++)
                ck_assert_uint_eq(completed(&sim.member[i]), epoch);
        }
        end(DEPTH);
    }
}
END_TEST

/** The number of a request begins again behind 2^16. */
START_TEST(many_epochs)
{
    sim.random.state = unit_seed();
    run(2, NICBARRIER_DISSEMINATION, 70000);
    ck_assert_uint_gt(sim.member[0].qp[0].posted, 1 << 17);
}
END_TEST

int main(void)
{
    return UNIT_RUN("nicbarrier_chain", UNIT_LOOP(barriers_in_a_row, 0, MEMBERS - 1),
                    UNIT_LOOP(adapters_go_on_by_themselves, 0, MEMBERS - 1),
                    UNIT_ONCE(the_bytes_are_those_of_the_header), UNIT_ONCE(the_bytes_of_a_wait),
                    UNIT_ONCE(the_bytes_of_a_write), UNIT_ONCE(many_epochs));
}
