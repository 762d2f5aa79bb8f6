/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdarg.h>
#include <stdio.h>

#include "osc_nicstride/plan.h"

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

static void rows(text_t *t, const char *peer, nicstride_direction_t dir, nicstride_caps_t caps,
                 const nicstride_cost_t *cost, nicstride_method_t forced)
{
    for (size_t b = 0; b < N_BLOCKS; b++) {
        add(t, "  %-13s %-3s ", peer, dir == NICSTRIDE_PUT ? "put" : "get");
        if (blocks[b] > 0)
            add(t, "%8llu", (unsigned long long)blocks[b]);
        else
            add(t, "  contig");
        for (size_t s = 0; s < N_SIZES; s++) {
            onic_layout_t origin, target;

            onic_layout_contig(&origin, 0, sizes[s]);
            shape(&target, sizes[s], blocks[b]);
            add(t, " %8s",
                nicstride_method_name(nicstride_plan(forced, dir, &origin, &target, caps, cost,
                                                     NICSTRIDE_MODEL_ALONE)));
        }
        add(t, "\n");
    }
}

size_t nicstride_plan_table(nicstride_method_t forced, nicstride_costs_t costs, char *buf,
                            size_t cap)
{
    const nicstride_caps_t mapped = {.direct = true}, private = {.cma = true}, remote = {0},
                           away = {.cma = true, .presence = NICSTRIDE_SERVED};
    text_t t = {.buf = buf, .cap = cap};

    if (cap == 0)
        return 0;
    add(&t, "  %-13s %-3s %8s", "peer", "", "block");
    for (size_t s = 0; s < N_SIZES; s++)
        add(&t, " %8llu", (unsigned long long)sizes[s]);
    add(&t, "\n");
    for (int i = NICSTRIDE_PUT; i <= NICSTRIDE_GET; i++) {
        const nicstride_direction_t dir = (nicstride_direction_t)i;

        rows(&t, "mapped", dir, mapped, costs.node, forced);
        rows(&t, "private", dir, private, costs.node, forced);
        rows(&t, "private, away", dir, away, costs.node, forced);
        rows(&t, "network", dir, remote, costs.net, forced);
    }
    return t.len;
}
