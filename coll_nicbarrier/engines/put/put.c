/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Engine put: each step of the schedule is one 8-byte put of an epoch into a flag of the partner's.
 *
 * The counterpart, on hardware that delivers reliably, of the chained RDMA writes of Yu et al.
 * 2004, section 7: a step needs no matching, no buffer and no acknowledgement, and since a flag has
 * one writer and only grows, puts may overtake each other and a late one does no harm: of two in
 * flight the smaller may arrive last, so the reader keeps the greatest it has seen and the writer,
 * which puts again only when its word has grown, never has two of one flag in flight.
 *
 * Everything belongs to the wire lock. The wire's server thread moves the groups on while the
 * application computes: it is woken by what UCX receives. Puts by an adapter wake nobody, so over
 * RDMA the server thread moves on only what other traffic wakes it for.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "coll_nicbarrier/engines/engine.h"
#include "coll_nicbarrier/engines/put/rdma.h"
#include "coll_nicbarrier/epoch/rule.h"
#include "coll_nicbarrier/schedule/schedule.h"
#include "common/wire.h"
#include "common/wire_put.h"

/** Children of a vertex in the gather-broadcast schedule. */
#define DEGREE 4
/** The server thread takes over when the application has been away for so long. */
#define IDLE_USEC 1000U

/** A flag, alone on its cache lines: a word as in rule.h. */
typedef struct flag {
    _Alignas(128) _Atomic uint64_t word;
} flag_t;

/** What goes to the partner of one step: the static message. */
typedef struct outlet {
    onic_remote_t *remote; /**< NULL where nobody is told in this step */
    uint64_t word;         /**< in flight; its address is known to UCX */
    uint64_t wanted;       /**< what must be there at last */
    uint8_t at;            /**< the flag's number there */
    bool busy;
    nicbarrier_net_t *net;
} outlet_t;

struct nicbarrier_net {
    nicbarrier_net_t *next;
    nicbarrier_group_t group;
    nicbarrier_net_events_t events;
    onic_region_t *region; /**< not when it is gone */
    flag_t *flags;
    nicbarrier_rule_t rule;
    outlet_t outlet[NICBARRIER_STEPS_MAX];
    int in_flight;
    unsigned losses; /**< of connections, when the partners were last looked at */
    bool connected;
    bool abandoned; /**< others may still put into the flags */
    bool gone;      /**< disconnected, kept until its last put is through */
    _Atomic uint64_t completed;
    _Atomic bool failed; /**< a partner can no longer be reached */
};

static nicbarrier_net_t *nets; /**< connected, or gone with puts to make or in flight; wire lock */
static int schedule_kind;

/* ---- parameters -------------------------------------------------------------------------------
 */

static const char *tls;         /* UCX transports as in UCX_TLS; NULL: of the environment */
static int tcp_segment = 65536; /* bytes of one TCP fragment of UCX; 0: UCX's default */

static const nicbarrier_param_t params[] = {
    {.name = "tls",
     .help = "Engine put: UCX transports, as in UCX_TLS; empty takes UCX_TLS from the environment, "
             "or what UCX chooses. Holds if engine put is the first to start UCX",
     .text = &tls},
    {.name = "tcp_segment",
     .help = "Bytes of one fragment over TCP of UCX; 0 leaves it to UCX. Holds for the process if "
             "engine put is the first to start UCX",
     .number = &tcp_segment,
     .max = 1048576},
    {.name = NULL},
};

/* ---- sending; the wire lock is held ------------------------------------------------------------
 */

static void put_done(void *arg, int status);

/** The end of a put: the wire has told the user of an error, and there is nothing to try again. */
static void end_put(outlet_t *out, int status)
{
    out->busy = false;
    out->net->in_flight--;
    if (status < 0) {
        atomic_store_explicit(&out->net->failed, true, memory_order_release);
    }
}

static void send(outlet_t *out)
{
    while (!out->busy && out->word < out->wanted) {
        out->word = out->wanted;
        out->busy = true;
        out->net->in_flight++;
        int rc = onic_remote_put(out->remote, out->at * sizeof(flag_t), &out->word, put_done, out);
        if (rc == 0) {
            return;
        }
        end_put(out, rc);
    }
}

