/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Pieces are blocks. Each place has a treap of them, sorted by first byte. Each node
 *  knows the furthest end of its subtree, so those that overlap a block are found in logarithmic
 *  time. Pieces that are over are skipped. They are removed when all are over, when many have been
 *  skipped, or when there is no room. */
#include "osc_nicstride/check/under_way.h"

#include <stdlib.h>
#include <string.h>

struct nicstride_piece {
    int64_t from, to; /**< the first byte, and the one after the last */
    int64_t furthest; /**< the furthest end in this node's subtree */
    uint32_t left, right;
    uint32_t call;
    nicstride_use_t use;
    bool here;
};

#define FIRST_ROOM 64

bool nicstride_under_way_init(nicstride_under_way_t *w, uint32_t targets, uint32_t most)
{
    *w = (nicstride_under_way_t){.promises = {.ordered = true}, .targets = targets, .most = most};
    w->root = calloc((size_t)targets + 1, sizeof(*w->root));
    w->over = calloc((size_t)targets + 1, sizeof(*w->over));
    w->piece = calloc(FIRST_ROOM, sizeof(*w->piece));
    w->call = calloc(FIRST_ROOM, sizeof(*w->call));
    w->n = 1;
    w->cap = w->calls_cap = FIRST_ROOM;
    if (w->root != NULL && w->over != NULL && w->piece != NULL && w->call != NULL) {
        w->piece[0].furthest = INT64_MIN;
        return true;
    }
    nicstride_under_way_fini(w);
    return false;
}

void nicstride_under_way_fini(nicstride_under_way_t *w)
{
    free(w->root);
    free(w->over);
    free(w->piece);
    free(w->call);
    *w = (nicstride_under_way_t){0};
}

/* ---- pieces that are over -------------------------------------------------------------------- */

static bool is_over(const nicstride_under_way_t *w, const nicstride_noted_t *c, bool here)
{
    const struct nicstride_over *o = &w->over[c->target];

    if (c->number <= o->there || c->refused)
        return true;
    return (here || nicstride_only_reads(c->use)) && (c->returned || c->number <= o->here);
}

static bool piece_is_over(const nicstride_under_way_t *w, const nicstride_piece_t *p)
{
    return is_over(w, &w->call[p->call], p->here);
}

/* ---- the treaps ------------------------------------------------------------------------------ */

/** A fixed number for node `i`, without a pattern. */
static uint32_t priority(uint32_t i)
{
    i = (i ^ i >> 16) * 0x45d9f3bu;
    i = (i ^ i >> 16) * 0x45d9f3bu;
    return i ^ i >> 16;
}

static void measure(nicstride_under_way_t *w, uint32_t at)
{
    nicstride_piece_t *p = &w->piece[at];

    p->furthest = p->to;
    if (p->furthest < w->piece[p->left].furthest)
        p->furthest = w->piece[p->left].furthest;
    if (p->furthest < w->piece[p->right].furthest)
        p->furthest = w->piece[p->right].furthest;
}

/** Inserts a piece into the treap at `at`; returns the new root. */
static uint32_t insert(nicstride_under_way_t *w, uint32_t at, uint32_t new)
{
    nicstride_piece_t *p = &w->piece[at];

    if (at == 0)
        return new;
    const bool left = w->piece[new].from < p->from;
    uint32_t *branch = left ? &p->left : &p->right;
    const uint32_t below = *branch = insert(w, *branch, new);

    if (priority(below) > priority(at)) {
        uint32_t *inner = left ? &w->piece[below].right : &w->piece[below].left;

        *branch = *inner;
        *inner = at;
        measure(w, at);
        at = below;
    }
    measure(w, at);
    return at;
}

static uint32_t *root_of(nicstride_under_way_t *w, uint32_t place)
{
    return &w->root[place == NICSTRIDE_HERE ? w->targets : place];
}

/** Adds a piece, for which there must be room. */
static void put_in(nicstride_under_way_t *w, uint32_t place, const nicstride_piece_t *piece)
{
    nicstride_piece_t *p = &w->piece[w->n];
    uint32_t *root = root_of(w, place);

    *p = *piece;
    p->left = p->right = 0;
    p->furthest = p->to;
    w->call[p->call].pieces++;
    *root = insert(w, *root, w->n++);
}

