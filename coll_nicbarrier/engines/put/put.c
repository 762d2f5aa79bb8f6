/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Engine put: each step of the schedule is one 8-byte put of a word into a flag of the partner's.
 * The counterpart, on hardware that delivers reliably, of the chained RDMA writes of Yu et al.
 * 2004, section 7: a step needs no matching, no buffer and no acknowledgement. A flag has one
 * writer, whose words only grow and which starts a put only when UCX has completed the one before;
 * the reader keeps the greatest word seen.
 *
 * The transport lock protects everything. The transport's server thread advances the groups while
 * the application computes. An adapter's puts make no event, so the thread polls now and then while
 * a group waits for something; flags of other groups are read when they are next entered.
 */
#include "coll_nicbarrier/engines/put/put.h"

#include <stdlib.h>

#include "common/transport/ucx/adapters.h"
#include "common/transport/transport.h"

/** The server thread takes over when the application has been away for this long. */
#define IDLE_USEC 1000U

/** All groups: connected; leaving (disconnected with words still to be put); or gone (UCX may still
 *  report on puts to lost partners). Transport lock. */
static nicbarrier_net_t *nets;

/* ---- all groups; the transport lock is held
 * ------------------------------------------------------ */

static void destroy(nicbarrier_net_t *net)
{
    for (int k = 0; k < NICBARRIER_RULE_STEPS; k++)
        if (net->outlet[k].remote != NULL)
            onic_remote_close(net->outlet[k].remote);
    free(net);
}

/** Frees the groups that are over. Of those that are leaving it first notes whether they have
 *  nothing more to put, or, at the `end`, put nothing more. */
static void sweep(bool end)
{
    for (nicbarrier_net_t **at = &nets; *at != NULL;) {
        nicbarrier_net_t *net = *at;
        if (net->state == NICBARRIER_PUT_LEAVING && (end || !nicbarrier_put_sends(net))) {
            net->state = NICBARRIER_PUT_LEFT;
            onic_transport_want_server(false);
        }
        if (net->state == NICBARRIER_PUT_LEFT && net->in_flight == 0) {
            *at = net->next;
            destroy(net);
        } else {
            at = &net->next;
        }
    }
}

/** True if the group has work that no event announces. */
static bool is_left(const nicbarrier_net_t *net)
{
    return (net->state == NICBARRIER_PUT_CONNECTED && nicbarrier_put_waits(net)) ||
           (net->state != NICBARRIER_PUT_LEFT && nicbarrier_put_sends(net));
}

/** The transport's deferred function: advances all groups, on whatever thread progresses. */
static int progress_all(void)
{
    int events = 0;
    bool left = false;
    for (nicbarrier_net_t *net = nets; net != NULL; net = net->next) {
        if (net->state == NICBARRIER_PUT_CONNECTED)
            events += nicbarrier_put_progress(net, 0);
        else
            nicbarrier_put_send(net);
        left = left || is_left(net);
    }
    sweep(false);
    /* Asks for another run, so that the events can be returned. */
    if (left && events > 0)
        onic_transport_ask(ONIC_AM_COLL, ONIC_LOCKED);
    return left && events == 0 ? -1 : events;
}

/* ---- the engine ----------------------------------------------------------------------------- */

static int put_open(bool thread, nicbarrier_reason_t *why)
{
    onic_transport_config_t config = {.server_thread = thread, .server_idle_usec = IDLE_USEC};
    if (onic_transport_open(&config) != 0)
        return nicbarrier_reason(why, "UCX could not be started");
    onic_transport_set_fns(ONIC_AM_COLL,
                           &(onic_transport_fns_t){.work[ONIC_LOCKED] = progress_all});
    return 0;
}

static void put_close(void)
{
    onic_transport_flush();
    onic_transport_set_fns(ONIC_AM_COLL, ONIC_TRANSPORT_NO_FNS);
    onic_transport_lock();
    sweep(true);
    onic_transport_unlock();
    nicbarrier_put_flags_close();
    /* With the last reference UCX is gone, and so are its uses of keys and words. */
    const bool last = onic_transport_close();
    while (last && nets != NULL) {
        nicbarrier_net_t *net = nets;
        nets = net->next;
        free(net);
    }
}

static int put_prepare(const nicbarrier_group_t *group, nicbarrier_net_t **net_p,
                       nicbarrier_endpoint_t *mine, nicbarrier_reason_t *why)
{
    nicbarrier_net_t *net = calloc(1, sizeof(*net));
    *net_p = NULL;
    if (net == NULL)
        return nicbarrier_reason(why, "memory is exhausted");
    net->group = *group;
    net->region = nicbarrier_put_flags_take();
    if (net->region == NULL) {
        nicbarrier_reason(why, "UCX gives no memory that can be put into");
        free(net);
        return -1;
    }
    net->flag = onic_region_base(net->region);
    mine->len = (uint32_t)onic_region_describe(net->region, mine->bytes, NICBARRIER_ENDPOINT_MAX);
    if (mine->len == 0) {
        nicbarrier_reason(why, "UCX's address and memory key are longer than %d bytes",
                          NICBARRIER_ENDPOINT_MAX);
        nicbarrier_put_flags_give(net->region, true);
        free(net);
        return -1;
    }
    *net_p = net;
    return 0;
}