/** Called by UCX in its progress: what is to follow is sent by move_all, behind it. */
static void put_done(void *arg, int status)
{
    end_put(arg, status);
}

/** What had to wait for the put before it. */
static void send_all(nicbarrier_net_t *net)
{
    for (uint32_t k = 0; k < net->rule.nsteps; k++) {
        if (net->outlet[k].remote != NULL) {
            send(&net->outlet[k]);
        }
    }
}

/** The words of these steps: a bit for each. */
static void post(nicbarrier_net_t *net, uint64_t steps)
{
    for (uint32_t k = 0; k < net->rule.nsteps; k++) {
        if (steps >> k & 1) {
            net->outlet[k].wanted = nicbarrier_rule_word(&net->rule, k);
            send(&net->outlet[k]);
        }
    }
}

/* ---- moving on; the wire lock is held ----------------------------------------------------------
 */

/** Hands the flags to the rule, which keeps the greatest it has seen. */
static int read_flags(nicbarrier_net_t *net)
{
    int events = 0;
    for (uint32_t k = 0; k < net->rule.nsteps; k++) {
        if (net->rule.waits >> k & 1) {
            uint64_t word = atomic_load_explicit(&net->flags[k].word, memory_order_acquire);
            events += nicbarrier_rule_receive(&net->rule, k, word) == NICBARRIER_WORD_NEW;
        }
    }
    return events;
}

static void advance(nicbarrier_net_t *net)
{
    uint64_t before = net->rule.completed;
    post(net, nicbarrier_rule_advance(&net->rule));
    if (net->rule.completed > before) {
        atomic_store_explicit(&net->completed, net->rule.completed, memory_order_release);
        if (net->events.complete != NULL) {
            net->events.complete(net->events.arg, net->rule.completed);
        }
    }
}

/** Whoever has got all my puts may still be one whose own puts can no longer come. Where nothing is
 *  awaited it may have left in good order, of which the user need not hear. */
static void look_for_losses(nicbarrier_net_t *net)
{
    const bool awaited = net->rule.completed < net->rule.entered;
    if (net->losses == onic_wire_losses()) {
        return;
    }
    net->losses = onic_wire_losses();
    for (uint32_t k = 0; k < net->rule.nsteps; k++) {
        onic_remote_t *remote = net->outlet[k].remote;
        if (remote != NULL && (awaited ? onic_remote_lost(remote) : onic_remote_is_lost(remote))) {
            atomic_store_explicit(&net->failed, true, memory_order_release);
        }
    }
}

static int move_on(nicbarrier_net_t *net)
{
    uint64_t entered = net->events.entered != NULL ? net->events.entered(net->events.arg) : 0;
    int events = entered > net->rule.entered;
    if (events > 0) {
        nicbarrier_rule_enter(&net->rule, entered);
    }
    events += read_flags(net);
    if (events > 0) {
        advance(net);
    }
    send_all(net);
    look_for_losses(net);
    return events;
}

/** Nothing goes out any more, unless UCX has words that it could not send: of these it will still
 *  say so. */
static void destroy(nicbarrier_net_t *net)
{
    onic_wire_want_server(false);
    if (net->in_flight > 0) {
        return;
    }
    for (int k = 0; k < NICBARRIER_STEPS_MAX; k++) {
        if (net->outlet[k].remote != NULL) {
            onic_remote_close(net->outlet[k].remote);
        }
    }
    free(net);
}

/** The wire's deferred function: all groups, on whatever thread progresses. */
static int move_all(void)
{
    int events = 0;
    for (nicbarrier_net_t **at = &nets; *at != NULL;) {
        nicbarrier_net_t *net = *at;
        if (!net->gone) {
            events += move_on(net);
        } else {
            send_all(net);
        }
        if (net->gone && net->in_flight == 0) {
            *at = net->next;
            destroy(net);
        } else {
            at = &net->next;
        }
    }
    /* What others put here makes no event. */
    if (nets != NULL) {
        onic_wire_defer(ONIC_AM_COLL);
    }
    return events;
}

