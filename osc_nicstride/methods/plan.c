/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/methods/plan.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/** What messages wait for before anybody looks at them. */
static double wait(const nicstride_case_t *c)
{
    if (c->presence == NICSTRIDE_PRESENT)
        return 0;
    return c->presence == NICSTRIDE_SERVED ? c->path->link.wake : c->path->link.absence;
}

/** The model's estimates for all methods, for a target that is present. */
static void estimate(const nicstride_case_t *c, double model[NICSTRIDE_METHODS_MAX])
{
    for (unsigned m = 0; m < NICSTRIDE_METHODS_MAX; m++) {
        model[m] = INFINITY;
        if (nicstride_can(c, m))
            model[m] = c->rows[m]->cost(c);
    }
}

/** By estimates and what was learned, and how long a target stays away. */
static nicstride_method_t cheapest(const nicstride_case_t *c, double model[NICSTRIDE_METHODS_MAX])
{
    unsigned best = NICSTRIDE_METHOD_PACK;

    if (c->learned.cell != NULL)
        onic_learn_known(c->learned.cell, model, c->target->size);
    for (unsigned m = 0; m < NICSTRIDE_METHODS_MAX; m++)
        if (c->rows[m] != NULL && c->rows[m]->needs_target)
            model[m] += wait(c);
    for (unsigned m = 0; m < NICSTRIDE_METHODS_MAX; m++)
        if (model[m] < model[best])
            best = m;
    return (nicstride_method_t)best;
}

