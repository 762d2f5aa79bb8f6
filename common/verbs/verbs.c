/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/config.h"

#if OMPI_NIC_HAVE_VERBS

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/verbs/verbs.h"

/** Ports, and addresses of a port, that are looked at. */
#define PORTS 64
#define GIDS  256

/* ---- which port ------------------------------------------------------------------------------ */

typedef struct survey {
    struct ibv_context *context[PORTS]; /**< of each port seen; those of a device stand together */
    onic_verbs_seen_t seen[PORTS];
    int n;
} survey_t;

/** All ports of a device that are active; where there are any it stays open. */
static void survey_ports(survey_t *s, struct ibv_device *device)
{
    struct ibv_context *context = ibv_open_device(device);
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    const int before = s->n;
    const int n = context != NULL && ibv_query_device(context, &attr) == 0 ? attr.phys_port_cnt : 0;
    for (int i = 1; i <= n && s->n < PORTS; i++) {
        memset(&port, 0, sizeof(port));
        if (ibv_query_port(context, (uint8_t)i, &port) != 0 || port.state != IBV_PORT_ACTIVE)
            continue;
        s->context[s->n] = context;
        s->seen[s->n++] = (onic_verbs_seen_t){
            ibv_get_device_name(device), (uint8_t)i, port.link_layer != IBV_LINK_LAYER_ETHERNET,
            onic_verbs_rate(port.active_speed, port.active_width)};
    }
    if (context != NULL && s->n == before)
        ibv_close_device(context);
}

/** Closes the devices but the one that is used. */
static void close_others(const survey_t *s, const struct ibv_context *used)
{
    for (int i = 0; i < s->n; i++)
        if (s->context[i] != used && (i == 0 || s->context[i] != s->context[i - 1]))
            ibv_close_device(s->context[i]);
}

/* ---- its address ----------------------------------------------------------------------------- */

/** The address of an Ethernet port. */
static bool find_gid(onic_verbs_port_t *port, int index)
{
    static const uint8_t links[] = {
        [IBV_GID_TYPE_ROCE_V1] = ONIC_VERBS_ROCE1, [IBV_GID_TYPE_ROCE_V2] = ONIC_VERBS_ROCE2};
    onic_verbs_gid_t gids[GIDS];
    struct ibv_gid_entry entry;
    const int first = index < 0 ? 0 : index, end = index < 0 ? GIDS : index + 1;
    int n = 0, at[GIDS];
    for (int i = first; i < end; i++) {
        if (ibv_query_gid_ex(port->context, port->number, (uint32_t)i, &entry, 0) == 0 &&
            entry.gid_type < sizeof(links)) {
            gids[n].link = links[entry.gid_type];
            memcpy(gids[n].gid, entry.gid.raw, sizeof(gids[n].gid));
            at[n++] = i;
        }
    }
    const int best = onic_verbs_choose_gid(gids, n);
    if (best < 0 || at[best] > UINT8_MAX)
        return false;
    port->gid_index = (uint8_t)at[best];
    port->mine.link = gids[best].link;
    memcpy(port->mine.gid, gids[best].gid, sizeof(port->mine.gid));
    return true;
}

static bool find_lid(onic_verbs_port_t *port)
{
    struct ibv_context *context = port->context;
    struct ibv_port_attr attr;
    union ibv_gid gid;
    memset(&attr, 0, sizeof(attr));
    if (ibv_query_port(context, port->number, &attr) != 0 ||
        ibv_query_gid(context, port->number, 0, &gid) != 0)
        return false;
    port->mine.link = ONIC_VERBS_INFINIBAND;
    port->mine.lid = attr.lid;
    memcpy(port->mine.gid, gid.raw, sizeof(port->mine.gid));
    return true;
}

/* ---- open, close ----------------------------------------------------------------------------- */

static int say(onic_verbs_reason_t *why, const onic_verbs_port_t *port, const char *what)
{
    snprintf(why->text, sizeof(why->text), "verbs: port %d of device %s has no %s", port->number,
             ibv_get_device_name(port->context->device), what);
    return -1;
}

/** Takes the best of the ports that were seen. */
static int choose_port(onic_verbs_port_t *port, const survey_t *s, const char *filter,
                       onic_verbs_reason_t *why)
{
    int index;
    const int best = onic_verbs_choose(s->seen, s->n, filter, &index);
    if (best < 0) {
        snprintf(why->text, sizeof(why->text), "verbs: no device%s%s has a port that is active",
                 *filter != '\0' ? " that fits " : "", filter);
        return -1;
    }
    port->context = s->context[best];
    port->number = s->seen[best].port;
    if (!(s->seen[best].infiniband ? find_lid(port) : find_gid(port, index)))
        return say(why, port, "address");
    port->pd = ibv_alloc_pd(port->context);
    return port->pd == NULL ? say(why, port, "protection domain") : 0;
}

