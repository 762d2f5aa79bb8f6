/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Pieces are runs of blocks. Each place has a treap of them, sorted by first byte. Each node
 *  knows the furthest end of its subtree, so those that may overlap a run are found in logarithmic
 *  time. Pieces that are over are skipped. They are removed when all are over, when many have been
 *  skipped, or when there is no room. */
#include "osc_nicstride/check/under_way.h"

#include <stdlib.h>
#include <string.h>

#include "common/layout/layout_walk.h"

/** One block, or blocks whose stride is larger than they are. */
typedef struct row {
    int64_t from, to; /**< the bytes from the first block to the last */
    int64_t block;
    int64_t stride; /**< 0: one block */
} row_t;

struct nicstride_piece {
    row_t row;
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

/* ---- runs ------------------------------------------------------------------------------------ */

/** Converts a run; blocks that touch or overlap become one. `*twice_p`: some bytes occur more than
 *  once. False if the run leaves 0 .. INT64_MAX. */
static bool row_of(int64_t base, const onic_run_t *run, row_t *r, bool *twice_p)
{
    const int64_t more = (int64_t)((run->count - 1) * onic_magnitude(run->stride));
    int64_t from;

    if (__builtin_add_overflow(base, run->offset, &from) ||
        (run->stride < 0 && __builtin_sub_overflow(from, more, &from)) || from < 0 ||
        __builtin_add_overflow(from, more, &r->to) ||
        __builtin_add_overflow(r->to, (int64_t)run->block, &r->to))
        return false;
    r->from = from;
    r->block = (int64_t)run->block;
    r->stride = run->count > 1 ? (int64_t)onic_magnitude(run->stride) : 0;
    *twice_p = run->count > 1 && r->stride < r->block;
    if (r->stride <= r->block) {
        r->block = r->to - r->from;
        r->stride = 0;
    }
    return true;
}

static int64_t blocks_of(const row_t *r)
{
    return r->stride == 0 ? 1 : (r->to - r->from - r->block) / r->stride + 1;
}

/** The number of the first block that ends after `x`. */
static int64_t first_behind(const row_t *r, int64_t x)
{
    return r->stride == 0 || x < r->from + r->block ? 0 : (x - r->from - r->block) / r->stride + 1;
}

/** True if a row has bytes in [x, y). */
static bool touches(const row_t *r, int64_t x, int64_t y, int64_t *at_p)
{
    if (x >= r->to || y <= r->from)
        return false;
    const int64_t begin = r->from + first_behind(r, x) * r->stride;

    *at_p = begin > x ? begin : x;
    return begin < y;
}

/** True if two rows of the same stride overlap. Whichever blocks meet first, later ones are at the
 *  same distance from each other. */
static bool in_step(const row_t *a, const row_t *b, int64_t *at_p)
{
    /* Block i of a meets block j of b where (i - j) * stride is more than d - a->block and less
     * than d + b->block. */
    const int64_t s = a->stride, d = b->from - a->from, least = 1 - blocks_of(b);
    const int64_t over = d - a->block;
    int64_t k = over >= 0 ? over / s + 1 : -((-over - 1) / s);

    if (k < least)
        k = least;
    if (k >= blocks_of(a) || k * s >= d + b->block)
        return false;
    const int64_t x = a->from + (k > 0 ? k * s : 0), y = b->from + (k < 0 ? -k * s : 0);

    *at_p = x > y ? x : y;
    return true;
}

/** True if two rows have a byte in common; `*at_p` is one such byte. */
static bool meet(const row_t *a, const row_t *b, int64_t *at_p)
{
    const int64_t from = a->from > b->from ? a->from : b->from;
    const int64_t to = a->to < b->to ? a->to : b->to;

    if (from >= to)
        return false;
    if (a->stride != 0 && a->stride == b->stride)
        return in_step(a, b, at_p);
    if (b->stride == 0 || (a->stride != 0 && blocks_of(a) > blocks_of(b))) {
        const row_t *c = a;

        a = b;
        b = c;
    }
    for (int64_t i = first_behind(a, from); i < blocks_of(a) && a->from + i * a->stride < to; i++)
        if (touches(b, a->from + i * a->stride, a->from + i * a->stride + a->block, at_p))
            return true;
    return false;
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

    p->furthest = p->row.to;
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
    const bool left = w->piece[new].row.from < p->row.from;
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
    p->furthest = p->row.to;
    w->call[p->call].pieces++;
    *root = insert(w, *root, w->n++);
}

/** A search. */
typedef struct search {
    const row_t *row;
    nicstride_use_t use;
    uint32_t call;
    uint32_t same;   /**< an entry with the same bytes, use and target; 0: none */
    uint32_t passed; /**< pieces skipped because they are over */
    nicstride_clash_t *clash;
} search_t;

static bool is_same(const nicstride_under_way_t *w, const nicstride_piece_t *p, const search_t *s)
{
    const nicstride_noted_t *a = &w->call[p->call], *b = &w->call[s->call];

    return p->row.from == s->row->from && p->row.to == s->row->to &&
           p->row.block == s->row->block && p->row.stride == s->row->stride &&
           memcmp(&p->use, &s->use, sizeof(p->use)) == 0 && a->target == b->target &&
           nicstride_only_reads(a->use) == nicstride_only_reads(b->use) && !a->has_request &&
           !b->has_request;
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
    if (wrong && !s->clash->found && meet(&p->row, s->row, &s->clash->at)) {
        s->clash->found = true;
        s->clash->itself = itself;
        s->clash->with = w->call[p->call];
    }
}

/** Compares the row with all pieces that may overlap it. */
static void look(const nicstride_under_way_t *w, uint32_t at, search_t *s)
{
    for (; at != 0 && w->piece[at].furthest > s->row->from; at = w->piece[at].right) {
        look(w, w->piece[at].left, s);
        if (w->piece[at].row.from >= s->row->to)
            return;
        if (w->piece[at].row.to > s->row->from)
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

/** Enters a row, unless the same one is there already. */
static void keep(nicstride_under_way_t *w, uint32_t place, const search_t *s)
{
    nicstride_piece_t *same = &w->piece[s->same];

    if (s->same == 0) {
        put_in(
            w, place,
            &(nicstride_piece_t){
                .row = *s->row, .call = s->call, .use = s->use, .here = place == NICSTRIDE_HERE});
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
    onic_run_t run;

    clash_p->found = false;
    onic_cursor_init(&c, l, 0);
    while (!w->full && onic_cursor_peek(&c, UINT64_MAX, &run) > 0) {
        search_t s = {.use = use, .clash = clash_p};
        bool twice;
        row_t row;

        onic_cursor_advance(&c, &run);
        if (!row_of(base, &run, &row, &twice))
            continue;
        if (!room_for_piece(w) || w->passed / 2 > w->n)
            make_room(w);
        s.row = &row;
        s.call = w->ncalls - 1;
        look(w, *root_of(w, place), &s);
        w->passed += s.passed;
        if (twice && !nicstride_only_reads(use) && !clash_p->found)
            *clash_p = (nicstride_clash_t){.found = true, .itself = true, .at = row.from};
        if (!w->full)
            keep(w, place, &s);
    }
    return !w->full;
}
