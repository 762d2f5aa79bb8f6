/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/check/shadow.h"

#define ALIGN64(n) (((n) + 63) & ~(size_t)63)

static size_t head_size(int n)
{
    return ALIGN64(sizeof(nicstride_shadow_head_t) + (size_t)n * sizeof(nicstride_ends_t));
}

size_t nicstride_shadow_size(uint64_t bytes, int n)
{
    if (bytes > SIZE_MAX / 16)
        return 0;
    const size_t granules = (size_t)bytes / NICSTRIDE_GRANULE + 1;

    return head_size(n) + ALIGN64(granules * sizeof(nicstride_cells_t));
}

nicstride_shadow_t nicstride_shadow_at(void *at, uint64_t bytes, int n)
{
    return (nicstride_shadow_t){
        .head = at, .cells = (nicstride_cells_t *)((char *)at + head_size(n)), .bytes = bytes};
}

/* ---- cells ----------------------------------------------------------------------------------- */

enum {
    MASK_BITS = 8, /* which bytes */
    ORIGIN_BITS = 10,
    LASTS_BITS = 3,
    HOW_BITS = 3,
    OP_BITS = 4,
    TYPE_BITS = 7,
    BUFFER_BITS = 1,
    TAG_BITS = 28 /* after 2^28 more ends an old mark seems to be current */
};

_Static_assert(MASK_BITS + ORIGIN_BITS + LASTS_BITS + HOW_BITS + OP_BITS + TYPE_BITS + BUFFER_BITS +
                       TAG_BITS ==
                   64,
               "a cell is one word");

#define TAG_MASK ((UINT32_C(1) << TAG_BITS) - 1)

static uint64_t field(uint64_t word, uint64_t value, int bits)
{
    return word << bits | (value & ((UINT64_C(1) << bits) - 1));
}

/** The cell of an access, without its mask of bytes, which takes the lowest bits. */
static uint64_t word_of(const nicstride_visit_t *v)
{
    uint64_t word = v->origin;

    word = field(word, v->lasts, LASTS_BITS);
    word = field(word, v->use.how, HOW_BITS);
    word = field(word, v->use.op, OP_BITS);
    word = field(word, v->use.type, TYPE_BITS);
    word = field(word, v->buffer, BUFFER_BITS);
    word = field(word, v->tag, TAG_BITS);
    return field(word, 0, MASK_BITS);
}

static uint64_t take(uint64_t *word, int bits)
{
    const uint64_t value = *word & ((UINT64_C(1) << bits) - 1);

    *word >>= bits;
    return value;
}

static unsigned mask_of(uint64_t cell)
{
    return cell & ((1u << MASK_BITS) - 1);
}

static nicstride_visit_t visit_of(uint64_t cell)
{
    nicstride_visit_t v;

    (void)take(&cell, MASK_BITS);
    v.tag = (uint32_t)take(&cell, TAG_BITS);
    v.buffer = take(&cell, BUFFER_BITS);
    v.use.type = (uint8_t)take(&cell, TYPE_BITS);
    v.use.op = (uint8_t)take(&cell, OP_BITS);
    v.use.how = (uint8_t)take(&cell, HOW_BITS);
    v.lasts = (nicstride_lasts_t)take(&cell, LASTS_BITS);
    v.origin = (uint32_t)take(&cell, ORIGIN_BITS);
    return v;
}

/** A walk over the target's memory. */
typedef struct walk {
    const nicstride_shadow_t *s;
    const nicstride_visit_t *v;
    const nicstride_promises_t *promises;
    uint64_t word; /**< of its cells */
    bool leaves;
    bool found;
    nicstride_crossing_t *crossing;
} walk_t;

/** True if the other access still lasts, as far as this one can tell. */
static bool lasts(const walk_t *w, const nicstride_visit_t *other)
{
    const nicstride_ends_t *ends = &w->s->head->ends[other->origin];
    uint32_t now = 0;

    switch (other->lasts) {
    case NICSTRIDE_LASTS_NOT:
        return false;
    case NICSTRIDE_LASTS_THERE:
        now = atomic_load_explicit(&ends->there, memory_order_acquire);
        break;
    case NICSTRIDE_LASTS_HERE:
        now = atomic_load_explicit(&ends->here, memory_order_acquire);
        break;
    case NICSTRIDE_LASTS_BUFFER:
        now = atomic_load_explicit(&ends->buffer, memory_order_acquire);
        break;
    case NICSTRIDE_LASTS_POST:
        now = atomic_load_explicit(&w->s->head->posts, memory_order_acquire);
        break;
    case NICSTRIDE_LASTS_FENCE:
        return w->v->lasts == other->lasts && (w->v->tag & TAG_MASK) == other->tag;
    }
    return (now & TAG_MASK) == other->tag;
}

