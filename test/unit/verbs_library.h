/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Functions in place of libibverbs's: adapters whose requests on connections write and read this
 * process's memory when they are polled. They count what is open, look
 * at the order in which it is given back, and fail when they are told to.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <string.h>
#include <unistd.h>

#include "test/unit/unit.h"

enum { DEVICES = 3, QPS = 128, SENDS = 64 };

/** Calls that may fail. */
typedef enum call {
    NO_CALL,
    OPEN_DEVICE,
    QUERY_PORT,
    QUERY_GID,
    ALLOC_PD,
    REG_MR,
    CREATE_CQ,
    CREATE_QP,
    TO_INIT,
    TO_RTR,
    TO_RTS,
    POST_SEND,
} call_t;

typedef struct pair {
    struct ibv_qp qp; /* first */
    bool used, issues, failed;
    bool cut; /**< nothing goes there, nor comes from it */
    enum ibv_qp_state state;
    uint32_t to, sends;
    struct ibv_cq *cq;
    struct ibv_send_wr wr[SENDS];
    struct ibv_sge sge[SENDS][8];
    unsigned char carried[SENDS][64];
    uint64_t posted, done;
} pair_t;

static struct {
    struct ibv_device device[DEVICES];
    int devices;
    call_t fails;   /**< always */
    int calls_left; /**< until one fails, once; 0: none does */
    bool ethernet;
    uint16_t lid;
    pair_t pair[QPS];
    int lists, contexts, pds, mrs, cqs; /**< open */
    int opened;                         /**< contexts, ever */
    uint32_t inline_most;
    int sge_most, sge_read;
    int reads; /**< under way at a time, as pairs are to be connected */
    unsigned doorbells, requests;
    int cq_most, left; /**< entries of a completion queue; those of pairs that are gone */
    struct {
        struct ibv_cq *cq;
        uint64_t id;
    } gone[QPS * SENDS];
    /** The extended form of a queue pair; NULL: there are no extended ones. */
    struct ibv_qp_ex *(*extended)(struct ibv_qp *qp);
    /** What else a completion queue shows; NULL: nothing. */
    int (*poll_more)(struct ibv_cq *cq, int most, struct ibv_wc *wc);
} lib;

static bool fails(call_t call)
{
    const bool now = lib.fails == call || (lib.calls_left > 0 && --lib.calls_left == 0);
    errno = now ? ENOMEM : errno;
    return now;
}

static void lib_reset(int devices)
{
    memset(&lib, 0, sizeof(lib));
    lib.devices = devices;
    lib.lid = 3;
    lib.inline_most = 64;
    lib.sge_most = 8;
    lib.reads = 3;
    for (int i = 0; i < devices; i++) {
        lib.device[i].transport_type = IBV_TRANSPORT_IB;
        snprintf(lib.device[i].name, sizeof(lib.device[i].name), "fake%d", i);
    }
}

static int pairs(void)
{
    int n = 0;

    for (int i = 0; i < QPS; i++)
        n += lib.pair[i].used;
    return n;
}

static void check_all_closed(void)
{
    ck_assert(lib.lists == 0 && lib.contexts == 0 && lib.pds == 0 && lib.mrs == 0);
    ck_assert(lib.cqs == 0 && pairs() == 0);
}

/** Each kind of object begins with the address of what it belongs to. */
static void *make(call_t call, size_t size, int *count, void *owner)
{
    if (fails(call))
        return NULL;
    void **p = calloc(1, size);
    UNIT_CHECK(p != NULL);
    *p = owner;
    (*count)++;
    return p;
}

static int give_back(void *p, int *count)
{
    UNIT_CHECK(*count > 0);
    (*count)--;
    free(p);
    return 0;
}

struct ibv_device **ibv_get_device_list(int *n)
{
    struct ibv_device **list = calloc(DEVICES + 1, sizeof(*list));

    (void)n;
    UNIT_CHECK(list != NULL);
    for (int i = 0; i < lib.devices; i++)
        list[i] = &lib.device[i];
    lib.lists++;
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    (void)give_back(list, &lib.lists);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    return status == IBV_WC_RETRY_EXC_ERR ? "transport retry counter exceeded" : "another error";
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    pair_t *p = (pair_t *)qp;