nicstride_method_t nicstride_plan(const nicstride_case_t *c)
{
    const bool present = c->presence == NICSTRIDE_PRESENT;
    double model[NICSTRIDE_METHODS_MAX];

    if (nicstride_can(c, c->forced))
        return c->forced;
    estimate(c, model);
    /* How long a target stays away says nothing of the methods: nothing is tried then. */
    if (c->learned.cell != NULL && c->learned.budget != NULL && present)
        return (nicstride_method_t)onic_learn_choose(c->learned.cell, c->learned.budget, model,
                                                     c->target->size);
    return cheapest(c, model);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const uint64_t blocks[] = {8, 64, 512, 4096, 65536, 0}; /* 0: contiguous */
static const uint64_t sizes[] = {8, 4096, 65536, 1 << 20, 16 << 20};

#define N_BLOCKS (sizeof(blocks) / sizeof(blocks[0]))
#define N_SIZES  (sizeof(sizes) / sizeof(sizes[0]))

typedef struct text {
    char *buf;
    size_t cap;
    size_t len;
} text_t;

static void __attribute__((format(printf, 2, 3))) add(text_t *t, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(t->buf + t->len, t->cap - t->len, format, args);
    va_end(args);
    if (n > 0)
        t->len += (size_t)n < t->cap - t->len ? (size_t)n : t->cap - t->len - 1;
}

/** `size` bytes in blocks, every second block of memory; blocks of 0 or beyond: one block. */
static void shape(onic_layout_t *l, uint64_t size, uint64_t block)
{
    if (block == 0 || block >= size) {
        onic_layout_contig(l, 0, size);
        return;
    }
    onic_layout_contig(l, 0, block);
    onic_layout_repeat(l, size / block, (int64_t)(2 * block));
}

/** A kind of peer. */
typedef struct peer {
    const char *name;
    uint32_t reach;
    nicstride_presence_t presence;
    const nicstride_path_t *path;
} peer_t;

static void lines(text_t *t, const nicstride_method_row_t *const *rows, nicstride_method_t forced,
                  nicstride_direction_t dir, const peer_t *peer)
{
    for (size_t b = 0; b < N_BLOCKS; b++) {
        add(t, "  %-13s %-3s ", peer->name, dir == NICSTRIDE_PUT ? "put" : "get");
        if (blocks[b] > 0)
            add(t, "%8llu", (unsigned long long)blocks[b]);
        else
            add(t, "  contig");
        for (size_t s = 0; s < N_SIZES; s++) {
            onic_layout_t origin, target;
            const nicstride_case_t c = {.rows = rows,
                                        .forced = forced,
                                        .dir = dir,
                                        .origin = &origin,
                                        .target = &target,
                                        .reach = peer->reach,
                                        .presence = peer->presence,
                                        .path = peer->path};

            onic_layout_contig(&origin, 0, sizes[s]);
            shape(&target, sizes[s], blocks[b]);
            add(t, " %8s", rows[nicstride_plan(&c)]->name);
        }
        add(t, "\n");
    }
}

size_t nicstride_plan_table(const nicstride_method_row_t *const *rows, nicstride_method_t forced,
                            const nicstride_paths_t *paths, char *buf, size_t cap)
{
    const uint32_t message =
        NICSTRIDE_REACH(NICSTRIDE_METHOD_PACK) | NICSTRIDE_REACH(NICSTRIDE_METHOD_ZCOPY);
    const uint32_t node = message | NICSTRIDE_REACH(NICSTRIDE_METHOD_CMA) |
                          NICSTRIDE_REACH(NICSTRIDE_METHOD_SIEVE) |
                          NICSTRIDE_REACH(NICSTRIDE_METHOD_MOVER);
    const peer_t peers[] = {
        {"mapped", message | NICSTRIDE_REACH(NICSTRIDE_METHOD_DIRECT), NICSTRIDE_PRESENT,
         &paths->node},
        {"private", node, NICSTRIDE_PRESENT, &paths->node},
        {"private, away", node, NICSTRIDE_SERVED, &paths->node},
        {"network", message, NICSTRIDE_PRESENT, &paths->net},
        {"adapter",
         message | NICSTRIDE_REACH(NICSTRIDE_METHOD_MOVER) |
             NICSTRIDE_REACH(NICSTRIDE_METHOD_RDMA) | NICSTRIDE_REACH(NICSTRIDE_METHOD_NIC),
         NICSTRIDE_PRESENT, &paths->adapter},
    };
    text_t t = {.buf = buf, .cap = cap};

    if (cap == 0)
        return 0;
    add(&t, "  %-13s %-3s %8s", "peer", "", "block");
    for (size_t s = 0; s < N_SIZES; s++)
        add(&t, " %8llu", (unsigned long long)sizes[s]);
    add(&t, "\n");
    for (int dir = NICSTRIDE_PUT; dir <= NICSTRIDE_GET; dir++)
        for (size_t p = 0; p < sizeof(peers) / sizeof(peers[0]); p++)
            lines(&t, rows, forced, (nicstride_direction_t)dir, &peers[p]);
    return t.len;
}

/* ---- reasons --------------------------------------------------------------------------------- */

size_t nicstride_plan_reason(const nicstride_case_t *c, char *buf, size_t cap)
{
    double model[NICSTRIDE_METHODS_MAX], known[NICSTRIDE_METHODS_MAX];
    text_t t = {.buf = buf, .cap = cap};

    if (cap == 0)
        return 0;
    buf[0] = '\0';
    estimate(c, model);
    memcpy(known, model, sizeof(known));
    if (c->learned.cell != NULL)
        onic_learn_known(c->learned.cell, known, c->target->size);
    for (unsigned m = 0; m < NICSTRIDE_METHODS_MAX; m++) {
        if (isinf(model[m]))
            continue;
        add(&t, "%s%s %.2f", t.len > 0 ? ", " : "", c->rows[m]->name, model[m] / 1000);
        if (known[m] != model[m])
            add(&t, " (learned %.2f)", known[m] / 1000);
    }
    if (wait(c) > 0)
        add(&t, ", messages wait %.0f", wait(c) / 1000);
    return t.len;
}

/* ---- what was learned ------------------------------------------------------------------------ */

/** The shortest blocks of the shapes that are learned; see onic_learn_shape. */
static const uint64_t learned_block[ONIC_LEARN_SHAPES] = {0, 4096, 1024, 256, 64, 16, 8};

/** The shortest transfers of a class. */
static uint64_t learned_size(unsigned size)
{
    return size == 0 ? 8 : (uint64_t)ONIC_LEARN_LEAST << (size - 1);
}

static const char *const directions[ONIC_LEARN_DIRECTIONS] = {"put", "get", "acc"};

/** A kind of transfer that something may be known of. */
static void learned_line(text_t *t, const nicstride_case_t *c, const onic_learn_cell_t *cell,
                         uint64_t block)
{
    const uint64_t size = c->target->size;
    bool any = false;

    for (unsigned m = 0; m < NICSTRIDE_METHODS_MAX; m++) {
        const double nsec = onic_learn_nsec(cell, m, size);

        if (nsec == 0)
            continue;
        if (!any)
            add(t, "  %s %8llu", directions[c->dir], (unsigned long long)size);
        if (!any && block > 0)
            add(t, " in blocks of %llu", (unsigned long long)block);
        any = true;
        add(t, ", %s %.2f (x %.2f)", c->rows[m]->name, nsec / 1000, nsec / c->rows[m]->cost(c));
    }
    if (any)
        add(t, "\n");
}

size_t nicstride_plan_learned(const nicstride_method_row_t *const *rows, const onic_learn_t *learn,
                              const nicstride_path_t *path, char *buf, size_t cap)
{
    text_t t = {.buf = buf, .cap = cap};

    if (cap == 0)
        return 0;
    buf[0] = '\0';
    for (unsigned i = 0; i < ONIC_LEARN_DIRECTIONS * ONIC_LEARN_SHAPES * ONIC_LEARN_SIZES; i++) {
        const unsigned size = i % ONIC_LEARN_SIZES, kind = i / ONIC_LEARN_SIZES;
        const unsigned shape_of = kind % ONIC_LEARN_SHAPES, dir = kind / ONIC_LEARN_SHAPES;
        const uint64_t block = learned_block[shape_of];
        onic_layout_t origin, target;
        const nicstride_case_t c = {.rows = rows,
                                    .dir = (nicstride_direction_t)dir,
                                    .origin = &origin,
                                    .target = &target,
                                    .path = path};

        onic_layout_contig(&origin, 0, learned_size(size));
        shape(&target, learned_size(size), block);
        learned_line(&t, &c, &learn->cell[dir][shape_of][size], block);
    }
    return t.len;
}
