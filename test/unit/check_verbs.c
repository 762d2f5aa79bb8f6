/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Verbs without a device: in place of libibverbs functions of the test's own, which count what is
 * open, look at the order in which it is given back, and fail when they are told to.
 */
#include "common/config.h"

#if OMPI_NIC_HAVE_VERBS

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/verbs/verbs.h"
#include "test/unit/unit.h"

/* ---- the library ----------------------------------------------------------------------------- */

enum { DEVICES = 3 };

/** Calls that may fail. */
typedef enum call {
    NONE,
    OPEN_DEVICE,
    QUERY_PORT,
    QUERY_GID,
    ALLOC_PD,
    REG_MR,
    CREATE_CHANNEL,
    CREATE_CQ,
    CREATE_QP,
    TO_INIT,
    POST_RECV,
    TO_RTR,
    TO_RTS,
    CALLS
} call_t;

static struct {
    struct ibv_device device[DEVICES];
    int devices;
    bool infiniband;
    uint32_t qpn;
    call_t fails;         /**< always */
    int left;             /**< calls until one fails, once; 0: none does */
    size_t lockable;      /**< bytes that can be registered */
    uint32_t inline_most; /**< bytes inline */
    /* What is open. */
    int lists, contexts, pds, mrs, channels, cqs, qps;
    int opened; /**< ever */
    enum ibv_qp_state state;
    unsigned posted;
} lib;

static bool fails(call_t call)
{
    const bool now = lib.fails == call || (lib.left > 0 && --lib.left == 0);
    errno = now ? ENOMEM : errno;
    return now;
}

static void lib_reset(int devices)
{
    memset(&lib, 0, sizeof(lib));
    lib.devices = devices;
    lib.qpn = 17;
    lib.lockable = SIZE_MAX;
    lib.inline_most = 256;
    for (int i = 0; i < devices; i++) {
        lib.device[i].transport_type = IBV_TRANSPORT_IB;
        snprintf(lib.device[i].name, sizeof(lib.device[i].name), "fake%d", i);
    }
}

static void check_all_closed(void)
{
    ck_assert_int_eq(lib.lists, 0);
    ck_assert_int_eq(lib.contexts, 0);
    ck_assert_int_eq(lib.pds, 0);
    ck_assert_int_eq(lib.mrs, 0);
    ck_assert_int_eq(lib.channels, 0);
    ck_assert_int_eq(lib.cqs, 0);
    ck_assert_int_eq(lib.qps, 0);
}

static void *make(call_t call, size_t size, int *count)
{
    if (fails(call))
        return NULL;
    void *p = calloc(1, size);
    UNIT_CHECK(p != NULL);
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

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    (void)qp;
    (void)wr;
    (void)bad;
    UNIT_CHECK(lib.state != IBV_QPS_RESET);
    if (fails(POST_RECV))
        return ENOMEM;
    lib.posted++;
    return 0;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct ibv_context *context = make(OPEN_DEVICE, sizeof(*context), &lib.contexts);

    if (context != NULL) {
        lib.opened++;
        context->device = device;
        context->ops.post_recv = post_recv;
    }
    return context;
}

int ibv_close_device(struct ibv_context *context)
{
    UNIT_CHECK(lib.contexts > 1 ||
               (lib.pds == 0 && lib.cqs == 0 && lib.channels == 0 && lib.qps == 0));
    return give_back(context, &lib.contexts);
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    (void)context;
    memset(attr, 0, sizeof(*attr));
    attr->phys_port_cnt = 2;
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
    attr->link_layer = lib.infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
    attr->lid = 0;
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
    struct ibv_pd *pd = make(ALLOC_PD, sizeof(*pd), &lib.pds);

    if (pd != NULL)
        pd->context = context;
    return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    UNIT_CHECK(lib.mrs == 0 && lib.qps == 0);
    return give_back(pd, &lib.pds);
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *at, size_t bytes, int access)
{
    (void)pd;
    (void)at;
    UNIT_CHECK(access == IBV_ACCESS_LOCAL_WRITE);
    if (bytes > lib.lockable) {
        errno = ENOMEM;
        return NULL;
    }
    return make(REG_MR, sizeof(struct ibv_mr), &lib.mrs);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    UNIT_CHECK(lib.qps == 0);
    return give_back(mr, &lib.mrs);
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct ibv_comp_channel *channel = make(CREATE_CHANNEL, sizeof(*channel), &lib.channels);

    (void)context;
    if (channel != NULL)
        channel->fd = open("/dev/null", O_RDONLY);
    return channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    UNIT_CHECK(lib.cqs == 0);
    close(channel->fd);
    return give_back(channel, &lib.channels);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int n, void *arg,
                             struct ibv_comp_channel *channel, int vector)
{
    struct ibv_cq *cq = make(CREATE_CQ, sizeof(*cq), &lib.cqs);

