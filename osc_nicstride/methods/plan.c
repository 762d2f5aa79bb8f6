/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/methods/plan.h"

#include <math.h>

#include "osc_nicstride/methods/sieve.h"

/** What messages wait for before anybody handles them. */
static double wait(const nicstride_case_t *c)
{
    if (c->presence == NICSTRIDE_PRESENT)
        return 0;
    return c->presence == NICSTRIDE_SERVED ? c->path->link.wake : c->path->link.absence;
}

/** The cost of one of the rows, if it fits. */
static double cost_of(const nicstride_case_t *c, const nicstride_method_row_t *row)
{
    if (row == NULL || row->cost == NULL || (row->fits != NULL && !row->fits(c)))
        return INFINITY;
    return row->cost(c) + (row->needs_target ? wait(c) : 0);
}

static unsigned shape_of(const nicstride_case_t *c)
{
    const uint64_t a = onic_layout_blocks(c->origin), b = onic_layout_blocks(c->target);
    const uint64_t blocks = a > b ? a : b, size = c->target->size;

    /* Blocks may have less than a byte on average: empty ones in lists count, too. */
    return onic_shape(blocks < size ? size / blocks : 1, size);
}

/** For gets in pieces that a sieve can do: about how many bytes it reads per wanted byte. Other
 *  values are directions: 2 bytes per wanted one, or the ratio does not matter. */
enum { DENSE_GET = NICSTRIDE_DIRECTIONS, /* 1 */ SPARSE_GET /* 4 */ };

static unsigned flow_of(const nicstride_case_t *c, unsigned shape)
{
    const double size = (double)c->target->size;

    if (shape == 0 || c->dir != NICSTRIDE_GET || !nicstride_sieve_takes(c->target))
        return c->dir;
    const double read = (double)(c->target->ub - c->target->lb) / size;
    return read < 1.5 ? DENSE_GET : read < 3 ? NICSTRIDE_GET : SPARSE_GET;
}

/** Moves the blocks of an example closer together or farther apart. */
static void space(onic_layout_t *l, unsigned flow)
{
    if (l->nlevels == 0 || flow < NICSTRIDE_DIRECTIONS)
        return;
    const int64_t block = (int64_t)l->block;
    const uint64_t count = l->level[0].count;
    (void)onic_layout_contig(l, 0, l->block);
    (void)onic_layout_repeat(l, count, flow == DENSE_GET ? block + block / 8 : 4 * block);
}

/** The order by the costs of this very transfer. */
static onic_order_t compute(const nicstride_table_t *table, const nicstride_case_t *c)
{
    double cost[NICSTRIDE_METHODS_MAX];

    for (unsigned m = 0; m < NICSTRIDE_METHODS_MAX; m++)
        cost[m] = cost_of(c, table->rows[m]);
    return onic_order(cost, NICSTRIDE_METHOD_PACK);
}

/** The order by a transfer that represents all of its flow, shape and size; its other side is
 *  contiguous. */
static onic_order_t make(const nicstride_table_t *table, onic_kind_t kind,
                         const nicstride_case_t *c, unsigned flow, unsigned shape, unsigned size)
{
    onic_layout_t origin, target;
    nicstride_case_t example = *c;

    onic_example(shape, size, &target);
    space(&target, flow);
    onic_layout_contig(&origin, 0, target.size);
    example.origin = &origin;
    example.target = &target;
    example.path = &table->path[kind];
    return compute(table, &example);
}

onic_order_t nicstride_choices(nicstride_table_t *table, onic_kind_t kind,
                               const nicstride_case_t *c)
{
    if (kind == ONIC_ADAPTER) {
        nicstride_case_t itself = *c;

        itself.path = &table->path[kind];
        return compute(table, &itself);
    }
    const unsigned shape = shape_of(c), flow = flow_of(c, shape), size = onic_size(c->target->size);
    onic_order_t *cell = &table->order[kind][c->presence][flow][c->many][shape][size];
    onic_order_t order = __atomic_load_n(cell, __ATOMIC_RELAXED);

    if (order == 0) {
        order = make(table, kind, c, flow, shape, size);
        __atomic_store_n(cell, order, __ATOMIC_RELAXED);
    }
    return order;
}

nicstride_method_t nicstride_plan(nicstride_table_t *table, onic_kind_t kind,
                                  const nicstride_case_t *transfer)
{
    nicstride_case_t itself = *transfer, *c = &itself;

    c->path = &table->path[kind];
    if (nicstride_can(c, c->forced))
        return c->forced;
    onic_order_t order = nicstride_choices(table, kind, c);
    unsigned method = onic_order_take(&order);
    while (method != NICSTRIDE_METHOD_PACK && !nicstride_can(c, method))
        method = onic_order_take(&order);
    return (nicstride_method_t)method;
}

