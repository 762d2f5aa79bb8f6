/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Engine datagram: transport verbs UD, on one queue pair for datagrams of one port
 * (common/verbs/verbs.h).
 *
 * Address handles are made for each port that is sent to and shared by all queue pairs there. What
 * overflows the ring of receive buffers is lost, and asked for again. The Q_Key of a process is not
 * in its endpoint: it follows from the process's cookie (packet.h), which every packet to the
 * process carries.
 */
#include "coll_nicbarrier/engines/datagram/transport.h"

#include "common/config.h"

#if OMPI_NIC_HAVE_VERBS

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/verbs/verbs.h"

/** Packets to send that may be under way. */
#define SENDS 64
/** Receive buffers: the first number for which there is memory, halving. */
#define RING_MAX 256
#define RING_MIN 64
/** Bytes of a receive buffer: the global route, a packet, and room to see that one is longer. */
#define BUFFER 128
/** Completions that are fetched at once. */
#define BATCH 16
/** Of the packets sent, one in so many makes a completion, for those before it, too. */
#define SIGNAL_EVERY 16
/** Lists of address handles. */
#define LISTS 64

_Static_assert(sizeof(onic_verbs_address_t) <= sizeof(((nicbarrier_address_t *)0)->bytes),
               "an address fits");
_Static_assert(BUFFER > ONIC_VERBS_GRH + NICBARRIER_PACKET_SIZE, "a packet fits");

/** The way to a port, until the transport is closed; all queue pairs there share it. */
typedef struct handle {
    struct handle *next;
    onic_verbs_address_t to; /**< without the queue pair */
    struct ibv_ah *ah;
} handle_t;

static onic_verbs_port_t my_port;
static onic_verbs_queue_t q;
static struct ibv_wc batch[BATCH]; /**< of what was received: of so many, so many taken */
static int batched, taken;
static uint64_t posted, done; /**< packets; `done` may be late */
static handle_t *list[LISTS];

/* ---- address handles ------------------------------------------------------------------------ */

/** The port alone; of InfiniBand the LID is enough. */
static onic_verbs_address_t port_of(const onic_verbs_address_t *a)
{
    onic_verbs_address_t port;
    memset(&port, 0, sizeof(port));
    port.link = a->link;
    port.lid = a->lid;
    if (a->link != ONIC_VERBS_INFINIBAND)
        memcpy(port.gid, a->gid, sizeof(port.gid));
    return port;
}

static handle_t **list_of(const onic_verbs_address_t *port)
{
    uint64_t words[2];
    memcpy(words, port->gid, sizeof(words));
    const uint64_t sum = (words[0] ^ words[1] ^ port->lid) * UINT64_C(0x9e3779b97f4a7c15);
    return &list[(sum >> 58) % LISTS];
}

/** Made on first use, which may take a system call; NULL where it cannot be. */
static handle_t *handle_to(const onic_verbs_address_t *to)
{
    const onic_verbs_address_t port = port_of(to);
    handle_t **first = list_of(&port);
    for (handle_t *h = *first; h != NULL; h = h->next)
        if (memcmp(&h->to, &port, sizeof(port)) == 0)
            return h;
    handle_t *h = calloc(1, sizeof(*h));
    if (h == NULL)
        return NULL;
    struct ibv_ah_attr route = onic_verbs_route(&my_port, &port);
    h->ah = ibv_create_ah(my_port.pd, &route);
    if (h->ah == NULL) {
        free(h);
        return NULL;
    }
    h->to = port;
    h->next = *first;
    *first = h;
    return h;
}

/* ---- process -------------------------------------------------------------------------------- */

