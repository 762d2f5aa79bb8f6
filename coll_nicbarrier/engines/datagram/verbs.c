/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Transport verbs UD: device, port, queue pair; see verbs.h. */
#include "common/config.h"

#if OMPI_NIC_HAVE_VERBS

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "coll_nicbarrier/engines/datagram/verbs.h"

/** Receive buffers: the first number for which there is memory, halving. */
#define RING_MAX 256
#define RING_MIN 64
/** Ports, and addresses of a port, that are looked at. */
#define PORTS 64
#define GIDS  256
/** Nanoseconds between attempts to bring a queue pair back. */
#define MEND_NSEC 1000000U

/* ---- my port ----------------------------------------------------------------------------------
 */

typedef struct survey {
    struct ibv_device **devices;
    struct ibv_context *context[PORTS]; /**< by port seen; several have the same */
    nicbarrier_port_seen_t seen[PORTS];
    int n;
} survey_t;

static void survey_ports(survey_t *s, struct ibv_context *context, const char *device)
{
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    const int n = ibv_query_device(context, &attr) == 0 ? attr.phys_port_cnt : 0;
    for (int i = 1; i <= n && s->n < PORTS; i++) {
        memset(&port, 0, sizeof(port));
        if (ibv_query_port(context, (uint8_t)i, &port) == 0 && port.state == IBV_PORT_ACTIVE) {
            s->context[s->n] = context;
            s->seen[s->n++] = (nicbarrier_port_seen_t){
                device, (uint8_t)i, port.link_layer != IBV_LINK_LAYER_ETHERNET,
                nicbarrier_port_rate(port.active_speed, port.active_width)};
        }
    }
}

/** Opens all devices that are wanted and have a port that is active. */
static void survey_devices(survey_t *s, const char *filter)
{
    for (int i = 0; s->devices[i] != NULL && s->n < PORTS; i++) {
        const char *name = ibv_get_device_name(s->devices[i]);
        const int before = s->n;
        if (s->devices[i]->transport_type != IBV_TRANSPORT_IB ||
            !nicbarrier_port_device_wanted(filter, name)) {
            continue;
        }
        struct ibv_context *context = ibv_open_device(s->devices[i]);
        if (context != NULL) {
            survey_ports(s, context, name);
            if (s->n == before) {
                ibv_close_device(context);
            }
        }
    }
}

static void close_others(const survey_t *s, const struct ibv_context *chosen)
{
    for (int i = 0; i < s->n; i++) {
        const bool first = i == 0 || s->context[i] != s->context[i - 1];
        if (first && s->context[i] != chosen) {
            ibv_close_device(s->context[i]);
        }
    }
}

/** The address of an Ethernet port. */
static bool find_gid(nicbarrier_verbs_queue_t *q, int index)
{
    static const uint8_t links[] = {[IBV_GID_TYPE_ROCE_V1] = NICBARRIER_LINK_ROCE1,
                                    [IBV_GID_TYPE_ROCE_V2] = NICBARRIER_LINK_ROCE2};
    nicbarrier_port_gid_t gids[GIDS];
    struct ibv_gid_entry entry;
    const int first = index < 0 ? 0 : index, end = index < 0 ? GIDS : index + 1;
    int n = 0, at[GIDS];
    for (int i = first; i < end; i++) {
        if (ibv_query_gid_ex(q->context, q->port, (uint32_t)i, &entry, 0) == 0 &&
            entry.gid_type < sizeof(links)) {
            gids[n].link = links[entry.gid_type];
            memcpy(gids[n].gid, entry.gid.raw, sizeof(gids[n].gid));
            at[n++] = i;
        }
    }
    const int best = nicbarrier_port_choose_gid(gids, n);
    if (best < 0 || at[best] > UINT8_MAX) {
        return false;
    }
    q->gid_index = (uint8_t)at[best];
    q->mine.link = gids[best].link;
    memcpy(q->mine.gid, gids[best].gid, sizeof(q->mine.gid));
    return true;
}

static bool find_lid(nicbarrier_verbs_queue_t *q)
{
    struct ibv_port_attr port;
    union ibv_gid gid;
    memset(&port, 0, sizeof(port));
    if (ibv_query_port(q->context, q->port, &port) != 0 ||
        ibv_query_gid(q->context, q->port, 0, &gid) != 0) {
        return false;
    }
    q->mine.link = NICBARRIER_LINK_INFINIBAND;
    q->mine.lid = port.lid;
    memcpy(q->mine.gid, gid.raw, sizeof(q->mine.gid));
    return true;
}