/* ---- the engine ----------------------------------------------------------------------------- */

static int put_open(const nicbarrier_engine_settings_t *settings, nicbarrier_reason_t *why)
{
    onic_wire_config_t wire = {.server_thread = settings->thread,
                               .server_idle_usec = IDLE_USEC,
                               .tls = tls,
                               .tcp_seg_size = (size_t)tcp_segment};
    schedule_kind = settings->schedule;
    if (onic_wire_open(&wire) != 0) {
        nicbarrier_reason(why, "UCX could not be started");
        return -1;
    }
    onic_wire_set_deferred_fn(ONIC_AM_COLL, move_all);
    return 0;
}

static void put_close(void)
{
    onic_wire_flush();
    onic_wire_set_deferred_fn(ONIC_AM_COLL, NULL);
    onic_wire_lock();
    while (nets != NULL) {
        nicbarrier_net_t *net = nets;
        nets = net->next;
        destroy(net);
    }
    onic_wire_unlock();
    onic_wire_close();
}

static int put_prepare(const nicbarrier_group_t *group, nicbarrier_net_t **net_p, void *bytes,
                       uint32_t *len_p, nicbarrier_reason_t *why)
{
    nicbarrier_net_t *net = calloc(1, sizeof(*net));
    *net_p = NULL;
    if (net == NULL) {
        nicbarrier_reason(why, "memory is exhausted");
        return -1;
    }
    net->group = *group;
    net->region = onic_region_new(NICBARRIER_STEPS_MAX * sizeof(flag_t));
    if (net->region == NULL) {
        nicbarrier_reason(why, "UCX gives no memory that can be put into");
        free(net);
        return -1;
    }
    net->flags = onic_region_base(net->region);
    *len_p = (uint32_t)onic_region_describe(net->region, bytes, NICBARRIER_ENDPOINT_MAX);
    if (*len_p == 0) {
        nicbarrier_reason(why, "UCX's address and memory key are longer than %d bytes",
                          NICBARRIER_ENDPOINT_MAX);
        onic_region_free(net->region);
        free(net);
        return -1;
    }
    *net_p = net;
    return 0;
}

static int open_outlet(nicbarrier_net_t *net, outlet_t *out, const nicbarrier_step_t *step,
                       const nicbarrier_endpoints_t *endpoints, nicbarrier_reason_t *why)
{
    const nicbarrier_endpoint_t *endpoint = nicbarrier_endpoint_of(endpoints, step->send_to);
    int rc = 0;
    if (endpoint == NULL) {
        nicbarrier_reason(why, "the endpoint of member %d is missing", (int)step->send_to);
        return -1;
    }
    out->net = net;
    out->at = step->send_at;
    out->remote = onic_remote_open(endpoint->bytes, endpoint->len, &rc);
    if (out->remote == NULL) {
        nicbarrier_reason(why, "UCX cannot put to member %d of %d (%d)", (int)step->send_to,
                          net->group.n, rc);
        return -1;
    }
    return 0;
}

static int open_outlets(nicbarrier_net_t *net, const nicbarrier_step_t *steps, int n,
                        const nicbarrier_endpoints_t *endpoints, nicbarrier_reason_t *why)
{
    int rc = 0;
    for (int k = 0; k < n && rc == 0; k++) {
        if (steps[k].send_to != NICBARRIER_NOBODY) {
            rc = open_outlet(net, &net->outlet[k], &steps[k], endpoints, why);
        }
    }
    return rc;
}

static void begin_rule(nicbarrier_net_t *net, const nicbarrier_step_t *steps, int n)
{
    uint64_t sends = 0, waits = 0;
    for (int k = 0; k < n; k++) {
        sends |= (uint64_t)(steps[k].send_to != NICBARRIER_NOBODY) << k;
        waits |= (uint64_t)(steps[k].wait_for != NICBARRIER_NOBODY) << k;
    }
    nicbarrier_rule_init(&net->rule, (uint32_t)n, sends, waits);
}

