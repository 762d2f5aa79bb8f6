/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/queue/keys.h"

#include <stdlib.h>

#include "common/transport/put.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/window/module.h"
#include "osc_nicstride/window/state.h"

enum { ASK, TELL };

/** The functions for keys of a row; NULL if the row has none. */
static const nicstride_rkey_ops_t *ops_of(unsigned row)
{
    const nicstride_method_row_t *r =
        row < NICSTRIDE_METHODS_MAX ? nicstride_component.methods[row] : NULL;

    return r != NULL ? r->rkey_ops : NULL;
}

static void send_key(nicstride_peer_t *p, unsigned what, unsigned row, const void *bytes,
                     size_t len)
{
    nicstride_msg_t msg = nicstride_note(p, NICSTRIDE_MSG_KEY, what, row);
    const onic_payload_t payload = {.base = bytes, .len = len};

    msg.len = len;
    nicstride_send_inline_locked(p, &msg, &payload);
}

/* ---- at the origin --------------------------------------------------------------------------- */

/** The set of rows that could be used with the peer. Without an adapter that reaches it, only one
 *  that is forced. */
static uint32_t usable(nicstride_peer_t *p)
{
    uint32_t rows = 0;

    if (p->local >= 0 || p->rank == p->module->rank || p->module->flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return 0;
    const bool by_adapter = onic_peer_puts_by_rdma(p->peer);
    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX; i++)
        if (ops_of(i) != NULL && (by_adapter || nicstride_forced() == i) && ops_of(i)->usable(p))
            rows |= NICSTRIDE_REACH(i);
    return rows;
}

/** The peer's keys, made if needed; NULL: memory is exhausted, or no row with keys is usable. */
static nicstride_rkey_cache_t *keys_of(nicstride_peer_t *p)
{
    uint32_t rows;

    if (p->keys != NULL || !nicstride_may_have_keys(p))
        return p->keys;
    rows = usable(p);
    if (rows != 0)
        p->keys = calloc(1, sizeof(*p->keys));
    if (p->keys != NULL)
        p->keys->rows = rows;
    else
        __atomic_store_n(&p->unregistered, 1, __ATOMIC_RELAXED);
    return p->keys;
}

static void ask(nicstride_peer_t *p, unsigned row)
{
    unsigned char bytes[NICSTRIDE_INLINE_MAX];
    const size_t len = ops_of(row)->ask(p, bytes, sizeof(bytes));

    /* The row cannot be answered now; perhaps it can later. */
    if (len == 0)
        return;
    p->keys->asked |= NICSTRIDE_REACH(row);
    onic_count(&nicstride_counters.keys_asked, 1);
    send_key(p, ASK, row, bytes, len);
}

void *nicstride_key_locked(nicstride_peer_t *p, nicstride_method_t row)
{
    nicstride_rkey_cache_t *keys = keys_of(p);

    if (keys == NULL || (keys->rows & NICSTRIDE_REACH(row)) == 0)
        return NULL;
    if ((keys->asked & NICSTRIDE_REACH(row)) == 0 && !p->failed)
        ask(p, row);
    return keys->key[row];
}

static void take(const nicstride_incoming_t *in, unsigned row)
{
    nicstride_rkey_cache_t *keys = in->p->keys;

    if (keys == NULL || (keys->asked & NICSTRIDE_REACH(row)) == 0 || keys->key[row] != NULL)
        return;
    if (in->len > 0)
        keys->key[row] = ops_of(row)->accept(in->p, in->data, in->len);
    onic_count(&nicstride_counters.keys_refused, keys->key[row] == NULL);
}

void nicstride_keys_free_locked(nicstride_peer_t *p)
{
    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX && p->keys != NULL; i++)
        if (p->keys->key[i] != NULL)
            ops_of(i)->drop(p->keys->key[i]);
    free(p->keys);
    p->keys = NULL;
}

/* ---- at the target --------------------------------------------------------------------------- */

/** The window's memory as the row has registered it, now or before; NULL if that is impossible. */
static void *registered_by(nicstride_module_t *m, unsigned row)
{
    const uint64_t bytes = nicstride_info(m, m->rank)->size;

    if ((m->registering & NICSTRIDE_REACH(row)) == 0 && bytes > 0)
        m->registered[row] = ops_of(row)->register_memory(m->base, bytes);
    m->registering |= NICSTRIDE_REACH(row);
    return m->registered[row];
}

static void answer(const nicstride_incoming_t *in, unsigned row)
{
    const nicstride_rkey_ops_t *ops = ops_of(row);
    void *memory = ops != NULL ? registered_by(in->m, row) : NULL;
    unsigned char bytes[NICSTRIDE_INLINE_MAX];
    size_t len = 0;

    if (memory != NULL)
        len = ops->answer(in->p, memory, in->data, in->len, bytes, sizeof(bytes));
    send_key(in->p, TELL, row, bytes, len);
}

void nicstride_on_key(const nicstride_incoming_t *in)
{
    const unsigned row = (unsigned)in->msg->count;

    if (in->msg->op == ASK)
        answer(in, row);
    else if (ops_of(row) != NULL)
        take(in, row);
}

void nicstride_withdraw_locked(nicstride_module_t *m)
{
    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX; i++) {
        if (m->registered[i] != NULL)
            ops_of(i)->withdraw(m->registered[i]);
        m->registered[i] = NULL;
    }
}