static int verbs_open(uint32_t cookie, nicbarrier_reason_t *why)
{
    const char *wanted = nicbarrier_datagram_config.device;
    const onic_verbs_queue_spec_t spec = {.qkey = onic_verbs_qkey(cookie),
                                          .sends = SENDS,
                                          .send_bytes = NICBARRIER_PACKET_SIZE,
                                          .receives = RING_MAX,
                                          .receives_min = RING_MIN,
                                          .receive_bytes = BUFFER};
    onic_verbs_reason_t obstacle;
    posted = done = 0;
    batched = taken = 0;
    if (onic_verbs_port_open(&my_port, wanted != NULL ? wanted : "", &obstacle) != 0 ||
        onic_verbs_queue_open(&q, &my_port, &spec, &obstacle) != 0) {
        onic_verbs_port_close(&my_port);
        return nicbarrier_reason(why, "%s", obstacle.text);
    }
    return 0;
}

static void verbs_close(void)
{
    onic_verbs_queue_stop(&q);
    for (int i = 0; i < LISTS; i++) {
        while (list[i] != NULL) {
            handle_t *h = list[i];
            list[i] = h->next;
            ibv_destroy_ah(h->ah);
            free(h);
        }
    }
    onic_verbs_queue_close(&q);
    onic_verbs_port_close(&my_port);
}

/* ---- partners ------------------------------------------------------------------------------- */

static uint32_t verbs_describe(void *bytes)
{
    memcpy(bytes, &q.mine, sizeof(q.mine));
    return sizeof(q.mine);
}

static void address_of(const onic_verbs_address_t *a, nicbarrier_address_t *to)
{
    memset(to, 0, sizeof(*to));
    memcpy(to->bytes, a, sizeof(*a));
    to->len = sizeof(*a);
    to->via = NICBARRIER_VIA_VERBS;
}

static int verbs_resolve(nicbarrier_partner_t *p, const void *bytes, uint32_t len,
                         nicbarrier_reason_t *why)
{
    onic_verbs_address_t theirs;
    const char *wrong = onic_verbs_address_read(bytes, len, &theirs);
    if (wrong != NULL)
        return nicbarrier_reason(why, "the verbs address of member %d is malformed: %s",
                                 (int)p->member, wrong);
    const char *obstacle = onic_verbs_obstacle(&q.mine, &theirs);
    handle_t *h = obstacle == NULL ? handle_to(&theirs) : NULL;
    if (h == NULL) {
        nicbarrier_reason(why, "the verbs device of member %d cannot be reached: %s",
                          (int)p->member, obstacle != NULL ? obstacle : strerror(errno));
        return 0;
    }
    address_of(&theirs, &p->candidate[p->ncandidates++]);
    return 0;
}

/* ---- packets -------------------------------------------------------------------------------- */

/** Tries to bring a broken queue pair back; then what was under way is gone. */
static void mend(void)
{
    if (onic_verbs_queue_mend(&q)) {
        batched = taken = 0;
        done = posted;
    }
}

/** Learns which packets have left. */
static void reap(void)
{
    struct ibv_wc wc[BATCH];
    int n;
    while ((n = ibv_poll_cq(q.sent, BATCH, wc)) > 0) {
        for (int i = 0; i < n; i++) {
            done = wc[i].wr_id > done ? wc[i].wr_id : done;
            q.broken |= wc[i].status != IBV_WC_SUCCESS;
        }
    }
}

static bool post_packet(const onic_verbs_address_t *to, const handle_t *h,
                        const unsigned char *packet)
{
    const bool signal = (posted + 1) % SIGNAL_EVERY == 0;
    struct ibv_sge piece = {
        .addr = (uintptr_t)packet, .length = NICBARRIER_PACKET_SIZE, .lkey = q.mr->lkey};
    struct ibv_send_wr wr = {
        .wr_id = posted + 1,
        .sg_list = &piece,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
        .send_flags =
            (q.sends_inline ? IBV_SEND_INLINE : 0u) | (signal ? (unsigned)IBV_SEND_SIGNALED : 0u),
        .wr.ud = {.ah = h->ah,
                  .remote_qpn = to->qpn,
                  .remote_qkey = onic_verbs_qkey(nicbarrier_packet_cookie(packet))}};
    struct ibv_send_wr *bad;
    if (!q.sends_inline) {
        unsigned char *buffer = onic_verbs_send_buffer(&q, posted % SENDS);
        memcpy(buffer, packet, NICBARRIER_PACKET_SIZE);
        piece.addr = (uintptr_t)buffer;
    }
    if (ibv_post_send(q.qp, &wr, &bad) != 0)
        return false;
    posted++;
    return true;
}

