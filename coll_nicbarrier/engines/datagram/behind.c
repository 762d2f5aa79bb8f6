/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: processes behind a leader. They wake its helper thread, by a packet, or
 *  reach what steps its group; see engine.h and stepper.h. */
#include <stdlib.h>
#include <string.h>

#include "coll_nicbarrier/engines/datagram/datagram.h"

typedef struct record {
    nicbarrier_address_t leader;
    uint32_t cookie;
    uint32_t stepper; /**< in the table */
    uint32_t len;     /**< of what follows; 0: the stepper does nothing by itself */
    unsigned char share[NICBARRIER_SHARE_MAX];
} record_t;

_Static_assert(sizeof(record_t) <= NICBARRIER_BEHIND_MAX, "records have a limited size");

struct nicbarrier_behind {
    nicbarrier_address_t leader;
    unsigned char wake[NICBARRIER_PACKET_SIZE];
    const nicbarrier_stepper_t *stepper;
    nicbarrier_access_t *access; /**< or NULL */
    const nicbarrier_view_t *view;
};

uint32_t nicbarrier_datagram_behind_record(nicbarrier_net_t *net, void *bytes)
{
    record_t r;
    memset(&r, 0, sizeof(r));
    nicbarrier_udp_local(&r.leader);
    r.cookie = nicbarrier_datagram.cookie;
    while (nicbarrier_steppers[r.stepper] != net->stepper)
        r.stepper++;
    if (net->stepper->share != NULL)
        r.len = net->stepper->share(net->stepped, r.share);
    memcpy(bytes, &r, sizeof(r));
    return sizeof(r);
}

nicbarrier_behind_t *nicbarrier_datagram_attach(const void *bytes, uint32_t len)
{
    nicbarrier_behind_t *b = calloc(1, sizeof(*b));
    record_t r;
    if (b == NULL || len != sizeof(r)) {
        free(b);
        return NULL;
    }
    memcpy(&r, bytes, sizeof(r));
    const nicbarrier_packet_t p = {.kind = NICBARRIER_PACKET_WAKE, .cookie = r.cookie};
    nicbarrier_packet_encode(&p, b->wake);
    b->leader = r.leader;
    b->stepper = nicbarrier_steppers[r.stepper];
    if (r.len > 0)
        b->access = b->stepper->attach(r.share, r.len, &b->view);
    return b;
}

void nicbarrier_datagram_notify(nicbarrier_behind_t *b, uint64_t epoch, bool attentive)
{
    bool wake = !attentive;
    if (b->access != NULL && b->stepper->enter_as(b->access, epoch)) {
        /* Where that was the last, no packet has woken the leader's thread. */
        wake = nicbarrier_view_completed(b->view) >= epoch && atomic_load(&b->view->wanted) != 0;
    }
    if (wake)
        nicbarrier_udp_send_once(&b->leader, b->wake);
}

uint64_t nicbarrier_datagram_known(const nicbarrier_behind_t *b)
{
    return b->access != NULL ? atomic_load_explicit(&b->view->word, memory_order_acquire) : 0;
}

void nicbarrier_datagram_detach(nicbarrier_behind_t *b)
{
    if (b->access != NULL)
        b->stepper->detach(b->access);
    free(b);
}
