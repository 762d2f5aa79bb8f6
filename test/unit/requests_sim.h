/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * An adapter for the tests of requests: takes batches, processes requests some time later, shows
 * the ends of those that are signalled some time after that, and may fail. It looks at all that it
 * is given.
 */
#pragma once

#include <string.h>

#include "common/transport/verbs/requests.h"
#include "test/unit/tree.h"

enum {
    DATA = 3000,
    DEPTH = 4,
    TRANSFERS = 5,
    WINDOW = 24,
    MOST_PIECES = 8,
    FAR_KEY = 1000,
    NEAR_KEY = 2000
};

/* ---- memory ---------------------------------------------------------------------------------- */

/** Memory, as one side has it and as it should be. */
typedef struct memory {
    uint64_t base; /**< the address that offsets count from: that of byte[zero] */
    int64_t zero;
    size_t n;
    unsigned char *byte, *wanted;
    uint32_t key;
} memory_t;

static memory_t make_memory(int64_t low, int64_t high, uint32_t key)
{
    memory_t m = {.zero = -low, .n = (size_t)(high - low) + 1, .key = key};

    /* Addresses that are none of this process's. */
    m.base = (uint64_t)1 << 40 | (uint64_t)rnd(4096, 1 << 30);
    m.byte = malloc(m.n);
    m.wanted = malloc(m.n);
    for (size_t i = 0; i < m.n; i++)
        m.byte[i] = m.wanted[i] = (unsigned char)rnd64();
    return m;
}

static void free_memory(memory_t *m)
{
    free(m->byte);
    free(m->wanted);
}

static unsigned char *at_address(const memory_t *m, uint64_t addr)
{
    return m->byte + (addr - m->base + (uint64_t)m->zero);
}

/* ---- transfers ------------------------------------------------------------------------------- */

typedef struct move {
    onic_rdma_transfer_t t; /* first */
    tree_t near, far;
    memory_t memory; /**< the near side's */
    bool read;
    bool registered; /**< else all of it is carried */
    onic_rdma_limits_t limits;
    int ended, failed;
    bool begun;
} move_t;

static void cut(tree_t *t, size_t n)
{
    if (t->ref.n > n) {
        UNIT_CHECK(onic_layout_cut(&t->l, n) == ONIC_LAYOUT_OK);
        t->ref.n = n;
    }
}

static void random_layouts(move_t *v)
{
    do {
        tree_free(&v->near);
        tree_free(&v->far);
        v->near = tree_random((unsigned)rnd(0, DEPTH), DATA);
        v->far = tree_random((unsigned)rnd(0, DEPTH), DATA);
        cut(&v->near, v->far.ref.n);
        cut(&v->far, v->near.ref.n);
    } while (v->far.ref.n == 0);
}

static void ended(onic_rdma_transfer_t *t, bool failed)
{
    move_t *v = (move_t *)t;

    v->ended++;
    v->failed += failed;
}

/** The requests that a byte by byte walk needs. */
static uint32_t needed(const move_t *v, const memory_t *far)
{
    uint32_t n = 0, pieces = 0;
    uint64_t start = 0, next = 0, near_next = 0;

    for (size_t i = 0; i < v->far.ref.n; i++) {
        const uint64_t f = far->base + (uint64_t)v->far.ref.at[i];
        const uint64_t a = v->memory.base + (uint64_t)v->near.ref.at[i];
        const bool joins = a == near_next;
        const uint64_t message = v->limits.message - (start + v->limits.message) % 8;

        if (i == 0 || f != next || f - start == message || (!joins && pieces == v->limits.pieces)) {
            n++;
            pieces = 1;
            start = f;
        } else if (!joins) {
            pieces++;
        }
        next = f + 1;
        near_next = a + 1;
    }
    return n;
}

static void copy_as_wanted(move_t *v, memory_t *far)
{
    for (size_t i = 0; i < v->far.ref.n; i++) {
        unsigned char *f = far->wanted + far->zero + v->far.ref.at[i];
        unsigned char *a = v->memory.wanted + v->memory.zero + v->near.ref.at[i];

        if (v->read)
            *a = *f;
        else
            *f = *a;
    }
}

/* ---- the adapter ----------------------------------------------------------------------------- */

typedef struct posted {
    onic_rdma_request_t r;
    onic_rdma_piece_t piece[MOST_PIECES];
    bool read;
    unsigned char bytes[16 * 1024]; /**< that it carries */
} posted_t;

typedef struct adapter {
    onic_request_queue_t q;
    onic_rdma_counts_t counts, seen;
    posted_t posted[WINDOW];
    uint64_t posts, processed, shown; /**< numbers of requests */
    memory_t far;
    move_t move[TRANSFERS];
    int moves;
    onic_rdma_limits_t limits;
    uint64_t breaks_at; /**< the request that fails; 0: none */
    bool refuses;       /**< it is the post that fails */
    bool broken;
} adapter_t;