/* ---- the table ------------------------------------------------------------------------------- */

static const uint64_t blocks[] = {8, 64, 512, 4096, 65536, 0}; /* 0: contiguous */
static const uint64_t sizes[] = {8, 4096, 65536, 1 << 20, 16 << 20};

#define N_BLOCKS (sizeof(blocks) / sizeof(blocks[0]))
#define N_SIZES  (sizeof(sizes) / sizeof(sizes[0]))

/** Describes `size` bytes in blocks, with gaps as long as a block. If `block` is 0 or at least
 *  `size`: one block. */
static void shape(onic_layout_t *l, uint64_t size, uint64_t block)
{
    if (block == 0 || block >= size) {
        onic_layout_contig(l, 0, size);
        return;
    }
    onic_layout_contig(l, 0, block);
    onic_layout_repeat(l, size / block, (int64_t)(2 * block));
}

/** The transfers of one line of the printed table. */
typedef struct line {
    const char *name;
    onic_kind_t kind;
    uint32_t reach;
    bool many;
    nicstride_presence_t presence;
} line_t;

static void lines(FILE *to, nicstride_table_t *table, nicstride_method_t forced,
                  nicstride_direction_t dir, const line_t *line)
{
    for (size_t b = 0; b < N_BLOCKS; b++) {
        fprintf(to, "  %-14s %-3s ", line->name, dir == NICSTRIDE_PUT ? "put" : "get");
        if (blocks[b] > 0)
            fprintf(to, "%8llu", (unsigned long long)blocks[b]);
        else
            fprintf(to, "  contig");
        for (size_t s = 0; s < N_SIZES; s++) {
            onic_layout_t origin, target;
            const nicstride_case_t c = {.rows = table->rows,
                                        .forced = forced,
                                        .dir = dir,
                                        .origin = &origin,
                                        .target = &target,
                                        .reach = line->reach,
                                        .presence = line->presence,
                                        .many = line->many,
                                        .path = &table->path[line->kind]};

            onic_layout_contig(&origin, 0, sizes[s]);
            shape(&target, sizes[s], blocks[b]);
            fprintf(to, " %8s", table->rows[nicstride_plan(table, line->kind, &c)]->name);
        }
        fprintf(to, "\n");
    }
}

void nicstride_plan_table(FILE *to, nicstride_table_t *table, nicstride_method_t forced)
{
    static const char *const names[ONIC_DISTANCES][3] = {
        {"near", "near, alone", "near, away"},
        {"package", "package, alone", "package, away"},
        {"far", "far, alone", "far, away"},
    };
    const uint32_t message = NICSTRIDE_REACH(NICSTRIDE_METHOD_PACK);
    const uint32_t node = message | NICSTRIDE_REACH(NICSTRIDE_METHOD_CMA) |
                          NICSTRIDE_REACH(NICSTRIDE_METHOD_SIEVE) |
                          NICSTRIDE_REACH(NICSTRIDE_METHOD_PIPELINE);
    const uint32_t adapter = message | NICSTRIDE_REACH(NICSTRIDE_METHOD_PIPELINE) |
                             NICSTRIDE_REACH(NICSTRIDE_METHOD_RDMA) |
                             NICSTRIDE_REACH(NICSTRIDE_METHOD_NIC);

    fprintf(to, "  %-14s %-3s %8s", "peer", "", "block");
    for (size_t s = 0; s < N_SIZES; s++)
        fprintf(to, " %8llu", (unsigned long long)sizes[s]);
    fprintf(to, "\n");
    for (int dir = NICSTRIDE_PUT; dir <= NICSTRIDE_GET; dir++) {
        const nicstride_direction_t d = (nicstride_direction_t)dir;

        for (unsigned k = 0; k < ONIC_DISTANCES; k++)
            for (int n = 0; n < 3; n++)
                lines(to, table, forced, d,
                      &(line_t){.name = names[k][n],
                                .kind = (onic_kind_t)k,
                                .reach = node,
                                .many = n == 0,
                                .presence = n < 2 ? NICSTRIDE_PRESENT : NICSTRIDE_SERVED});
        lines(to, table, forced, d,
              &(line_t){.name = "network", .kind = ONIC_NET, .reach = message});
        lines(to, table, forced, d,
              &(line_t){.name = "adapter", .kind = ONIC_ADAPTER, .reach = adapter});
    }
}
