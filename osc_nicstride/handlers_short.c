/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The quick way of the messages that lone small operations are made of, on both sides: a put or get
 * of contiguous bytes, a fetching operation on one element, the acknowledgement, the reply. What is
 * said here in a few words handlers.c, handlers_accumulate.c and answer.c say for all cases; what
 * is not as plain as it looks is left to them, with nothing done yet. Between the cores of a node
 * most of such an operation's time is instructions between the arrival of a message and the
 * departure of its answer.
 *
 * Wire lock, as all handlers.
 */
#include <stddef.h>
#include <string.h>

#include "osc_nicstride/component.h"
#include "osc_nicstride/handlers.h"
#include "osc_nicstride/module.h"
#include "osc_nicstride/proto_short.h"
#include "osc_nicstride/quick.h"
#include "osc_nicstride/small.h"
#include "osc_nicstride/stream.h"

/** A message, its window and its sender. */
typedef struct glance {
    nicstride_module_t *m;
    nicstride_peer_t *p;
    nicstride_short_msg_t s;
    uint64_t disp;
    const unsigned char *data;
    size_t len; /**< of the data */
} glance_t;

/** Sends an answer with `len` bytes, up to NICSTRIDE_SMALL_MAX, behind it. */
static void answer(const glance_t *g, nicstride_msg_type_t type, uint64_t applied, const void *data,
                   size_t len)
{
    const nicstride_short_msg_t s = nicstride_short_answer(&g->s, type, g->m->info[g->p->rank].win,
                                                           (uint32_t)g->m->rank, applied);
    unsigned char bytes[sizeof(s) + NICSTRIDE_SMALL_MAX];

    memcpy(bytes, &s, sizeof(s));
    if (len > 0)
        nicstride_copy_plain(bytes + sizeof(s), data, len);
    nicstride_post_locked(g->p, bytes, sizeof(s) + len, nicstride_outboxes_collect);
}

/** Answers in the slot, where there is one and it takes the answer; else false. */
static bool answer_in_slot(const glance_t *g, uint64_t applied, const void *data, size_t len)
{
    _Alignas(uint64_t) unsigned char few[NICSTRIDE_SLOT_DATA];
    nicstride_peer_t *p = g->p;

    if (p->slot_there == NULL || !nicstride_slot_takes(g->s.count, applied, len))
        return false;
    /* UCX looks into a queue in shared memory only while it has an endpoint there, and leaves it to
     * a thread that has to be woken otherwise: the first answer is a message, which makes one. */
    if (!p->slot_used) {
        p->slot_used = true;
        return false;
    }
    /* Read once, and so that no element is torn: others may be writing there. */
    if (len > 0)
        nicstride_copy_plain(few, data, len);
    nicstride_slot_answer(p->slot_there, applied, g->s.handle, few, len);
    return true;
}

/** Can what is to be said to this peer be said in the short form, and is it no error? */
static bool can_answer(const glance_t *g)
{
    const nicstride_module_t *m = g->m;

    return nicstride_short_has_room(m->info[g->p->rank].win, (uint32_t)m->rank,
                                    g->p->rx.applied + 1) &&
           g->p->rx.error == 0;
}

/** The window's bytes that it is about; NULL where it is not so plain. */
static char *plain_target(const glance_t *g, size_t len)
{
    const nicstride_module_t *m = g->m;
    nicstride_region_t region;

    if (m->flavor == MPI_WIN_FLAVOR_DYNAMIC
            ? !nicstride_regions_find(&m->regions, g->disp, len, &region)
            : len > m->info[m->rank].size || g->disp > m->info[m->rank].size - len)
        return NULL;
    return (char *)((uintptr_t)m->base + g->disp);
}

/** Notes the acknowledgement that a message asks for, before it counts as applied. */
static void note_asked(const glance_t *g)
{
    if (g->s.count != 0 && nicstride_rx_flush(&g->p->rx, g->s.count))
        nicstride_acknowledge_locked(g->m, g->p);
}

static bool on_put(const glance_t *g)
{
    char *at = can_answer(g) ? plain_target(g, g->len) : NULL;
    uint64_t applied;
    int error;

    if (at == NULL)
        return false;
    note_asked(g);
    nicstride_copy_plain(at, g->data, g->len);
    if (nicstride_count_applied(g->m, g->p, 0)) {
        nicstride_rx_ack(&g->p->rx, &applied, &error);
        if (!answer_in_slot(g, applied, NULL, 0))
            answer(g, NICSTRIDE_MSG_ACK, applied, NULL, 0);
    }
    return true;
}

