/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: the functions of an engine; see engine.h and datagram.h. */
#include "coll_nicbarrier/engines/datagram/datagram.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* ---- process ----------------------------------------------------------------------------------
 */

/** All follow from the one that the user may set. */
static void set_timing(int usec)
{
    const uint64_t first = (uint64_t)usec * 1000;
    nicbarrier_datagram.timing = (nicbarrier_timing_t){
        .first = first, .min = first / 2, .max = 4 * first, .cap = 16 * first};
}

static void close_transports(void)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    for (int i = 0; i < NICBARRIER_VIAS; i++) {
        if (d->transport[i] != NULL) {
            d->transport[i]->close();
        }
        d->transport[i] = NULL;
    }
}

/** UDP is needed for pokes, too. Without verbs it goes on, unless it must be verbs. */
static int open_transports(nicbarrier_reason_t *why)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    if (nicbarrier_udp.open(&nicbarrier_datagram_config, d->cookie, why) != 0) {
        return -1;
    }
    d->transport[NICBARRIER_VIA_UDP] = &nicbarrier_udp;
    if (nicbarrier_datagram_config.verbs == NICBARRIER_VERBS_NEVER) {
        return 0;
    }
    if (nicbarrier_verbs.open(&nicbarrier_datagram_config, d->cookie, why) == 0) {
        d->transport[NICBARRIER_VIA_VERBS] = &nicbarrier_verbs;
    } else if (nicbarrier_datagram_config.verbs == NICBARRIER_VERBS_ALWAYS) {
        close_transports();
        return -1;
    }
    return 0;
}

static int start(nicbarrier_reason_t *why)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    if (getrandom(&d->cookie, sizeof(d->cookie), GRND_NONBLOCK) != sizeof(d->cookie)) {
        d->cookie = (uint32_t)(nicbarrier_datagram_now() * UINT64_C(0x9e3779b97f4a7c15) >> 32);
    }
    d->random = d->cookie;
    d->tombstones = calloc(1, sizeof(*d->tombstones));
    if (d->tombstones == NULL) {
        nicbarrier_reason(why, "memory is exhausted");
        return -1;
    }
    if (open_transports(why) != 0) {
        return -1;
    }
    const int rc = nicbarrier_datagram_start_thread();
    if (rc != 0) {
        nicbarrier_reason(why, "the helper thread cannot be started: %s", strerror(rc));
        close_transports();
        return -1;
    }
    return 0;
}

static int datagram_open(const nicbarrier_engine_settings_t *settings, nicbarrier_reason_t *why)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    d->schedule = settings->schedule;
    d->open = false;
    d->nunreachable = 0;
    if (!settings->thread) {
        nicbarrier_reason(why,
                          "datagrams need the helper thread: who has left MPI must still repeat "
                          "what others have missed");
        return -1;
    }
    set_timing(nicbarrier_datagram_config.nack_usec);
    atomic_store(&d->locked, false);
    atomic_store(&d->pending, false);
    atomic_store(&d->deadline, NICBARRIER_NEVER);
    atomic_store(&d->looked, 0);
    atomic_store(&d->away, false);
    d->open = start(why) == 0;
    if (!d->open) {
        free(d->tombstones);
        d->tombstones = NULL;
    }
    return d->open ? 0 : -1;
}

static void datagram_close(void)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    if (!d->open) {
        return;
    }
    nicbarrier_datagram_stop_thread();
    for (int i = 0; i < NICBARRIER_DATAGRAM_LISTS; i++) {
        while (d->list[i] != NULL) {
            nicbarrier_datagram_bury(d->list[i]);
        }
    }
    close_transports();
    free(d->tombstones);
    d->tombstones = NULL;
    d->open = false;
}

/* ---- hosts out of reach
 * ---------------------------------------------------------------------------------
 */

static bool is_unreachable(uint64_t host)
{
    const nicbarrier_datagram_t *d = &nicbarrier_datagram;
    for (unsigned i = 0; i < d->nunreachable && i < NICBARRIER_DATAGRAM_UNREACHABLE; i++) {
        if (d->unreachable[i] == host) {
            return true;
        }
    }
    return false;
}

/** Remembers the hosts of members that have not answered, though they were asked. */
static void remember_unreachable(const nicbarrier_net_t *net)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    for (int k = 0; k < net->epochs.nsteps; k++) {
        const nicbarrier_partner_t *from = net->from[k];
        /* Members of later steps have not been asked, nor that of a step just begun. */
        const bool asked = net->epochs.slot[k].deadline != NICBARRIER_NEVER && from->unheard > 0;
        if (asked && !from->proven && from->host != 0 && !is_unreachable(from->host)) {
            d->unreachable[d->nunreachable++ % NICBARRIER_DATAGRAM_UNREACHABLE] = from->host;
        }
    }
}

