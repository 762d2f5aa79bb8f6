/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The equations of the pipeline against sums, and against pipelines run step by step. Those
 *  that the product has no use for are functions of the test: its transfers begin in the handshake,
 *  and on a node with chunks that fill a slot. */
#include "common/model/pipeline.h"

#include <math.h>
#include <string.h>

#include "perf/sim/optimal.h"
#include "test/unit/unit.h"

#define CHUNKS_MAX 100000

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-6 * fabs(b);
}

/** A transfer: chunks, and when the bytes of the first may leave at the earliest. */
typedef struct transfer {
    double chunk[CHUNKS_MAX];
    unsigned n;
    double head_start; /* the sender begins to copy so long before the clock starts */
    double block;      /* the receiver takes so much at once; 0: whole chunks */
} transfer_t;

static transfer_t t;

/** Cuts `bytes`, naively. */
static void cut(const onic_chunks_t *c, double bytes)
{
    double next = c->first;

    for (t.n = 0; bytes > 1e-7; t.n++) {
        ck_assert_uint_lt(t.n, CHUNKS_MAX);
        t.chunk[t.n] = fmin(bytes, fmin(c->most, fmax(c->least, next)));
        bytes -= t.chunk[t.n];
        next *= c->ratio;
    }
}

/** Runs it, without an equation: what leaves waits for the copy and for what left before it, what
 *  is copied out waits for its coming and for what was copied out before it. */
static double run(const onic_link_t *link)
{
    double copied = -t.head_start, left = 0, out = 0;

    for (unsigned i = 0; i < t.n; i++) {
        const double block = t.block > 0 ? fmin(t.block, t.chunk[i]) : t.chunk[i];
        double start;

        copied += t.chunk[i] / link->bcopy;
        if (i == 0 && copied < 0)
            copied = 0;
        start = fmax(copied, left) + link->gap;
        left = start + t.chunk[i] / link->bnet;
        for (double at = 0; at < t.chunk[i] - 1e-7; at += block) {
            const double len = fmin(block, t.chunk[i] - at);

            out = fmax(out, start + (at + len) / link->bnet + link->latency) + len / link->bcopy;
        }
    }
    return out;
}

/** Equation (8): the same as (9), but that nothing is copied before the clock starts, and chunks
 *  are taken whole. */
static double pipeline_paper_time(const onic_link_t *link, const onic_chunks_t *c, double bytes)
{
    onic_link_t link_begun = *link;

    link_begun.latency = 0;
    return link->latency + onic_superpipeline_time_blocks(&link_begun, c, bytes, INFINITY);
}

/** Equation (4): the chunk that is copied just while one of `chunk` bytes is sent; `overhead` is
 *  the paper's o, nanoseconds of the processor to start that. */
static double equation_4(const onic_link_t *link, double chunk, double overhead)
{
    return link->bcopy * (chunk / link->bnet + link->gap - overhead);
}

/** Equation (5), within the bounds. */
static double equation_5(const onic_chunks_t *c, double i)
{
    return fmin(c->most, fmax(c->least, c->first * pow(c->ratio, i)));
}

/** Some link; the copy is `q` times as fast as the network. */
static onic_link_t any_link(unit_random_t *r, double q)
{
    onic_link_t link = onic_links_default("other").node;

    link.gap = (double)(1 + unit_below(r, 1000));
    link.latency = (double)(1 + unit_below(r, 5000));
    link.bnet = 0.5 + (double)unit_below(r, 1000) / 50;
    link.bcopy = q * link.bnet;
    return link;
}

/** At most 1 or at least 1. */
static double slow(unit_random_t *r)
{
    return unit_once_in(r, 4) ? 1 : 0.1 + (double)unit_below(r, 850) / 1000;
}

static double fast(unit_random_t *r)
{
    return unit_once_in(r, 4) ? 1 : 1.05 + (double)unit_below(r, 3000) / 1000;
}

static onic_chunks_t any_chunks(unit_random_t *r, double ratio)
{
    onic_chunks_t c = {.ratio = ratio};

    c.least = (double)(64 + unit_below(r, 4000));
    c.first = c.least * (unit_once_in(r, 4) ? 1 : 1 + (double)unit_below(r, 100) / 10);
    c.most = c.first * (unit_once_in(r, 4) ? 1 : 1 + (double)unit_below(r, 100) / 10);
    return c;
}

