/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Lists that a target keeps: what an origin sends stays in order and takes its time. Every number
 * that arrives must be known, and mean what the origin meant.
 */
#include <string.h>

#include "osc_nicstride/protocol/peer_layout_cache.h"
#include "test/unit/unit.h"

enum { ORIGINS = 4, TYPES = 40, QUEUE = 4096, PIECE = 200 };

/** A message on its way: a slice, or the number of a list and what it means. */
typedef struct message {
    nicstride_msg_t msg;
    unsigned char layout[NICSTRIDE_LIST_NUMBER_BYTES + ONIC_LAYOUT_ENCODED_MAX];
    onic_layout_t means;
} message_t;

typedef struct queue {
    message_t *m;
    size_t head, tail;
} queue_t;

typedef struct origin {
    nicstride_sent_layouts_t sent;
    nicstride_layout_cache_t kept; /* at the target */
    queue_t there;
    onic_layout_t type[TYPES];
} origin_t;

typedef struct world {
    unit_random_t r;
    origin_t *origin;
    uint64_t numbers;
    unsigned long named, sent, most;
} world_t;

static message_t *push(queue_t *q)
{
    UNIT_CHECK(q->tail - q->head < QUEUE);
    message_t *m = &q->m[q->tail++ % QUEUE];

    memset(m, 0, sizeof(*m));
    return m;
}

static message_t *pop(queue_t *q)
{
    return q->head < q->tail ? &q->m[q->head++ % QUEUE] : NULL;
}

/* ---- types ----------------------------------------------------------------------------------- */

/** A list, under levels of its own. */
static void make_type(world_t *w, onic_layout_t *l)
{
    unit_random_t r = {unit_once_in(&w->r, 2) ? unit_below(&w->r, 9) : unit_random64(&w->r)};
    const uint64_t nruns = 2 + unit_below(&r, unit_once_in(&r, 8) ? 4000 : 90);
    onic_runs_t runs = {0};
    int64_t at = 0;

    for (uint64_t i = 0; i < nruns; i++) {
        const onic_run_t run = {.offset = at,
                                .block = 1 + unit_below(&r, 9),
                                .count = 1 + unit_below(&r, 3),
                                .stride = 20};

        UNIT_CHECK(onic_runs_add(&runs, run) == ONIC_LAYOUT_OK);
        at += (int64_t)(unit_once_in(&r, 9) ? 500 : 70 + unit_below(&r, 20)) *
              (unit_once_in(&r, 5) ? -1 : 1);
    }
    UNIT_CHECK(onic_layout_from_runs(l, &runs, ONIC_LAYOUT_MAX_LEVELS) == ONIC_LAYOUT_OK);
    if (l->nruns > 0)
        onic_layout_set_number(l, ++w->numbers);
    if (unit_once_in(&w->r, 2))
        UNIT_CHECK(onic_layout_repeat(l, 2 + unit_below(&w->r, 4),
                                      100000 - (int64_t)unit_below(&w->r, 200000)) ==
                   ONIC_LAYOUT_OK);
}

/** The same bytes in the same order? A run that was cut into two slices may stay two runs. */
static bool same(const onic_layout_t *a, const onic_layout_t *b)
{
    onic_cursor_t ca, cb;
    int64_t at_a, at_b;
    uint64_t len_a, len_b;

    onic_cursor_init(&ca, a, 0);
    while (onic_cursor_next(&ca, UINT64_MAX, &at_a, &len_a))
        for (uint64_t done = 0; done < len_a; done += len_b) {
            onic_cursor_init(&cb, b, ca.pos - len_a + done);
            if (!onic_cursor_next(&cb, len_a - done, &at_b, &len_b) || at_b != at_a + (int64_t)done)
                return false;
        }
    return a->size == b->size && a->lb == b->lb && a->ub == b->ub;
}

/* ---- the origin ------------------------------------------------------------------------------ */

