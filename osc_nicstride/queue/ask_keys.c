/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/queue/ask_keys.h"

#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/window/state.h"

void nicstride_send_keys_locked(nicstride_peer_t *p, nicstride_keys_what_t what, uint64_t at,
                                const nicstride_keys_t *k)
{
    nicstride_msg_t msg;

    nicstride_msg_init(&msg, NICSTRIDE_MSG_KEYS, p->win, p->me);
    msg.op = (uint16_t)what;
    msg.disp = (int64_t)at;
    msg.len = k->len;
    nicstride_send_copy_locked(p, &msg, k->bytes);
}

static void ask(nicstride_peer_t *p, uint64_t at)
{
    nicstride_keyring_t *ring = p->keys;
    nicstride_keys_t k;

    nicstride_keys_begin(&k, NULL);
    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX; i++) {
        size_t cap;
        void *room = nicstride_keys_room(&k, &cap);

        if ((ring->rows & NICSTRIDE_REACH(i)) != 0 && room != NULL)
            nicstride_keys_add(&k, i, NICSTRIDE_OF_REGION,
                               nicstride_component.methods[i]->keyed->offer(p, NULL, room, cap));
    }
    /* No row can now, perhaps one can later. */
    if (k.len == NICSTRIDE_KEYS_HEAD)
        return;
    ring->asked = true;
    ring->place = at;
    nicstride_add(&nicstride_counters.keys_asked, 1);
    nicstride_send_keys_locked(p, NICSTRIDE_KEYS_ASK, at, &k);
}

void *nicstride_key_locked(nicstride_peer_t *p, nicstride_method_t row, uint64_t at, uint64_t end,
                           nicstride_span_t *span)
{
    nicstride_keyring_t *ring = nicstride_keyring_locked(p);
    const nicstride_key_piece_t *piece;

    if (ring == NULL || (ring->rows & NICSTRIDE_REACH(row)) == 0 ||
        nicstride_keyring_waits_locked(p))
        return NULL;
    piece = nicstride_key_piece_find(&ring->pieces, at);
    if (piece != NULL) {
        *span = piece->span;
        return piece->of.row[row];
    }
    if (!ring->asked && !ring->refused && !p->failed) {
        ring->end = end;
        ask(p, at);
    }
    return NULL;
}

void nicstride_ask_on_locked(nicstride_peer_t *p)
{
    nicstride_keyring_t *ring = p->keys;
    const nicstride_key_piece_t *piece;
    uint64_t at = ring->place;

    if (ring->refused || p->failed || nicstride_keyring_waits_locked(p))
        return;
    while (at < ring->end && (piece = nicstride_key_piece_find(&ring->pieces, at)) != NULL)
        at = piece->span.at + piece->span.size;
    if (at < ring->end)
        ask(p, at);
}

void *nicstride_word_key_locked(nicstride_peer_t *p, nicstride_method_t row)
{
    return p->keys != NULL && !nicstride_keyring_waits_locked(p) ? p->keys->word.row[row] : NULL;
}
