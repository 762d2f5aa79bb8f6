/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The stepper of the host's processor; see stepper.h. The lock is held throughout. */
#include <stdlib.h>
#include <string.h>

#include "coll_nicbarrier/engines/datagram/datagram.h"
#include "common/support/bytes.h"

struct nicbarrier_stepped {
    nicbarrier_rule_t rule;
    nicbarrier_address_t to[NICBARRIER_STEPS_MAX];
    unsigned char packet[NICBARRIER_STEPS_MAX][NICBARRIER_PACKET_SIZE];
};

/** Goes as far as it gets, and sends what becomes due. */
static void advance(nicbarrier_stepped_t *s)
{
    const uint64_t out = nicbarrier_rule_advance(&s->rule);
    for (uint32_t k = 0; out >> k != 0; k++) {
        if (out >> k & 1) {
            onic_put64(s->packet[k] + NICBARRIER_PACKET_EPOCH_AT,
                       nicbarrier_rule_word(&s->rule, k));
            nicbarrier_datagram_transmit(&s->to[k], s->packet[k]);
        }
    }
}

static nicbarrier_stepped_t *host_install(const nicbarrier_stepping_t *what,
                                          nicbarrier_view_t **view_p, nicbarrier_reason_t *why)
{
    nicbarrier_stepped_t *s = calloc(1, sizeof(*s));
    *view_p = NULL;
    if (s == NULL) {
        nicbarrier_reason(why, "memory is exhausted");
        return NULL;
    }
    for (uint32_t k = 0; k < what->start->nsteps; k++)
        if (what->to[k] != NULL)
            s->to[k] = *what->to[k];
    memcpy(s->packet, what->packet, sizeof(s->packet));
    s->rule = *what->start;
    advance(s);
    return s;
}

static bool host_enter(nicbarrier_stepped_t *s, uint64_t epoch)
{
    nicbarrier_rule_enter(&s->rule, epoch);
    advance(s);
    return true;
}

static bool host_take(nicbarrier_stepped_t *s, uint32_t k, uint64_t word)
{
    (void)nicbarrier_rule_receive(&s->rule, k, word);
    advance(s);
    return true;
}

static const nicbarrier_rule_t *host_snapshot(const nicbarrier_stepped_t *s,
                                              nicbarrier_rule_t *room)
{
    (void)room;
    return &s->rule;
}

static bool host_readdress(nicbarrier_stepped_t *s, uint32_t k, const nicbarrier_address_t *to,
                           const nicbarrier_address_t *from)
{
    (void)from;
    if (to != NULL)
        s->to[k] = *to;
    return true;
}

static void host_remove(nicbarrier_stepped_t *s)
{
    free(s);
}

const nicbarrier_stepper_t nicbarrier_stepper_host = {
    .name = "host",
    .install = host_install,
    .enter = host_enter,
    .take = host_take,
    .snapshot = host_snapshot,
    .readdress = host_readdress,
    .remove = host_remove,
};