/** Opens the device and finds the address. */
static int choose_port(nicbarrier_verbs_queue_t *q, const char *filter, nicbarrier_reason_t *why)
{
    survey_t s = {.devices = ibv_get_device_list(NULL)};
    int index;
    if (s.devices == NULL) {
        nicbarrier_reason(why, "verbs: no devices: %s", strerror(errno));
        return -1;
    }
    survey_devices(&s, filter);
    const int best = nicbarrier_port_choose(s.seen, s.n, filter, &index);
    q->context = best < 0 ? NULL : s.context[best];
    close_others(&s, q->context);
    ibv_free_device_list(s.devices);
    if (best < 0) {
        nicbarrier_reason(why, "verbs: no device%s%s has a port that is active",
                          *filter != '\0' ? " that fits " : "", filter);
        return -1;
    }
    q->port = s.seen[best].port;
    if (!(s.seen[best].infiniband ? find_lid(q) : find_gid(q, index))) {
        nicbarrier_reason(why, "verbs: port %d of device %s has no address", q->port,
                          ibv_get_device_name(q->context->device));
        return -1;
    }
    return 0;
}

/* ---- queue pair -------------------------------------------------------------------------------
 */

static struct ibv_qp *create_qp(nicbarrier_verbs_queue_t *q, uint32_t inline_bytes)
{
    struct ibv_qp_init_attr attr = {.send_cq = q->sent,
                                    .recv_cq = q->received,
                                    .qp_type = IBV_QPT_UD,
                                    .cap = {.max_send_wr = NICBARRIER_VERBS_SENDS,
                                            .max_recv_wr = q->ring,
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1,
                                            .max_inline_data = inline_bytes}};
    q->sends_inline = inline_bytes > 0;
    return ibv_create_qp(q->pd, &attr);
}

bool nicbarrier_verbs_queue_post(nicbarrier_verbs_queue_t *q, uint64_t i)
{
    struct ibv_sge piece = {.addr = (uintptr_t)q->memory + i * NICBARRIER_VERBS_BUFFER,
                            .length = NICBARRIER_VERBS_BUFFER,
                            .lkey = q->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &piece, .num_sge = 1}, *bad;
    return ibv_post_recv(q->qp, &wr, &bad) == 0;
}

/** From the reset state to where it sends and receives. What is in the way, or NULL. */
static const char *bring_up(nicbarrier_verbs_queue_t *q)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .pkey_index = 0, .port_num = q->port, .qkey = q->qkey};
    if (ibv_modify_qp(q->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) !=
        0) {
        return "the queue pair's port";
    }
    for (unsigned i = 0; i < q->ring; i++) {
        if (!nicbarrier_verbs_queue_post(q, i)) {
            return "receive buffers";
        }
    }
    attr.qp_state = IBV_QPS_RTR;
    if (ibv_modify_qp(q->qp, &attr, IBV_QP_STATE) != 0) {
        return "receiving";
    }
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = 0;
    return ibv_modify_qp(q->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) != 0 ? "sending" : NULL;
}

/** Everything for a ring of that many buffers. What is in the way, or NULL. */
static const char *make_queues(nicbarrier_verbs_queue_t *q, unsigned ring)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    q->ring = ring;
    q->bytes = (ring * (size_t)NICBARRIER_VERBS_BUFFER +
                NICBARRIER_VERBS_SENDS * (size_t)NICBARRIER_PACKET_SIZE + page - 1) /
               page * page;
    q->memory = mmap(NULL, q->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (q->memory == MAP_FAILED) {
        q->memory = NULL;
        return "memory";
    }
    (void)madvise(q->memory, q->bytes, MADV_DONTFORK);
    q->pd = ibv_alloc_pd(q->context);
    if (q->pd == NULL) {
        return "a protection domain";
    }
    q->mr = ibv_reg_mr(q->pd, q->memory, q->bytes, IBV_ACCESS_LOCAL_WRITE);
    if (q->mr == NULL) {
        return "registered memory";
    }
    q->channel = ibv_create_comp_channel(q->context);
    if (q->channel == NULL || fcntl(q->channel->fd, F_SETFL, O_NONBLOCK) != 0) {
        return "a completion channel";
    }
    q->received = ibv_create_cq(q->context, (int)ring, NULL, q->channel, 0);
    q->sent = ibv_create_cq(q->context, NICBARRIER_VERBS_SENDS, NULL, NULL, 0);
    if (q->received == NULL || q->sent == NULL) {
        return "completion queues";
    }
    q->qp = create_qp(q, NICBARRIER_PACKET_SIZE);
    q->qp = q->qp != NULL ? q->qp : create_qp(q, 0);
    return q->qp == NULL ? "a queue pair" : bring_up(q);
}