/* Equations (5) to (7) against sums, growing and shrinking and neither, up to the bounds and on. */
START_TEST(series)
{
    unit_random_t r = {unit_seed()};

    for (int i = 0; i < 5000; i++) {
        const onic_chunks_t c = any_chunks(&r, unit_once_in(&r, 2) ? fast(&r) : slow(&r));
        const unsigned n = (unsigned)unit_below(&r, 100);
        const double part = (double)unit_below(&r, 1000) / 1000;
        double sum = 0, next = c.first;

        for (unsigned k = 0; k < n; k++) {
            UNIT_CHECK(near(equation_5(&c, k), fmin(c.most, fmax(c.least, next))));
            UNIT_CHECK(near(onic_chunks_sum(&c, k) + 1, sum + 1));
            UNIT_CHECK(near(onic_chunks_count(&c, sum) + 1, k + 1));
            sum += fmin(c.most, fmax(c.least, next));
            next *= c.ratio;
        }
        UNIT_CHECK(near(onic_chunks_sum(&c, n) + 1, sum + 1));
        next = onic_chunks_count(&c, sum + part * equation_5(&c, n));
        UNIT_CHECK(next >= n - 1e-6 && next <= n + 1 + 1e-6);
    }
}
END_TEST

/* Without bounds a series that shrinks would end below C_0 / (1 - q); with them it gets anywhere,
 * in blocks of the least size. */
START_TEST(shrinks)
{
    const onic_chunks_t c = {.first = 8192, .ratio = 0.5, .least = 1024, .most = 32768};

    ck_assert(equation_5(&c, 0) == 8192);
    ck_assert(equation_5(&c, 3) == 1024 && equation_5(&c, 1000) == 1024);
    ck_assert(near(onic_chunks_sum(&c, 3), 14336));
    ck_assert(near(onic_chunks_count(&c, 14336 + 10240), 13));
    ck_assert(near(onic_chunks_count(&c, 1e9), 3 + (1e9 - 14336) / 1024));
}
END_TEST

/* Equations (4) and (5) for a link: the copy of a chunk takes as long as the sending of the one
 * before it; the first is copied during the handshake. */
START_TEST(of_a_link)
{
    unit_random_t r = {unit_seed()};

    for (int i = 0; i < 2000; i++) {
        const onic_link_t link = any_link(&r, unit_once_in(&r, 2) ? fast(&r) : slow(&r));
        const onic_chunks_t c = onic_superpipeline_chunks(&link, 1, 1e12);
        const double o = link.gap * (double)unit_below(&r, 100) / 100;

        UNIT_CHECK(near(c.first / link.bcopy, fmax(1 / link.bcopy, 2 * link.latency)));
        for (double k = 0; k < 5; k++) {
            const double chunk = c.first * pow(c.ratio, k), next = chunk * c.ratio;

            UNIT_CHECK(near(next / link.bcopy, chunk / link.bnet));
            UNIT_CHECK(near(equation_4(&link, chunk, link.gap), next));
            UNIT_CHECK(
                near(equation_4(&link, chunk, o) / link.bcopy, chunk / link.bnet + link.gap - o));
        }
    }
    for (int i = 0; i < 2000; i++) {
        const onic_link_t link = any_link(&r, 1);
        const double least = (double)(1 + unit_below(&r, 10000));
        const double most = least + (double)unit_below(&r, 10000);
        const onic_chunks_t c = onic_superpipeline_chunks(&link, least, most);

        UNIT_CHECK(c.first >= least && c.first <= most && c.least == least && c.most == most);
    }
}
END_TEST

/** Equation (8) as the paper has it, the last chunk being as long as it really is. */
static double equation_8(const onic_link_t *link, double bytes)
{
    return (t.chunk[0] + t.chunk[t.n - 1]) / link->bcopy + t.n * link->gap + link->latency +
           bytes / link->bnet;
}

/* Equation (8): where copying is the faster and the chunks are full, to the digit; and everywhere
 * between the slowest way through and one chunk's copy more. */
START_TEST(growing_chunks)
{
    unit_random_t r = {unit_seed()};

    t.head_start = t.block = 0;
    for (int i = 0; i < 5000; i++) {
        const bool is_fast = unit_once_in(&r, 2);
        const onic_link_t link = any_link(&r, is_fast ? fast(&r) : slow(&r));
        onic_chunks_t c = any_chunks(&r, link.bcopy / link.bnet);
        const unsigned n = 1 + (unsigned)unit_below(&r, 40);
        double bytes = onic_chunks_sum(&c, n), time, most;

        cut(&c, bytes);
        UNIT_CHECK(t.n == n);
        time = pipeline_paper_time(&link, &c, bytes);
        if (is_fast) {
            UNIT_CHECK(near(time, equation_8(&link, bytes)));
            UNIT_CHECK(near(time, run(&link)));
        }
        bytes *= 0.3 + (double)unit_below(&r, 700) / 1000;
        cut(&c, bytes);
        time = pipeline_paper_time(&link, &c, bytes);
        most = is_fast ? equation_5(&c, t.n) : c.first;
        UNIT_CHECK(time >= equation_8(&link, bytes) * (1 - 1e-9));
        UNIT_CHECK(time <= run(&link) * (1 + 1e-9));
        UNIT_CHECK(run(&link) <= time + most / link.bcopy + t.n * link.gap);
    }
}
END_TEST

/* Equation (9): the copy of the first chunk is hidden by the handshake, that of the last but for a
 * block. */