static void send_slices(world_t *w, origin_t *o, const onic_layout_t *l)
{
    onic_layout_t list = *l;
    onic_cursor_t c;

    list.nlevels = 0;
    list.offset = 0;
    list.size = l->run_start[l->nruns];
    for (onic_cursor_init(&c, &list, 0); c.pos < list.size;) {
        message_t *m = push(&o->there);
        uint64_t data;
        size_t len;

        UNIT_CHECK(onic_layout_encode_slice(&c, 100 + unit_below(&w->r, 4000), 1, m->layout, PIECE,
                                            &len, &data) == ONIC_LAYOUT_OK);
        nicstride_msg_init(&m->msg, NICSTRIDE_MSG_LAYOUT, 1, 1);
        m->msg.op = c.pos == list.size;
        m->msg.count = onic_layout_number(l);
        m->msg.offset = c.pos - data;
        m->msg.layout_len = (uint32_t)len;
    }
    w->sent++;
}

static void use(world_t *w, origin_t *o)
{
    const unsigned t =
        (unsigned)(unit_once_in(&w->r, 2) ? unit_below(&w->r, 5) : unit_below(&w->r, TYPES));
    onic_layout_t *l = &o->type[t];

    if (l->size == 0 || unit_once_in(&w->r, 100)) {
        onic_layout_fini(l);
        make_type(w, l);
    }
    if (l->nruns == 0)
        return;
    const uint64_t list = onic_layout_number(l);
    const bool before = nicstride_layout_is_sent(&o->sent, list);
    const bool fresh = nicstride_layout_send(&o->sent, list, l->nruns);

    UNIT_CHECK(!before || !fresh);
    UNIT_CHECK(nicstride_layout_is_sent(&o->sent, list) == (before || fresh));
    if (fresh)
        send_slices(w, o, l);
    w->most = o->sent.nruns > w->most ? o->sent.nruns : w->most;
    if (!before && !fresh)
        return;
    message_t *m = push(&o->there);

    nicstride_msg_init(&m->msg, NICSTRIDE_MSG_PUT, 1, 1);
    m->msg.flags = NICSTRIDE_MSG_CACHED;
    memcpy(m->layout, &list, sizeof(list));
    m->msg.layout_len =
        (uint32_t)(sizeof(list) + onic_layout_encode_around(l, m->layout + sizeof(list)));
    onic_layout_dup(&m->means, l);
    w->named++;
}

/* ---- the target ------------------------------------------------------------------------------ */

static void check_data(message_t *m, const onic_layout_t *list)
{
    onic_layout_t l;

    UNIT_CHECK(onic_layout_decode_around(&l, list, m->layout + NICSTRIDE_LIST_NUMBER_BYTES,
                                         m->msg.layout_len - NICSTRIDE_LIST_NUMBER_BYTES) ==
               ONIC_LAYOUT_OK);
    UNIT_CHECK(same(&l, &m->means));
    onic_layout_fini(&l);
    onic_layout_fini(&m->means);
}

static void receive(origin_t *o)
{
    message_t *m = pop(&o->there);

    if (m == NULL)
        return;
    if (m->msg.type == NICSTRIDE_MSG_LAYOUT) {
        nicstride_layout_slice(&o->kept, &m->msg, m->layout);
        return;
    }
    const onic_layout_t *list = nicstride_layout_cached(&o->kept, m->layout);

    UNIT_CHECK(list != NULL);
    check_data(m, list);
}

/* ---- all together ---------------------------------------------------------------------------- */

/** The origin goes; another one comes in its place. */
static void leave(origin_t *o)
{
    while (o->there.head < o->there.tail)
        receive(o);
    nicstride_layouts_leave(&o->kept);
    memset(&o->sent, 0, sizeof(o->sent));
    memset(&o->kept, 0, sizeof(o->kept));
}