static int put_connect(nicbarrier_net_t *net, const nicbarrier_endpoints_t *endpoints,
                       const nicbarrier_net_events_t *events, nicbarrier_reason_t *why)
{
    nicbarrier_step_t steps[NICBARRIER_STEPS_MAX];
    int n = nicbarrier_schedule((nicbarrier_schedule_kind_t)schedule_kind, DEGREE, net->group.me,
                                net->group.n, steps);
    if (n < 0) {
        nicbarrier_reason(why, "%d members are too many", net->group.n);
        return -1;
    }
    begin_rule(net, steps, n);
    net->events = *events;
    onic_wire_lock();
    net->losses = onic_wire_losses();
    int rc = open_outlets(net, steps, n, endpoints, why);
    net->next = nets;
    nets = net;
    onic_wire_defer(ONIC_AM_COLL);
    net->connected = true;
    onic_wire_unlock();
    onic_wire_want_server(true);
    return rc;
}

static void put_enter(nicbarrier_net_t *net, uint64_t epoch)
{
    onic_wire_lock();
    nicbarrier_rule_enter(&net->rule, epoch);
    (void)read_flags(net);
    advance(net);
    onic_wire_unlock();
}

static uint64_t put_completed(const nicbarrier_net_t *net)
{
    return atomic_load_explicit(&net->completed, memory_order_acquire);
}

static nicbarrier_failure_t put_failure(const nicbarrier_net_t *net)
{
    return atomic_load_explicit(&net->failed, memory_order_acquire) ? NICBARRIER_LOST
                                                                    : NICBARRIER_SOUND;
}

static int put_progress(nicbarrier_net_t *net)
{
    (void)net;
    return onic_wire_progress();
}

/** Will nobody put into the flags any more? Where all have agreed on the group, all have entered
 * the same epochs: each flag was waited for in the last one, and holds its last value. */
static bool has_all(const nicbarrier_net_t *net)
{
    return !net->abandoned && net->rule.completed == net->rule.entered;
}

static void put_abandon(nicbarrier_net_t *net)
{
    net->abandoned = true;
}

/**
 * Peers may be behind, but have been told all they need from here, or will be by words that wait
 * for those in flight: these keep the record alive. Nothing will be repeated.
 */
static void put_disconnect(nicbarrier_net_t *net)
{
    onic_region_t *region = net->region;
    const bool connected = net->connected;
    /* First of all, since other threads read the flags until then; afterwards they may free it. */
    onic_wire_lock();
    void (*end_region)(onic_region_t *) = has_all(net) ? onic_region_free : onic_region_leave;
    net->gone = true;
    onic_wire_unlock();
    end_region(region);
    if (!connected) {
        free(net);
        return;
    }
    onic_wire_lock();
    (void)move_all();
    onic_wire_unlock();
}

/** Over anything but an RDMA adapter UCX emulates puts by messages, which datagrams beat. */
static int put_score(void)
{
    static _Atomic int known;
    int score = atomic_load(&known);

    if (score == 0) {
        const char *wanted = tls != NULL ? tls : getenv("UCX_TLS");
        const bool rdma =
            nicbarrier_rdma_here("/sys/class/infiniband", wanted, getenv("UCX_NET_DEVICES"));
        score = rdma ? 80 : 20;
        atomic_store(&known, score);
    }
    return score;
}

/** Before any other component opens the wire. */
static void put_announce(bool by_name)
{
    if (by_name || put_score() > 50) {
        onic_wire_want_puts();
    }
}

static const nicbarrier_engine_extras_t extras = {
    .announce = put_announce,
    .failure = put_failure,
    .abandon = put_abandon,
};

const nicbarrier_engine_t nicbarrier_engine_put = {
    .name = "put",
    .what = "UCX puts into flags; over TCP and the like UCX emulates them by messages, which takes "
            "longer than datagrams",
    .network = "UCX",
    .needs = NICBARRIER_NEEDS_ONE_JOB,
    .params = params,
    .score = put_score,
    .open = put_open,
    .close = put_close,
    .prepare = put_prepare,
    .connect = put_connect,
    .enter = put_enter,
    .completed = put_completed,
    .progress = put_progress,
    .disconnect = put_disconnect,
    .extras = &extras,
};
