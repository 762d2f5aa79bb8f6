/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/config.h"

#if OMPI_NIC_HAVE_VERBS

#include "common/verbs/strided_keys.h"

#if OMPI_NIC_HAVE_MLX5DV

#include <stdlib.h>

#include "common/verbs/mlx5_library.h"
#include "common/verbs/strided.h"

/** Of a piece, or of their head, in a request. */
#define PIECE_BYTES 16

struct ibv_qp *onic_strided_pair(struct ibv_pd *pd, struct ibv_qp_init_attr *plain)
{
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = plain->send_cq,
        .recv_cq = plain->recv_cq,
        .qp_type = plain->qp_type,
        .cap = plain->cap,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = pd,
        .send_ops_flags =
            IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_LOCAL_INV};
    struct mlx5dv_qp_init_attr keys = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
                                       .send_ops_flags = MLX5DV_QP_EX_WITH_MR_INTERLEAVED};

    attr.cap.max_send_wr += ONIC_STRIDED_REQUESTS;
    /* The pieces stand in the request. */
    if (attr.cap.max_inline_data < (ONIC_STRIDED_PIECES + 1) * PIECE_BYTES)
        attr.cap.max_inline_data = (ONIC_STRIDED_PIECES + 1) * PIECE_BYTES;
    return onic_mlx5()->create_qp(pd->context, &attr, &keys);
}

/** One that nobody uses, or a new one. */
static onic_strided_key_t *find(onic_rc_adapter_t *a)
{
    struct mlx5dv_mkey_init_attr attr = {.pd = a->port.pd,
                                         .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
                                         .max_entries = ONIC_STRIDED_PIECES + 1};
    onic_strided_key_t *key = a->keys;

    if (key != NULL) {
        a->keys = key->next;
        return key;
    }
    key = calloc(1, sizeof(*key));
    if (key == NULL)
        return NULL;
    key->mkey = onic_mlx5()->create_mkey(&attr);
    if (key->mkey == NULL) {
        free(key);
        return NULL;
    }
    return key;
}

static void keep(onic_rc_adapter_t *a, onic_strided_key_t *key)
{
    key->next = a->keys;
    a->keys = key;
}

const char *onic_strided_keys_open(onic_rc_adapter_t *a)
{
    struct ibv_qp_init_attr attr = {.send_cq = a->completions,
                                    .recv_cq = a->completions,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = a->spec.window,
                                            .max_recv_wr = 1,
                                            .max_send_sge = a->limits.pieces,
                                            .max_recv_sge = 1,
                                            .max_inline_data = a->limits.inline_bytes}};
    struct ibv_qp *qp;
    onic_strided_key_t *key;

    if (onic_mlx5() == NULL)
        return "there is no libmlx5";
    if (!onic_mlx5()->is_supported(a->port.context->device))
        return "it is no mlx5 adapter";
    qp = onic_strided_pair(a->port.pd, &attr);
    key = qp != NULL ? find(a) : NULL;
    if (key != NULL)
        keep(a, key);
    if (qp != NULL)
        ibv_destroy_qp(qp);
    return key != NULL ? NULL : "it does not give them";
}

void onic_strided_keys_close(onic_rc_adapter_t *a)
{
    while (a->keys != NULL) {
        onic_strided_key_t *key = a->keys;

        a->keys = key->next;
        onic_mlx5()->destroy_mkey(key->mkey);
        free(key);
    }
}

/** The adapter is told what the key means from now on, and before that, that what it meant is no
 *  longer so. */
static bool define(const onic_rc_t *c, onic_strided_key_t *key, const onic_strided_t *d,
                   const onic_rdma_side_t *near)
{
    struct mlx5dv_mkey *mkey = key->mkey;
    struct mlx5dv_mr_interleaved piece[ONIC_STRIDED_PIECES];
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(c->qp);

    for (uint32_t i = 0; i < d->n; i++)
        piece[i] = (struct mlx5dv_mr_interleaved){.addr = near->base + (uint64_t)d->piece[i].offset,
                                                  .bytes_count = d->piece[i].bytes,
                                                  .bytes_skip = d->piece[i].skip,
                                                  .lkey = near->region->key};
    ibv_wr_start(qp);
    /* They are shown only where they fail, and then as some of this connection. */
    qp->wr_id = (uint64_t)c->id << ONIC_RC_NUMBER_BITS;
    if (key->defined) {
        qp->wr_flags = 0;
        ibv_wr_local_inv(qp, mkey->lkey);
    }
    qp->wr_flags = IBV_SEND_INLINE;
    mlx5dv_wr_mr_interleaved(onic_mlx5()->qp_ex_from_ibv_qp_ex(qp), mkey, IBV_ACCESS_LOCAL_WRITE,
                             d->repeats, d->n, piece);
    if (ibv_wr_complete(qp) != 0)
        return false;
    key->defined = true;
    return true;
}

onic_strided_key_t *onic_strided_key_take(onic_rc_t *c, onic_rdma_side_t *near,
                                          const onic_rdma_side_t *far)
{
    onic_rc_adapter_t *a = c->adapter;
    onic_strided_t d;
    onic_strided_key_t *key;

    if (!a->spec.strided || c->keys == ONIC_STRIDED_KEYS || near->regions != 1 ||
        onic_layout_blocks(near->layout) / onic_layout_blocks(far->layout) <= c->limits.pieces ||
        !onic_strided_describe(&d, near->layout))
        return NULL;
    key = find(a);
    if (key == NULL)
        return NULL;
    if (!define(c, key, &d, near)) {
        keep(a, key);
        return NULL;
    }
    key->rc = c;
    c->keys++;
    onic_layout_set(&key->layout, near->layout->size);
    key->region =
        (onic_rdma_region_t){0, near->layout->size, ((const struct mlx5dv_mkey *)key->mkey)->lkey};
    *near = (onic_rdma_side_t){&key->layout, 0, &key->region, 1};
    return key;
}

void onic_strided_key_give(onic_strided_key_t *key, bool failed)
{
    key->rc->keys--;
    if (!failed) {
        keep(key->rc->adapter, key);
        return;
    }
    /* Whether the adapter has come to know what it means is not known: it could not be told that
     * this is no longer so. */
    onic_mlx5()->destroy_mkey(key->mkey);
    free(key);
}

#else

const char *onic_strided_keys_open(onic_rc_adapter_t *a)
{
    (void)a;
    return "this build is without mlx5dv";
}

void onic_strided_keys_close(onic_rc_adapter_t *a)
{
    (void)a;
}

struct ibv_qp *onic_strided_pair(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    return ibv_create_qp(pd, attr);
}

onic_strided_key_t *onic_strided_key_take(onic_rc_t *c, onic_rdma_side_t *near,
                                          const onic_rdma_side_t *far)
{
    (void)c;
    (void)near;
    (void)far;
    return NULL;
}

void onic_strided_key_give(onic_strided_key_t *key, bool failed)
{
    (void)key;
    (void)failed;
}

#endif
#endif