int onic_verbs_port_open(onic_verbs_port_t *port, const char *filter, onic_verbs_reason_t *why)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    survey_t s = {.n = 0};
    memset(port, 0, sizeof(*port));
    if (devices == NULL) {
        snprintf(why->text, sizeof(why->text), "verbs: no devices: %s", strerror(errno));
        return -1;
    }
    for (int i = 0; devices[i] != NULL && s.n < PORTS; i++)
        if (devices[i]->transport_type == IBV_TRANSPORT_IB &&
            onic_verbs_device_wanted(filter, ibv_get_device_name(devices[i])))
            survey_ports(&s, devices[i]);
    const int rc = choose_port(port, &s, filter, why);
    close_others(&s, port->context);
    ibv_free_device_list(devices);
    if (rc != 0)
        onic_verbs_port_close(port);
    return rc;
}

void onic_verbs_port_close(onic_verbs_port_t *port)
{
    if (port->pd != NULL)
        ibv_dealloc_pd(port->pd);
    if (port->context != NULL)
        ibv_close_device(port->context);
    memset(port, 0, sizeof(*port));
}

struct ibv_ah_attr onic_verbs_route(const onic_verbs_port_t *port, const onic_verbs_address_t *to)
{
    struct ibv_ah_attr attr = {.port_num = port->number, .dlid = to->lid};
    if (to->link != ONIC_VERBS_INFINIBAND) {
        attr.is_global = 1;
        attr.grh.sgid_index = port->gid_index;
        attr.grh.hop_limit = 64;
        memcpy(attr.grh.dgid.raw, to->gid, sizeof(to->gid));
    }
    return attr;
}

#endif

/* ---- queue pairs ----------------------------------------------------------------------------- */

#if OMPI_NIC_HAVE_VERBS

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/support/clock.h"
#include "common/verbs/verbs.h"

/** Completions that are fetched at once. */
#define BATCH 16
/** Nanoseconds between attempts to bring a queue pair back. */
#define MEND_NSEC 1000000U

/* ---- the parts: each returns what is in the way, or NULL ------------------------------------- */

static const char *make_buffers(onic_verbs_queue_t *q, unsigned receives)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    q->receives = receives;
    q->bytes = ((size_t)receives * q->spec.receive_bytes +
                (size_t)q->spec.sends * q->spec.send_bytes + page - 1) /
               page * page;
    q->memory = mmap(NULL, q->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (q->memory == MAP_FAILED) {
        q->memory = NULL;
        return "memory";
    }
    (void)madvise(q->memory, q->bytes, MADV_DONTFORK);
    q->mr = ibv_reg_mr(q->port->pd, q->memory, q->bytes, IBV_ACCESS_LOCAL_WRITE);
    return q->mr == NULL ? "registered memory" : NULL;
}

static const char *make_completion_queues(onic_verbs_queue_t *q)
{
    struct ibv_context *context = q->port->context;
    q->channel = ibv_create_comp_channel(context);
    if (q->channel == NULL || fcntl(q->channel->fd, F_SETFL, O_NONBLOCK) != 0)
        return "a completion channel";
    q->received = ibv_create_cq(context, (int)q->receives, NULL, q->channel, 0);
    q->sent = ibv_create_cq(context, (int)q->spec.sends, NULL, NULL, 0);
    return q->received == NULL || q->sent == NULL ? "completion queues" : NULL;
}

static struct ibv_qp *create_qp(onic_verbs_queue_t *q, uint32_t inline_bytes)
{
    struct ibv_qp_init_attr attr = {.send_cq = q->sent,
                                    .recv_cq = q->received,
                                    .qp_type = q->spec.type,
                                    .cap = {.max_send_wr = q->spec.sends,
                                            .max_recv_wr = q->receives,
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1,
                                            .max_inline_data = inline_bytes}};
    q->sends_inline = inline_bytes > 0;
    return ibv_create_qp(q->port->pd, &attr);
}

/** A queue pair for datagrams: from the reset state to where it sends and receives. */
static const char *bring_up(onic_verbs_queue_t *q)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .pkey_index = 0,
                               .port_num = q->port->number,
                               .qkey = q->spec.qkey};
    if (ibv_modify_qp(q->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) !=
        0)
        return "the queue pair's port";
    for (unsigned i = 0; i < q->receives; i++)
        if (!onic_verbs_queue_post(q, i))
            return "receive buffers";
    attr.qp_state = IBV_QPS_RTR;
    if (ibv_modify_qp(q->qp, &attr, IBV_QP_STATE) != 0)
        return "receiving";
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = 0;
    return ibv_modify_qp(q->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) != 0 ? "sending" : NULL;
}