/* ---- groups -----------------------------------------------------------------------------------
 */

static uint32_t describe(unsigned char *bytes)
{
    uint32_t len[NICBARRIER_VIAS] = {0}, at = NICBARRIER_ENDPOINT_HEAD;
    for (int i = 0; i < NICBARRIER_VIAS; i++) {
        const nicbarrier_transport_t *t = nicbarrier_datagram.transport[i];
        len[i] = t != NULL ? t->describe(bytes + at) : 0;
        at += len[i];
    }
    return nicbarrier_endpoint_head(len, bytes);
}

/** From here on, what faster members send is taken in. */
static int datagram_prepare(const nicbarrier_group_t *group, nicbarrier_net_t **net_p, void *bytes,
                            uint32_t *len_p, nicbarrier_reason_t *why)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    nicbarrier_step_t steps[NICBARRIER_STEPS_MAX];
    const int n = nicbarrier_schedule((nicbarrier_schedule_kind_t)d->schedule,
                                      NICBARRIER_DATAGRAM_DEGREE, group->me, group->n, steps);
    *net_p = NULL;
    if (n < 0) {
        nicbarrier_reason(why, "there is no schedule %d for member %d of %d", d->schedule,
                          group->me, group->n);
        return -1;
    }
    nicbarrier_net_t *net = calloc(1, sizeof(*net));
    nicbarrier_partner_t *partners = calloc(2 * (size_t)n, sizeof(*partners));
    if (net == NULL || partners == NULL) {
        free(net);
        free(partners);
        nicbarrier_reason(why, "memory is exhausted");
        return -1;
    }
    net->group = *group;
    net->partner = partners;
    nicbarrier_epochs_init(&net->epochs, steps, n, &d->timing);
    *len_p = describe(bytes);
    nicbarrier_datagram_lock();
    nicbarrier_datagram_insert(net);
    nicbarrier_datagram_unlock();
    *net_p = net;
    return 0;
}

void nicbarrier_datagram_release(nicbarrier_partner_t *p)
{
    for (int i = 0; i < p->ncandidates; i++) {
        nicbarrier_datagram.transport[p->candidate[i].via]->release(&p->candidate[i]);
    }
    p->ncandidates = 0;
}

/** Candidates by verbs, where both have a port. */
static int resolve_verbs(nicbarrier_partner_t *p, const nicbarrier_parts_t *parts,
                         nicbarrier_reason_t *why)
{
    const nicbarrier_transport_t *t = nicbarrier_datagram.transport[NICBARRIER_VIA_VERBS];
    const uint32_t len = parts->len[NICBARRIER_VIA_VERBS];
    if (t == NULL || len == 0) {
        nicbarrier_reason(why, "member %d has no verbs device", (int)p->member);
        return 0;
    }
    return t->resolve(p, parts->bytes[NICBARRIER_VIA_VERBS], len, why);
}

/** All its candidates, verbs first; -1 where there is none. */
static int resolve(nicbarrier_partner_t *p, const unsigned char *bytes, uint32_t len,
                   nicbarrier_reason_t *why)
{
    const nicbarrier_transport_t *udp = nicbarrier_datagram.transport[NICBARRIER_VIA_UDP];
    nicbarrier_parts_t parts;
    nicbarrier_reason_t other;
    const char *wrong = nicbarrier_endpoint_split(bytes, len, &parts);
    if (wrong != NULL) {
        nicbarrier_reason(why, "the endpoint record of member %d is not understood: %s",
                          (int)p->member, wrong);
        return -1;
    }
    if (resolve_verbs(p, &parts, why) != 0) {
        return -1;
    }
    const uint8_t by_verbs = p->ncandidates;
    const bool only = nicbarrier_datagram_config.verbs == NICBARRIER_VERBS_ALWAYS;
    if (udp->resolve(p, parts.bytes[NICBARRIER_VIA_UDP], parts.len[NICBARRIER_VIA_UDP],
                     only ? &other : why) != 0) {
        *why = only ? other : *why;
        return -1;
    }
    p->ncandidates = only ? by_verbs : p->ncandidates;
    p->at = p->candidate[0];
    return p->ncandidates > 0 ? 0 : -1;
}

