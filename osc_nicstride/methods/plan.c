/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/methods/plan.h"

#include <math.h>

#include "common/model/pipeline.h"
#include "common/pipeline/core/chunks.h"

/** What messages wait for before anybody looks at them. */
static double wait(const nicstride_case_t *c)
{
    if (c->presence == NICSTRIDE_PRESENT)
        return 0;
    return c->presence == NICSTRIDE_SERVED ? c->path->link.wake : c->path->link.absence;
}

/** What one of the rows takes, where it fits. */
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

    /* Blocks of less than a byte on average: in lists, empty ones count. */
    return onic_shape(blocks < size ? size / blocks : 1, size);
}

/** Of a get that a sieve can do, in pieces: about how many bytes that has to read for each wanted
 *  one. The directions stand for 2, or where that does not count. */
enum { DENSE_GET = NICSTRIDE_DIRECTIONS, /* 1 */ SPARSE_GET /* 4 */ };

static unsigned flow_of(const nicstride_case_t *c, unsigned shape)
{
    const double size = (double)c->target->size;

    if (shape == 0 || !nicstride_sieve_fits(c))
        return c->dir;
    const double read = (double)(c->target->ub - c->target->lb) / size;
    return read < 1.5 ? DENSE_GET : read < 3 ? NICSTRIDE_GET : SPARSE_GET;
}

/** Puts the blocks of an example closer together, or farther apart. */
static void space(onic_layout_t *l, unsigned flow)
{
    if (l->nlevels == 0 || flow < NICSTRIDE_DIRECTIONS)
        return;
    const int64_t block = (int64_t)l->block;
    const uint64_t count = l->level[0].count;
    (void)onic_layout_contig(l, 0, l->block);
    (void)onic_layout_repeat(l, count, flow == DENSE_GET ? block + block / 8 : 4 * block);
}

/** By what this very transfer costs. */
static onic_order_t compute(const nicstride_table_t *table, const nicstride_case_t *c)
{
    double cost[NICSTRIDE_METHODS_MAX];

    for (unsigned m = 0; m < NICSTRIDE_METHODS_MAX; m++)
        cost[m] = cost_of(c, table->rows[m]);
    return onic_order(cost, NICSTRIDE_METHOD_PACK);
}

/** By what stands for all of its flow, shape and size, contiguous on the other side. */
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

/** Irregular pieces of a target on this node take longer to gather than to move, so that slots have
 *  nothing to overlap. Gets of 80 to 800 KB in pieces of 11 bytes, between two processes that do
 * the same, take 15 to 35 % less time by messages; of 2.4 MB no more. */
static bool is_slow_to_gather(onic_kind_t kind, const nicstride_case_t *c)
{
    return kind < ONIC_NET && c->dir == NICSTRIDE_GET && c->target->nruns > 0;
}

nicstride_method_t nicstride_plan(nicstride_table_t *table, onic_kind_t kind,
                                  const nicstride_case_t *c)
{
    if (nicstride_can(c, c->forced))
        return c->forced;
    onic_order_t order = nicstride_choices(table, kind, c);
    unsigned method = onic_order_take(&order);
    while (method != NICSTRIDE_METHOD_PACK &&
           (!nicstride_can(c, method) ||
            (method == NICSTRIDE_METHOD_PIPELINE && is_slow_to_gather(kind, c))))
        method = onic_order_take(&order);
    return (nicstride_method_t)method;
}

/* ---- the table ------------------------------------------------------------------------------- */

static const uint64_t blocks[] = {8, 64, 512, 4096, 65536, 0}; /* 0: contiguous */
static const uint64_t sizes[] = {8, 4096, 65536, 1 << 20, 16 << 20};

#define N_BLOCKS (sizeof(blocks) / sizeof(blocks[0]))
#define N_SIZES  (sizeof(sizes) / sizeof(sizes[0]))

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

/** A line of the table is for such transfers. */
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

/* ---- reasons --------------------------------------------------------------------------------- */

void nicstride_plan_reason(FILE *to, const nicstride_case_t *c)
{
    const char *between = "";

    for (unsigned m = 0; m < NICSTRIDE_METHODS_MAX; m++) {
        if (!nicstride_can(c, m))
            continue;
        fprintf(to, "%s%s %.2f", between, c->rows[m]->name, cost_of(c, c->rows[m]) / 1000);
        between = ", ";
    }
    if (wait(c) > 0)
        fprintf(to, "; of which messages wait %.0f", wait(c) / 1000);
}

