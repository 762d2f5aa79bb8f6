/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Lists that a target keeps: some origins use lists at one target that has little room. What is
 * sent stays in order and takes its time, in both directions. Every name that arrives must be
 * known, and mean what the origin meant.
 */
#include <string.h>

#include "osc_nicstride/protocol/peer_layout_cache.h"
#include "test/unit/unit.h"

enum { ORIGINS = 4, TYPES = 40, QUEUE = 4096, PIECE = 200 };

/** A message on its way: a named slice, a name and what it means, or an answer. */
typedef struct message {
    nicstride_msg_t msg;
    unsigned char layout[ONIC_LAYOUT_ENCODED_MAX];
    onic_layout_t means;
} message_t;

typedef struct queue {
    message_t *m;
    size_t head, tail;
} queue_t;

typedef struct origin {
    nicstride_sent_layouts_t sent;
    nicstride_layout_cache_t kept; /* at the target */
    queue_t there, back;
    onic_layout_t type[TYPES];
} origin_t;

typedef struct world {
    unit_random_t r;
    nicstride_layout_room_t room;
    origin_t *origin;
    uint64_t numbers;
    unsigned long named, had, refused;
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
    const uint64_t nruns = 2 + unit_below(&r, unit_once_in(&r, 8) ? 400 : 90);
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

static message_t *push_named(origin_t *o, unsigned flags, nicstride_layout_id_t name, size_t len)
{
    message_t *m = push(&o->there);

    nicstride_msg_init(&m->msg, NICSTRIDE_MSG_PUT, 1, 1);
    m->msg.flags = (uint8_t)(NICSTRIDE_MSG_CACHED | flags);
    memcpy(m->layout, &name, sizeof(name));
    m->msg.layout_len = (uint32_t)(sizeof(name) + len);
    return m;
}

/** An operation's slices, of the whole list; now and then the operation ends before. */
static void send_slices(world_t *w, origin_t *o, const onic_layout_t *l, uint32_t number)
{
    const uint64_t size = l->run_start[l->nruns];
    const bool dies = unit_once_in(&w->r, 20);
    onic_cursor_t c;

    onic_cursor_init(&c, l, 0);
    while (c.pos < size && !(dies && c.pos > size / 2)) {
        const uint64_t left = size - c.pos, room = 1 + unit_below(&w->r, 400);
        unsigned char slice[PIECE];
        uint64_t data;
        size_t len;
        const uint64_t at = c.pos;

        UNIT_CHECK(onic_layout_encode_slice(&c, room < left ? room : left, 1, slice, PIECE, &len,
                                            &data) == ONIC_LAYOUT_OK);
        message_t *m =
            push_named(o, NICSTRIDE_MSG_SLICE, (nicstride_layout_id_t){number, data == left}, len);

        memcpy(m->layout + NICSTRIDE_LAYOUT_ID_BYTES, slice, len);
        m->msg.offset = at;
    }
}

static void use(world_t *w, origin_t *o)
{
    const unsigned t =
        (unsigned)(unit_once_in(&w->r, 2) ? unit_below(&w->r, 5) : unit_below(&w->r, TYPES));
    onic_layout_t *l = &o->type[t];
    nicstride_layout_id_t name = {0};

    if (l->size == 0 || unit_once_in(&w->r, 100)) {
        onic_layout_fini(l);
        make_type(w, l);
    }
    if (l->nruns == 0)
        return;
    const uint64_t list = onic_layout_number(l);
    const bool due = nicstride_layout_is_due(&o->sent, list);

    name.number = nicstride_layout_find(&o->sent, list);
    UNIT_CHECK(!due || name.number == 0);
    const uint32_t fresh = nicstride_layout_used(&o->sent, list);

    UNIT_CHECK((fresh != 0) == due);
    if (due) {
        UNIT_CHECK(nicstride_layout_is(&o->sent, fresh, NICSTRIDE_LAYOUT_SENT));
        send_slices(w, o, l, fresh);
    } else if (name.number != 0) {
        unsigned char around[ONIC_LAYOUT_ENCODED_MAX];
        const size_t len = onic_layout_encode_around(l, around);
        message_t *m = push_named(o, 0, name, len);

        UNIT_CHECK(nicstride_layout_is(&o->sent, name.number, NICSTRIDE_LAYOUT_KNOWN));
        memcpy(m->layout + NICSTRIDE_LAYOUT_ID_BYTES, around, len);
        onic_layout_dup(&m->means, l);
        w->named++;
    }
}

static void hear(origin_t *o)
{
    const message_t *m = pop(&o->back);

    if (m != NULL)
        nicstride_layout_answered(&o->sent, (uint32_t)m->msg.count, m->msg.op != 0);
}

/* ---- the target ------------------------------------------------------------------------------ */

static void check_data(message_t *m, const nicstride_cached_layout_t *list)
{
    onic_layout_t l;

    UNIT_CHECK(onic_layout_decode_around(&l, &list->layout, m->layout + NICSTRIDE_LAYOUT_ID_BYTES,
                                         m->msg.layout_len - NICSTRIDE_LAYOUT_ID_BYTES) ==
               ONIC_LAYOUT_OK);
    UNIT_CHECK(same(&l, &m->means));
    onic_layout_fini(&l);
    onic_layout_fini(&m->means);
}

static void receive_name(origin_t *o, message_t *m)
{
    nicstride_cached_layout_t *list = nicstride_layout_cached(&o->kept, m->layout);

    UNIT_CHECK(list != NULL);
    check_data(m, list);
}

static void receive(world_t *w, origin_t *o)
{
    message_t *m = pop(&o->there);

    if (m != NULL && (m->msg.flags & NICSTRIDE_MSG_SLICE) == 0) {
        receive_name(o, m);
    } else if (m != NULL) {
        const nicstride_layout_answer_t what =
            nicstride_layout_slice(&w->room, &o->kept, &m->msg, m->layout);
        nicstride_layout_id_t name;

        memcpy(&name, m->layout, sizeof(name));
        w->had += what == NICSTRIDE_LAYOUT_HAD;
        w->refused += what == NICSTRIDE_LAYOUT_REFUSED;
        if (what != NICSTRIDE_LAYOUT_MORE) {
            message_t *answer = push(&o->back);

            answer->msg.op = what == NICSTRIDE_LAYOUT_HAD;
            answer->msg.count = name.number;
        }
    }
    UNIT_CHECK(w->room.bytes <= w->room.limit);
}

/* ---- all together ---------------------------------------------------------------------------- */

static void drain(world_t *w, origin_t *o)
{
    while (o->there.head < o->there.tail || o->back.head < o->back.tail) {
        receive(w, o);
        hear(o);
    }
}

/** The origin goes; another one comes in its place. */
static void leave(world_t *w, origin_t *o)
{
    drain(w, o);
    nicstride_layouts_leave(&w->room, &o->kept);
    memset(&o->sent, 0, sizeof(o->sent));
    memset(&o->kept, 0, sizeof(o->kept));
}

static void live(world_t *w, int steps)
{
    w->origin = calloc(ORIGINS, sizeof(*w->origin));
    for (int i = 0; i < ORIGINS; i++) {
        w->origin[i].there.m = calloc(QUEUE, sizeof(message_t));
        w->origin[i].back.m = calloc(QUEUE, sizeof(message_t));
    }
    for (int i = 0; i < steps; i++) {
        origin_t *o = &w->origin[unit_below(&w->r, ORIGINS)];

        if (o->there.tail - o->there.head > 100 || unit_once_in(&w->r, 3))
            receive(w, o);
        else if (unit_once_in(&w->r, 2))
            hear(o);
        else
            use(w, o);
        if (unit_once_in(&w->r, 3000))
            leave(w, o);
    }
    for (int i = 0; i < ORIGINS; i++)
        leave(w, &w->origin[i]);
    UNIT_CHECK(w->room.bytes == 0);
    for (int i = 0; i < ORIGINS; i++) {
        for (int t = 0; t < TYPES; t++)
            onic_layout_fini(&w->origin[i].type[t]);
        free(w->origin[i].there.m);
        free(w->origin[i].back.m);
    }
    free(w->origin);
}

START_TEST(names_are_known)
{
    static const size_t limits[] = {0, 5000, 12000, 40000, 1 << 24};

    for (size_t l = 0; l < sizeof(limits) / sizeof(limits[0]); l++) {
        world_t w = {.r = {unit_seed() + l}, .room.limit = limits[l]};

        live(&w, 60000);
        printf("limit %zu: %lu lists had, %lu refused, %lu named\n", limits[l], w.had, w.refused,
               w.named);
        UNIT_CHECK((w.named > 100) == (limits[l] > 0));
        UNIT_CHECK((w.refused > 10) == (limits[l] < 1 << 20));
    }
}
END_TEST

/** Anything instead of the target's answers, and of the origin's slices: nothing but lists that are
 *  refused comes of it. The sanitizers watch the memory. */
START_TEST(nonsense)
{
    world_t w = {.r = {unit_seed()}, .room.limit = 30000};
    nicstride_sent_layouts_t sent = {0};
    nicstride_layout_cache_t kept = {0};
    onic_layout_t l;

    do {
        onic_layout_fini(memset(&l, 0, sizeof(l)));
        make_type(&w, &l);
    } while (l.nruns == 0);
    for (int i = 0; i < 200000; i++) {
        const nicstride_layout_id_t name = {(uint32_t)unit_below(&w.r, 70),
                                            (uint32_t)unit_below(&w.r, 2)};
        nicstride_msg_t msg = {.offset = unit_once_in(&w.r, 2) ? 0 : kept.here};
        unsigned char piece[PIECE];
        uint64_t data;
        size_t len = 0;
        onic_cursor_t c;

        (void)nicstride_layout_used(&sent, onic_layout_number(&l));
        nicstride_layout_answered(&sent, name.number, unit_once_in(&w.r, 2));
        onic_cursor_init(&c, &l, unit_once_in(&w.r, 2) ? 0 : unit_below(&w.r, l.size));
        if (!unit_once_in(&w.r, 5))
            (void)onic_layout_encode_slice(&c, 1 + unit_below(&w.r, 300), 1, piece + sizeof(name),
                                           PIECE - sizeof(name), &len, &data);
        if (len > 0 && unit_once_in(&w.r, 3))
            piece[sizeof(name) + unit_below(&w.r, len)] ^=
                (unsigned char)(1u << unit_below(&w.r, 8));
        memcpy(piece, &name, sizeof(name));
        msg.layout_len = (uint32_t)(sizeof(name) + len);
        (void)nicstride_layout_slice(&w.room, &kept, &msg, piece);
        UNIT_CHECK(w.room.bytes <= w.room.limit);
    }
    nicstride_layouts_leave(&w.room, &kept);
    UNIT_CHECK(w.room.bytes == 0);
    onic_layout_fini(&l);
}
END_TEST

int main(void)
{
    return UNIT_RUN("peer_layout_cache", UNIT_ONCE(names_are_known), UNIT_ONCE(nonsense));
}
