/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/queue/keys.h"

#include <stdlib.h>
#include <string.h>

#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/window/state.h"

const nicstride_keyed_t *nicstride_keyed(unsigned row)
{
    const nicstride_method_row_t *r =
        row < NICSTRIDE_METHODS_MAX ? nicstride_component.methods[row] : NULL;

    return r != NULL ? r->keyed : NULL;
}

/* ---- what an origin has ---------------------------------------------------------------------- */

static void drop(const nicstride_of_rows_t *of)
{
    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX; i++)
        if (of->row[i] != NULL)
            nicstride_keyed(i)->drop(of->row[i]);
}

/** Those that could be used with the peer. */
static uint32_t usable(nicstride_peer_t *p)
{
    const nicstride_module_t *m = p->module;
    const bool far = p->local < 0 && p->rank != m->rank && m->flavor != MPI_WIN_FLAVOR_DYNAMIC;
    uint32_t rows = 0;

    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX; i++) {
        const nicstride_keyed_t *row = nicstride_keyed(i);

        if (row != NULL && (far || (row->updates && m->adapter_updates)) && row->usable(p))
            rows |= NICSTRIDE_REACH(i);
    }
    return rows;
}

nicstride_keyring_t *nicstride_keyring_locked(nicstride_peer_t *p)
{
    uint32_t rows;

    if (p->keys != NULL || !nicstride_may_have_keys(p))
        return p->keys;
    rows = usable(p);
    if (rows != 0)
        p->keys = calloc(1, sizeof(*p->keys) +
                                nicstride_pieces(p->module, p->rank) * sizeof(p->keys->piece[0]));
    if (p->keys != NULL)
        p->keys->rows = rows;
    else
        __atomic_store_n(&p->keyless, 1, __ATOMIC_RELAXED);
    return p->keys;
}

void nicstride_keyring_void_locked(nicstride_peer_t *p)
{
    const size_t n = nicstride_pieces(p->module, p->rank);

    if (!p->keys->told)
        return;
    for (size_t i = 0; i < n; i++)
        drop(&p->keys->piece[i].of);
    memset(p->keys->piece, 0, n * sizeof(p->keys->piece[0]));
    p->keys->told = false;
}

void nicstride_keyring_free_locked(nicstride_peer_t *p)
{
    if (p->keys == NULL)
        return;
    nicstride_keyring_void_locked(p);
    free(p->keys);
    p->keys = NULL;
}

/* ---- asking ---------------------------------------------------------------------------------- */

void nicstride_send_keys_locked(nicstride_peer_t *p, nicstride_keys_what_t what, uint64_t i,
                                const nicstride_keys_t *k)
{
    nicstride_msg_t msg = nicstride_note(p, NICSTRIDE_MSG_KEYS, what, 0);
    const onic_payload_t payload = {.base = k->bytes, .len = k->len};

    msg.disp = (int64_t)i;
    msg.len = k->len;
    nicstride_send_inline_locked(p, &msg, &payload);
}

static void ask(nicstride_peer_t *p, uint64_t piece)
{
    nicstride_keyring_t *ring = p->keys;
    nicstride_keys_t k;

    k.len = 0;
    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX; i++) {
        size_t cap;
        void *room = nicstride_keys_room(&k, &cap);

        if ((ring->rows & NICSTRIDE_REACH(i)) != 0 && room != NULL)
            nicstride_keys_add(&k, i, NICSTRIDE_OF_PIECE,
                               nicstride_keyed(i)->offer(p, NULL, room, cap));
    }
    /* No row can now, perhaps one can later. */
    if (k.len == 0)
        return;
    ring->asked = true;
    ring->place = piece;
    nicstride_add(&nicstride_counters.keys_asked, 1);
    nicstride_send_keys_locked(p, NICSTRIDE_KEYS_ASK, piece, &k);
}

void *nicstride_key_locked(nicstride_peer_t *p, nicstride_method_t row, uint64_t at, uint64_t end,
                           nicstride_span_t *span)
{
    nicstride_keyring_t *ring = nicstride_keyring_locked(p);

    if (ring == NULL || (ring->rows & NICSTRIDE_REACH(row)) == 0)
        return NULL;
    const uint64_t bytes = nicstride_piece_bytes(p->module, p->rank), i = at / bytes;

    *span = nicstride_piece_of(p->module, p->rank, i);
    if (ring->piece[i].tried == 0 && !ring->asked && !ring->refused && !p->failed) {
        ring->end = (end - 1) / bytes + 1;
        ask(p, i);
    }
    return ring->piece[i].of.row[row];
}

void nicstride_keyring_add_locked(nicstride_peer_t *p, const nicstride_of_rows_t *of)
{
    nicstride_keyring_t *ring = p->keys;
    uint64_t i = ring->place;

    ring->piece[i] = (nicstride_key_piece_t){*of, ring->rows};
    ring->told = true;
    while (i < ring->end && ring->piece[i].tried != 0)
        i++;
    if (i < ring->end && !ring->refused && !p->failed)
        ask(p, i);
}