static void live(world_t *w, int steps)
{
    w->origin = calloc(ORIGINS, sizeof(*w->origin));
    for (int i = 0; i < ORIGINS; i++)
        w->origin[i].there.m = calloc(QUEUE, sizeof(message_t));
    for (int i = 0; i < steps; i++) {
        origin_t *o = &w->origin[unit_below(&w->r, ORIGINS)];

        if (o->there.tail - o->there.head > 100 || unit_once_in(&w->r, 3))
            receive(o);
        else
            use(w, o);
        if (unit_once_in(&w->r, 3000))
            leave(o);
    }
    for (int i = 0; i < ORIGINS; i++)
        leave(&w->origin[i]);
    for (int i = 0; i < ORIGINS; i++) {
        for (int t = 0; t < TYPES; t++)
            onic_layout_fini(&w->origin[i].type[t]);
        free(w->origin[i].there.m);
    }
    free(w->origin);
}

START_TEST(names_are_known)
{
    world_t w = {.r = {unit_seed()}};

    live(&w, 25000);
    printf("%lu lists sent, %lu named, at most %lu runs\n", w.sent, w.named, w.most);
    UNIT_CHECK(w.sent > 1000 && w.named > 2 * w.sent && w.most <= NICSTRIDE_LAYOUT_CACHE_MOST);
}
END_TEST

/** What finds no room is not sent, until what has its entry, or more than that, is replaced. */
START_TEST(room)
{
    enum { ALL = NICSTRIDE_LAYOUT_CACHE_MOST, ENTRIES = NICSTRIDE_LAYOUT_CACHE_ENTRIES };
    nicstride_sent_layouts_t sent = {.nruns = 0};

    ck_assert(!nicstride_layout_send(&sent, 1, ALL + 1));
    ck_assert(!nicstride_layout_is_sent(&sent, 1));
    ck_assert(nicstride_layout_send(&sent, 1, ALL - 100));
    ck_assert(!nicstride_layout_send(&sent, 2, 101));
    ck_assert(nicstride_layout_send(&sent, 2, 100));
    ck_assert(!nicstride_layout_send(&sent, 2, 100) && nicstride_layout_is_sent(&sent, 2));
    ck_assert(!nicstride_layout_send(&sent, 3, 64));
    ck_assert(nicstride_layout_send(&sent, 1 + ENTRIES, 1000));
    ck_assert(!nicstride_layout_is_sent(&sent, 1) && nicstride_layout_is_sent(&sent, 1 + ENTRIES));
    ck_assert(nicstride_layout_send(&sent, 3, ALL - 1100) && sent.nruns == ALL);
}
END_TEST

/** Anything instead of the origin's slices. The sanitizers watch the memory. */
START_TEST(nonsense)
{
    world_t w = {.r = {unit_seed()}};
    nicstride_layout_cache_t kept = {.broken = false};
    onic_layout_t l;

    do {
        onic_layout_fini(memset(&l, 0, sizeof(l)));
        make_type(&w, &l);
    } while (l.nruns == 0);
    for (int i = 0; i < 200000; i++) {
        nicstride_msg_t msg = {.offset = unit_below(&w.r, 2),
                               .op = (uint16_t)unit_below(&w.r, 2),
                               .count = unit_below(&w.r, 70)};
        unsigned char piece[PIECE];
        uint64_t data;
        size_t len = 0;
        onic_cursor_t c;

        onic_cursor_init(&c, &l, unit_once_in(&w.r, 2) ? 0 : unit_below(&w.r, l.size));
        if (!unit_once_in(&w.r, 5))
            (void)onic_layout_encode_slice(&c, 1 + unit_below(&w.r, 300), 1, piece, PIECE, &len,
                                           &data);
        if (len > 0 && unit_once_in(&w.r, 3))
            piece[unit_below(&w.r, len)] ^= (unsigned char)(1u << unit_below(&w.r, 8));
        msg.layout_len = (uint32_t)len;
        nicstride_layout_slice(&kept, &msg, piece);
        (void)nicstride_layout_cached(&kept, &msg.count);
    }
    nicstride_layouts_leave(&kept);
    onic_layout_fini(&l);
}
END_TEST

int main(void)
{
    return UNIT_RUN("peer_layout_cache", UNIT_ONCE(names_are_known), UNIT_ONCE(room),
                    UNIT_ONCE(nonsense));
}
