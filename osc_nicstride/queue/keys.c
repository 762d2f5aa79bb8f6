/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/queue/keys.h"

#include <stdlib.h>
#include <string.h>

#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/window/state.h"

const nicstride_rkey_ops_t *nicstride_rkey_ops(unsigned row)
{
    const nicstride_method_row_t *r =
        row < NICSTRIDE_METHODS_MAX ? nicstride_component.methods[row] : NULL;

    return r != NULL ? r->rkey_ops : NULL;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/** The number of pieces that begin at or before a place. */
static size_t up_to(const nicstride_key_pieces_t *t, uint64_t at)
{
    size_t low = 0, high = t->n;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (t->piece[middle].span.at <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

nicstride_key_piece_t *nicstride_key_piece_find(nicstride_key_pieces_t *t, uint64_t at)
{
    if (t->last < t->n && nicstride_span_holds(&t->piece[t->last].span, at, 1))
        return &t->piece[t->last];
    /* Pieces of regions of a dynamic window, which come and go, may overlap; then the right one is
     * not always the last that begins there. */
    for (size_t i = up_to(t, at); i-- > 0;) {
        if (nicstride_span_holds(&t->piece[i].span, at, 1)) {
            t->last = i;
            return &t->piece[i];
        }
    }
    return NULL;
}

nicstride_key_piece_t *nicstride_key_piece_add(nicstride_key_pieces_t *t,
                                               const nicstride_key_piece_t *piece)
{
    const size_t at = up_to(t, piece->span.at);

    if (t->n == t->cap) {
        const size_t cap = t->cap == 0 ? 1 : 2 * t->cap;
        nicstride_key_piece_t *all =
            cap <= NICSTRIDE_KEY_PIECES_MAX ? reallocarray(t->piece, cap, sizeof(*all)) : NULL;

        if (all == NULL)
            return NULL;
        t->piece = all;
        t->cap = cap;
    }
    memmove(&t->piece[at + 1], &t->piece[at], (t->n++ - at) * sizeof(*piece));
    t->piece[at] = *piece;
    return &t->piece[at];
}

void nicstride_key_pieces_free(nicstride_key_pieces_t *t)
{
    free(t->piece);
    *t = (nicstride_key_pieces_t){0};
}

/* ---- what an origin has ---------------------------------------------------------------------- */

static void drop(const nicstride_of_rows_t *of)
{
    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX; i++)
        if (of->row[i] != NULL)
            nicstride_rkey_ops(i)->drop(of->row[i]);
}

/** The set of rows that could be used with the peer. */
static uint32_t usable(nicstride_peer_t *p)
{
    uint32_t rows = 0;

    if (p->local >= 0 || p->rank == p->module->rank)
        return 0;
    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX; i++) {
        const nicstride_rkey_ops_t *row = nicstride_rkey_ops(i);

        if (row != NULL && row->usable(p))
            rows |= NICSTRIDE_REACH(i);
    }
    return rows;
}

nicstride_rkey_cache_t *nicstride_rkey_cache_locked(nicstride_peer_t *p)
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

static void drop_all(nicstride_rkey_cache_t *k)
{
    for (size_t i = 0; i < k->pieces.n; i++)
        drop(&k->pieces.piece[i].of);
    nicstride_key_pieces_free(&k->pieces);
    drop(&k->word);
    k->word = (nicstride_of_rows_t){{NULL}};
}

/** True if all keys are void and still in use. */
static bool waits(nicstride_peer_t *p)
{
    nicstride_rkey_cache_t *k = p->keys;
    uint32_t under_way = 0;

    if (!k->stale)
        return false;
    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX; i++)
        under_way += k->begun[i].under_way;
    if (under_way > 0)
        return true;
    drop_all(k);
    k->stale = false;
    return false;
}

void nicstride_rkey_cache_void_locked(nicstride_peer_t *p)
{
    p->keys->stale = true;
    (void)waits(p);
}

void nicstride_rkey_cache_add_locked(nicstride_peer_t *p, const nicstride_key_piece_t *piece,
                                     const nicstride_of_rows_t *word)
{
    nicstride_rkey_cache_t *k = p->keys;

    /* Keys of another generation are void. */
    if (k->pieces.n > 0 && k->generation != piece->span.generation)
        nicstride_rkey_cache_void_locked(p);
    if (waits(p)) {
        drop(word);
        drop(&piece->of);
        return;
    }
    k->generation = piece->span.generation;
    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX; i++)
        if (k->word.row[i] == NULL)
            k->word.row[i] = word->row[i];
        else if (word->row[i] != NULL)
            nicstride_rkey_ops(i)->drop(word->row[i]);
    if (nicstride_key_piece_add(&k->pieces, piece) != NULL)
        return;
    drop(&piece->of);
    k->refused = true;
}

void nicstride_rkey_cache_free_locked(nicstride_peer_t *p)
{
    if (p->keys == NULL)
        return;
    drop_all(p->keys);
    free(p->keys);
    p->keys = NULL;
}

/* ---- asking ---------------------------------------------------------------------------------- */

void nicstride_send_keys_locked(nicstride_peer_t *p, nicstride_keys_what_t what, uint64_t at,
                                const nicstride_keys_t *k)
{
    nicstride_msg_t msg = nicstride_note(p, NICSTRIDE_MSG_KEYS, what, 0);
    const onic_payload_t payload = {.base = k->bytes, .len = k->len};

    msg.disp = (int64_t)at;
    msg.len = k->len;
    nicstride_send_inline_locked(p, &msg, &payload);
}

static void ask(nicstride_peer_t *p, uint64_t at)
{
    nicstride_rkey_cache_t *ring = p->keys;
    nicstride_keys_t k;

    nicstride_keys_begin(&k, NULL);
    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX; i++) {
        size_t cap;
        void *room = nicstride_keys_room(&k, &cap);

        if ((ring->rows & NICSTRIDE_REACH(i)) != 0 && room != NULL)
            nicstride_keys_add(&k, i, NICSTRIDE_OF_REGION,
                               nicstride_rkey_ops(i)->offer(p, NULL, room, cap));
    }
    /* No row can answer now; perhaps one can later. */
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
    nicstride_rkey_cache_t *ring = nicstride_rkey_cache_locked(p);
    const nicstride_key_piece_t *piece;

    if (ring == NULL || (ring->rows & NICSTRIDE_REACH(row)) == 0 || waits(p))
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
    nicstride_rkey_cache_t *ring = p->keys;
    const nicstride_key_piece_t *piece;
    uint64_t at = ring->place;

    if (ring->refused || p->failed || waits(p))
        return;
    while (at < ring->end && (piece = nicstride_key_piece_find(&ring->pieces, at)) != NULL)
        at = piece->span.at + piece->span.size;
    if (at < ring->end)
        ask(p, at);
}

void *nicstride_word_key_locked(nicstride_peer_t *p, nicstride_method_t row)
{
    return p->keys != NULL && !waits(p) ? p->keys->word.row[row] : NULL;
}
