/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * An adapter in place of libibverbs's and libmlx5's, for engine mlx5: it takes work requests as
 * bytes, and does what stands there when it likes.
 */
#pragma once

#include "common/support/bytes.h"
#include "common/transport/verbs/mlx5_library.h"
#include "test/unit/verbs_library.h"

/** What the device is. */
typedef enum mlx5_sim {
    MLX5_SIM_NONE,  /**< there is none */
    MLX5_SIM_OTHER, /**< of another maker */
    MLX5_SIM_OLD,   /**< does not wait for memory */
    MLX5_SIM_WAITS
} mlx5_sim_t;

enum { PLACES = 128, BLOCK = 64 };

/** What a queue pair of libmlx5's has beside the others; all counters of requests. */
typedef struct ring {
    struct ibv_qp_ex ex;
    struct mlx5dv_qp_ex raw;
    unsigned char wqe[PLACES][BLOCK];
    uint64_t id[PLACES];
    uint32_t room;
    uint64_t built, posted, done, polled;
    bool shown[PLACES], open;
} ring_t;

static struct {
    mlx5_sim_t what;
    unit_random_t random;
    ring_t ring[QPS];
    uint64_t taken; /**< requests as bytes */
} sim;

/* ---- what is posted ------------------------------------------------------------------------- */

static struct ibv_qp_ex *extended(struct ibv_qp *qp)
{
    return &sim.ring[(pair_t *)qp - lib.pair].ex;
}

static struct mlx5dv_qp_ex *qp_ex_from_ibv_qp_ex(struct ibv_qp_ex *ex)
{
    return &((ring_t *)ex)->raw;
}

static void wr_start(struct ibv_qp_ex *ex)
{
    ring_t *r = (ring_t *)ex;

    UNIT_CHECK(!r->open && lib.pair[r - sim.ring].state == IBV_QPS_RTS);
    r->open = true;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
    ring_t *r = (ring_t *)ex;

    UNIT_CHECK(r->open);
    r->open = false;
    r->posted = r->built;
    return 0;
}

static void wr_raw_wqe(struct mlx5dv_qp_ex *raw, const void *wqe)
{
    ring_t *r = (ring_t *)((char *)raw - offsetof(ring_t, raw));
    const uint64_t at = r->built % PLACES;

    UNIT_CHECK(r->open && r->built - r->polled < r->room);
    memcpy(r->wqe[at], wqe, BLOCK);
    UNIT_CHECK((onic_get32(r->wqe[at]) >> 8 & 0xffff) == (r->built & 0xffff));
    UNIT_CHECK(onic_get32(r->wqe[at] + 4) >> 8 == lib.pair[r - sim.ring].qp.qp_num);
    r->id[at] = r->ex.wr_id;
    r->built++;
    sim.taken++;
}

static struct ibv_qp *create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
                                struct mlx5dv_qp_init_attr *raw)
{
    struct ibv_qp_init_attr plain = {
        .send_cq = attr->send_cq, .qp_type = attr->qp_type, .cap = attr->cap};
    struct ibv_qp *qp = ibv_create_qp(attr->pd, &plain);
    ring_t *r = &sim.ring[(pair_t *)qp - lib.pair];

    UNIT_CHECK(context == attr->pd->context && attr->cap.max_send_wr <= PLACES);
    UNIT_CHECK(raw->send_ops_flags == MLX5DV_QP_EX_WITH_RAW_WQE);
    memset(r, 0, sizeof(*r));
    r->room = attr->cap.max_send_wr;
    r->ex.wr_start = wr_start;
    r->ex.wr_complete = wr_complete;
    r->raw.wr_raw_wqe = wr_raw_wqe;
    return qp;
}

/* ---- what it does --------------------------------------------------------------------------- */

static bool waits(const unsigned char *w)
{
    const void *there = (const void *)(uintptr_t)onic_get64(w + 24);

    UNIT_CHECK(onic_get32(w + 16) == 0x14);
    return (int64_t)(onic_get64(w + 32) - onic_get64(there)) > 0;
}

/** The next request of a ring, if it can be done. */
static void execute_next(ring_t *r)
{
    const uint64_t at = r->done % PLACES;
    const unsigned char *w = r->wqe[at];
    pair_t *p = &lib.pair[r - sim.ring];

    if (!p->used || r->done == r->posted || (!p->failed && w[3] == 0x0f && waits(w)))
        return;
    if (!p->failed && w[3] == 0x08) {
        p->failed = other_end(p) == NULL;
        if (!p->failed)
            memcpy((void *)(uintptr_t)onic_get64(w + 16), w + 36, 8);
    }
    r->shown[at] = p->failed || w[11] != 0;
    r->done++;
}

/** The adapter looks at some of its rings. */
static void mlx5_sim_pass(void)
{
    for (int i = 0; i < 32; i++)
        execute_next(&sim.ring[unit_below(&sim.random, QPS)]);
}

static int poll_rings(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
    int n = 0;

    for (int i = 0; i < QPS; i++) {
        ring_t *r = &sim.ring[i];

        while (lib.pair[i].used && lib.pair[i].cq == cq && r->polled < r->done && n < most) {
            const uint64_t at = r->polled++ % PLACES;

            if (r->shown[at])
                wc[n++] = (struct ibv_wc){.wr_id = r->id[at],
                                          .status = lib.pair[i].failed ? IBV_WC_RETRY_EXC_ERR
                                                                       : IBV_WC_SUCCESS};
        }
    }
    return n;
}

/* ---- what it is ----------------------------------------------------------------------------- */

static bool is_supported(struct ibv_device *device)
{
    return device == lib.device && sim.what != MLX5_SIM_OTHER;
}

static int devx_general_cmd(struct ibv_context *context, const void *in, size_t inlen, void *out,
                            size_t outlen)
{
    UNIT_CHECK(context->device == lib.device && inlen == 16 && outlen == 16 + 4096);
    UNIT_CHECK(onic_get16(in) == 0x100 && onic_get16((const char *)in + 6) == 1);
    ((unsigned char *)out)[16 + 0xd1] = sim.what == MLX5_SIM_WAITS ? 0x10 : 0xef;
    return 0;
}

const onic_mlx5_t *onic_mlx5(void)
{
    static const onic_mlx5_t library = {.is_supported = is_supported,
                                        .create_qp = create_qp,
                                        .qp_ex_from_ibv_qp_ex = qp_ex_from_ibv_qp_ex,
                                        .devx_general_cmd = devx_general_cmd};

    return &library;
}

/** From the beginning, with a random order of what the adapter does. */
static void mlx5_sim_reset(mlx5_sim_t what, uint64_t seed)
{
    memset(&sim, 0, sizeof(sim));
    sim.what = what;
    sim.random.state = seed;
    lib_reset(1);
    lib.reads = 0;
    lib.poll_more = poll_rings;
    lib.extended = extended;
    if (what == MLX5_SIM_NONE)
        lib.devices = 0;
}

/** All connections of the i-th group that was made break: its queue pairs have a completion queue
 * of their own, and were made together. */
static void mlx5_sim_cut(int i)
{
    int group = -1;

    for (int k = 0; k < QPS; k++) {
        group += k == 0 || lib.pair[k].cq != lib.pair[k - 1].cq;
        lib.pair[k].cut |= group == i;
    }
}