/** A search. */
typedef struct search {
    int64_t from, to;
    nicstride_use_t use;
    uint32_t call;
    uint32_t same;   /**< an entry with the same bytes, use and target; 0: none */
    uint32_t passed; /**< pieces skipped because they are over */
    nicstride_clash_t *clash;
} search_t;

static bool is_same(const nicstride_under_way_t *w, const nicstride_piece_t *p, const search_t *s)
{
    const nicstride_noted_t *a = &w->call[p->call], *b = &w->call[s->call];

    return p->from == s->from && p->to == s->to && memcmp(&p->use, &s->use, sizeof(p->use)) == 0 &&
           a->target == b->target && nicstride_only_reads(a->use) == nicstride_only_reads(b->use) &&
           !a->has_request && !b->has_request;
}

static void compare(const nicstride_under_way_t *w, uint32_t at, search_t *s)
{
    const nicstride_piece_t *p = &w->piece[at];
    const bool itself = p->call == s->call;
    const bool wrong = itself ? !nicstride_only_reads(p->use) || !nicstride_only_reads(s->use)
                              : nicstride_conflict(p->use, s->use, true, &w->promises);

    if (piece_is_over(w, p)) {
        s->passed++;
        return;
    }
    if (is_same(w, p, s) && !itself)
        s->same = at;
    if (wrong && !s->clash->found)
        *s->clash = (nicstride_clash_t){.found = true,
                                        .itself = itself,
                                        .with = w->call[p->call],
                                        .at = p->from > s->from ? p->from : s->from};
}

/** Compares the block with all pieces that overlap it. */
static void look(const nicstride_under_way_t *w, uint32_t at, search_t *s)
{
    for (; at != 0 && w->piece[at].furthest > s->from; at = w->piece[at].right) {
        look(w, w->piece[at].left, s);
        if (w->piece[at].from >= s->to)
            return;
        if (w->piece[at].to > s->from)
            compare(w, at, s);
    }
}

/* ---- room ------------------------------------------------------------------------------------ */

/** Makes room for `n` items and one more; false if that is impossible. */
static bool grow(void **items, uint32_t n, uint32_t *cap, uint32_t most, size_t size)
{
    if (n < *cap)
        return true;
    const uint32_t more = *cap > most / 2 ? most : 2 * *cap;
    void *bigger = more > *cap ? realloc(*items, more * size) : NULL;

    if (bigger == NULL)
        return false;
    *items = bigger;
    *cap = more;
    return true;
}

/** Removes calls and pieces that are over. The last call stays. */
static void drop_over(nicstride_under_way_t *w)
{
    const uint32_t n = w->n;
    uint32_t *moved = malloc(w->ncalls * sizeof(*moved) + 1), calls = 0;

    if (moved == NULL)
        return;
    w->n = 1;
    memset(w->root, 0, ((size_t)w->targets + 1) * sizeof(*w->root));
    for (uint32_t i = 0; i < w->ncalls; i++) {
        const nicstride_noted_t c = w->call[i];

        moved[i] = UINT32_MAX;
        if (i + 1 < w->ncalls && (c.pieces == 0 || (is_over(w, &c, false) && is_over(w, &c, true))))
            continue;
        w->call[calls] = c;
        w->call[calls].pieces = 0;
        moved[i] = calls++;
    }
    w->ncalls = calls;
    for (uint32_t i = 1; i < n; i++) {
        nicstride_piece_t p = w->piece[i];

        if (moved[p.call] == UINT32_MAX)
            continue;
        p.call = moved[p.call];
        if (piece_is_over(w, &p))
            continue;
        put_in(w, p.here ? NICSTRIDE_HERE : w->call[p.call].target, &p);
    }
    w->passed = 0;
    free(moved);
}

static bool room_for_piece(nicstride_under_way_t *w)
{
    return grow((void **)&w->piece, w->n, &w->cap, w->most, sizeof(*w->piece));
}

static bool room_for_call(nicstride_under_way_t *w)
{
    return grow((void **)&w->call, w->ncalls, &w->calls_cap, w->most, sizeof(*w->call));
}

/** Removes what is over. If more than half stays, nothing more is entered: each removal takes time
 *  proportional to all that is kept, so it must free more than a few pieces. */