void nicbarrier_verbs_queue_stop(nicbarrier_verbs_queue_t *q)
{
    if (q->qp != NULL) {
        ibv_destroy_qp(q->qp);
    }
    q->qp = NULL;
}

static void free_queues(nicbarrier_verbs_queue_t *q)
{
    nicbarrier_verbs_queue_stop(q);
    if (q->received != NULL) {
        ibv_destroy_cq(q->received);
    }
    if (q->sent != NULL) {
        ibv_destroy_cq(q->sent);
    }
    if (q->channel != NULL) {
        ibv_destroy_comp_channel(q->channel);
    }
    if (q->mr != NULL) {
        ibv_dereg_mr(q->mr);
    }
    if (q->pd != NULL) {
        ibv_dealloc_pd(q->pd);
    }
    if (q->memory != NULL) {
        munmap(q->memory, q->bytes);
    }
    q->received = q->sent = NULL;
    q->channel = NULL;
    q->mr = NULL;
    q->pd = NULL;
    q->memory = NULL;
}

void nicbarrier_verbs_queue_close(nicbarrier_verbs_queue_t *q)
{
    free_queues(q);
    if (q->context != NULL) {
        ibv_close_device(q->context);
    }
    memset(q, 0, sizeof(*q));
}

static void explain(const nicbarrier_verbs_queue_t *q, const char *obstacle, int error,
                    nicbarrier_reason_t *why)
{
    struct rlimit limit = {0};
    const char *device = ibv_get_device_name(q->context->device);
    (void)getrlimit(RLIMIT_MEMLOCK, &limit);
    if (error == ENOMEM && limit.rlim_cur != RLIM_INFINITY) {
        nicbarrier_reason(why,
                          "verbs: device %s: %s: memory is exhausted, of which %lu KiB may be "
                          "locked (ulimit -l)",
                          device, obstacle, (unsigned long)limit.rlim_cur / 1024);
    } else {
        nicbarrier_reason(why, "verbs: device %s: %s: %s", device, obstacle, strerror(error));
    }
}

int nicbarrier_verbs_queue_open(nicbarrier_verbs_queue_t *q, const char *filter, uint32_t qkey,
                                nicbarrier_reason_t *why)
{
    unsigned char address[NICBARRIER_PORT_SIZE];
    nicbarrier_port_address_t again;
    memset(q, 0, sizeof(*q));
    q->qkey = qkey;
    if (choose_port(q, filter, why) != 0) {
        nicbarrier_verbs_queue_close(q);
        return -1;
    }
    const char *obstacle = "";
    int error = 0;
    for (unsigned ring = RING_MAX; ring >= RING_MIN && obstacle != NULL; ring /= 2) {
        free_queues(q);
        errno = 0;
        obstacle = make_queues(q, ring);
        error = errno;
    }
    if (obstacle != NULL) {
        explain(q, obstacle, error, why);
        nicbarrier_verbs_queue_close(q);
        return -1;
    }
    q->mine.qpn = q->qp->qp_num;
    /* Partners would refuse all of a record with an address that cannot be: by UDP they can have
     * it. A virtual port of InfiniBand may have no LID. */
    nicbarrier_port_encode(&q->mine, address);
    obstacle = nicbarrier_port_decode(address, sizeof(address), &again);
    if (obstacle != NULL) {
        nicbarrier_reason(why, "verbs: port %d of device %s has no address of use: %s", q->port,
                          ibv_get_device_name(q->context->device), obstacle);
        nicbarrier_verbs_queue_close(q);
        return -1;
    }
    return 0;
}

void nicbarrier_verbs_queue_mend(nicbarrier_verbs_queue_t *q)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    const uint64_t now = nicbarrier_datagram_now();
    if (now - q->mended < MEND_NSEC) {
        return;
    }
    q->mended = now;
    if (ibv_modify_qp(q->qp, &attr, IBV_QP_STATE) != 0) {
        return;
    }
    while (ibv_poll_cq(q->received, NICBARRIER_VERBS_BATCH, q->batch) > 0 ||
           ibv_poll_cq(q->sent, NICBARRIER_VERBS_BATCH, q->batch) > 0) {
    }
    q->batched = q->taken = 0;
    q->done = q->posted;
    q->broken = bring_up(q) != NULL;
}

#endif