static nicbarrier_partner_t *partner_of(nicbarrier_net_t *net, int32_t member,
                                        const nicbarrier_endpoints_t *endpoints,
                                        nicbarrier_reason_t *why)
{
    nicbarrier_partner_t *p = &net->partner[net->npartners];
    for (int i = 0; i < net->npartners; i++) {
        if (net->partner[i].member == member) {
            return &net->partner[i];
        }
    }
    const nicbarrier_endpoint_t *endpoint = nicbarrier_endpoint_of(endpoints, member);
    if (endpoint == NULL) {
        nicbarrier_reason(why, "the endpoint of member %d is missing", (int)member);
        return NULL;
    }
    p->member = member;
    if (resolve(p, endpoint->bytes, endpoint->len, why) != 0) {
        nicbarrier_datagram_release(p);
        return NULL;
    }
    net->npartners++;
    if (is_unreachable(p->host)) {
        nicbarrier_reason(why, "datagrams to and from the host of member %d have been lost before",
                          (int)member);
        return NULL;
    }
    return p;
}

static int find_partners(nicbarrier_net_t *net, const nicbarrier_endpoints_t *endpoints,
                         nicbarrier_reason_t *why)
{
    for (int k = 0; k < net->epochs.nsteps; k++) {
        const nicbarrier_step_t *s = &net->epochs.slot[k].step;
        if (s->send_to != NICBARRIER_NOBODY) {
            net->to[k] = partner_of(net, s->send_to, endpoints, why);
            if (net->to[k] == NULL) {
                return -1;
            }
            const nicbarrier_packet_t p = {.kind = NICBARRIER_PACKET_EPOCH,
                                           .at = s->send_at,
                                           .from_at = (uint8_t)k,
                                           .sender = (uint32_t)net->group.me,
                                           .cookie = net->to[k]->cookie,
                                           .key = net->group.key};
            nicbarrier_packet_encode(&p, net->message[k]);
        }
        if (s->wait_for != NICBARRIER_NOBODY) {
            net->from[k] = partner_of(net, s->wait_for, endpoints, why);
            if (net->from[k] == NULL) {
                return -1;
            }
            if (net->early[k].len > 0) {
                const nicbarrier_address_t *early = &net->early[k];
                nicbarrier_reach_heard(net->from[k], early,
                                       nicbarrier_datagram.transport[early->via]->adopt);
            }
        }
    }
    return 0;
}

static int datagram_connect(nicbarrier_net_t *net, const nicbarrier_endpoints_t *endpoints,
                            const nicbarrier_net_events_t *events, nicbarrier_reason_t *why)
{
    nicbarrier_datagram_lock();
    net->events = *events;
    const int rc = find_partners(net, endpoints, why);
    net->connected = rc == 0;
    nicbarrier_datagram_unlock();
    return rc;
}

static void datagram_expect(nicbarrier_net_t *net)
{
    nicbarrier_datagram_lock();
    net->expected = net->epochs.completed < net->epochs.entered;
    net->expected_since = nicbarrier_datagram_now();
    nicbarrier_datagram_unlock();
}

static void datagram_disconnect(nicbarrier_net_t *net)
{
    nicbarrier_datagram_lock();
    /* What was entered has to become complete, because others need the messages for that; but a
     * group in which nothing ever did was not in use. */
    if (net->epochs.completed > 0 && net->epochs.completed != net->epochs.entered) {
        net->gone = true;
    } else {
        nicbarrier_datagram_bury(net);
    }
    nicbarrier_datagram_unlock();
}

/** The first epoch gets this time, nanoseconds, from when all members are in it. */
#define TRIAL_NSEC 2000000000U

static bool datagram_hopeless(nicbarrier_net_t *net, nicbarrier_reason_t *why)
{
    nicbarrier_datagram_lock();
    const bool hopeless =
        net->expected && nicbarrier_datagram_now() - net->expected_since > TRIAL_NSEC;
    if (hopeless) {
        remember_unreachable(net);
        nicbarrier_reason(why, "no way was found through the network to some leader of other "
                               "processes");
    }
    nicbarrier_datagram_unlock();
    return hopeless;
}

/* ---- barriers ---------------------------------------------------------------------------------
 */

/** Tells the helper thread that an MPI thread is there. Threads that count at once may lose a
 *  count, but not all. */
static void tick(void)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    nicbarrier_count(&d->ticks);
    if (atomic_load_explicit(&d->away, memory_order_relaxed)) {
        atomic_store_explicit(&d->away, false, memory_order_relaxed);
    }
}

static void post_entry(nicbarrier_net_t *net, uint64_t epoch)
{
    uint64_t before = atomic_load(&net->wanted);
    while (before < epoch && !atomic_compare_exchange_weak(&net->wanted, &before, epoch)) {
    }
    atomic_store(&nicbarrier_datagram.pending, true);
}

