/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/config.h"

#if OMPI_NIC_HAVE_VERBS

#include <stdlib.h>
#include <string.h>

#include "common/support/bytes.h"
#include "common/support/help.h"
#include "common/transport/put.h"
#include "osc_nicstride/methods/verbs_ask.h"
#include "osc_nicstride/methods/verbs_peer.h"
#include "osc_nicstride/protocol/message.h"
#include "osc_nicstride/queue/keys.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/window/state.h"

#define ME NICSTRIDE_METHOD_NIC

/** A write of up to this many bytes carries its data inline, so the adapter need not fetch it. */
#define INLINE_BYTES 64
/** A window of requests has this many parts; the last request of each asks for a completion. */
#define SIGNALS 8

typedef nicstride_verbs_peer_t side_t;

onic_rc_adapter_t nicstride_nic_adapter;
static bool tried, over;
static unsigned nregistered;

/* ---- the adapter ----------------------------------------------------------------------------- */

static void lost(void *owner, const char *why)
{
    side_t *s = owner;

    s->rc = NULL;
    if (why != NULL) {
        s->refused = true;
        onic_say("osc_nicstride: transfers by method nic have failed, later ones to that process "
                 "go by message: %s",
                 why);
    }
}

static bool open_adapter(void)
{
    const onic_link_t *link = &nicstride_component.links.adapter;
    const nicstride_params_t *params = &nicstride_component.params;
    const onic_rc_spec_t spec = {.connections = (unsigned)params->nic_connections,
                                 .window = (unsigned)link->window,
                                 .batch = (unsigned)link->batch,
                                 .signal = (unsigned)(link->window / SIGNALS),
                                 .pieces = (unsigned)link->entries,
                                 .inline_bytes = INLINE_BYTES};
    onic_verbs_reason_t why;

    if (!tried) {
        tried = true;
        if (onic_rc_open(&nicstride_nic_adapter, params->nic_device, &spec, &nicstride_counters.nic,
                         lost, &why) != 0 &&
            params->method == ME)
            onic_say_once("osc_nicstride: method nic cannot be used: %s", why.text);
    }
    return onic_rc_is_open(&nicstride_nic_adapter);
}

/** Closes the adapter once nothing needs it. MPI may be initialised again. */
static void close_adapter(void)
{
    if (!over || nregistered > 0)
        return;
    onic_rc_close(&nicstride_nic_adapter);
    tried = over = false;
}