static bool verbs_send(const nicbarrier_address_t *to, const unsigned char *packet)
{
    onic_verbs_address_t a;
    memcpy(&a, to->bytes, sizeof(a));
    if (posted - done >= SENDS / 2)
        reap();
    if (q.broken)
        mend();
    if (q.broken || posted - done >= SENDS)
        return false;
    handle_t *h = handle_to(&a);
    if (h == NULL)
        return false;
    const bool sent = post_packet(&a, h, packet);
    q.broken |= !sent;
    return sent;
}

/** Fetches completions where none is left; false where there are none. */
static bool fetch(void)
{
    if (taken == batched) {
        const int n = ibv_poll_cq(q.received, BATCH, batch);
        batched = n > 0 ? n : 0;
        taken = 0;
    }
    return taken < batched;
}

/** Length of the packet of a completion, which is copied; -1 where nothing is to be had. */
static int take(const struct ibv_wc *wc, void *bytes, size_t size, nicbarrier_address_t *from)
{
    const unsigned char *buffer = onic_verbs_receive_buffer(&q, wc->wr_id);
    const uint32_t head = ONIC_VERBS_GRH;
    onic_verbs_address_t sender;
    if (wc->byte_len < head || wc->byte_len > BUFFER ||
        !onic_verbs_source(&q.mine, (wc->wc_flags & IBV_WC_GRH) != 0 ? buffer : NULL, wc->slid,
                           wc->src_qp, &sender))
        return -1;
    const size_t len = wc->byte_len - head, n = len < size ? len : size;
    memcpy(bytes, buffer + head, n);
    address_of(&sender, from);
    return (int)n;
}

static int verbs_receive(void *bytes, size_t size, nicbarrier_address_t *from)
{
    int len = -1;
    while (len < 0 && fetch()) {
        const struct ibv_wc wc = batch[taken++];
        if (wc.status != IBV_WC_SUCCESS) {
            q.broken = true;
            continue;
        }
        len = take(&wc, bytes, size, from);
        q.broken |= !onic_verbs_queue_post(&q, wc.wr_id);
    }
    if (len < 0 && q.broken)
        mend();
    return len;
}

static int verbs_descriptor(void)
{
    return q.channel->fd;
}

static bool verbs_arm(void)
{
    struct ibv_cq *cq;
    void *context;
    unsigned events = 0;
    while (ibv_get_cq_event(q.channel, &cq, &context) == 0)
        events++;
    if (events > 0)
        ibv_ack_cq_events(q.received, events);
    /* What came before the request makes no event. A sleeping thread has a time limit, which has to
     * do where the device takes no request any more: to try again at once would be to try for ever.
     */
    (void)ibv_req_notify_cq(q.received, 0);
    return !fetch();
}

const nicbarrier_transport_t nicbarrier_verbs = {
    .open = verbs_open,
    .close = verbs_close,
    .describe = verbs_describe,
    .resolve = verbs_resolve,
    .send = verbs_send,
    .receive = verbs_receive,
    .descriptor = verbs_descriptor,
    .arm = verbs_arm,
};

#else

static int verbs_open(uint32_t cookie, nicbarrier_reason_t *why)
{
    (void)cookie;
    return nicbarrier_reason(why, "this build is without libibverbs");
}

/** Never open, so none of the others is called. */
const nicbarrier_transport_t nicbarrier_verbs = {.open = verbs_open};

#endif