    (void)bad;
    UNIT_CHECK(p->state == IBV_QPS_RTS);
    if (fails(POST_SEND))
        return ENOMEM;
    lib.doorbells++;
    for (; wr != NULL; wr = wr->next, p->posted++, lib.requests++) {
        const uint64_t at = p->posted % SENDS;

        UNIT_CHECK(p->posted - p->done < p->sends && wr->num_sge <= 8);
        p->wr[at] = *wr;
        memcpy(p->sge[at], wr->sg_list, (size_t)wr->num_sge * sizeof(struct ibv_sge));
        if ((wr->send_flags & IBV_SEND_INLINE) != 0) {
            unsigned char *to = p->carried[at];

            for (int i = 0; i < wr->num_sge; i++) {
                UNIT_CHECK(to + wr->sg_list[i].length <= p->carried[at] + lib.inline_most);
                memcpy(to, (void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
                to += wr->sg_list[i].length;
            }
        }
    }
    return 0;
}

/** The end that a queue pair is connected with, or none. */
static pair_t *other_end(const pair_t *p)
{
    pair_t *to = &lib.pair[p->to % QPS];

    return !p->cut && !to->cut && to->used && to->qp.qp_num == p->to && to->state >= IBV_QPS_RTR
               ? to
               : NULL;
}

static void execute(pair_t *p, uint64_t at)
{
    const struct ibv_send_wr *wr = &p->wr[at];
    unsigned char *far = (unsigned char *)(uintptr_t)wr->wr.rdma.remote_addr;
    const unsigned char *carried = p->carried[at];

    for (int i = 0; i < wr->num_sge; i++) {
        unsigned char *near = (unsigned char *)(uintptr_t)p->sge[at][i].addr;
        const size_t n = p->sge[at][i].length;

        if (wr->opcode == IBV_WR_RDMA_READ)
            memcpy(near, far, n);
        else
            memcpy(far, (wr->send_flags & IBV_SEND_INLINE) != 0 ? carried : near, n);
        carried += n;
        far += n;
    }
}

/** One request of a pair. */
static bool step(pair_t *p, struct ibv_wc *wc)
{
    const uint64_t at = p->done++ % SENDS;

    p->failed |= other_end(p) == NULL;
    if (!p->failed)
        execute(p, at);
    *wc = (struct ibv_wc){.wr_id = p->wr[at].wr_id,
                          .status = p->failed ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS};
    return p->failed || (p->wr[at].send_flags & IBV_SEND_SIGNALED) != 0;
}

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
    int n = lib.poll_more != NULL ? lib.poll_more(cq, most, wc) : 0;

    for (int i = lib.left - 1; i >= 0 && n < most; i--) {
        if (lib.gone[i].cq == cq) {
            wc[n++] = (struct ibv_wc){.wr_id = lib.gone[i].id, .status = IBV_WC_WR_FLUSH_ERR};
            lib.gone[i] = lib.gone[--lib.left];
        }
    }
    for (int i = 0; i < QPS && n < most; i++) {
        pair_t *p = &lib.pair[i];

        while (p->used && p->cq == cq && p->issues && p->done < p->posted && n < most)
            n += step(p, &wc[n]);
    }
    return n;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct ibv_context *context = make(OPEN_DEVICE, sizeof(*context), &lib.contexts, device);

    if (context != NULL) {
        lib.opened++;
        context->ops.post_send = post_send;
        context->ops.poll_cq = poll_cq;
    }
    return context;
}

int ibv_close_device(struct ibv_context *context)
{
    UNIT_CHECK(lib.contexts > 1 || (lib.pds == 0 && lib.cqs == 0));
    return give_back(context, &lib.contexts);
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    (void)context;
    memset(attr, 0, sizeof(*attr));
    attr->phys_port_cnt = 2;
    attr->max_qp_wr = SENDS;
    attr->max_cqe = 1 << 16;
    attr->max_sge = lib.sge_most;
    attr->max_sge_rd = lib.sge_read;
    attr->max_qp_init_rd_atom = 4;
    attr->max_qp_rd_atom = 3;
    return 0;
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t number,
                   struct _compat_ibv_port_attr *compat)
{
    struct ibv_port_attr *attr = (struct ibv_port_attr *)compat;