void nicstride_nic_end_locked(void)
{
    over = true;
    close_adapter();
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* Layout of an answer: the connection's terms, the queue pair for which they are, the key, the
 * address. */
enum { AT_PAIR = sizeof(onic_rc_terms_t), AT_KEY = AT_PAIR + 4, AT_ADDR = AT_KEY + 4 };
#define ANSWER (AT_ADDR + 8)

static side_t *side_of(nicstride_peer_t *p)
{
    void **slot = &p->process->of_row[ME];

    if (*slot == NULL)
        *slot = calloc(1, sizeof(side_t));
    return *slot;
}

static bool usable(nicstride_peer_t *p)
{
    const int method = nicstride_component.params.method;
    const bool wanted =
        method == ME || (method == NICSTRIDE_METHOD_AUTO && onic_peer_puts_by_rdma(p->peer));
    const side_t *s = wanted && open_adapter() ? side_of(p) : NULL;

    return s != NULL && !s->refused;
}

static void *register_memory(nicstride_module_t *m, void *base, uint64_t bytes)
{
    void *memory = open_adapter() ? onic_rc_expose(&nicstride_nic_adapter, base, bytes) : NULL;

    (void)m;
    nregistered += memory != NULL;
    return memory;
}

static void withdraw(void *memory)
{
    onic_rc_conceal(memory);
    nregistered--;
    close_adapter();
}

/** True if the process has a connection, or has begun one. */
static bool has_connection(side_t *s)
{
    if (s->rc == NULL && !s->refused) {
        s->refused = !onic_rc_is_full(&nicstride_nic_adapter);
        s->rc = onic_rc_make(&nicstride_nic_adapter, s);
        s->refused = s->refused && s->rc == NULL;
    }
    return s->rc != NULL;
}

static size_t offer(nicstride_peer_t *p, void *memory, void *bytes, size_t cap)
{
    side_t *s = open_adapter() ? side_of(p) : NULL;
    const struct ibv_mr *mr = memory;
    onic_rc_terms_t answer;

    if (s == NULL || cap < ANSWER)
        return 0;
    if (memory == NULL) {
        if (!has_connection(s))
            return 0;
        s->asker = p;
        memcpy(bytes, &s->rc->terms, sizeof(s->rc->terms));
        return sizeof(s->rc->terms);
    }
    s->process = onic_peer_name(p->peer);
    if (!s->has_asked || !onic_rc_serve(&nicstride_nic_adapter, s->process, &s->asked, &answer))
        return 0;
    memcpy(bytes, &answer, sizeof(answer));
    onic_put32((char *)bytes + AT_PAIR, s->asked.address.qpn);
    onic_put32((char *)bytes + AT_KEY, mr->rkey);
    onic_put64((char *)bytes + AT_ADDR, (uintptr_t)mr->addr);
    return ANSWER;
}

static void *accept_answer(side_t *s, const nicstride_span_t *span, const char *bytes, size_t len)
{
    onic_rc_terms_t terms;
    onic_rdma_region_t *key;

    if (len != ANSWER || !onic_rc_terms_read(bytes, sizeof(terms), &terms) ||
        onic_get64(bytes + AT_ADDR) > UINT64_MAX - span->size)
        return NULL;
    /* Not if the answer is for an earlier connection, which another window had asked for. */
    if (s->rc != NULL && s->rc->state == ONIC_RC_MADE &&
        s->rc->terms.address.qpn == onic_get32(bytes + AT_PAIR) &&
        !onic_rc_connect(s->rc, &terms)) {
        s->rc = NULL;
        s->refused = true;
        return NULL;
    }
    key = calloc(1, sizeof(*key));
    if (key != NULL)
        *key = (onic_rdma_region_t){onic_get64(bytes + AT_ADDR), span->size,
                                    onic_get32(bytes + AT_KEY)};
    return key;
}

static void *take(nicstride_peer_t *p, const nicstride_span_t *span, const void *bytes, size_t len)
{
    side_t *s = side_of(p);

    if (s != NULL && span == NULL)
        s->has_asked = onic_rc_terms_read(bytes, len, &s->asked);
    return s != NULL && span != NULL ? accept_answer(s, span, bytes, len) : NULL;
}

const nicstride_rkey_ops_t nicstride_verbs_rkey_ops = {.usable = usable,
                                                       .register_memory = register_memory,
                                                       .withdraw = withdraw,
                                                       .offer = offer,
                                                       .accept = take,
                                                       .drop = free};

/* ---- ways ------------------------------------------------------------------------------------ */

/** Finds the registered pieces that hold bytes of a window, as in nicstride_nic_way_locked; 0 if
 *  keys for some are missing, or there are too many pieces. In a dynamic window, memory between
 *  blocks may not be attached, and is not asked for: a piece that is shorter than a whole one ends
 *  its region. */
static uint32_t find_pieces(nicstride_peer_t *p, const nicstride_nic_range_t *range,
                            onic_rdma_region_t *region, uint32_t cap, uint64_t *base)
{
    const bool dynamic = p->module->flavor == MPI_WIN_FLAVOR_DYNAMIC;
    nicstride_span_t span;
    uint32_t n = 0;

    for (uint64_t at = range->at; at < range->end; at = span.at + span.size, n++) {
        const bool ends = dynamic && n > 0 && span.size < nicstride_component.params.key_piece;
        const onic_rdma_region_t *key =
            ends ? NULL : nicstride_key_locked(p, ME, at, dynamic ? at + 1 : range->end, &span);

        if (key == NULL || n == cap || (n > 0 && key->addr != *base + span.at))
            return 0;
        if (n == 0)
            *base = key->addr - span.at;
        if (region != NULL)
            region[n] = *key;
    }
    return n;
}

static nicstride_connection_t state_of(const side_t *s)
{
    if (s->rc == NULL)
        return NICSTRIDE_UNCONNECTED;
    return s->rc->state == ONIC_RC_MADE ? NICSTRIDE_OFFERED : NICSTRIDE_CONNECTED;
}

static nicstride_asking_t asking_of(nicstride_peer_t *p, const side_t *s)
{
    const nicstride_rkey_cache_t *ring = p->keys;
    nicstride_asking_t a = {.connection = state_of(s),
                            .given_up = s->refused,
                            .asked = ring->asked,
                            .refused = ring->refused,
                            .busy = !nicstride_rows_landed_locked(p)};
    const nicstride_peer_t *q;

    LIST_FOREACH(q, &p->process->peers, of_process) {
        a.any |= q->keys != NULL && q->keys->asked;
        a.had |= q == s->asker && q->keys != NULL && q->keys->pieces.n > 0 && !q->keys->refused;
    }
    return a;
}

/** Asks again for what is missing. Drops keys of other rows, too: nothing under way uses those. */
static void ask_again(nicstride_peer_t *p, side_t *s, const nicstride_nic_range_t *range)
{
    nicstride_ask_t what = NICSTRIDE_ASK_NOTHING;
    nicstride_span_t span;

    /* Answers the frequent cases without looking at all windows. */
    if (!s->refused && !p->keys->asked) {
        const nicstride_asking_t a = asking_of(p, s);

        what = nicstride_ask_again(&a);
    }
    if (what == NICSTRIDE_ASK_LEAVE || what == NICSTRIDE_ASK_GIVE_UP) {
        onic_rc_drop(s->rc);
        s->rc = NULL;
        s->refused = what == NICSTRIDE_ASK_GIVE_UP;
    } else if (what == NICSTRIDE_ASK_ANEW && has_connection(s)) {
        nicstride_rkey_cache_void_locked(p);
        (void)nicstride_key_locked(p, ME, range->at, range->end, &span);
    }
}

onic_rc_t *nicstride_nic_way_locked(nicstride_peer_t *p, const nicstride_nic_range_t *range,
                                    onic_rdma_region_t *region, uint32_t cap, uint32_t *n_p,
                                    uint64_t *base_p)
{
    side_t *s = p->process->of_row[ME];

    if (s == NULL)
        return NULL;
    *n_p = find_pieces(p, range, region, cap, base_p);
    const bool ready = *n_p > 0 && s->rc != NULL && s->rc->state == ONIC_RC_CONNECTED;

    if (!ready && p->keys != NULL && (p->keys->rows & NICSTRIDE_REACH(ME)) != 0)
        ask_again(p, s, range);
    return ready && (!range->read || s->rc->terms.reads > 0) ? s->rc : NULL;
}

void nicstride_nic_leave(void *of_row)
{
    side_t *s = of_row;

    if (s->rc != NULL)
        onic_rc_drop(s->rc);
    if (s->process != 0)
        onic_rc_unserve(&nicstride_nic_adapter, s->process);
    free(s);
}

#endif