/* ---- what methods can do, and what that costs ---------------------------------------------------
 *
 * Which layouts each method can move, and what that costs; see method.h. Pure. */

static double gather_here(const nicstride_case_t *c)
{
    return onic_link_gather(&c->path->link, c->origin);
}

static double gather_there(const nicstride_case_t *c)
{
    return onic_link_gather(&c->path->link, c->target);
}

/* ---- direct: load and store ------------------------------------------------------------------ */

/** Nothing that another method would not do as well. */
double nicstride_direct_cost(const nicstride_case_t *c)
{
    (void)c;
    return 0;
}

/** On a node the way has numbers of its own. `bytes`: as these count. */
static double on_node(const nicstride_case_t *c, onic_way_t put, onic_way_t get, double bytes)
{
    const uint64_t a = onic_layout_blocks(c->origin), b = onic_layout_blocks(c->target);
    const onic_way_t way = c->dir == NICSTRIDE_GET ? get : put;

    const double pieces = (double)(a > b ? a : b);

    return onic_cost(&c->path->costs->of[way][c->many], pieces, (double)c->target->size / pieces,
                     bytes);
}

/* ---- cma: single copy of each piece ---------------------------------------------------------- */

double nicstride_cma_cost(const nicstride_case_t *c)
{
    if (c->path->costs == NULL)
        return INFINITY;
    return on_node(c, ONIC_WAY_cma_put, ONIC_WAY_cma_get, (double)c->target->size);
}

/* ---- sieve: single copy of the covering extent, then gather ---------------------------------- */

/** What is too sparse costs more to read than any other method. */
bool nicstride_sieve_fits(const nicstride_case_t *c)
{
    return c->dir == NICSTRIDE_GET && c->target->nruns == 0 && c->target->size > 0 &&
           (uint64_t)(c->target->ub - c->target->lb) / NICSTRIDE_SIEVE_SPARSE <= c->target->size;
}

double nicstride_sieve_cost(const nicstride_case_t *c)
{
    if (c->path->costs == NULL)
        return INFINITY;
    return on_node(c, ONIC_WAY_sieve, ONIC_WAY_sieve, (double)(c->target->ub - c->target->lb));
}

/* ---- pack: messages -------------------------------------------------------------------------- */

/** Equation (2) for the first message. While others follow, the sender packs, the network moves and
 *  the receiver unpacks at the same time: the slowest counts. */
double nicstride_pack_cost(const nicstride_case_t *c)
{
    if (c->path->costs != NULL)
        return on_node(c, ONIC_WAY_pack_put, ONIC_WAY_pack_get, (double)c->target->size);

    const onic_link_t *link = &c->path->link;
    const double here = gather_here(c), there = gather_there(c), size = (double)c->target->size;
    const double first = fmin(1, link->fragment / size);
    const double copying = size / link->bcopy + size / link->fragment * link->gap;

    return onic_link_packed(link, first * size) + first * (here + there) +
           (1 - first) * fmax(size / link->bnet, copying + fmax(here, there));
}

/* ---- pipeline: the superpipeline ----------------------------------------------------------------
 */

/** Below a block there is nothing that could overlap. */
bool nicstride_pipeline_fits(const nicstride_case_t *c)
{
    return c->target->size >= ONIC_PIPELINE_BLOCK;
}

/** Both sides gather and scatter while chunks are moved: the slower one copies so much slower. Of a
 *  get the slots are the origin's own. The way of the data counts once. */
double nicstride_pipeline_cost(const nicstride_case_t *c)
{
    if (c->path->costs != NULL)
        return on_node(c, ONIC_WAY_pipeline_put, ONIC_WAY_pipeline_get, (double)c->target->size);

    onic_link_t link = c->path->link;
    const double size = (double)c->target->size, slot = (double)c->path->pipeline_slot;
    const onic_chunks_t chunks =
        onic_superpipeline_chunks(&link, fmin(slot, ONIC_PIPELINE_BLOCK), slot);

    link.bcopy = size / (size / link.bcopy + fmax(gather_here(c), gather_there(c)));
    /* What a put packs while it waits for its grant a get packs behind that. */
    const double unpacked = fmin(chunks.first / link.bcopy, 2 * link.latency);

    return link.message - link.latency +
           (c->dir == NICSTRIDE_GET ? fmin(unpacked, link.grant) : link.grant) +
           onic_superpipeline_time_blocks(&link, &chunks, size, (double)c->path->pipeline_block);
}

/* ---- rdma: one request of the adapter -------------------------------------------------------- */

