/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/methods/verbs_peer.h"

size_t nicstride_nic_connections;
onic_rdma_counts_t nicstride_nic_counts;

#if OMPI_NIC_HAVE_VERBS

#include <stdlib.h>
#include <string.h>

#include "common/support/help.h"
#include "osc_nicstride/protocol/message.h"
#include "osc_nicstride/queue/keys.h"
#include "osc_nicstride/window/state.h"

#define ME NICSTRIDE_METHOD_NIC

/** A write of up to this many bytes carries its data inline, so the adapter need not fetch it. */
#define INLINE_BYTES 64
/** A window of requests has this many parts; the last request of each asks for a completion. */
#define SIGNALS 8

/** What is kept for a process, in `of_row`. */
typedef struct side {
    onic_rc_t *rc;           /**< the connection to it; NULL: none */
    bool refused;            /**< there will be no connection */
    onic_rc_served_t served; /**< the one that it has begun */
} side_t;

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
    const onic_rc_spec_t spec = {.connections = (unsigned)nicstride_nic_connections,
                                 .window = (unsigned)link->window,
                                 .batch = (unsigned)link->batch,
                                 .signal = (unsigned)(link->window / SIGNALS),
                                 .pieces = (unsigned)link->entries,
                                 .inline_bytes = INLINE_BYTES};
    onic_verbs_reason_t why;

    if (!tried) {
        tried = true;
        if (onic_rc_open(&nicstride_nic_adapter, &spec, &nicstride_nic_counts, lost, &why) != 0 &&
            nicstride_forced() == ME)
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

/** An answer: the connection's terms, with the window's address and key, and the number of the
 *  asker's queue pair for which they are. */
typedef struct told {
    onic_rc_terms_t terms;
    uint32_t pair, zero;
} told_t;

_Static_assert(sizeof(told_t) == sizeof(onic_rc_terms_t) + 8, "it has no gaps");

static side_t *side_of(nicstride_peer_t *p)
{
    void **slot = &p->process->of_row[ME];

    if (*slot == NULL)
        *slot = calloc(1, sizeof(side_t));
    return *slot;
}

static bool usable(nicstride_peer_t *p)
{
    const side_t *s = open_adapter() ? side_of(p) : NULL;

    return s != NULL && !s->refused;
}

static void *register_memory(void *base, uint64_t bytes)
{
    void *memory = open_adapter() ? onic_rc_expose(&nicstride_nic_adapter, base, bytes) : NULL;

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
        s->rc = onic_rc_make(&nicstride_nic_adapter, s);
        s->refused = s->rc == NULL;
    }
    return s->rc != NULL;
}

static size_t ask(nicstride_peer_t *p, void *bytes, size_t cap)
{
    side_t *s = open_adapter() ? side_of(p) : NULL;

    if (s == NULL || cap < sizeof(s->rc->terms) || !has_connection(s))
        return 0;
    memcpy(bytes, &s->rc->terms, sizeof(s->rc->terms));
    return sizeof(s->rc->terms);
}

static size_t answer(nicstride_peer_t *p, void *memory, const void *question, size_t len,
                     void *bytes, size_t cap)
{
    const struct ibv_mr *mr = memory;
    told_t told = {.zero = 0};
    side_t *s = side_of(p);
    onic_rc_terms_t asked;

    if (s == NULL || cap < sizeof(told) || len != sizeof(asked))
        return 0;
    memcpy(&asked, question, sizeof(asked));
    if (!onic_rc_serve(&nicstride_nic_adapter, &s->served, &asked, &told.terms))
        return 0;
    told.terms.key = mr->rkey;
    told.terms.addr = (uintptr_t)mr->addr;
    told.pair = asked.address.qpn;
    memcpy(bytes, &told, sizeof(told));
    return sizeof(told);
}

static void *take_key(nicstride_peer_t *p, const void *bytes, size_t len)
{
    side_t *s = side_of(p);
    nicstride_nic_key_t *key;
    told_t told;

    if (s == NULL || len != sizeof(told))
        return NULL;
    memcpy(&told, bytes, sizeof(told));
    /* Not if the answer is for an earlier connection, which another window had asked for. */
    if (s->rc != NULL && s->rc->state == ONIC_RC_MADE && s->rc->terms.address.qpn == told.pair &&
        !onic_rc_connect(s->rc, &told.terms)) {
        s->rc = NULL;
        s->refused = true;
        return NULL;
    }
    key = malloc(sizeof(*key));
    if (key != NULL)
        *key = (nicstride_nic_key_t){told.terms.addr, told.terms.key};
    return key;
}

const nicstride_rkey_ops_t nicstride_verbs_rkey_ops = {.usable = usable,
                                                       .register_memory = register_memory,
                                                       .withdraw = withdraw,
                                                       .ask = ask,
                                                       .answer = answer,
                                                       .accept = take_key,
                                                       .drop = free};

onic_rc_t *nicstride_nic_way_locked(nicstride_peer_t *p, bool read, const nicstride_nic_key_t **key)
{
    const side_t *s;

    *key = nicstride_key_locked(p, ME);
    if (*key == NULL)
        return NULL;
    s = p->process->of_row[ME];
    return s->rc != NULL && s->rc->state == ONIC_RC_CONNECTED && (!read || s->rc->terms.reads > 0)
               ? s->rc
               : NULL;
}

void nicstride_nic_leave(void *of_row)
{
    side_t *s = of_row;

    if (s->rc != NULL)
        onic_rc_drop(s->rc);
    onic_rc_unserve(&nicstride_nic_adapter, &s->served);
    free(s);
}

#endif
