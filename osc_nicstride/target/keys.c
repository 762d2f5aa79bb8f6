/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Keys that are asked for, and told; see window/keys.h. */
#include "osc_nicstride/protocol/keys.h"

#include "osc_nicstride/queue/ask_keys.h"
#include "osc_nicstride/target/target.h"
#include "osc_nicstride/window/gate.h"
#include "osc_nicstride/window/state.h"

/** The row that a blob is for, of those that have keys; NULL: none that is known here. */
static const nicstride_keyed_t *row_of(const nicstride_blob_t *blob)
{
    const nicstride_method_row_t *row =
        blob->row < NICSTRIDE_METHODS_MAX ? nicstride_component.methods[blob->row] : NULL;

    return row != NULL ? row->keyed : NULL;
}

/* ---- asked ----------------------------------------------------------------------------------- */

static void offer(nicstride_peer_t *p, nicstride_keys_t *k, unsigned row, nicstride_part_of_t part,
                  void *memory)
{
    size_t cap;
    void *room = nicstride_keys_room(k, &cap);

    if (memory != NULL && room != NULL)
        nicstride_keys_add(k, row, part,
                           nicstride_component.methods[row]->keyed->offer(p, memory, room, cap));
}

static void offer_gate(nicstride_module_t *m, nicstride_keys_t *k)
{
    size_t cap;
    void *room = nicstride_keys_room(k, &cap);

    if (room != NULL)
        nicstride_keys_add(k, NICSTRIDE_METHOD_RDMA, NICSTRIDE_OF_GATE,
                           nicstride_gate_offer_locked(m, room, cap));
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
        const nicstride_keyed_t *row = row_of(&blob);

        if (row == NULL)
            continue;
        rows |= NICSTRIDE_REACH(blob.row);
        (void)row->accept(in->p, NULL, blob.bytes, blob.len);
    }
    piece = nicstride_enrol_locked(in->m, place, rows, &word);
    nicstride_keys_begin(&k, piece != NULL ? &piece->span : NULL);
    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX && piece != NULL; i++) {
        if ((rows & NICSTRIDE_REACH(i)) == 0)
            continue;
        offer(in->p, &k, i, NICSTRIDE_OF_REGION, piece->of.row[i]);
        offer(in->p, &k, i, NICSTRIDE_OF_WORD, word->row[i]);
        if (i == NICSTRIDE_METHOD_RDMA && in->p->local < 0)
            offer_gate(in->m, &k);
    }
    nicstride_send_keys_locked(in->p, NICSTRIDE_KEYS_TELL, place, &k);
}

/* ---- told ------------------------------------------------------------------------------------ */

static void take(const nicstride_incoming_t *in, const nicstride_span_t *span)
{
    static const nicstride_span_t word_span = {0, sizeof(uint64_t), 0};
    nicstride_key_piece_t piece = {.span = *span};
    nicstride_of_rows_t word = {{NULL}};
    size_t at = NICSTRIDE_KEYS_HEAD;
    nicstride_blob_t blob;
    bool any = false;

    while (span->size > 0 && nicstride_keys_next(in->data, in->len, &at, &blob)) {
        const nicstride_keyed_t *row = row_of(&blob);

        if (row == NULL || (in->p->keys->rows & NICSTRIDE_REACH(blob.row)) == 0)
            continue;
        if (blob.part == NICSTRIDE_OF_GATE) {
            nicstride_gate_told_locked(in->p, blob.bytes, blob.len);
        } else if (blob.part == NICSTRIDE_OF_WORD) {
            word.row[blob.row] = row->accept(in->p, &word_span, blob.bytes, blob.len);
        } else {
            piece.of.row[blob.row] = row->accept(in->p, span, blob.bytes, blob.len);
            any = any || piece.of.row[blob.row] != NULL;
        }
    }
    /* A refusal says nothing of the keys that there are, and has no generation. */
    if (span->size > 0)
        nicstride_keyring_add_locked(in->p, &piece, &word);
    if (!any) {
        in->p->keys->refused = true;
        nicstride_add(&nicstride_counters.keys_refused, 1);
    }
    nicstride_ask_on_locked(in->p);
}

void nicstride_on_keys(const nicstride_incoming_t *in)
{
    const uint64_t bytes = in->m->flavor == MPI_WIN_FLAVOR_DYNAMIC
                               ? UINT64_MAX
                               : nicstride_info(in->m, in->p->rank)->size;
    nicstride_keyring_t *ring = in->p->keys;
    nicstride_span_t span;
    const bool right = nicstride_keys_check(in->data, in->len, &span) == NULL;

    if (in->msg->op != NICSTRIDE_KEYS_TELL) {
        if (right)
            answer(in);
        else
            nicstride_refuse();
        return;
    }
    if (ring == NULL || !ring->asked) {
        nicstride_refuse();
        return;
    }
    ring->asked = false;
    if (right && nicstride_span_answers(&span, ring->place, bytes)) {
        take(in, &span);
    } else {
        nicstride_refuse();
        ring->refused = true;
    }
}