static void datagram_enter(nicbarrier_net_t *net, uint64_t epoch)
{
    tick();
    if (nicbarrier_datagram_trylock()) {
        nicbarrier_datagram_enter(net, epoch);
        nicbarrier_datagram_unlock();
    } else {
        post_entry(net, epoch);
        if (nicbarrier_datagram_trylock()) {
            nicbarrier_datagram_unlock();
        }
    }
}

static uint64_t datagram_completed(const nicbarrier_net_t *net)
{
    return atomic_load_explicit(&net->completed, memory_order_acquire);
}

static int datagram_progress(nicbarrier_net_t *net)
{
    tick();
    if (!nicbarrier_datagram_trylock()) {
        return 0;
    }
    const int events = nicbarrier_datagram_receive(net);
    atomic_store_explicit(&nicbarrier_datagram.looked, nicbarrier_datagram.now,
                          memory_order_relaxed);
    nicbarrier_datagram_unlock();
    return events;
}

static void datagram_leave(nicbarrier_net_t *net)
{
    /* In a single step there is nothing to do but to receive, which can wait for the threads;
     * unless there are processes behind this one. */
    if (net->epochs.nsteps > 1 || net->events.complete != NULL) {
        nicbarrier_datagram_hand_over();
    }
}

static void datagram_wait(nicbarrier_net_t *net, unsigned usec)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    const uint64_t now = nicbarrier_datagram_now(), end = now + (uint64_t)usec * 1000;
    uint64_t until = atomic_load_explicit(&d->deadline, memory_order_relaxed);
    struct pollfd fds[NICBARRIER_VIAS] = {{0}};
    (void)net;
    until = until < end ? until : end;
    if (until <= now || !nicbarrier_datagram_trylock()) {
        return;
    }
    const bool quiet = nicbarrier_datagram_arm();
    atomic_store_explicit(&d->looked, NICBARRIER_NEVER, memory_order_relaxed);
    nicbarrier_datagram_unlock();
    if (quiet) {
        const nfds_t n = nicbarrier_datagram_descriptors(fds);
        const struct timespec left = {(time_t)((until - now) / 1000000000U),
                                      (long)((until - now) % 1000000000U)};
        if (ppoll(fds, n, &left, NULL) > 0 && fds[NICBARRIER_VIA_UDP].revents != 0) {
            atomic_store_explicit(&d->udp_due, true, memory_order_relaxed);
        }
    }
}

/* ---- pokes ------------------------------------------------------------------------------------
 */

typedef struct poke {
    nicbarrier_address_t to;
    uint32_t cookie;
    uint64_t key;
} poke_t;

_Static_assert(sizeof(poke_t) <= NICBARRIER_POKE_MAX, "a poke record has a limited size");

static uint32_t datagram_poke_record(nicbarrier_net_t *net, void *bytes)
{
    const nicbarrier_datagram_t *d = &nicbarrier_datagram;
    poke_t p;
    memset(&p, 0, sizeof(p));
    p.cookie = d->cookie;
    p.key = net->group.key;
    if (!nicbarrier_udp_local(&p.to)) {
        return 0;
    }
    memcpy(bytes, &p, sizeof(p));
    return sizeof(p);
}

static void datagram_poke(const void *bytes, uint32_t len)
{
    poke_t p;
    unsigned char packet[NICBARRIER_PACKET_SIZE];
    if (len != sizeof(p)) {
        return;
    }
    memcpy(&p, bytes, sizeof(p));
    const nicbarrier_packet_t poke = {
        .kind = NICBARRIER_PACKET_POKE, .cookie = p.cookie, .key = p.key};
    nicbarrier_packet_encode(&poke, packet);
    nicbarrier_udp_throw(&p.to, packet);
}

/** Beats messages of Open MPI between nodes, and all there is but an adapter's own remote writes.
 */
static int datagram_score(void)
{
    return 50;
}

static const nicbarrier_engine_extras_t extras = {
    .expect = datagram_expect,
    .hopeless = datagram_hopeless,
    .leave = datagram_leave,
    .wait = datagram_wait,
    .poke_record = datagram_poke_record,
    .poke = datagram_poke,
};

const nicbarrier_engine_t nicbarrier_engine_datagram = {
    .name = "datagram",
    .what = "UDP or verbs, with retransmission on request of the receiver",
    .network = "datagrams",
    .needs = NICBARRIER_NEEDS_ONE_JOB,
    .params = nicbarrier_datagram_params,
    .counters = nicbarrier_datagram_counter_table,
    .score = datagram_score,
    .open = datagram_open,
    .close = datagram_close,
    .prepare = datagram_prepare,
    .connect = datagram_connect,
    .enter = datagram_enter,
    .completed = datagram_completed,
    .progress = datagram_progress,
    .disconnect = datagram_disconnect,
    .extras = &extras,
};