    (void)arg;
    (void)channel;
    UNIT_CHECK(n > 0 && vector == 0);
    if (cq != NULL)
        cq->context = context;
    return cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
    UNIT_CHECK(lib.qps == 0);
    return give_back(cq, &lib.cqs);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct ibv_qp *qp = NULL;

    UNIT_CHECK(attr->send_cq != NULL && attr->recv_cq != NULL && attr->qp_type == IBV_QPT_UD);
    if (attr->cap.max_inline_data > lib.inline_most)
        errno = EINVAL;
    else
        qp = make(CREATE_QP, sizeof(*qp), &lib.qps);
    if (qp != NULL) {
        qp->context = pd->context;
        qp->qp_num = lib.qpn;
        lib.state = IBV_QPS_RESET;
        lib.posted = 0;
    }
    return qp;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
    return give_back(qp, &lib.qps);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    static const call_t calls[] = {
        [IBV_QPS_INIT] = TO_INIT, [IBV_QPS_RTR] = TO_RTR, [IBV_QPS_RTS] = TO_RTS};

    (void)qp;
    UNIT_CHECK((mask & IBV_QP_STATE) != 0 && attr->qp_state <= IBV_QPS_RTS);
    UNIT_CHECK(attr->qp_state == lib.state + 1);
    if (fails(calls[attr->qp_state]))
        return ENOMEM;
    lib.state = attr->qp_state;
    return 0;
}

/* ---- ports ----------------------------------------------------------------------------------- */

static const onic_verbs_queue_spec_t spec = {.qkey = 5,
                                             .sends = 16,
                                             .send_bytes = 32,
                                             .receives = 256,
                                             .receives_min = 64,
                                             .receive_bytes = 128};

START_TEST(no_device)
{
    onic_verbs_reason_t why;
    onic_verbs_port_t port;

    lib_reset(0);
    ck_assert_int_eq(onic_verbs_port_open(&port, "", &why), -1);
    ck_assert_str_eq(why.text, "verbs: no device has a port that is active");
    check_all_closed();
    lib_reset(2);
    ck_assert_int_eq(onic_verbs_port_open(&port, "other:1", &why), -1);
    ck_assert_str_eq(why.text, "verbs: no device that fits other:1 has a port that is active");
    ck_assert_int_eq(onic_verbs_port_open(&port, "fake1:1", &why), -1); /* not active */
    onic_verbs_port_close(&port);
    check_all_closed();
}
END_TEST

/* Each port has its device for itself; those that are not chosen are closed again. */
START_TEST(each_its_own)
{
    onic_verbs_reason_t why;
    onic_verbs_port_t a, b, other;

    lib_reset(3);
    ck_assert_int_eq(onic_verbs_port_open(&a, "fake1", &why), 0);
    ck_assert_str_eq(ibv_get_device_name(a.context->device), "fake1");
    ck_assert_int_eq(a.number, 2);
    ck_assert_int_eq(a.gid_index, 3);
    ck_assert_int_eq(a.mine.link, ONIC_VERBS_ROCE2);
    ck_assert_int_eq(onic_verbs_port_open(&b, "fake1:2:3", &why), 0);
    ck_assert_int_eq(lib.opened, 2);
    ck_assert_ptr_ne(a.context, b.context);
    ck_assert_int_eq(onic_verbs_port_open(&other, "", &why), 0);
    ck_assert_int_eq(lib.contexts, 3); /* that of fake2 has been closed again */
    onic_verbs_port_close(&a);
    ck_assert_int_eq(lib.contexts, 2);
    ck_assert_int_eq(lib.pds, 2);
    onic_verbs_port_close(&other);
    onic_verbs_port_close(&b);
    check_all_closed();
}
END_TEST

START_TEST(routes)
{
    const onic_verbs_address_t there = {.link = ONIC_VERBS_ROCE2, .gid = {[15] = 9}, .qpn = 4};
    const onic_verbs_address_t near = {.link = ONIC_VERBS_INFINIBAND, .lid = 7, .qpn = 4};
    const onic_verbs_port_t port = {.number = 2, .gid_index = 3};
    struct ibv_ah_attr attr = onic_verbs_route(&port, &there);

    ck_assert(attr.is_global == 1 && attr.port_num == 2 && attr.grh.sgid_index == 3);
    ck_assert_mem_eq(attr.grh.dgid.raw, there.gid, sizeof(there.gid));
    attr = onic_verbs_route(&port, &near);
    ck_assert(attr.is_global == 0 && attr.dlid == 7);
}
END_TEST

/* ---- queues ---------------------------------------------------------------------------------- */

