/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Keys, and what is registered; see keys.h. */
#include "osc_nicstride/window/keys.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "osc_nicstride/window/gate.h"
#include "osc_nicstride/window/state.h"

static const nicstride_keyed_t *keyed(unsigned row)
{
    const nicstride_method_row_t *r = nicstride_component.methods[row];

    return r != NULL ? r->keyed : NULL;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/** How many begin at or before a place. */
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
    /* Pieces of a dynamic window's regions, which come and go, may overlap: then it is not always
     * the last one that begins there. */
    for (size_t i = up_to(t, at); i-- > 0;) {
        if (nicstride_span_holds(&t->piece[i].span, at, 1)) {
            t->last = i;
            return &t->piece[i];
        }
    }
    return NULL;
}

/** Adds a piece in its place; NULL where memory is exhausted, or they are too many. */
static nicstride_key_piece_t *insert(nicstride_key_pieces_t *t, const nicstride_key_piece_t *piece)
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

static void end_pieces(nicstride_key_pieces_t *t)
{
    free(t->piece);
    *t = (nicstride_key_pieces_t){0};
}

/* ---- what an origin has ---------------------------------------------------------------------- */

static void drop(nicstride_of_rows_t *of)
{
    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX; i++) {
        if (of->row[i] != NULL)
            keyed(i)->drop(of->row[i]);
        of->row[i] = NULL;
    }
}

/** Those that could be used with the peer. */
static uint32_t usable(nicstride_peer_t *p)
{
    uint32_t rows = 0;

    const bool far = p->local < 0 && p->rank != p->module->rank;

    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX; i++)
        if (keyed(i) != NULL && (far || (keyed(i)->updates && p->module->adapter_updates)) &&
            keyed(i)->usable(p))
            rows |= NICSTRIDE_REACH(i);
    return rows;
}

nicstride_keyring_t *nicstride_keyring_locked(nicstride_peer_t *p)
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
        __atomic_store_n(&p->keyless, 1, __ATOMIC_RELAXED);
    return p->keys;
}

void nicstride_keyring_add_locked(nicstride_peer_t *p, const nicstride_key_piece_t *piece,
                                  const nicstride_of_rows_t *word)
{
    nicstride_keyring_t *k = p->keys;
    nicstride_of_rows_t spare = *word;

    /* Of another generation than those that are there: they are void. */
    if (k->pieces.n > 0 && k->generation != piece->span.generation)
        nicstride_keyring_void_locked(p);
    if (nicstride_keyring_waits_locked(p)) {
        drop(&spare);
        spare = piece->of;
        drop(&spare);
        return;
    }
    k->generation = piece->span.generation;
    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX; i++) {
        if (k->word.row[i] == NULL) {
            k->word.row[i] = spare.row[i];
            spare.row[i] = NULL;
        }
    }
    drop(&spare);
    if (insert(&k->pieces, piece) != NULL)
        return;
    spare = piece->of;
    drop(&spare);
    k->refused = true;
}

static void drop_all(nicstride_keyring_t *k)
{
    for (size_t i = 0; i < k->pieces.n; i++)
        drop(&k->pieces.piece[i].of);
    end_pieces(&k->pieces);
    drop(&k->word);
}

bool nicstride_keyring_waits_locked(nicstride_peer_t *p)
{
    nicstride_keyring_t *k = p->keys;
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

void nicstride_keyring_void_locked(nicstride_peer_t *p)
{
    p->keys->stale = true;
    (void)nicstride_keyring_waits_locked(p);
}

void nicstride_keyring_free_locked(nicstride_peer_t *p)
{
    if (p->keys == NULL)
        return;
    drop_all(p->keys);
    nicstride_entrance_free_locked(p->keys->entrance);
    free(p->keys);
    p->keys = NULL;
}

/* ---- what a target has registered ------------------------------------------------------------ */

static void withdraw(nicstride_of_rows_t *of)
{
    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX; i++) {
        if (of->row[i] != NULL)
            keyed(i)->withdraw(of->row[i]);
        of->row[i] = NULL;
    }
}