/** Replies with data; with that the operation is done. */
static void reply(const glance_t *g, nicstride_msg_type_t type, const void *data, size_t len)
{
    uint64_t applied = 0;
    int error;

    note_asked(g);
    if (nicstride_count_applied(g->m, g->p, 0))
        nicstride_rx_ack(&g->p->rx, &applied, &error);
    if (!answer_in_slot(g, applied, data, len))
        answer(g, type, applied, data, len);
}

static bool on_get(const glance_t *g)
{
    const size_t len = nicstride_short_len(&g->s);
    const char *at = can_answer(g) && len <= nicstride_small_max() ? plain_target(g, len) : NULL;

    if (at == NULL)
        return false;
    reply(g, NICSTRIDE_MSG_GET_DATA, at, len);
    return true;
}

/** Get-accumulate and compare-and-swap. */
static bool on_fetch(const glance_t *g, nicstride_msg_type_t type)
{
    const size_t len = type == NICSTRIDE_MSG_CAS ? g->len / 2 : g->len;
    char *at = can_answer(g) ? plain_target(g, len) : NULL;
    char old[NICSTRIDE_ELEMENT_MAX];

    if (at == NULL || !nicstride_fetch_element(g->m, type, nicstride_short_op(&g->s), g->s.dtype,
                                               at, g->data, len, old))
        return false;
    reply(g, NICSTRIDE_MSG_ACC_DATA, old, len);
    return true;
}

static void on_ack(const glance_t *g)
{
    if (!nicstride_tx_ack(&g->p->tx, g->s.count, 0))
        nicstride_add(&nicstride_counters.refused, 1);
    nicstride_pump_locked(g->m, g->p);
}

/** Data for an operation of ours to this peer; false where there is none that it fits. */
static bool take_reply(const nicstride_peer_t *p, uint32_t handle, const void *data, size_t len)
{
    nicstride_op_t *op =
        nicstride_handle_get(&mca_osc_nicstride_component.ops, nicstride_short_handle(handle));

    /* Peers are of one window each. */
    if (op == NULL || !op->plain || op->peer != p || len > op->size - op->received)
        return false;
    nicstride_copy_plain(op->result_base, data, len);
    nicstride_op_received_locked(op, len, 0);
    return true;
}

static bool on_reply(const glance_t *g)
{
    if (!take_reply(g->p, g->s.handle, g->data, g->len))
        return false;
    if (g->s.count != 0)
        on_ack(g);
    return true;
}

void nicstride_take_answer_locked(nicstride_peer_t *p)
{
    uint32_t handle;
    size_t len;
    const void *data = nicstride_slot_data(p->slot, &handle, &len);

    nicstride_add(&nicstride_counters.slot_answers, 1);
    if (handle != 0 && (data == NULL || !take_reply(p, handle, data, len)))
        nicstride_add(&nicstride_counters.refused, 1);
    if (!nicstride_tx_ack(&p->tx, p->slot_seen, 0))
        nicstride_add(&nicstride_counters.refused, 1);
}

bool nicstride_on_short(const void *bytes, size_t len)
{
    glance_t g;
    size_t header;
    const nicstride_msg_type_t type = nicstride_msg_glance(bytes, len, &g.s, &g.disp, &header);

    if (type == 0)
        return false;
    g.m = nicstride_find_window(g.s.win);
    g.p = g.m != NULL && g.s.origin < (uint32_t)g.m->size ? g.m->peer[g.s.origin] : NULL;
    if (g.p == NULL)
        return false;
    g.data = (const unsigned char *)bytes + header;
    g.len = len - header;
    switch (type) {
    case NICSTRIDE_MSG_PUT:
        return on_put(&g);
    case NICSTRIDE_MSG_GET:
        return on_get(&g);
    case NICSTRIDE_MSG_GET_ACC:
    case NICSTRIDE_MSG_CAS:
        return on_fetch(&g, type);
    case NICSTRIDE_MSG_ACK:
        on_ack(&g);
        return true;
    default:
        return on_reply(&g);
    }
}
