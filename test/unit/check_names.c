/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Names of lists: some origins use lists at one target that has little room. What is sent stays in
 * order and takes its time, in both directions. Every name that arrives must be known, and mean
 * what the origin meant.
 */
#include <string.h>

#include "osc_nicstride/protocol/names.h"
#include "test/unit/unit.h"

enum { ORIGINS = 4, TYPES = 40, QUEUE = 4096, PIECE = 200, WAITING = 8 };

/** A message on its way: of a list, with its piece; or of data, with what it is about. */
typedef struct message {
    bool data;
    nicstride_msg_t msg;
    unsigned char layout[ONIC_LAYOUT_ENCODED_MAX];
    size_t len;
    onic_layout_t means;
} message_t;

typedef struct queue {
    message_t *m;
    size_t head, tail;
} queue_t;

typedef struct origin {
    nicstride_names_t names;
    nicstride_listed_t listed; /* at the target */
    queue_t there, back;
    onic_layout_t type[TYPES];
} origin_t;

/** A message of data that waits at the target. */
typedef struct waiting {
    nicstride_list_t *list;
    message_t message;
} waiting_t;

typedef struct world {
    unit_random_t r;
    nicstride_lists_t lists;
    origin_t *origin;
    uint64_t numbers;
    waiting_t waiting[WAITING];
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

static bool same(const onic_layout_t *a, const onic_layout_t *b)
{
    return a->nruns == b->nruns &&
           (a->nruns == 0 || memcmp(a->runs, b->runs, a->nruns * sizeof(*a->runs)) == 0) &&
           a->size == b->size && a->lb == b->lb && a->ub == b->ub && a->offset == b->offset &&
           a->nlevels == b->nlevels &&
           memcmp(a->level, b->level, a->nlevels * sizeof(a->level[0])) == 0;
}

/* ---- the origin ------------------------------------------------------------------------------ */

static void send_piece(origin_t *o)
{
    message_t m = {.data = false};

    nicstride_msg_init(&m.msg, NICSTRIDE_MSG_LIST, 1, 1);
    if (nicstride_names_piece(&o->names, &m.msg, m.layout, PIECE))
        *push(&o->there) = m;
}

static void use(world_t *w, origin_t *o)
{
    const unsigned t =
        (unsigned)(unit_once_in(&w->r, 2) ? unit_below(&w->r, 5) : unit_below(&w->r, TYPES));
    onic_layout_t *l = &o->type[t];
    nicstride_name_t name;

    if (l->size == 0 || unit_once_in(&w->r, 100)) {
        onic_layout_fini(l);
        make_type(w, l);
    }
    if (l->nruns == 0)
        return;
    if (nicstride_names_use(&o->names, l))
        send_piece(o);
    if (!nicstride_names_find(&o->names, l, &name))
        return;
    UNIT_CHECK(nicstride_names_valid(&o->names, &name));
    message_t *m = push(&o->there);
    m->data = true;
    m->len = nicstride_name_encode(&name, l, m->layout);
    onic_layout_dup(&m->means, l);
    w->named++;
}

static void hear(world_t *w, origin_t *o)
{
    const message_t *m = pop(&o->back);

    if (m == NULL)
        return;
    nicstride_names_answer(&o->names, &m->msg);
    while (nicstride_names_may_send(&o->names))
        send_piece(o);
    UNIT_CHECK(w->lists.bytes <= w->lists.limit);
}

/* ---- the target ------------------------------------------------------------------------------ */

static void answer(origin_t *o, const nicstride_name_t *name, nicstride_answer_t what)
{
    message_t *m = push(&o->back);

    nicstride_msg_init(&m->msg, NICSTRIDE_MSG_ANSWER, 1, 1);
    m->msg.op = (uint16_t)name->slot;
    m->msg.len = name->number;
    m->msg.dtype = (uint16_t)what;
}

static void check_data(message_t *m, const nicstride_list_t *list)
{
    onic_layout_t l;

    UNIT_CHECK(onic_layout_decode_around(&l, &list->layout, m->layout + NICSTRIDE_NAME_BYTES,
                                         m->len - NICSTRIDE_NAME_BYTES) == ONIC_LAYOUT_OK);
    UNIT_CHECK(same(&l, &m->means));
    onic_layout_fini(&l);
    onic_layout_fini(&m->means);
}

static void end_wait(world_t *w, waiting_t *v)
{
    if (v->list == NULL)
        return;
    check_data(&v->message, v->list);
    nicstride_lists_release(&w->lists, v->list);
    v->list = NULL;
}

static void receive_data(world_t *w, origin_t *o, message_t *m)
{
    const nicstride_name_t name = nicstride_name_decode(m->layout);
    nicstride_list_t *list = nicstride_lists_find(&o->listed, &name);
    waiting_t *v = &w->waiting[unit_below(&w->r, WAITING)];

    UNIT_CHECK(list != NULL);
    if (!unit_once_in(&w->r, 4)) {
        check_data(m, list);
        return;
    }
    nicstride_lists_hold(list);
    end_wait(w, v);
    *v = (waiting_t){list, *m};
}

static void receive(world_t *w, origin_t *o)
{
    message_t *m = pop(&o->there);

    if (m != NULL && m->data) {
        receive_data(w, o, m);
    } else if (m != NULL) {
        const nicstride_name_t name = {.slot = m->msg.op, .number = (uint32_t)m->msg.len};
        const nicstride_answer_t what =
            nicstride_lists_piece(&w->lists, &o->listed, &m->msg, m->layout);

        answer(o, &name, what);
        w->had += what == NICSTRIDE_LIST_HAD;
        w->refused += what == NICSTRIDE_LIST_NO;
    }
    UNIT_CHECK(w->lists.bytes <= w->lists.limit);
}

/* ---- all together ---------------------------------------------------------------------------- */

static void drain(world_t *w, origin_t *o)
{
    while (o->there.head < o->there.tail || o->back.head < o->back.tail) {
        receive(w, o);
        hear(w, o);
    }
}

/** The origin goes; another one comes in its place. */
static void leave(world_t *w, origin_t *o)
{
    drain(w, o);
    nicstride_names_fini(&o->names);
    nicstride_lists_leave(&w->lists, &o->listed);
    memset(&o->names, 0, sizeof(o->names));
    memset(&o->listed, 0, sizeof(o->listed));
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
            hear(w, o);
        else
            use(w, o);
        if (unit_once_in(&w->r, 3000))
            leave(w, o);
    }
    for (int i = 0; i < ORIGINS; i++)
        leave(w, &w->origin[i]);
    for (int i = 0; i < WAITING; i++)
        end_wait(w, &w->waiting[i]);
    UNIT_CHECK(w->lists.bytes == 0);
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
        world_t w = {.r = {unit_seed() + l}, .lists.limit = limits[l]};

        live(&w, 60000);
        printf("limit %zu: %lu lists had, %lu refused, %lu named\n", limits[l], w.had, w.refused,
               w.named);
        UNIT_CHECK((w.named > 100) == (limits[l] > 0));
        UNIT_CHECK((w.refused > 10) == (limits[l] < 1 << 20));
    }
}
END_TEST

