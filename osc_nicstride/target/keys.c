/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <unistd.h>

#include "osc_nicstride/queue/keys.h"
#include "osc_nicstride/target/target.h"
#include "osc_nicstride/window/state.h"

/** What a target has registered: nicstride_module_t's `registered`. */
struct nicstride_registered {
    nicstride_key_pieces_t pieces;
    nicstride_of_rows_t word;
    uint64_t *generation; /**< dynamic windows: the word, in a page of its own */
};

/* ---- what a target has registered ------------------------------------------------------------ */

static void withdraw(nicstride_of_rows_t *of)
{
    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX; i++) {
        if (of->row[i] != NULL)
            nicstride_rkey_ops(i)->withdraw(of->row[i]);
        of->row[i] = NULL;
    }
}

static bool is_dynamic(const nicstride_module_t *m)
{
    return m->flavor == MPI_WIN_FLAVOR_DYNAMIC;
}

static uint64_t generation(const nicstride_module_t *m)
{
    return is_dynamic(m) ? *m->registered->generation : 0;
}

static nicstride_registered_t *registered(nicstride_module_t *m)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    nicstride_registered_t *e = m->registered;
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
    m->registered = e;
    return e;
}

/** Finds the region of the window around a place; false if that is outside. */
static bool find_region(const nicstride_module_t *m, uint64_t at, nicstride_span_t *span)
{
    nicstride_region_t region = {0, nicstride_info(m, m->rank)->size};

    if (is_dynamic(m) ? !nicstride_regions_find(&m->regions, at, 1, &region) : at >= region.size)
        return false;
    *span = (nicstride_span_t){region.base, region.size, generation(m)};
    return true;
}

static void register_by(nicstride_module_t *m, nicstride_of_rows_t *of, void *base, uint64_t bytes,
                        uint32_t rows)
{
    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX; i++)
        if ((rows & NICSTRIDE_REACH(i)) != 0 && nicstride_rkey_ops(i) != NULL && of->row[i] == NULL)
            of->row[i] = nicstride_rkey_ops(i)->register_memory(m, base, bytes);
}

/** Returns the piece of this process's memory around `at`, after registering it with those of
 *  `rows` that can. NULL if there is none, or memory is exhausted. `word` gets the registrations of
 *  a dynamic window's word. */
static const nicstride_key_piece_t *register_piece(nicstride_module_t *m, uint64_t at,
                                                   uint32_t rows, const nicstride_of_rows_t **word)
{
    nicstride_registered_t *e = registered(m);
    nicstride_key_piece_t *piece;
    nicstride_span_t region;

    if (e == NULL || !find_region(m, at, &region))
        return NULL;
    piece = nicstride_key_piece_find(&e->pieces, at);
    if (piece == NULL) {
        const nicstride_key_piece_t made = {
            .span = nicstride_piece_of(&region, at, nicstride_component.params.key_piece)};

        piece = nicstride_key_piece_add(&e->pieces, &made);
    }
    if (piece == NULL)
        return NULL;
    piece->span.generation = generation(m);
    register_by(m, &piece->of, (void *)((uintptr_t)m->base + piece->span.at), piece->span.size,
                rows & ~piece->tried);
    piece->tried |= rows;
    if (is_dynamic(m))
        register_by(m, &e->word, e->generation, sizeof(*e->generation), rows);
    *word = &e->word;
    return piece;
}

void nicstride_withdraw_detached_locked(nicstride_module_t *m)
{
    nicstride_registered_t *e = m->registered;
    nicstride_region_t region;
    size_t kept = 0;

    if (e == NULL)
        return;
    for (size_t i = 0; i < e->pieces.n; i++) {
        nicstride_key_piece_t *piece = &e->pieces.piece[i];

        if (nicstride_regions_find(&m->regions, piece->span.at, piece->span.size, &region)) {
            e->pieces.piece[kept++] = *piece;
            continue;
        }
        /* Adapters read this. */
        __atomic_fetch_add(e->generation, 1, __ATOMIC_SEQ_CST);
        withdraw(&piece->of);
    }
    e->pieces.n = kept;
}

