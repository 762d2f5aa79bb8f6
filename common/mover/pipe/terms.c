/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/mover/pipe/terms.h"

static uint64_t lowest(uint64_t slots, unsigned n)
{
    uint64_t some = 0;

    for (; n > 0 && slots != 0; n--) {
        some |= slots & -slots;
        slots &= slots - 1;
    }
    return some;
}

onic_terms_result_t onic_terms_on_grant(onic_terms_t *t, uint64_t slots, uint64_t all)
{
    if (!t->sends || !t->waits)
        return ONIC_TERMS_IGNORED;
    t->waits = false;
    if (slots == 0 || (slots & ~all) != 0)
        return ONIC_TERMS_WRONG;
    t->granted = slots;
    return t->over ? ONIC_TERMS_LATE : ONIC_TERMS_TAKEN;
}

onic_terms_result_t onic_terms_on_commit(onic_terms_t *t, uint64_t slots, uint64_t *unused_p)
{
    if (t->sends || t->waits || t->over || t->granted != 0)
        return ONIC_TERMS_IGNORED;
    if (slots == 0 || (slots & ~t->lease) != 0)
        return ONIC_TERMS_WRONG;
    *unused_p = t->lease & ~slots;
    t->lease = slots;
    t->granted = slots;
    return ONIC_TERMS_TAKEN;
}

void onic_terms_on_word(onic_terms_t *t, unsigned slot, uint64_t word)
{
    if (t->sends || slot >= ONIC_SLOTS_MAX)
        return;
    const uint64_t had = t->word[slot];

    if (!onic_word_fails(had) &&
        (onic_word_fails(word) || onic_word_round(word) > onic_word_round(had)))
        t->word[slot] = word;
}

void onic_terms_on_ack(onic_terms_t *t, unsigned slot, uint64_t rounds)
{
    if (t->sends && slot < ONIC_SLOTS_MAX && rounds > t->word[slot])
        t->word[slot] = rounds;
}

uint64_t onic_terms_commit(onic_terms_t *t, onic_sender_t *s, unsigned most)
{
    t->lease = lowest(t->granted, most);
    t->committed = true;
    return onic_sender_replace_lease(s, t->lease, t->early);
}

onic_closing_t onic_terms_close(onic_terms_t *t, bool unknown)
{
    onic_closing_t closing = {false, 0};

    t->over = true;
    if (t->sends) {
        t->waits = t->waits && !unknown;
        closing.commit = !t->committed && t->granted != 0;
    } else if (!t->waits && !t->committed) {
        closing.release = t->lease;
    }
    return closing;
}

uint64_t onic_terms_lose(onic_terms_t *t)
{
    t->waits = false;
    return t->sends || t->over ? 0 : t->lease;
}
