/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Strided keys on an adapter of the tests' own (verbs_library.h): requests that name a key move the
 * bytes that it has been told.
 */
#include "common/config.h"

#if OMPI_NIC_HAVE_MLX5DV

#include "common/verbs/mlx5_library.h"
#include "common/verbs/strided.h"
#include "common/verbs/strided_keys.h"
#include "test/unit/verbs_library.h"

enum { BLOCKS = 300, PITCH = 24, BLOCK = 8, KEYS = 64, FIRST_KEY = 0x700 };

/* ---- the library ---------------------------------------------------------------------------- */

typedef struct key {
    struct mlx5dv_mkey mkey; /* first */
    bool used, defined;
    uint32_t repeats, n;
    struct mlx5dv_mr_interleaved piece[ONIC_STRIDED_PIECES];
} strided_t;

static struct {
    bool other, refuses;
    strided_t key[KEYS];
    int keys, told;
    struct ibv_qp_ex ex;
    struct mlx5dv_qp_ex dv;
} mlx5;

static bool is_supported(struct ibv_device *device)
{
    (void)device;
    return !mlx5.other;
}

static struct ibv_qp *create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
                                struct mlx5dv_qp_init_attr *dv)
{
    struct ibv_qp_init_attr plain = {
        .send_cq = attr->send_cq, .qp_type = attr->qp_type, .cap = attr->cap};

    (void)context;
    UNIT_CHECK(dv->send_ops_flags == MLX5DV_QP_EX_WITH_MR_INTERLEAVED);
    UNIT_CHECK((attr->send_ops_flags & IBV_QP_EX_WITH_LOCAL_INV) != 0);
    UNIT_CHECK(attr->cap.max_inline_data >= 16 * (ONIC_STRIDED_PIECES + 1));
    plain.cap.max_inline_data = lib.inline_most;
    return ibv_create_qp(attr->pd, &plain);
}

static struct ibv_qp_ex *extended(struct ibv_qp *qp)
{
    (void)qp;
    return &mlx5.ex;
}

static struct mlx5dv_qp_ex *qp_ex_from_ibv_qp_ex(struct ibv_qp_ex *ex)
{
    (void)ex;
    return &mlx5.dv;
}

static void wr_start(struct ibv_qp_ex *ex)
{
    (void)ex;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
    (void)ex;
    return 0;
}

static void wr_mr_interleaved(struct mlx5dv_qp_ex *qp, struct mlx5dv_mkey *mkey, uint32_t access,
                              uint32_t repeats, uint16_t n, struct mlx5dv_mr_interleaved *piece)
{
    strided_t *k = (strided_t *)mkey;

    (void)qp;
    UNIT_CHECK(!k->defined && mlx5.ex.wr_flags == IBV_SEND_INLINE);
    k->defined = true;
    UNIT_CHECK(k->used && access == IBV_ACCESS_LOCAL_WRITE && n <= ONIC_STRIDED_PIECES);
    k->repeats = repeats;
    k->n = n;
    memcpy(k->piece, piece, n * sizeof(*piece));
    mlx5.told++;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t lkey)
{
    strided_t *k = &mlx5.key[lkey - FIRST_KEY];

    UNIT_CHECK(ex->wr_flags == 0 && k->used && k->defined);
    k->defined = false;
}

static struct mlx5dv_mkey *create_mkey(struct mlx5dv_mkey_init_attr *attr)
{
    strided_t *k = &mlx5.key[mlx5.keys];

    UNIT_CHECK(attr->create_flags == MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT);
    UNIT_CHECK(attr->max_entries > ONIC_STRIDED_PIECES && mlx5.keys < KEYS);
    if (mlx5.refuses)
        return NULL;
    k->used = true;
    k->mkey.lkey = FIRST_KEY + (uint32_t)mlx5.keys++;
    return &k->mkey;
}

static int destroy_mkey(struct mlx5dv_mkey *mkey)
{
    UNIT_CHECK(((strided_t *)mkey)->used);
    ((strided_t *)mkey)->used = false;
    return 0;
}

const onic_mlx5_t *onic_mlx5(void)
{
    static const onic_mlx5_t library = {.is_supported = is_supported,
                                        .create_qp = create_qp,
                                        .qp_ex_from_ibv_qp_ex = qp_ex_from_ibv_qp_ex,
                                        .create_mkey = create_mkey,
                                        .destroy_mkey = destroy_mkey};

    return &library;
}

