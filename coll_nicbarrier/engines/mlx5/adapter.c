/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine mlx5: posts work requests as bytes to a queue pair of libmlx5; see state.h. */
#include "common/config.h"

#if OMPI_NIC_HAVE_MLX5DV

#include "coll_nicbarrier/engines/mlx5/state.h"
#include "common/support/bytes.h"
#include "common/transport/verbs/mlx5_library.h"

/* QUERY_HCA_CAP asks for the adapter's current capabilities. The bit for "wait on data" is 0x68b of
 * the 4096 bytes that follow a header of 16. */
enum { QUERY = 0x100, NOW = 1, HEAD = 16, ANSWER = HEAD + 4096, WAITS = 0x68b };

static bool waits_for_memory(const onic_mlx5_t *library, struct ibv_context *context)
{
    unsigned char in[HEAD] = {0}, out[ANSWER] = {0};

    onic_put16(in, QUERY);
    onic_put16(in + 6, NOW);
    return library->devx_general_cmd(context, in, sizeof(in), out, sizeof(out)) == 0 &&
           (out[HEAD + WAITS / 8] & 0x80U >> WAITS % 8) != 0;
}

const char *nicbarrier_mlx5_obstacle(struct ibv_context *context)
{
    const onic_mlx5_t *library = onic_mlx5();

    if (library == NULL)
        return "there is no libmlx5";
    if (!library->is_supported(context->device))
        return "it is no mlx5 adapter";
    return waits_for_memory(library, context) ? NULL : "it does not wait for memory";
}

struct ibv_qp *nicbarrier_mlx5_pair(struct ibv_pd *pd, struct ibv_cq *completions, uint32_t sends)
{
    struct ibv_qp_init_attr_ex attr = {.send_cq = completions,
                                       .recv_cq = completions,
                                       .qp_type = IBV_QPT_RC,
                                       .cap = {.max_send_wr = sends,
                                               .max_recv_wr = 1,
                                               .max_send_sge = 1,
                                               .max_recv_sge = 1,
                                               .max_inline_data = sizeof(uint64_t)},
                                       .comp_mask =
                                           IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .pd = pd,
                                       .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE};
    struct mlx5dv_qp_init_attr raw = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
                                      .send_ops_flags = MLX5DV_QP_EX_WITH_RAW_WQE};

    return onic_mlx5()->create_qp(pd->context, &attr, &raw);
}

bool nicbarrier_mlx5_fill(nicbarrier_net_t *net, uint32_t k, uint64_t last)
{
    const nicbarrier_wqe_word_t mine = {(uintptr_t)net->words->addr, net->words->lkey};
    nicbarrier_end_t *end = &net->out[k];
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(end->qp);
    struct mlx5dv_qp_ex *raw = onic_mlx5()->qp_ex_from_ibv_qp_ex(qp);
    nicbarrier_wqe_t wqe[NICBARRIER_CHAIN_REQUESTS];

    ibv_wr_start(qp);
    for (uint64_t epoch = net->posted + 1; epoch <= last; epoch++) {
        const uint32_t n =
            nicbarrier_chain_build(net->rule.waits, k, epoch, &end->next, mine, end->word, wqe);

        qp->wr_id = epoch << NICBARRIER_MLX5_EPOCH_SHIFT | k;
        for (uint32_t j = 0; j < n; j++)
            mlx5dv_wr_raw_wqe(raw, &wqe[j]);
    }
    return ibv_wr_complete(qp) == 0;
}

#endif