void nicstride_withdraw_all_locked(nicstride_module_t *m)
{
    nicstride_registered_t *e = m->registered;

    if (e == NULL)
        return;
    for (size_t i = 0; i < e->pieces.n; i++)
        withdraw(&e->pieces.piece[i].of);
    nicstride_key_pieces_free(&e->pieces);
    withdraw(&e->word);
    free(e->generation);
    free(e);
    m->registered = NULL;
}

/* ---- questions ------------------------------------------------------------------------------- */

static void offer(const nicstride_incoming_t *in, nicstride_keys_t *k, unsigned row,
                  nicstride_part_of_t part, void *memory)
{
    size_t cap;
    void *room = nicstride_keys_room(k, &cap);

    if (room != NULL && memory != NULL)
        nicstride_keys_add(k, row, part, nicstride_rkey_ops(row)->offer(in->p, memory, room, cap));
}

static void answer(const nicstride_incoming_t *in)
{
    const uint64_t place = (uint64_t)in->msg->disp;
    const nicstride_of_rows_t *word;
    const nicstride_key_piece_t *piece;
    size_t at = NICSTRIDE_KEYS_HEAD;
    nicstride_blob_t blob;
    nicstride_keys_t k;
    uint32_t rows = 0;

    while (nicstride_keys_next(in->data, in->len, &at, &blob)) {
        const nicstride_rkey_ops_t *row = nicstride_rkey_ops(blob.row);

        if (row == NULL)
            continue;
        rows |= NICSTRIDE_REACH(blob.row);
        (void)row->accept(in->p, NULL, blob.bytes, blob.len);
    }
    piece = register_piece(in->m, place, rows, &word);
    nicstride_keys_begin(&k, piece != NULL ? &piece->span : NULL);
    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX && piece != NULL; i++) {
        if ((rows & NICSTRIDE_REACH(i)) == 0)
            continue;
        offer(in, &k, i, NICSTRIDE_OF_REGION, piece->of.row[i]);
        offer(in, &k, i, NICSTRIDE_OF_WORD, word->row[i]);
    }
    nicstride_send_keys_locked(in->p, NICSTRIDE_KEYS_TELL, place, &k);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void take(const nicstride_incoming_t *in, const nicstride_span_t *span)
{
    static const nicstride_span_t word_span = {0, sizeof(uint64_t), 0};
    nicstride_key_piece_t piece = {.span = *span};
    nicstride_of_rows_t word = {{NULL}};
    size_t at = NICSTRIDE_KEYS_HEAD;
    nicstride_blob_t blob;
    bool any = false;

    while (span->size > 0 && nicstride_keys_next(in->data, in->len, &at, &blob)) {
        const nicstride_rkey_ops_t *row = nicstride_rkey_ops(blob.row);

        if (row == NULL || (in->p->keys->rows & NICSTRIDE_REACH(blob.row)) == 0)
            continue;
        if (blob.part == NICSTRIDE_OF_WORD) {
            word.row[blob.row] = row->accept(in->p, &word_span, blob.bytes, blob.len);
        } else {
            piece.of.row[blob.row] = row->accept(in->p, span, blob.bytes, blob.len);
            any = any || piece.of.row[blob.row] != NULL;
        }
    }
    /* A refusal does not affect existing keys, and has no generation. */
    if (span->size > 0)
        nicstride_rkey_cache_add_locked(in->p, &piece, &word);
    if (!any) {
        in->p->keys->refused = true;
        nicstride_add(&nicstride_counters.keys_refused, 1);
    }
    nicstride_ask_on_locked(in->p);
}

bool nicstride_on_keys(const nicstride_incoming_t *in)
{
    nicstride_span_t span;

    if (nicstride_keys_check(in->data, in->len, &span) != NULL) {
        nicstride_refuse();
    } else if (in->msg->op != NICSTRIDE_KEYS_TELL) {
        answer(in);
    } else {
        in->p->keys->asked = false;
        take(in, &span);
    }
    return true;
}
