/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/config.h"

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
                                    .qp_type = IBV_QPT_UD,
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