bool nicstride_rdma_fits(const nicstride_case_t *c)
{
    return c->dir != NICSTRIDE_ACC && c->origin->size > 0 && onic_layout_is_contig(c->origin) &&
           onic_layout_is_contig(c->target);
}

double nicstride_rdma_cost(const nicstride_case_t *c)
{
    return onic_link_requests(&c->path->link, c->dir == NICSTRIDE_GET, 1, 1,
                              (double)c->target->size);
}

/* ---- nic: lists of requests ------------------------------------------------------------------ */

bool nicstride_nic_fits(const nicstride_case_t *c)
{
    return c->dir != NICSTRIDE_ACC && c->target->size > 0;
}

/** A request for each piece of the target's, which has a list of the origin's pieces, or several
 *  where that becomes too long. */
double nicstride_nic_cost(const nicstride_case_t *c)
{
    const onic_link_t *link = &c->path->link;
    const double there = (double)onic_layout_blocks(c->target),
                 pieces = fmax(there, (double)onic_layout_blocks(c->origin));

    return onic_link_requests(link, c->dir == NICSTRIDE_GET,
                              there * ceil(pieces / there / link->entries), pieces,
                              (double)c->target->size);
}

/* ---- sieving --------------------------------------------------------------------------------- */

/** Extent and data of the levels below `k`, and how many levels a cover may take in. */
typedef struct spans {
    uint64_t extent[ONIC_LAYOUT_MAX_LEVELS + 1];
    uint64_t size[ONIC_LAYOUT_MAX_LEVELS + 1];
    unsigned levels; /* whole levels without a large gap */
} spans_t;

static void measure(const onic_layout_t *l, uint64_t gap_max, spans_t *s)
{
    s->extent[0] = s->size[0] = l->block;
    s->levels = 0;
    for (unsigned k = 0; k < l->nlevels; k++) {
        uint64_t step = onic_magnitude(l->level[k].stride);

        s->extent[k + 1] = s->extent[k] + step * (l->level[k].count - 1);
        s->size[k + 1] = s->size[k] * l->level[k].count;
        if (s->levels == k && (step <= s->extent[k] || step - s->extent[k] <= gap_max))
            s->levels = k + 1;
    }
}

/** The highest level of which one whole pass fits in a piece. */
static unsigned fitting_level(const spans_t *s, uint64_t piece)
{
    unsigned k = s->levels;

    while (k > 0 && s->extent[k] > piece)
        k--;
    return k;
}

/** How many passes of level `k` fit in a piece. */
static uint64_t fitting_passes(const onic_layout_t *l, const spans_t *s, unsigned k, uint64_t piece)
{
    uint64_t step = onic_magnitude(l->level[k].stride);

    if (k >= s->levels)
        return 1;
    return step == 0 ? l->level[k].count : (piece - s->extent[k]) / step + 1;
}

nicstride_cover_t nicstride_sieve_next(const onic_layout_t *l, uint64_t pos, uint64_t piece,
                                       uint64_t gap_max)
{
    nicstride_cover_t c;
    spans_t s;
    unsigned k;
    uint64_t unit, passes, rest, low = 0;
    int64_t first = l->offset;

    measure(l, gap_max, &s);
    k = fitting_level(&s, piece);
    /* A position inside a pass (after part of a block) finishes the block first. */
    while (k > 0 && pos % s.size[k] != 0)
        k--;
    unit = s.size[k];
    for (unsigned i = 0; i < l->nlevels; i++)
        first += (int64_t)(pos / s.size[i] % l->level[i].count) * l->level[i].stride;
    if (k == 0 && (pos % unit != 0 || s.extent[0] > piece)) {
        uint64_t in = pos % unit;

        c.lo = first + (int64_t)in;
        c.len = unit - in < piece ? unit - in : piece;
        c.bytes = c.len;
        return c;
    }
    if (k == l->nlevels) {
        passes = 1;
    } else {
        passes = fitting_passes(l, &s, k, piece);
        rest = l->level[k].count - pos / unit % l->level[k].count;
        if (passes > rest)
            passes = rest;
        if (l->level[k].stride < 0)
            low = onic_magnitude(l->level[k].stride) * (passes - 1);
    }
    for (unsigned i = 0; i < k; i++)
        if (l->level[i].stride < 0)
            low += onic_magnitude(l->level[i].stride) * (l->level[i].count - 1);
    c.lo = first - (int64_t)low;
    c.len = s.extent[k];
    if (k < l->nlevels)
        c.len += onic_magnitude(l->level[k].stride) * (passes - 1);
    c.bytes = unit * passes;
    return c;
}
