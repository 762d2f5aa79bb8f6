/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * An adapter of verbs for processes of one machine, without any device: a library that is loaded
 * before all others (test/run does that for method nic), whose functions stand there in for those
 * of libibverbs that reliable connections need. Requests are executed by process_vm_readv and
 * process_vm_writev, some at each poll and some by a thread now and then, as a process may be away:
 * a queue pair's number and a key of remote memory are the number of the process. What is not
 * registered is not touched: the process ends.
 *
 * Only the library of this project sees the device.
 */
#define _GNU_SOURCE
#include "common/config.h"

#if OMPI_NIC_HAVE_VERBS

#include <dlfcn.h>
#include <errno.h>
/* Other libraries are to find what is declared there. */
#pragma GCC visibility push(default)
#include <infiniband/verbs.h>
#pragma GCC visibility pop
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SENDS = 256, PIECES = 16, CARRIED = 256, AT_A_POLL = 20, REGIONS = 1 << 16 };

/** A queue pair; those that issue are in a list. */
typedef struct pair {
    struct ibv_qp qp; /* first */
    struct pair *next;
    enum ibv_qp_state state;
    uint64_t posted, executed, done; /**< done: its end has been shown, if it is to be */
    bool failed;                     /**< from request `failure` on */
    uint64_t failure;
    struct ibv_send_wr wr[SENDS];
    struct ibv_sge sge[SENDS][PIECES];
    unsigned char carried[SENDS][CARRIED];
} pair_t;

static struct ibv_device device = {.transport_type = IBV_TRANSPORT_IB, .name = "vm0"};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pair_t *pairs;
static pthread_t runner;
static bool closing;
static struct ibv_mr *regions[REGIONS];
/** Bytes that the process may still register; SIZE_MAX: any number. For programs to set. */
__attribute__((visibility("default"))) size_t adapter_room = SIZE_MAX;

static void die(const char *what)
{
    fprintf(stderr, "adapter: %s\n", what);
    abort();
}

/* ---- the device ------------------------------------------------------------------------------ */

struct ibv_device **ibv_get_device_list(int *n)
{
    struct ibv_device **list = calloc(2, sizeof(*list));
    Dl_info caller;