static bool is_dynamic(const nicstride_module_t *m)
{
    return m->flavor == MPI_WIN_FLAVOR_DYNAMIC;
}

static uint64_t generation(const nicstride_module_t *m)
{
    return is_dynamic(m) ? *m->enrolled->generation : 0;
}

static nicstride_enrolled_t *enrolled(nicstride_module_t *m)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    nicstride_enrolled_t *e = m->enrolled;
    void *word = NULL;

    if (e != NULL)
        return e;
    e = calloc(1, sizeof(*e));
    if (e == NULL || (is_dynamic(m) && posix_memalign(&word, page, page) != 0)) {
        free(e);
        return NULL;
    }
    e->generation = word;
    if (word != NULL)
        *e->generation = 1;
    m->enrolled = e;
    return e;
}

/** The region of the window around a place; false where that is not in it. */
static bool find_region(const nicstride_module_t *m, uint64_t at, nicstride_span_t *span)
{
    nicstride_region_t region = {0, nicstride_info(m, m->rank)->size};

    if (is_dynamic(m) ? !nicstride_regions_find(&m->regions, at, 1, &region) : at >= region.size)
        return false;
    *span = (nicstride_span_t){region.base, region.size, generation(m)};
    return true;
}

static void enrol_by(nicstride_module_t *m, nicstride_of_rows_t *of, void *base, uint64_t bytes,
                     uint32_t rows)
{
    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX; i++)
        if ((rows & NICSTRIDE_REACH(i)) != 0 && keyed(i) != NULL && of->row[i] == NULL)
            of->row[i] = keyed(i)->enrol(m, base, bytes);
}

const nicstride_key_piece_t *nicstride_enrol_locked(nicstride_module_t *m, uint64_t at,
                                                    uint32_t rows, const nicstride_of_rows_t **word)
{
    nicstride_enrolled_t *e = enrolled(m);
    nicstride_key_piece_t *piece;
    nicstride_span_t region;

    if (e == NULL || !find_region(m, at, &region))
        return NULL;
    piece = nicstride_key_piece_find(&e->pieces, at);
    if (piece == NULL) {
        const nicstride_key_piece_t made = {
            .span = m->adapter_updates
                        ? region
                        : nicstride_piece_of(&region, at, nicstride_component.params.key_piece)};

        piece = insert(&e->pieces, &made);
    }
    if (piece == NULL)
        return NULL;
    piece->span.generation = generation(m);
    enrol_by(m, &piece->of, (void *)((uintptr_t)m->base + piece->span.at), piece->span.size,
             rows & ~piece->tried);
    piece->tried |= rows;
    if (is_dynamic(m))
        enrol_by(m, &e->word, e->generation, sizeof(*e->generation), rows);
    *word = &e->word;
    return piece;
}

/** Is all of a registered piece attached still? */
static bool is_attached(const nicstride_module_t *m, const nicstride_span_t *span)
{
    nicstride_region_t region;

    return nicstride_regions_find(&m->regions, span->at, span->size, &region);
}

void nicstride_withdraw_detached_locked(nicstride_module_t *m)
{
    nicstride_enrolled_t *e = m->enrolled;
    size_t kept = 0;

    if (e == NULL)
        return;
    for (size_t i = 0; i < e->pieces.n; i++) {
        nicstride_key_piece_t *piece = &e->pieces.piece[i];

        if (is_attached(m, &piece->span)) {
            e->pieces.piece[kept++] = *piece;
            continue;
        }
        /* Adapters read it. */
        __atomic_fetch_add(e->generation, 1, __ATOMIC_SEQ_CST);
        withdraw(&piece->of);
    }
    e->pieces.n = kept;
}

void nicstride_withdraw_all_locked(nicstride_module_t *m)
{
    nicstride_enrolled_t *e = m->enrolled;

    if (e == NULL)
        return;
    for (size_t i = 0; i < e->pieces.n; i++)
        withdraw(&e->pieces.piece[i].of);
    end_pieces(&e->pieces);
    withdraw(&e->word);
    free(e->generation);
    free(e);
    m->enrolled = NULL;
}