static adapter_t adapter;

/** The near memory that an address belongs to. */
static memory_t *near_memory(uint64_t addr, bool *registered_p)
{
    for (int i = 0; i < adapter.moves; i++) {
        memory_t *m = &adapter.move[i].memory;

        if (addr - m->base + (uint64_t)m->zero < m->n) {
            *registered_p = adapter.move[i].registered;
            return m;
        }
    }
    ck_abort_msg("an address that is in no memory");
    return NULL;
}

static void check_request(const onic_rdma_request_t *r, const onic_rdma_batch_t *b)
{
    const memory_t *far = &adapter.far;
    uint64_t bytes = 0;

    UNIT_CHECK(far->key == r->key);
    UNIT_CHECK(r->far - far->base + (uint64_t)far->zero + r->bytes <= far->n);
    UNIT_CHECK(r->pieces >= 1 && r->pieces <= adapter.limits.pieces);
    UNIT_CHECK(r->bytes >= 1 && r->bytes <= adapter.limits.message);
    UNIT_CHECK(r->carries == (!b->read && r->bytes <= adapter.limits.inline_bytes));
    for (uint32_t i = 0; i < r->pieces; i++) {
        const onic_rdma_piece_t *p = &b->piece[r->first + i];
        bool registered;
        const memory_t *m = near_memory(p->addr, &registered);

        UNIT_CHECK(p->addr - m->base + (uint64_t)m->zero + p->bytes <= m->n);
        UNIT_CHECK(registered ? p->key == m->key : r->carries);
        bytes += p->bytes;
    }
    UNIT_CHECK(bytes == r->bytes);
}

static void gather(posted_t *p)
{
    unsigned char *to = p->bytes;
    bool registered;

    for (uint32_t i = 0; i < p->r.pieces; i++) {
        memory_t *m = near_memory(p->piece[i].addr, &registered);

        memcpy(to, at_address(m, p->piece[i].addr), p->piece[i].bytes);
        to += p->piece[i].bytes;
    }
}

static void scatter(const posted_t *p, const unsigned char *from)
{
    bool registered;

    for (uint32_t i = 0; i < p->r.pieces; i++) {
        memory_t *m = near_memory(p->piece[i].addr, &registered);

        memcpy(at_address(m, p->piece[i].addr), from, p->piece[i].bytes);
        from += p->piece[i].bytes;
    }
}

static bool post(void *arg, const onic_rdma_batch_t *b, uint64_t first)
{
    const onic_request_queue_spec_t *spec = &adapter.q.spec;

    UNIT_CHECK(arg == &adapter && first == adapter.posts + 1);
    UNIT_CHECK(b->n >= 1 && b->n <= spec->batch);
    UNIT_CHECK(adapter.posts + b->n - adapter.shown <= spec->window);
    UNIT_CHECK(!adapter.broken);
    if (adapter.refuses && adapter.breaks_at != 0 && first + b->n > adapter.breaks_at) {
        adapter.broken = true;
        return false;
    }
    adapter.seen.doorbells++;
    for (uint32_t i = 0; i < b->n; i++) {
        posted_t *p = &adapter.posted[adapter.posts++ % WINDOW];

        check_request(&b->request[i], b);
        UNIT_CHECK(b->request[i].signalled == (i + 1 == b->n || (i + 1) % spec->signal == 0));
        p->r = b->request[i];
        p->read = b->read;
        memcpy(p->piece, b->piece + p->r.first, p->r.pieces * sizeof(p->piece[0]));
        if (p->r.carries)
            gather(p);
        adapter.seen.requests++;
        adapter.seen.bytes += p->r.bytes;
    }
    return true;
}

static void process(posted_t *p)
{
    unsigned char *far = at_address(&adapter.far, p->r.far);

    if (p->read) {
        scatter(p, far);
    } else {
        if (!p->r.carries)
            gather(p);
        memcpy(far, p->bytes, p->r.bytes);
    }
}

/** Processes some requests, and shows some ends. */
static void run_adapter(void)
{
    for (int64_t n = rnd(0, WINDOW); n > 0 && adapter.processed < adapter.posts; n--) {
        if (!adapter.refuses && adapter.processed + 1 == adapter.breaks_at) {
            adapter.broken = true;
            return;
        }
        process(&adapter.posted[adapter.processed++ % WINDOW]);
    }
    for (int64_t n = rnd(0, WINDOW); n > 0 && adapter.shown < adapter.processed; n--) {
        const uint64_t number = adapter.shown + 1;

        /* What follows may be posted into this place at once. */
        const bool signalled = adapter.posted[(number - 1) % WINDOW].r.signalled;

        adapter.shown = number;
        if (signalled) {
            adapter.seen.completions++;
            onic_request_queue_processed(&adapter.q, number);
            UNIT_CHECK(adapter.q.issued - adapter.q.processed <= adapter.q.spec.window);
        }
    }
}