START_TEST(blocks)
{
    unit_random_t r = {unit_seed()};

    for (int i = 0; i < 2000; i++) {
        const bool is_fast = unit_once_in(&r, 2);
        const onic_link_t link = any_link(&r, is_fast ? fast(&r) : slow(&r));
        const double block = (double)(64 + unit_below(&r, 1000));
        const onic_chunks_t c =
            onic_superpipeline_chunks(&link, block, block * (double)(1 + unit_below(&r, 50)));
        const double bytes = onic_chunks_sum(&c, (double)(1 + unit_below(&r, 30)));
        const double time = onic_superpipeline_time_blocks(&link, &c, bytes, block);
        double paper;

        cut(&c, bytes);
        t.block = block;
        t.head_start = 2 * link.latency;
        paper = block / link.bcopy + t.n * link.gap + link.latency + bytes / link.bnet;
        /* The last chunk may end with less than a block. */
        UNIT_CHECK(time <= run(&link) * (1 + 1e-9) + block / link.bcopy);
        if (is_fast && c.first / link.bcopy <= 2 * link.latency) {
            UNIT_CHECK(near(time, paper));
            UNIT_CHECK(run(&link) <= time + 1e-6);
        }
        UNIT_CHECK(time <= pipeline_paper_time(&link, &c, bytes) * (1 + 1e-9));
        UNIT_CHECK(run(&link) <= time + c.most / link.bcopy + t.n * link.gap);
    }
}
END_TEST

/** Runs the transfer in these chunks. */
static double run_in(const onic_link_t *link, const uint32_t *size, unsigned n)
{
    t.n = n;
    for (unsigned i = 0; i < n; i++)
        t.chunk[i] = size[i];
    return run(link);
}

/* No way to cut a short transfer is better than the optimal one. */
START_TEST(optimal)
{
    enum { UNITS = 10 };
    unit_random_t r = {unit_seed()};

    for (int i = 0; i < 500; i++) {
        const onic_link_t link = any_link(&r, fast(&r));
        const uint32_t unit = 64 + (uint32_t)unit_below(&r, 4000);
        const uint32_t most = unit * (1 + (uint32_t)unit_below(&r, UNITS));
        uint32_t size[SIM_OPTIMAL_MAX], sum = 0;

        t.head_start = unit_once_in(&r, 2)
                           ? 0
                           : unit * (double)(1 + unit_below(&r, 5)) / link.bcopy * (1 + 1e-12);
        t.block = unit;
        const unsigned n =
            sim_chunks_optimal(&link, UNITS * unit, unit, most, t.head_start, unit, size);
        const double time = run_in(&link, size, n);
        for (unsigned k = 0; k < n; k++) {
            UNIT_CHECK(size[k] > 0 && size[k] <= most);
            sum += size[k];
        }
        UNIT_CHECK(sum == UNITS * unit);
        /* A bit for each place where a chunk ends. */
        for (unsigned cuts = 0; cuts < 1U << (UNITS - 1); cuts++) {
            uint32_t other[UNITS] = {unit};
            unsigned k = 0;
            bool fits = true;

            for (unsigned u = 1; u < UNITS; u++) {
                k += cuts >> (u - 1) & 1;
                other[k] += unit;
            }
            for (unsigned c = 0; c <= k; c++)
                fits = fits && other[c] <= most;
            /* In a handshake as much is copied as that hides. */
            fits = fits && (t.head_start == 0 || other[0] == size[0]);
            UNIT_CHECK(!fits || time <= run_in(&link, other, k + 1) * (1 + 1e-9));
        }
    }
}
END_TEST

/* Long ones in as many chunks as they need, of no more than a buffer, and no slower than those that
 * grow. */
START_TEST(optimal_of_long)
{
    unit_random_t r = {unit_seed()};
    static uint32_t size[SIM_OPTIMAL_MAX];

    for (int i = 0; i < 100; i++) {
        const onic_link_t link = any_link(&r, fast(&r));
        const double bytes = floor(pow(2, 14 + (double)unit_below(&r, 1000) / 100));
        const onic_chunks_t c = {4096, 1.5, 4096, 65536};
        double sum = 0;

        t.head_start = 0;
        t.block = 4096;
        const unsigned n = sim_chunks_optimal(&link, bytes, 64, 65536, 0, t.block, size);
        const double time = run_in(&link, size, n);
        for (unsigned k = 0; k < n; k++) {
            UNIT_CHECK(size[k] <= 65536);
            sum += size[k];
        }
        UNIT_CHECK(sum == bytes);
        cut(&c, bytes);
        UNIT_CHECK(time <= run(&link) * 1.005);
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("model_pipeline", UNIT_ONCE(series), UNIT_ONCE(shrinks), UNIT_ONCE(of_a_link),
                    UNIT_ONCE(growing_chunks), UNIT_ONCE(blocks), UNIT_ONCE(optimal),
                    UNIT_ONCE(optimal_of_long));
}