    if (list != NULL && dladdr(__builtin_return_address(0), &caller) != 0 &&
        strstr(caller.dli_fname, "libompi_nic_common") != NULL)
        list[0] = &device;
    if (n != NULL)
        *n = list != NULL && list[0] != NULL;
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *d)
{
    return d->name;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    pair_t *p = (pair_t *)qp;

    (void)bad;
    pthread_mutex_lock(&lock);
    for (; wr != NULL; wr = wr->next, p->posted++) {
        const uint64_t at = p->posted % SENDS;
        unsigned char *to = p->carried[at];

        if (p->posted - p->done == SENDS || wr->num_sge > PIECES)
            die("too many requests, or pieces of one");
        p->wr[at] = *wr;
        memcpy(p->sge[at], wr->sg_list, (size_t)wr->num_sge * sizeof(struct ibv_sge));
        for (int i = 0; i < wr->num_sge && (wr->send_flags & IBV_SEND_INLINE) != 0; i++) {
            if (to + wr->sg_list[i].length > p->carried[at] + CARRIED)
                die("too many bytes in a request");
            memcpy(to, (void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
            to += wr->sg_list[i].length;
        }
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

static void check_registered(const struct ibv_sge *s)
{
    const struct ibv_mr *mr = s->lkey < REGIONS ? regions[s->lkey] : NULL;

    if (mr == NULL || s->addr < (uintptr_t)mr->addr ||
        s->addr + s->length > (uintptr_t)mr->addr + mr->length)
        die("memory that is not registered");
}

static bool execute(pair_t *p, uint64_t at)
{
    const struct ibv_send_wr *wr = &p->wr[at];
    const bool carries = (wr->send_flags & IBV_SEND_INLINE) != 0;
    unsigned char *carried = p->carried[at];
    struct iovec near[PIECES], far = {(void *)(uintptr_t)wr->wr.rdma.remote_addr, 0};
    const pid_t pid = (pid_t)wr->wr.rdma.rkey;
    ssize_t moved;

    for (int i = 0; i < wr->num_sge; i++) {
        const struct ibv_sge *s = &p->sge[at][i];

        if (!carries)
            check_registered(s);
        near[i] = (struct iovec){carries ? (void *)carried : (void *)(uintptr_t)s->addr, s->length};
        carried += s->length;
        far.iov_len += s->length;
    }
    if (wr->opcode == IBV_WR_RDMA_READ)
        moved = process_vm_readv(pid, near, (unsigned long)wr->num_sge, &far, 1, 0);
    else
        moved = process_vm_writev(pid, near, (unsigned long)wr->num_sge, &far, 1, 0);
    return moved == (ssize_t)far.iov_len;
}

/** Some of those that have been posted. */
static void run(pair_t *p)
{
    for (int i = 0; i < AT_A_POLL && p->executed < p->posted; i++, p->executed++) {
        if (p->failed || execute(p, p->executed % SENDS))
            continue;
        p->failed = true;
        p->failure = p->executed;
    }
}

static void *run_by_itself(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&lock);
    while (!closing) {
        for (pair_t *p = pairs; p != NULL; p = p->next)
            run(p);
        pthread_mutex_unlock(&lock);
        usleep(1000);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
    int n = 0;

    (void)cq;
    pthread_mutex_lock(&lock);
    for (pair_t *p = pairs; p != NULL; p = p->next) {
        run(p);
        for (; n < most && p->done < p->executed; p->done++) {
            const struct ibv_send_wr *wr = &p->wr[p->done % SENDS];
            const bool failed = p->failed && p->done >= p->failure;

            if (failed || (wr->send_flags & IBV_SEND_SIGNALED) != 0)
                wc[n++] = (struct ibv_wc){.wr_id = wr->wr_id,
                                          .status = failed ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS};
        }
    }
    pthread_mutex_unlock(&lock);
    return n;
}

struct ibv_context *ibv_open_device(struct ibv_device *d)
{
    struct ibv_context *context = calloc(1, sizeof(*context));
    sigset_t all, before;

    if (context == NULL)
        return NULL;
    context->device = d;
    context->ops.post_send = post_send;
    context->ops.poll_cq = poll_cq;
    closing = false;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    if (pthread_create(&runner, NULL, run_by_itself, NULL) != 0)
        die("no thread");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return context;
}

int ibv_close_device(struct ibv_context *context)
{
    pthread_mutex_lock(&lock);
    closing = true;
    pthread_mutex_unlock(&lock);
    pthread_join(runner, NULL);
    free(context);
    return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    (void)context;
    memset(attr, 0, sizeof(*attr));
    attr->phys_port_cnt = 1;
    attr->max_qp_wr = SENDS;
    attr->max_cqe = 1 << 20;
    attr->max_sge = PIECES;
    attr->max_qp_init_rd_atom = attr->max_qp_rd_atom = 16;
    return 0;
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t number,
                   struct _compat_ibv_port_attr *compat)
{
    struct ibv_port_attr *attr = (struct ibv_port_attr *)compat;

    (void)context;
    (void)number;
    attr->state = IBV_PORT_ACTIVE;
    attr->link_layer = IBV_LINK_LAYER_INFINIBAND;
    attr->lid = 1;
    attr->active_mtu = IBV_MTU_4096;
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

/* ---- memory and queues ----------------------------------------------------------------------- */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct ibv_pd *pd = calloc(1, sizeof(*pd));

    if (pd != NULL)
        pd->context = context;
    return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    free(pd);
    return 0;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *at, size_t bytes, int access)
{
    struct ibv_mr *mr = calloc(1, sizeof(*mr));
    uint32_t key = 1;

    (void)access;
    pthread_mutex_lock(&lock);
    if (bytes > adapter_room) {
        pthread_mutex_unlock(&lock);
        free(mr);
        errno = ENOMEM;
        return NULL;
    }
    adapter_room -= adapter_room == SIZE_MAX ? 0 : bytes;
    while (key < REGIONS && regions[key] != NULL)
        key++;
    if (mr == NULL || key == REGIONS)
        die("no room for a registration");
    *mr = (struct ibv_mr){
        .pd = pd, .addr = at, .length = bytes, .lkey = key, .rkey = (uint32_t)getpid()};
    regions[key] = mr;
    pthread_mutex_unlock(&lock);
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
    pthread_mutex_lock(&lock);
    regions[mr->lkey] = NULL;
    adapter_room += adapter_room == SIZE_MAX ? 0 : mr->length;
    pthread_mutex_unlock(&lock);
    free(mr);
    return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int n, void *arg,
                             struct ibv_comp_channel *channel, int vector)
{
    struct ibv_cq *cq = calloc(1, sizeof(*cq));

    (void)n;
    (void)arg;
    (void)channel;
    (void)vector;
    if (cq != NULL)
        cq->context = context;
    return cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
    free(cq);
    return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    pair_t *p = attr->qp_type == IBV_QPT_RC ? calloc(1, sizeof(*p)) : NULL;

    errno = p == NULL ? EOPNOTSUPP : 0;
    if (p == NULL)
        return NULL;
    p->qp.context = pd->context;
    p->qp.qp_num = (uint32_t)getpid();
    pthread_mutex_lock(&lock);
    p->next = pairs;
    pairs = p;
    pthread_mutex_unlock(&lock);
    return &p->qp;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
    pair_t **at = &pairs;

    pthread_mutex_lock(&lock);
    while (*at != (pair_t *)qp)
        at = &(*at)->next;
    *at = (*at)->next;
    pthread_mutex_unlock(&lock);
    free(qp);
    return 0;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    (void)qp;
    (void)attr;
    (void)mask;
    return 0;
}

#endif