/** The address of byte `at` of a key. */
static unsigned char *byte_of(const strided_t *k, uint64_t at)
{
    uint64_t once = 0;
    uint32_t i = 0;

    for (uint32_t j = 0; j < k->n; j++)
        once += k->piece[j].bytes_count;
    const uint64_t repeat = at / once;

    UNIT_CHECK(repeat < k->repeats);
    for (at %= once; at >= k->piece[i].bytes_count; i++)
        at -= k->piece[i].bytes_count;
    return (unsigned char *)(uintptr_t)k->piece[i].addr +
           repeat * (k->piece[i].bytes_count + k->piece[i].bytes_skip) + at;
}

static bool move(const struct ibv_sge *near, void *far, bool read)
{
    unsigned char *to = far;

    if (near->lkey < FIRST_KEY)
        return false;
    UNIT_CHECK(mlx5.key[near->lkey - FIRST_KEY].used);
    for (uint64_t i = 0; i < near->length; i++) {
        unsigned char *here = byte_of(&mlx5.key[near->lkey - FIRST_KEY], near->addr + i);

        *(read ? here : to + i) = *(read ? to + i : here);
    }
    return true;
}

/* ---- transfers ------------------------------------------------------------------------------ */

static onic_rc_adapter_t adapter;
static onic_rdma_counts_t counts;
static int ended, failed;

static void on_lost(void *owner, const char *why)
{
    (void)owner;
    (void)why;
}

static void on_ended(onic_rdma_transfer_t *t, bool bad)
{
    (void)t;
    ended++;
    failed += bad;
}

static onic_rc_t *open_connection(void)
{
    const onic_rc_spec_t spec = {.connections = 2,
                                 .window = 8,
                                 .batch = 4,
                                 .signal = 2,
                                 .pieces = 4,
                                 .inline_bytes = 32,
                                 .strided = true};
    onic_verbs_reason_t why;
    onic_rc_terms_t answer;
    onic_rc_t *rc;

    ended = failed = 0;
    memset(&counts, 0, sizeof(counts));
    mlx5.ex.wr_start = wr_start;
    mlx5.ex.wr_complete = wr_complete;
    mlx5.ex.wr_local_inv = wr_local_inv;
    mlx5.dv.wr_mr_interleaved = wr_mr_interleaved;
    lib_reset(1);
    lib.move = move;
    lib.extended = extended;
    ck_assert_int_eq(onic_rc_open(&adapter, "", &spec, &counts, on_lost, &why), 0);
    rc = onic_rc_make(&adapter, &adapter);
    ck_assert_ptr_nonnull(rc);
    ck_assert(onic_rc_serve(&adapter, 7, &rc->terms, &answer));
    ck_assert(onic_rc_connect(rc, &answer));
    return rc;
}

static void end(void)
{
    onic_rc_close(&adapter);
    for (int i = 0; i < KEYS; i++)
        ck_assert(!mlx5.key[i].used);
    check_all_closed();
}

/** Moves a column of `memory` to or from a row. Returns the key. */
static onic_strided_key_t *begin(onic_rc_t *rc, onic_rdma_transfer_t *t, onic_layout_t layout[2],
                                 unsigned char *memory, unsigned char *row, bool read)
{
    const onic_rdma_region_t all = {.bytes = UINT64_MAX};
    static onic_rdma_region_t regions[2];
    onic_rdma_side_t near, far;
    onic_strided_key_t *key;

    regions[0] = regions[1] = all;
    (void)onic_layout_contig(&layout[0], 0, BLOCK);
    (void)onic_layout_repeat(&layout[0], BLOCKS, PITCH);
    onic_layout_set(&layout[1], BLOCKS * BLOCK);
    near = (onic_rdma_side_t){&layout[0], (uintptr_t)memory, &regions[0], 1};
    far = (onic_rdma_side_t){&layout[1], (uintptr_t)row, &regions[1], 1};
    key = onic_strided_key_take(rc, &near, &far);
    onic_rdma_walk_init(&t->walk, &rc->limits, read, &near, &far);
    t->ended = on_ended;
    onic_rc_begin(rc, t);
    return key;
}