START_TEST(queue)
{
    onic_verbs_reason_t why;
    onic_verbs_port_t port;
    onic_verbs_queue_t q;

    lib_reset(1);
    ck_assert_int_eq(onic_verbs_port_open(&port, "", &why), 0);
    ck_assert_int_eq(onic_verbs_queue_open(&q, &port, &spec, &why), 0);
    ck_assert(lib.state == IBV_QPS_RTS && lib.posted == 256 && q.receives == 256);
    ck_assert(q.sends_inline && q.mine.qpn == 17 && q.mine.link == ONIC_VERBS_ROCE2);
    ck_assert((fcntl(q.channel->fd, F_GETFL) & O_NONBLOCK) != 0);
    memset(onic_verbs_receive_buffer(&q, 0), 1, (size_t)256 * 128);
    memset(onic_verbs_send_buffer(&q, 0), 2, (size_t)16 * 32);
    ck_assert(onic_verbs_receive_buffer(&q, 255)[127] == 1);
    ck_assert_ptr_eq(onic_verbs_send_buffer(&q, 0), onic_verbs_receive_buffer(&q, 256));
    onic_verbs_queue_stop(&q);
    onic_verbs_queue_close(&q);
    lib.inline_most = 31;
    ck_assert_int_eq(onic_verbs_queue_open(&q, &port, &spec, &why), 0);
    ck_assert(!q.sends_inline);
    onic_verbs_queue_close(&q);
    onic_verbs_queue_close(&q);
    onic_verbs_port_close(&port);
    check_all_closed();
}
END_TEST

/* As many receive buffers as there is memory for, but not too few. */
START_TEST(little_memory)
{
    static const struct {
        size_t pages;
        unsigned receives;
    } cases[] = {{257, 256}, {256, 128}, {129, 128}, {128, 64}, {65, 64}, {64, 0}};
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    onic_verbs_queue_spec_t large = spec; /* a page for each, and one for what is sent */
    onic_verbs_reason_t why;
    onic_verbs_port_t port;
    onic_verbs_queue_t q;

    lib_reset(1);
    ck_assert_int_eq(onic_verbs_port_open(&port, "", &why), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        large.receive_bytes = (unsigned)page;
        lib.lockable = cases[i].pages * page;
        const int rc = onic_verbs_queue_open(&q, &port, &large, &why);
        ck_assert_int_eq(rc, cases[i].receives > 0 ? 0 : -1);
        ck_assert_uint_eq(q.receives, cases[i].receives);
        if (rc != 0)
            ck_assert_ptr_nonnull(strstr(why.text, "device fake0: registered memory: "));
        onic_verbs_queue_close(&q);
    }
    onic_verbs_port_close(&port);
    check_all_closed();
}
END_TEST

/* Whatever fails: the reason is told, and nothing stays open. */
START_TEST(whatever_fails)
{
    onic_verbs_reason_t why = {""};
    onic_verbs_port_t port;
    onic_verbs_queue_t q;

    lib_reset(2);
    lib.fails = (call_t)_i;
    const bool works = onic_verbs_port_open(&port, "", &why) == 0 &&
                       onic_verbs_queue_open(&q, &port, &spec, &why) == 0;
    ck_assert_int_eq(works, _i == NONE);
    ck_assert_int_eq(why.text[0] == '\0', works);
    if (works)
        onic_verbs_queue_close(&q);
    onic_verbs_port_close(&port);
    check_all_closed();
}
END_TEST

/* The same, where it fails once, at any time. */
START_TEST(fails_once)
{
    onic_verbs_reason_t why = {""};
    bool reached = true;

    for (int at = 1; reached; at++) {
        onic_verbs_port_t port;
        onic_verbs_queue_t q;
        lib_reset(2);
        lib.left = at;
        if (onic_verbs_port_open(&port, "", &why) == 0 &&
            onic_verbs_queue_open(&q, &port, &spec, &why) == 0) {
            ck_assert(lib.state == IBV_QPS_RTS && lib.posted == q.receives);
            onic_verbs_queue_close(&q);
        }
        reached = lib.left == 0;
        onic_verbs_port_close(&port);
        check_all_closed();
    }
}
END_TEST

/* Partners must be able to use the address. */
START_TEST(addresses_of_no_use)
{
    onic_verbs_reason_t why = {""};
    onic_verbs_port_t port;
    onic_verbs_queue_t q;

    lib_reset(1);
    lib.infiniband = _i == 0; /* without a LID */
    lib.qpn = _i == 0 ? 17 : 1;
    ck_assert_int_eq(onic_verbs_port_open(&port, "", &why), 0);
    ck_assert_int_eq(onic_verbs_queue_open(&q, &port, &spec, &why), -1);
    ck_assert_ptr_nonnull(strstr(why.text, "port 2 of device fake0 has no address of use"));
    onic_verbs_port_close(&port);
    check_all_closed();
}
END_TEST

int main(void)
{
    return UNIT_RUN("verbs", UNIT_ONCE(no_device), UNIT_ONCE(each_its_own), UNIT_ONCE(routes),
                    UNIT_ONCE(queue), UNIT_ONCE(little_memory), UNIT_ONCE(fails_once),
                    UNIT_LOOP(whatever_fails, 0, CALLS), UNIT_LOOP(addresses_of_no_use, 0, 2));
}

#else

#include <stdio.h>

int main(void)
{
    puts("SKIP: check_verbs: this build is without libibverbs");
    return 77;
}

#endif