static void make_room(nicstride_under_way_t *w)
{
    drop_over(w);
    w->full =
        w->n > w->most / 2 || w->ncalls > w->most / 2 || !room_for_piece(w) || !room_for_call(w);
}

/* ---- what ends ------------------------------------------------------------------------------- */

static void clear(nicstride_under_way_t *w)
{
    w->n = 1;
    w->ncalls = 0;
    w->full = false;
    memset(w->root, 0, ((size_t)w->targets + 1) * sizeof(*w->root));
}

static void target_is_over(nicstride_under_way_t *w, struct nicstride_over *o, bool here)
{
    if (here) {
        o->here = w->last;
        return;
    }
    w->busy -= o->last > o->there;
    o->there = w->last;
}

void nicstride_under_way_over(nicstride_under_way_t *w, uint32_t target, bool here)
{
    if (target != UINT32_MAX)
        target_is_over(w, &w->over[target], here);
    for (uint32_t i = 0; i < w->targets && target == UINT32_MAX; i++)
        target_is_over(w, &w->over[i], here);
    if (w->busy == 0)
        clear(w);
    else if (w->full)
        make_room(w);
}

/** The call of that number; NULL: it is not kept. */
static nicstride_noted_t *find_call(nicstride_under_way_t *w, uint64_t number)
{
    uint32_t low = 0, high = w->ncalls;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (w->call[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < w->ncalls && w->call[low].number == number ? &w->call[low] : NULL;
}

void nicstride_under_way_returned(nicstride_under_way_t *w, uint64_t number)
{
    nicstride_noted_t *c = find_call(w, number);

    if (c != NULL)
        c->returned = true;
}

void nicstride_under_way_refused(nicstride_under_way_t *w, uint64_t number)
{
    nicstride_noted_t *c = find_call(w, number);
    struct nicstride_over *o = c != NULL ? &w->over[c->target] : NULL;

    if (c == NULL)
        return;
    c->refused = true;
    if (o->last != number)
        return;
    w->busy -= o->last > o->there;
    o->last = c->before;
    w->busy += o->last > o->there;
}

/* ---- what is entered ------------------------------------------------------------------------- */

uint64_t nicstride_under_way_call(nicstride_under_way_t *w, const nicstride_noted_t *call)
{
    struct nicstride_over *o = &w->over[call->target];

    w->last++;
    if (!w->full && !room_for_call(w))
        make_room(w);
    if (!w->full) {
        w->call[w->ncalls] = *call;
        w->call[w->ncalls].before = o->last;
        w->call[w->ncalls++].number = w->last;
    }
    w->busy += o->last <= o->there;
    o->last = w->last;
    return w->last;
}

/** Enters a block, unless the same one is there already. */
static void keep(nicstride_under_way_t *w, uint32_t place, const search_t *s)
{
    nicstride_piece_t *same = &w->piece[s->same];

    if (s->same == 0) {
        put_in(w, place,
               &(nicstride_piece_t){.from = s->from,
                                    .to = s->to,
                                    .call = s->call,
                                    .use = s->use,
                                    .here = place == NICSTRIDE_HERE});
        return;
    }
    w->call[same->call].pieces--;
    w->call[s->call].pieces++;
    same->call = s->call;
}

bool nicstride_under_way_add(nicstride_under_way_t *w, uint32_t place, int64_t base,
                             const onic_layout_t *l, nicstride_use_t use,
                             nicstride_clash_t *clash_p)
{
    onic_cursor_t c;
    int64_t offset;
    uint64_t len;

    clash_p->found = false;
    onic_cursor_init(&c, l, 0);
    while (!w->full && onic_cursor_next(&c, UINT64_MAX, &offset, &len)) {
        search_t s = {.use = use, .clash = clash_p};

        if (__builtin_add_overflow(base, offset, &s.from) || s.from < 0 ||
            __builtin_add_overflow(s.from, (int64_t)len, &s.to))
            continue;
        if (!room_for_piece(w) || w->passed / 2 > w->n)
            make_room(w);
        s.call = w->ncalls - 1;
        look(w, *root_of(w, place), &s);
        w->passed += s.passed;
        if (!w->full)
            keep(w, place, &s);
    }
    return !w->full;
}