static const char *make_all(onic_verbs_queue_t *q, unsigned receives)
{
    const char *obstacle = make_buffers(q, receives);
    obstacle = obstacle != NULL ? obstacle : make_completion_queues(q);
    if (obstacle != NULL)
        return obstacle;
    q->qp = create_qp(q, q->spec.send_bytes);
    q->qp = q->qp != NULL ? q->qp : create_qp(q, 0);
    return q->qp == NULL ? "a queue pair" : bring_up(q);
}

static void free_all(onic_verbs_queue_t *q)
{
    onic_verbs_queue_stop(q);
    if (q->received != NULL)
        ibv_destroy_cq(q->received);
    if (q->sent != NULL)
        ibv_destroy_cq(q->sent);
    if (q->channel != NULL)
        ibv_destroy_comp_channel(q->channel);
    if (q->mr != NULL)
        ibv_dereg_mr(q->mr);
    if (q->memory != NULL)
        munmap(q->memory, q->bytes);
    q->received = q->sent = NULL;
    q->channel = NULL;
    q->mr = NULL;
    q->memory = NULL;
}

/* ---- open, close ----------------------------------------------------------------------------- */

static int explain(const onic_verbs_port_t *port, const char *obstacle, int error,
                   onic_verbs_reason_t *why)
{
    struct rlimit limit = {0};
    const char *device = ibv_get_device_name(port->context->device);
    (void)getrlimit(RLIMIT_MEMLOCK, &limit);
    if (error == ENOMEM && limit.rlim_cur != RLIM_INFINITY) {
        snprintf(why->text, sizeof(why->text),
                 "verbs: device %s: %s: memory is exhausted, of which %lu KiB may be locked "
                 "(ulimit -l)",
                 device, obstacle, (unsigned long)limit.rlim_cur / 1024);
    } else {
        snprintf(why->text, sizeof(why->text), "verbs: device %s: %s: %s", device, obstacle,
                 strerror(error));
    }
    return -1;
}

/** Partners would refuse a record with an address that cannot be. A virtual port of InfiniBand may
 *  have no LID. */
static int check_address(const onic_verbs_queue_t *q, onic_verbs_reason_t *why)
{
    onic_verbs_address_t again;
    const char *wrong = onic_verbs_address_read(&q->mine, sizeof(q->mine), &again);
    if (wrong == NULL)
        return 0;
    snprintf(why->text, sizeof(why->text), "verbs: port %d of device %s has no address of use: %s",
             q->port->number, ibv_get_device_name(q->port->context->device), wrong);
    return -1;
}

int onic_verbs_queue_open(onic_verbs_queue_t *q, const onic_verbs_port_t *port,
                          const onic_verbs_queue_spec_t *spec, onic_verbs_reason_t *why)
{
    memset(q, 0, sizeof(*q));
    q->port = port;
    q->spec = *spec;
    const char *obstacle = "";
    int error = 0;
    for (unsigned n = spec->receives; n >= spec->receives_min && obstacle != NULL; n /= 2) {
        free_all(q);
        errno = 0;
        obstacle = make_all(q, n);
        error = errno;
    }
    int rc = obstacle == NULL ? 0 : explain(port, obstacle, error, why);
    if (rc == 0) {
        q->mine = port->mine;
        q->mine.qpn = q->qp->qp_num;
        rc = check_address(q, why);
    }
    if (rc != 0)
        onic_verbs_queue_close(q);
    return rc;
}

void onic_verbs_queue_stop(onic_verbs_queue_t *q)
{
    if (q->qp != NULL)
        ibv_destroy_qp(q->qp);
    q->qp = NULL;
}

void onic_verbs_queue_close(onic_verbs_queue_t *q)
{
    free_all(q);
    memset(q, 0, sizeof(*q));
}

bool onic_verbs_queue_mend(onic_verbs_queue_t *q)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    struct ibv_wc wc[BATCH];
    const uint64_t now = onic_now_nsec();
    if (now - q->mended < MEND_NSEC)
        return false;
    q->mended = now;
    if (ibv_modify_qp(q->qp, &attr, IBV_QP_STATE) != 0)
        return false;
    while (ibv_poll_cq(q->received, BATCH, wc) > 0 || ibv_poll_cq(q->sent, BATCH, wc) > 0) {
    }
    q->broken = bring_up(q) != NULL;
    return true;
}

#endif