/** There and back: one request each way. */
START_TEST(a_column_in_one_request)
{
    static unsigned char memory[BLOCKS * PITCH], back[BLOCKS * PITCH], row[BLOCKS * BLOCK];
    onic_rc_t *rc = open_connection();
    onic_rdma_transfer_t t;
    onic_layout_t layout[2];
    onic_strided_key_t *key;

    for (int i = 0; i < BLOCKS * PITCH; i++)
        memory[i] = (unsigned char)(i % 251);
    for (int k = 0; k < 2; k++) {
        key = begin(rc, &t, layout, k == 0 ? memory : back, row, k == 1);
        ck_assert_ptr_nonnull(key);
        while (ended <= k)
            (void)onic_rc_poll(&adapter);
        onic_strided_key_give(key, false);
    }
    ck_assert(failed == 0 && lib.requests == 2 && mlx5.told == 2 && mlx5.keys == 1);
    for (int i = 0; i < BLOCKS * PITCH; i++)
        ck_assert_int_eq(back[i], i % PITCH < BLOCK ? memory[i] : 0);
    end();
}
END_TEST

/** So many at a time and no more; others go as before. */
START_TEST(many_keys)
{
    static unsigned char memory[BLOCKS * PITCH], row[BLOCKS * BLOCK];
    onic_rc_t *rc = open_connection();
    onic_rdma_transfer_t t[ONIC_STRIDED_KEYS + 1];
    onic_layout_t layout[ONIC_STRIDED_KEYS + 1][2];
    onic_strided_key_t *key[ONIC_STRIDED_KEYS + 1];

    for (int i = 0; i <= ONIC_STRIDED_KEYS; i++) {
        key[i] = begin(rc, &t[i], layout[i], memory, row, false);
        ck_assert((key[i] != NULL) == (i < ONIC_STRIDED_KEYS));
    }
    while (ended <= ONIC_STRIDED_KEYS)
        (void)onic_rc_poll(&adapter);
    for (int i = 0; i < ONIC_STRIDED_KEYS; i++)
        onic_strided_key_give(key[i], false);
    key[0] = begin(rc, &t[0], layout[0], memory, row, false);
    ck_assert_ptr_nonnull(key[0]);
    (void)onic_rc_poll(&adapter);
    onic_strided_key_give(key[0], false);
    ck_assert_int_eq(failed, 0);
    end();
}
END_TEST

/** Where a gather list holds the blocks, or they do not fit, nothing changes. */
START_TEST(no_key)
{
    onic_rc_t *rc = open_connection();
    const onic_rdma_region_t region = {.bytes = UINT64_MAX};
    onic_layout_t near_layout, far_layout;
    onic_rdma_side_t near = {&near_layout, 0, &region, 1};
    const onic_rdma_side_t far = {&far_layout, 0, &region, 1};

    for (int k = 0; k < 2; k++) {
        (void)onic_layout_contig(&near_layout, 0, 8);
        (void)onic_layout_repeat(&near_layout, k == 0 ? 4 : 400, k == 0 ? 16 : 70000);
        onic_layout_set(&far_layout, near_layout.size);
        ck_assert_ptr_null(onic_strided_key_take(rc, &near, &far));
        ck_assert(near.layout == &near_layout && near.region == &region);
    }
    end();
}
END_TEST

/** Another adapter, or one that gives none: connections are as without keys, and it is said. */
START_TEST(none_to_be_had)
{
    onic_rc_t *rc;
    const onic_rdma_side_t none = {0};
    onic_rdma_side_t near = none;

    mlx5.other = _i == 0;
    mlx5.refuses = _i == 1;
    rc = open_connection();
    ck_assert_msg(strstr(adapter.no_keys, _i == 0 ? "no mlx5" : "not give") != NULL, "%s",
                  adapter.no_keys);
    ck_assert_ptr_null(onic_strided_key_take(rc, &near, &none));
    end();
}
END_TEST

int main(void)
{
    return UNIT_RUN("strided_keys", UNIT_LOOP(none_to_be_had, 0, 2),
                    UNIT_ONCE(a_column_in_one_request), UNIT_ONCE(many_keys), UNIT_ONCE(no_key));
}

#else

int main(void)
{
    return 0;
}

#endif
