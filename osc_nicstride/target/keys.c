/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "osc_nicstride/queue/keys.h"
#include "osc_nicstride/sync/lock_queue.h"
#include "osc_nicstride/target/target.h"
#include "osc_nicstride/window/state.h"

/* ---- what a target has registered ------------------------------------------------------------ */

const nicstride_key_piece_t *nicstride_enrol_locked(nicstride_module_t *m, uint64_t i,
                                                    uint32_t rows)
{
    const nicstride_span_t span = nicstride_piece_of(m, m->rank, i);
    nicstride_key_piece_t *piece;

    if (m->enrolled == NULL)
        m->enrolled = calloc(nicstride_pieces(m, m->rank), sizeof(*m->enrolled));
    if (m->enrolled == NULL || span.size == 0)
        return NULL;
    piece = &m->enrolled[i];
    for (unsigned r = 0; r < NICSTRIDE_METHODS_MAX; r++)
        if ((rows & ~piece->tried & NICSTRIDE_REACH(r)) != 0)
            piece->of.row[r] = nicstride_keyed(r)->enrol((char *)m->base + span.at, span.size);
    piece->tried |= rows;
    return piece;
}

void nicstride_withdraw_all_locked(nicstride_module_t *m)
{
    for (size_t i = 0; m->enrolled != NULL && i < nicstride_pieces(m, m->rank); i++)
        for (unsigned r = 0; r < NICSTRIDE_METHODS_MAX; r++)
            if (m->enrolled[i].of.row[r] != NULL)
                nicstride_keyed(r)->withdraw(m->enrolled[i].of.row[r]);
    free(m->enrolled);
    m->enrolled = NULL;
}

/* ---- asked ----------------------------------------------------------------------------------- */

static void offer(const nicstride_incoming_t *in, nicstride_keys_t *k, unsigned row,
                  nicstride_part_of_t part, void *memory)
{
    size_t cap;
    void *room = nicstride_keys_room(k, &cap);

    if (room != NULL && part == NICSTRIDE_OF_GATE)
        nicstride_keys_add(k, row, part, nicstride_gate_offer_locked(in->m, room, cap));
    else if (room != NULL && memory != NULL)
        nicstride_keys_add(k, row, part, nicstride_keyed(row)->offer(in->p, memory, room, cap));
}

static void answer(const nicstride_incoming_t *in)
{
    const uint64_t place = (uint64_t)in->msg->disp;
    const nicstride_key_piece_t *piece;
    nicstride_blob_t blob;
    nicstride_keys_t k;
    uint32_t rows = 0;
    size_t at = 0;

    while (nicstride_keys_next(in->data, in->len, &at, &blob)) {
        const nicstride_keyed_t *row = nicstride_keyed(blob.row);

        if (row == NULL)
            continue;
        rows |= NICSTRIDE_REACH(blob.row);
        (void)row->accept(in->p, NULL, blob.bytes, blob.len);
    }
    piece = nicstride_enrol_locked(in->m, place, rows);
    k.len = 0;
    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX && piece != NULL; i++) {
        if ((rows & NICSTRIDE_REACH(i)) == 0)
            continue;
        offer(in, &k, i, NICSTRIDE_OF_PIECE, piece->of.row[i]);
        if (i == NICSTRIDE_METHOD_RDMA && in->p->local < 0)
            offer(in, &k, i, NICSTRIDE_OF_GATE, NULL);
    }
    nicstride_send_keys_locked(in->p, NICSTRIDE_KEYS_TELL, place, &k);
}

/* ---- told ------------------------------------------------------------------------------------ */

static void take(const nicstride_incoming_t *in)
{
    const nicstride_span_t span = nicstride_piece_of(in->m, in->p->rank, in->p->keys->place);
    nicstride_of_rows_t of = {{NULL}};
    nicstride_blob_t blob;
    bool any = false;
    size_t at = 0;

    while (nicstride_keys_next(in->data, in->len, &at, &blob)) {
        const nicstride_keyed_t *row = nicstride_keyed(blob.row);

        if (row == NULL || (in->p->keys->rows & NICSTRIDE_REACH(blob.row)) == 0)
            continue;
        if (blob.part == NICSTRIDE_OF_GATE)
            nicstride_gate_told_locked(in->p, blob.bytes, blob.len);
        else
            of.row[blob.row] = row->accept(in->p, &span, blob.bytes, blob.len);
        any = any || of.row[blob.row] != NULL;
    }
    if (!any) {
        in->p->keys->refused = true;
        nicstride_add(&nicstride_counters.keys_refused, 1);
    }
    nicstride_keyring_add_locked(in->p, &of);
}

void nicstride_on_keys(const nicstride_incoming_t *in)
{
    nicstride_keyring_t *ring = in->p->keys;
    const bool right = nicstride_keys_check(in->data, in->len) == NULL;

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
    if (right && (uint64_t)in->msg->disp == ring->place) {
        take(in);
    } else {
        nicstride_refuse();
        ring->refused = true;
    }
}