    (void)context;
    if (fails(QUERY_PORT))
        return EIO;
    attr->state = number == 2 ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    attr->link_layer = lib.ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
    attr->lid = lib.lid;
    attr->active_mtu = IBV_MTU_2048;
    attr->max_msg_sz = 1 << 20;
    return 0;
}

int ibv_query_gid(struct ibv_context *context, uint8_t number, int index, union ibv_gid *gid)
{
    (void)context;
    (void)number;
    (void)index;
    memset(gid, 1, sizeof(*gid));
    return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t number, uint32_t index,
                      struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
    static const uint8_t ipv4[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1};

    (void)context;
    (void)flags;
    UNIT_CHECK(number == 2 && size == sizeof(*entry));
    if (fails(QUERY_GID) || index != 3)
        return ENODATA;
    memset(entry, 0, sizeof(*entry));
    entry->gid_type = IBV_GID_TYPE_ROCE_V2;
    memcpy(entry->gid.raw, ipv4, sizeof(ipv4));
    return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    return make(ALLOC_PD, sizeof(struct ibv_pd), &lib.pds, context);
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    UNIT_CHECK(lib.mrs == 0 && pairs() == 0);
    return give_back(pd, &lib.pds);
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *at, size_t bytes, int access)
{
    (void)bytes;
    (void)access;
    struct ibv_mr *mr = make(REG_MR, sizeof(*mr), &lib.mrs, pd->context);
    if (mr != NULL)
        mr->addr = at;
    return mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *at, size_t bytes, uint64_t iova,
                                unsigned int access)
{
    (void)iova;
    return ibv_reg_mr(pd, at, bytes, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    return give_back(mr, &lib.mrs);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int n, void *arg,
                             struct ibv_comp_channel *channel, int vector)
{
    (void)arg;
    (void)channel;
    UNIT_CHECK(n > 0 && vector == 0);
    lib.cq_most = n;
    return make(CREATE_CQ, sizeof(struct ibv_cq), &lib.cqs, context);
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
    for (int i = 0; i < QPS; i++)
        UNIT_CHECK(!lib.pair[i].used || (lib.pair[i].cq != cq && lib.pair[i].qp.recv_cq != cq));
    for (int i = lib.left - 1; i >= 0; i--)
        if (lib.gone[i].cq == cq)
            lib.gone[i] = lib.gone[--lib.left];
    return give_back(cq, &lib.cqs);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    static uint32_t last;
    int i = 0;

    UNIT_CHECK(attr->qp_type == IBV_QPT_RC);
    UNIT_CHECK(attr->send_cq != NULL && attr->sq_sig_all == 0);
    if (attr->cap.max_inline_data > lib.inline_most) {
        errno = EINVAL;
        return NULL;
    }
    if (fails(CREATE_QP))
        return NULL;
    while (lib.pair[i].used)
        i++;
    UNIT_CHECK(i < QPS);
    last += QPS;
    lib.pair[i] = (pair_t){.used = true, .sends = attr->cap.max_send_wr, .cq = attr->send_cq};
    lib.pair[i].qp.context = pd->context;
    lib.pair[i].qp.recv_cq = attr->recv_cq;
    lib.pair[i].qp.qp_num = last + (uint32_t)i;
    return &lib.pair[i].qp;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
    pair_t *p = (pair_t *)qp;

    for (; p->done < p->posted; p->done++)
        lib.gone[lib.left++] = (__typeof__(lib.gone[0])){p->cq, p->wr[p->done % SENDS].wr_id};
    UNIT_CHECK(lib.left <= lib.cq_most);
    p->used = false;
    return 0;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    UNIT_CHECK(lib.extended != NULL && ((pair_t *)qp)->state == IBV_QPS_RTS);
    return lib.extended(qp);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    static const call_t calls[] = {
        [IBV_QPS_INIT] = TO_INIT, [IBV_QPS_RTR] = TO_RTR, [IBV_QPS_RTS] = TO_RTS};
    pair_t *p = (pair_t *)qp;

    UNIT_CHECK((mask & IBV_QP_STATE) != 0 && attr->qp_state <= IBV_QPS_RTS);
    UNIT_CHECK(attr->qp_state == p->state + 1);
    if (fails(calls[attr->qp_state]))
        return ENOMEM;
    p->state = attr->qp_state;
    if (p->state == IBV_QPS_INIT)
        UNIT_CHECK((mask & IBV_QP_ACCESS_FLAGS) != 0);
    if (p->state == IBV_QPS_RTR) {
        UNIT_CHECK(attr->path_mtu == IBV_MTU_2048 && attr->rq_psn == attr->dest_qp_num);
        p->to = attr->dest_qp_num;
    }
    if (p->state == IBV_QPS_RTS) {
        UNIT_CHECK(attr->sq_psn == qp->qp_num && attr->max_rd_atomic == lib.reads);
        p->issues = true;
    }
    return 0;
}
