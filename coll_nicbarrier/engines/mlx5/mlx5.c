/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine mlx5: parameters, the device, and all groups; see state.h. */
#include "common/config.h"
#include "coll_nicbarrier/engines/engine.h"

/** The engine has to be asked for by name. */
static int mlx5_score(void)
{
    return 1;
}

#if OMPI_NIC_HAVE_MLX5DV

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "coll_nicbarrier/engines/mlx5/state.h"

/** A group that is left keeps its connections until this many others have been left after it: a
 *  partner may not know yet that its last write has arrived. */
#define LINGER 16

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static nicbarrier_mlx5_t mlx5;
static nicbarrier_net_t *nets; /**< groups that are connected or leaving, newest first */

/* ---- parameters ----------------------------------------------------------------------------- */

static int prepost = 8;

static const onic_param_t params[] = {
    {.name = "mlx5_prepost",
     .help = "Engine mlx5: barriers whose requests the adapter has before they are entered",
     .number = &prepost,
     .min = 1,
     .max = 256},
    {.name = NULL},
};

/* ---- all groups; the lock is held ----------------------------------------------------------- */

/** Advances all groups. Frees those that have left, except for the last LINGER. */
static void progress_all(void)
{
    int left = 0;

    for (nicbarrier_net_t **at = &nets; *at != NULL;) {
        nicbarrier_net_t *net = *at;
        bool over;

        if (net->leaving)
            (void)nicbarrier_mlx5_progress(net, 0);
        over = net->leaving && nicbarrier_mlx5_is_done(net) && ++left > LINGER;
        if (over) {
            *at = net->next;
            nicbarrier_mlx5_free(net);
        } else {
            at = &net->next;
        }
    }
}

/* ---- the engine ----------------------------------------------------------------------------- */

static int mlx5_open(bool thread, nicbarrier_reason_t *why)
{
    onic_verbs_reason_t reason;
    struct ibv_port_attr attr;
    struct ibv_context *context;
    const char *obstacle;

    (void)thread;
    if (onic_verbs_port_open(&mlx5.port, &reason) != 0)
        return nicbarrier_reason(why, "%.199s", reason.text);
    memset(&attr, 0, sizeof(attr));
    context = mlx5.port.context;
    obstacle = ibv_query_port(context, mlx5.port.number, &attr) != 0
                   ? "it has no port"
                   : nicbarrier_mlx5_obstacle(context);
    mlx5.mtu = (uint8_t)attr.active_mtu;
    mlx5.depth = (uint32_t)prepost;
    if (obstacle != NULL) {
        nicbarrier_reason(why, "engine mlx5: device %s cannot take the steps: %s",
                          ibv_get_device_name(context->device), obstacle);
        onic_verbs_port_close(&mlx5.port);
        return -1;
    }
    return 0;
}

static void mlx5_close(void)
{
    while (nets != NULL) {
        nicbarrier_net_t *net = nets;

        nets = net->next;
        nicbarrier_mlx5_free(net);
    }
    onic_verbs_port_close(&mlx5.port);
}

static int mlx5_prepare(const nicbarrier_group_t *group, nicbarrier_net_t **net_p,
                        nicbarrier_endpoint_t *mine, nicbarrier_reason_t *why)
{
    nicbarrier_net_t *net = calloc(1, sizeof(*net));

    *net_p = NULL;
    if (net == NULL)
        return nicbarrier_reason(why, "memory is exhausted");
    if (nicbarrier_mlx5_make(net, &mlx5, group, mine, why) != 0) {
        nicbarrier_mlx5_free(net);
        return -1;
    }
    *net_p = net;
    return 0;
}

static int mlx5_connect(nicbarrier_net_t *net, const nicbarrier_endpoints_t *endpoints,
                        nicbarrier_shm_t *node, nicbarrier_reason_t *why)
{
    net->node = node;
    if (nicbarrier_mlx5_connect(net, &mlx5, endpoints, why) != 0)
        return -1;
    pthread_mutex_lock(&lock);
    net->connected = true;
    net->next = nets;
    nets = net;
    (void)nicbarrier_mlx5_progress(net, 0);
    pthread_mutex_unlock(&lock);
    return 0;
}

static void mlx5_enter(nicbarrier_net_t *net, uint64_t epoch)
{
    pthread_mutex_lock(&lock);
    (void)nicbarrier_mlx5_progress(net, epoch);
    pthread_mutex_unlock(&lock);
}

static uint64_t mlx5_completed(const nicbarrier_net_t *net)
{
    return atomic_load_explicit(&net->completed, memory_order_acquire);
}

static bool mlx5_failed(const nicbarrier_net_t *net)
{
    return atomic_load_explicit(&net->failed, memory_order_acquire);
}

static void mlx5_fail(nicbarrier_net_t *net)
{
    pthread_mutex_lock(&lock);
    if (net->connected)
        nicbarrier_mlx5_fail(net);
    pthread_mutex_unlock(&lock);
}

static int mlx5_progress(nicbarrier_net_t *net)
{
    int events;

    if (pthread_mutex_trylock(&lock) != 0)
        return 0;
    events = nicbarrier_mlx5_progress(net, 0);
    progress_all();
    pthread_mutex_unlock(&lock);
    return events;
}

/** Partners may be behind: what they need from here the adapter has, and writes by itself. */
static void mlx5_disconnect(nicbarrier_net_t *net)
{
    pthread_mutex_lock(&lock);
    net->node = NULL;
    net->leaving = true;
    if (net->connected)
        progress_all();
    else
        nicbarrier_mlx5_free(net);
    pthread_mutex_unlock(&lock);
}

const nicbarrier_engine_t nicbarrier_engine_mlx5 = {
    .name = "mlx5",
    .params = params,
    .score = mlx5_score,
    .open = mlx5_open,
    .close = mlx5_close,
    .prepare = mlx5_prepare,
    .connect = mlx5_connect,
    .enter = mlx5_enter,
    .completed = mlx5_completed,
    .progress = mlx5_progress,
    .disconnect = mlx5_disconnect,
    .failed = mlx5_failed,
    .fail = mlx5_fail,
};

#else

static int never(bool thread, nicbarrier_reason_t *why)
{
    (void)thread;
    return nicbarrier_reason(why, "engine mlx5: this build is without libibverbs and mlx5dv");
}

/** The engine's name exists in every build, so that parameters are valid everywhere. */
const nicbarrier_engine_t nicbarrier_engine_mlx5 = {
    .name = "mlx5", .score = mlx5_score, .open = never};

#endif
