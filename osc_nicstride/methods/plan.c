/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/methods/plan.h"

#include <math.h>
#include <string.h>

#include "common/model/pipeline.h"
#include "common/mover/pipe/chunks.h"

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

static void lines(FILE *to, const nicstride_method_row_t *const *rows, nicstride_method_t forced,
                  nicstride_direction_t dir, const peer_t *peer)
{
    for (size_t b = 0; b < N_BLOCKS; b++) {
        fprintf(to, "  %-13s %-3s ", peer->name, dir == NICSTRIDE_PUT ? "put" : "get");
        if (blocks[b] > 0)
            fprintf(to, "%8llu", (unsigned long long)blocks[b]);
        else
            fprintf(to, "  contig");
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
            fprintf(to, " %8s", rows[nicstride_plan(&c)]->name);
        }
        fprintf(to, "\n");
    }
}

void nicstride_plan_table(FILE *to, const nicstride_method_row_t *const *rows,
                          nicstride_method_t forced, const nicstride_paths_t *paths)
{
    const uint32_t message = NICSTRIDE_REACH(NICSTRIDE_METHOD_PACK);
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

    fprintf(to, "  %-13s %-3s %8s", "peer", "", "block");
    for (size_t s = 0; s < N_SIZES; s++)
        fprintf(to, " %8llu", (unsigned long long)sizes[s]);
    fprintf(to, "\n");
    for (int dir = NICSTRIDE_PUT; dir <= NICSTRIDE_GET; dir++)
        for (size_t p = 0; p < sizeof(peers) / sizeof(peers[0]); p++)
            lines(to, rows, forced, (nicstride_direction_t)dir, &peers[p]);
}

/* ---- reasons --------------------------------------------------------------------------------- */

void nicstride_plan_reason(FILE *to, const nicstride_case_t *c)
{
    double model[NICSTRIDE_METHODS_MAX], known[NICSTRIDE_METHODS_MAX];
    const char *between = "";

    estimate(c, model);
    memcpy(known, model, sizeof(known));
    if (c->learned.cell != NULL)
        onic_learn_known(c->learned.cell, known, c->target->size);
    for (unsigned m = 0; m < NICSTRIDE_METHODS_MAX; m++) {
        if (isinf(model[m]))
            continue;
        fprintf(to, "%s%s %.2f", between, c->rows[m]->name, model[m] / 1000);
        if (known[m] != model[m])
            fprintf(to, " (learned %.2f)", known[m] / 1000);
        between = ", ";
    }
    if (wait(c) > 0)
        fprintf(to, ", messages wait %.0f", wait(c) / 1000);
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

/* ---- cma: single copy of each piece ---------------------------------------------------------- */

double nicstride_cma_cost(const nicstride_case_t *c)
{
    const uint64_t a = onic_layout_blocks(c->origin), b = onic_layout_blocks(c->target);

    return onic_link_strided(&c->path->link, (double)(a > b ? a : b), (double)c->target->size);
}

/* ---- sieve: single copy of the covering extent, then gather ---------------------------------- */

bool nicstride_sieve_fits(const nicstride_case_t *c)
{
    return c->dir == NICSTRIDE_GET && c->target->nruns == 0 && c->target->size > 0;
}

double nicstride_sieve_cost(const nicstride_case_t *c)
{
    const onic_link_t *link = &c->path->link;
    double reads, bytes;

    nicstride_sieve_total(c->target, c->path->sieve_piece, NICSTRIDE_SIEVE_GAP, &reads, &bytes);
    return reads * link->call + (bytes + (double)c->target->size) * link->copy + gather_here(c) +
           gather_there(c);
}

/* ---- pack: messages -------------------------------------------------------------------------- */

/** Equation (2) for the first message. While others follow, the sender packs, the network moves and
 *  the receiver unpacks at the same time: the slowest counts. */
double nicstride_pack_cost(const nicstride_case_t *c)
{
    const onic_link_t *link = &c->path->link;
    const double here = gather_here(c), there = gather_there(c), size = (double)c->target->size;
    const double first = fmin(1, link->fragment / size);
    const double copying = size / link->bcopy + size / link->fragment * link->gap;

    return onic_link_packed(link, first * size) + first * (here + there) +
           (1 - first) * fmax(size / link->bnet, copying + fmax(here, there));
}

/* ---- mover: the superpipeline ---------------------------------------------------------------- */

/** Below a block there is nothing that could overlap. */
bool nicstride_mover_fits(const nicstride_case_t *c)
{
    return c->target->size > ONIC_MOVER_BLOCK;
}

/** Both sides gather and scatter while chunks are moved: the slower one copies so much slower. Of a
 *  get the slots are the origin's own. The way of the data counts once. */
double nicstride_mover_cost(const nicstride_case_t *c)
{
    onic_link_t link = c->path->link;
    const double size = (double)c->target->size, slot = (double)c->path->mover_slot;
    const onic_chunks_t chunks =
        onic_superpipeline_chunks(&link, fmin(slot, ONIC_MOVER_BLOCK), slot);

    link.bcopy = size / (size / link.bcopy + fmax(gather_here(c), gather_there(c)));
    /* What a put packs while it waits for its grant a get packs behind that. */
    const double unpacked = fmin(chunks.first / link.bcopy, 2 * link.latency);

    return link.message - link.latency +
           (c->dir == NICSTRIDE_GET ? fmin(unpacked, link.grant) : link.grant) +
           onic_superpipeline_time_blocks(&link, &chunks, size, (double)c->path->mover_block);
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

void nicstride_sieve_total(const onic_layout_t *l, uint64_t piece, uint64_t gap_max,
                           double *pieces_p, double *bytes_p)
{
    nicstride_cover_t c;

    if (l->size == 0) {
        *pieces_p = *bytes_p = 0;
        return;
    }
    c = nicstride_sieve_next(l, 0, piece, gap_max);
    *pieces_p = (double)l->size / (double)c.bytes;
    *bytes_p = *pieces_p * (double)c.len;
}