/** Compares the access with a cell. */
static void compare(walk_t *w, uint64_t granule, unsigned mask, uint64_t cell)
{
    const unsigned both = mask & mask_of(cell);

    if (both == 0 || w->found)
        return;
    const nicstride_visit_t other = visit_of(cell);

    if (other.origin == w->v->origin ||
        !nicstride_conflict(other.use, w->v->use, false, w->promises) || !lasts(w, &other))
        return;
    w->found = true;
    *w->crossing =
        (nicstride_crossing_t){other, granule * NICSTRIDE_GRANULE + (unsigned)__builtin_ctz(both)};
}

/** Chooses the cell for an access: one of its own, one that is over, or any. */
static unsigned choose(const walk_t *w, uint64_t granule, const uint64_t cell[NICSTRIDE_CELLS])
{
    unsigned over = NICSTRIDE_CELLS;

    for (unsigned i = 0; i < NICSTRIDE_CELLS; i++) {
        const nicstride_visit_t other = visit_of(cell[i]);

        if (cell[i] >> MASK_BITS == w->word >> MASK_BITS)
            return i;
        if (over == NICSTRIDE_CELLS && (mask_of(cell[i]) == 0 || !lasts(w, &other)))
            over = i;
    }
    return over < NICSTRIDE_CELLS ? over : (unsigned)((granule + w->v->tag) % NICSTRIDE_CELLS);
}

static void visit_granule(walk_t *w, uint64_t granule, unsigned mask)
{
    nicstride_cells_t *cells = &w->s->cells[granule];
    uint64_t cell[NICSTRIDE_CELLS], before, after;
    unsigned own;

    do {
        for (unsigned i = 0; i < NICSTRIDE_CELLS; i++) {
            cell[i] = atomic_load_explicit(&(*cells)[i], memory_order_relaxed);
            compare(w, granule, mask, cell[i]);
        }
        if (!w->leaves)
            return;
        own = choose(w, granule, cell);
        before = cell[own];
        after = w->word | mask | (before >> MASK_BITS == w->word >> MASK_BITS ? before : 0);
        if (after == before)
            return;
    } while (!atomic_compare_exchange_strong(&(*cells)[own], &before, after));
    /* Compare with what was written in the meantime. */
    for (unsigned i = 0; i < NICSTRIDE_CELLS && !w->found; i++) {
        const uint64_t now = atomic_load(&(*cells)[i]);

        if (i != own && now != cell[i])
            compare(w, granule, mask, now);
    }
}

static void visit_block(walk_t *w, int64_t from, int64_t to)
{
    if (to > (int64_t)w->s->bytes)
        to = (int64_t)w->s->bytes;
    while (from >= 0 && from < to) {
        const uint64_t granule = (uint64_t)from / NICSTRIDE_GRANULE;
        const unsigned first = (unsigned)((uint64_t)from % NICSTRIDE_GRANULE);
        const int64_t left = to - from;
        const unsigned n =
            left < NICSTRIDE_GRANULE - first ? (unsigned)left : NICSTRIDE_GRANULE - first;

        visit_granule(w, granule, ((1u << n) - 1) << first);
        from += n;
    }
}

bool nicstride_shadow_visit(const nicstride_shadow_t *s, const nicstride_visit_t *v, int64_t base,
                            const onic_layout_t *l, const nicstride_promises_t *promises,
                            bool leaves, nicstride_crossing_t *crossing_p)
{
    walk_t w = {s, v, promises, word_of(v), leaves, false, crossing_p};
    onic_cursor_t c;
    int64_t offset;
    uint64_t len;

    onic_cursor_init(&c, l, 0);
    while (onic_cursor_next(&c, INT64_MAX, &offset, &len))
        visit_block(&w, base + offset, base + offset + (int64_t)len);
    return !w.found;
}
