/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/config.h"

#if OMPI_NIC_HAVE_VERBS

#include <string.h>

#include "common/transport/verbs/connect.h"

/** The other side has this long for each of its acknowledgements, as 4.096 us times a power of two
 *  (0.5 s), and is asked again so often: 7 would be for ever with soft-RoCE. */
#define TIMEOUT 17
#define RETRIES 6
/** Reads under way on a connection: more does not make them faster, but takes up the adapter. */
#define READS_MOST 16

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t within(uint32_t n, uint32_t low, uint32_t high)
{
    return n < low ? low : least(n, high);
}

static uint8_t reads(int most)
{
    return (uint8_t)(most < 0 ? 0 : least((uint32_t)most, READS_MOST));
}

int onic_rc_survey(onic_rc_adapter_t *a)
{
    struct ibv_context *context = a->port.context;
    onic_rc_spec_t *s = &a->spec;
    struct ibv_device_attr device;
    struct ibv_port_attr port;

    memset(&port, 0, sizeof(port));
    if (ibv_query_device(context, &device) != 0 ||
        ibv_query_port(context, a->port.number, &port) != 0 || device.max_qp_wr < 2 ||
        device.max_cqe < 2 || device.max_sge < 1)
        return -1;
    s->window = within(s->window, 2, least((uint32_t)device.max_qp_wr, (uint32_t)device.max_cqe));
    s->batch = within(s->batch, 1, s->window / 2);
    s->signal = within(s->signal, 1, s->batch);
    s->pieces = within(s->pieces, 1, (uint32_t)device.max_sge);
    /* Some take fewer for a read; 0 of a driver that does not say. */
    if (device.max_sge_rd > 0)
        s->pieces = least(s->pieces, (uint32_t)device.max_sge_rd);
    /* One that fails shows the end of each of its requests. */
    s->connections = least(s->connections, (uint32_t)device.max_cqe / s->window);
    a->terms.address = a->port.mine;
    a->terms.mtu = (uint8_t)port.active_mtu;
    a->terms.reads = reads(device.max_qp_init_rd_atom);
    a->reads_served = reads(device.max_qp_rd_atom);
    a->limits = (onic_rdma_limits_t){
        .pieces = s->pieces, .inline_bytes = s->inline_bytes, .message = port.max_msg_sz};
    return 0;
}

static struct ibv_qp *create(const onic_rc_adapter_t *a, uint32_t sends,
                             const onic_rdma_limits_t *limits)
{
    struct ibv_qp_init_attr attr = {.send_cq = a->completions,
                                    .recv_cq = a->completions,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = sends,
                                            .max_recv_wr = 1,
                                            .max_send_sge = limits->pieces,
                                            .max_recv_sge = 1,
                                            .max_inline_data = limits->inline_bytes}};
    return ibv_create_qp(a->port.pd, &attr);
}

struct ibv_qp *onic_rc_pair_ready(const onic_verbs_port_t *port, struct ibv_qp *qp, unsigned access)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .pkey_index = 0,
                               .port_num = port->number,
                               .qp_access_flags = access};
    if (qp != NULL &&
        ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0) {
        ibv_destroy_qp(qp);
        return NULL;
    }
    return qp;
}

struct ibv_qp *onic_rc_issuing_pair(const onic_rc_adapter_t *a, onic_rdma_limits_t *limits)
{
    *limits = a->limits;
    struct ibv_qp *qp = create(a, a->spec.window, limits);
    if (qp == NULL) {
        limits->inline_bytes = 0;
        qp = create(a, a->spec.window, limits);
    }
    if (qp == NULL) {
        limits->pieces = 1;
        qp = create(a, a->spec.window, limits);
    }
    return onic_rc_pair_ready(&a->port, qp, 0);
}

struct ibv_qp *onic_rc_serving_pair(const onic_rc_adapter_t *a)
{
    const onic_rdma_limits_t none = {.pieces = 1};
    return onic_rc_pair_ready(&a->port, create(a, 1, &none),
                              IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
}

bool onic_rc_pair_connect(const onic_verbs_port_t *port, struct ibv_qp *qp,
                          const onic_rc_terms_t *agreed, const onic_verbs_address_t *to,
                          bool issues)
{
    /* Packets are numbered from what both sides know. */
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = (enum ibv_mtu)agreed->mtu,
                               .dest_qp_num = to->qpn,
                               .rq_psn = to->qpn,
                               .max_dest_rd_atomic = issues ? 0 : agreed->reads,
                               .min_rnr_timer = 1,
                               .ah_attr = onic_verbs_route(port, to)};
    if (ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0)
        return false;
    if (!issues)
        return true;
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = TIMEOUT;
    attr.retry_cnt = RETRIES;
    attr.rnr_retry = RETRIES;
    attr.sq_psn = qp->qp_num;
    attr.max_rd_atomic = agreed->reads;
    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0;
}

#endif