static int open_outlet(nicbarrier_net_t *net, nicbarrier_outlet_t *out,
                       const nicbarrier_step_t *step, const nicbarrier_endpoints_t *endpoints,
                       nicbarrier_reason_t *why)
{
    const nicbarrier_endpoint_t *endpoint = nicbarrier_endpoint_of(endpoints, step->send_to);
    int rc = 0;
    if (endpoint == NULL)
        return nicbarrier_reason(why, "the endpoint of member %d is missing", (int)step->send_to);
    out->net = net;
    out->offset = step->send_at * sizeof(nicbarrier_put_flag_t);
    out->remote = onic_remote_open(NULL, endpoint->bytes, endpoint->len, &rc);
    if (out->remote == NULL)
        return nicbarrier_reason(why, "UCX cannot put to member %d of %d (%d)", (int)step->send_to,
                                 net->group.n, rc);
    return 0;
}

static int put_connect(nicbarrier_net_t *net, const nicbarrier_endpoints_t *endpoints,
                       nicbarrier_shm_t *node, nicbarrier_reason_t *why)
{
    const nicbarrier_step_t *step = net->group.step;
    int rc = 0;
    nicbarrier_group_begin(&net->group, &net->rule);
    net->node = node;
    onic_transport_lock();
    net->losses = onic_transport_losses();
    for (int k = 0; k < net->group.nsteps && rc == 0; k++)
        if (step[k].send_to != NICBARRIER_NOBODY)
            rc = open_outlet(net, &net->outlet[k], &step[k], endpoints, why);
    net->next = nets;
    nets = net;
    onic_transport_ask(ONIC_AM_COLL, ONIC_LOCKED);
    net->state = NICBARRIER_PUT_CONNECTED;
    onic_transport_unlock();
    onic_transport_want_server(true);
    return rc;
}

static void put_enter(nicbarrier_net_t *net, uint64_t epoch)
{
    onic_transport_lock();
    (void)nicbarrier_put_progress(net, epoch);
    onic_transport_ask(ONIC_AM_COLL, ONIC_LOCKED);
    onic_transport_unlock();
}

static uint64_t put_completed(const nicbarrier_net_t *net)
{
    return atomic_load_explicit(&net->completed, memory_order_acquire);
}

static bool put_failed(const nicbarrier_net_t *net)
{
    return atomic_load_explicit(&net->failed, memory_order_acquire);
}

static void put_fail(nicbarrier_net_t *net)
{
    onic_transport_lock();
    if (net->state == NICBARRIER_PUT_CONNECTED) {
        nicbarrier_put_fail(net);
        onic_transport_ask(ONIC_AM_COLL, ONIC_LOCKED);
    }
    onic_transport_unlock();
}

static int put_progress(nicbarrier_net_t *net)
{
    (void)net;
    /* This process may have begun epochs that the processes behind it have not entered yet. */
    onic_transport_ask(ONIC_AM_COLL, ONIC_LOCKED);
    return onic_transport_progress();
}

/** Peers may be behind, but they have everything they need from here, or will get it by words
 *  queued behind puts in flight, which keep the group's record alive. Members that learn of a
 *  failure later than this one may still put into the flags. */
static void put_disconnect(nicbarrier_net_t *net)
{
    onic_region_t *region = net->region;
    const bool connected = net->state == NICBARRIER_PUT_CONNECTED;
    /* Takes the flags away first, since other threads read them until then and may free the group
     * afterwards. */
    onic_transport_lock();
    net->region = NULL;
    const bool done =
        net->rule.completed > 0 && net->rule.completed == net->rule.entered && !net->rule.failed;
    if (connected) {
        net->state = NICBARRIER_PUT_LEAVING;
        (void)progress_all();
        onic_transport_ask(ONIC_AM_COLL, ONIC_LOCKED);
    }
    onic_transport_unlock();
    nicbarrier_put_flags_give(region, done);
    if (!connected)
        free(net);
}

/** Without an RDMA adapter UCX emulates puts by messages, and engine datagram is faster. */
static int put_score(void)
{
    static _Atomic int known;
    int score = atomic_load(&known);

    if (score == 0) {
        const bool rdma =
            onic_rdma_here(ONIC_ADAPTERS, getenv("UCX_TLS"), getenv("UCX_NET_DEVICES"));
        score = rdma ? 80 : 20;
        atomic_store(&known, score);
    }
    return score;
}

/** Called before any other component opens the transport. */
static void put_announce(bool by_name)
{
    if (by_name || put_score() > 50)
        onic_transport_require(&(onic_transport_config_t){.puts = true});
}

const nicbarrier_engine_t nicbarrier_engine_put = {
    .name = "put",
    .score = put_score,
    .open = put_open,
    .close = put_close,
    .prepare = put_prepare,
    .connect = put_connect,
    .enter = put_enter,
    .completed = put_completed,
    .progress = put_progress,
    .disconnect = put_disconnect,
    .announce = put_announce,
    .failed = put_failed,
    .fail = put_fail,
};