/** Anything instead of the target's answers, and of the origin's pieces: nothing but names that are
 *  refused comes of it. The sanitizers watch the memory. */
START_TEST(nonsense)
{
    world_t w = {.r = {unit_seed()}, .lists.limit = 30000};
    origin_t o = {0};
    onic_layout_t l;

    do {
        onic_layout_fini(memset(&l, 0, sizeof(l)));
        make_type(&w, &l);
    } while (l.nruns == 0);
    o.there.m = calloc(QUEUE, sizeof(message_t));
    o.back.m = calloc(QUEUE, sizeof(message_t));
    for (int i = 0; i < 200000; i++) {
        nicstride_msg_t msg = {.op = (uint16_t)unit_below(&w.r, NICSTRIDE_NAMES + 2),
                               .dtype = (uint16_t)unit_below(&w.r, 5),
                               .len = unit_below(&w.r, 4),
                               .count = unit_below(&w.r, 300),
                               .disp = (int64_t)unit_below(&w.r, 500) - 100,
                               .offset = unit_once_in(&w.r, 2) ? 0 : unit_below(&w.r, 300)};
        unsigned char piece[PIECE];
        uint64_t data;
        size_t len = 0;
        onic_cursor_t c;

        (void)nicstride_names_use(&o.names, &l);
        (void)nicstride_names_answer(&o.names, &msg);
        onic_cursor_init(&c, &l, unit_once_in(&w.r, 2) ? 0 : unit_below(&w.r, l.size));
        if (!unit_once_in(&w.r, 5))
            (void)onic_layout_encode_slice(&c, 1 + unit_below(&w.r, 300), 1, piece, PIECE, &len,
                                           &data);
        if (len > 0 && unit_once_in(&w.r, 3))
            piece[unit_below(&w.r, len)] ^= (unsigned char)(1u << unit_below(&w.r, 8));
        msg.layout_len = (uint32_t)len;
        o.back.head = o.back.tail;
        (void)nicstride_lists_piece(&w.lists, &o.listed, &msg, piece);
        UNIT_CHECK(w.lists.bytes <= w.lists.limit);
    }
    nicstride_names_fini(&o.names);
    nicstride_lists_leave(&w.lists, &o.listed);
    UNIT_CHECK(w.lists.bytes == 0);
    onic_layout_fini(&l);
    free(o.there.m);
    free(o.back.m);
}
END_TEST

int main(void)
{
    return UNIT_RUN("names", UNIT_ONCE(names_are_known), UNIT_ONCE(nonsense));
}
