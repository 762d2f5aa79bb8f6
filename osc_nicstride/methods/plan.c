/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/methods/plan.h"

#include <math.h>

/** What messages wait for before anybody handles them. */
static double wait(const nicstride_case_t *c)
{
    if (c->presence == NICSTRIDE_PRESENT)
        return 0;
    return c->presence == NICSTRIDE_SERVED ? c->path->link.wake : c->path->link.absence;
}

/** The cost of a row that fits. */
static double cost_of(const nicstride_case_t *c, const nicstride_method_row_t *row)
{
    return row->cost(c) + (row->needs_target ? wait(c) : 0);
}

nicstride_method_t nicstride_plan(const nicstride_case_t *c)
{
    unsigned best = NICSTRIDE_METHOD_PACK;

    if (nicstride_fits(c, c->forced) && nicstride_reaches(c, c->forced))
        return c->forced;
    double least = cost_of(c, c->rows[best]);
    /* A dearer one is not asked whether it reaches the target, which may take a question. */
    for (unsigned m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHODS_MAX; m++) {
        if (m == NICSTRIDE_METHOD_PACK || !nicstride_fits(c, m) || c->rows[m]->cost == NULL)
            continue;
        const double cost = cost_of(c, c->rows[m]);

        if ((cost < least || (cost == least && m < best)) && nicstride_reaches(c, m)) {
            least = cost;
            best = m;
        }
    }
    return (nicstride_method_t)best;
}

void nicstride_paths_set(nicstride_path_t path[ONIC_KINDS], const onic_links_t *links)
{
    for (unsigned d = 0; d < ONIC_DISTANCES; d++)
        path[d] = (nicstride_path_t){.link = links->node, .costs = &links->costs[d]};
    path[ONIC_NET] = (nicstride_path_t){.link = links->net};
    path[ONIC_ADAPTER] = (nicstride_path_t){.link = links->adapter};
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

static void lines(FILE *to, const nicstride_case_t *like, nicstride_direction_t dir,
                  const nicstride_path_t *path, const line_t *line)
{
    for (size_t b = 0; b < N_BLOCKS; b++) {
        fprintf(to, "  %-14s %-3s ", line->name, dir == NICSTRIDE_PUT ? "put" : "get");
        if (blocks[b] > 0)
            fprintf(to, "%8llu", (unsigned long long)blocks[b]);
        else
            fprintf(to, "  contig");
        for (size_t s = 0; s < N_SIZES; s++) {
            onic_layout_t origin, target;
            const nicstride_case_t c = {.rows = like->rows,
                                        .forced = like->forced,
                                        .dir = dir,
                                        .origin = &origin,
                                        .target = &target,
                                        .reach = line->reach,
                                        .presence = line->presence,
                                        .many = line->many,
                                        .path = &path[line->kind]};

            onic_layout_contig(&origin, 0, sizes[s]);
            shape(&target, sizes[s], blocks[b]);
            fprintf(to, " %8s", like->rows[nicstride_plan(&c)]->name);
        }
        fprintf(to, "\n");
    }
}

void nicstride_plan_table(FILE *to, const nicstride_method_row_t *const *rows,
                          const nicstride_path_t path[ONIC_KINDS], nicstride_method_t forced)
{
    const nicstride_case_t like = {.rows = rows, .forced = forced};
    static const char *const names[ONIC_DISTANCES][3] = {
        {"near", "near, alone", "near, away"},
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
                lines(to, &like, d, path,
                      &(line_t){.name = names[k][n],
                                .kind = (onic_kind_t)k,
                                .reach = node,
                                .many = n == 0,
                                .presence = n < 2 ? NICSTRIDE_PRESENT : NICSTRIDE_SERVED});
        lines(to, &like, d, path, &(line_t){.name = "network", .kind = ONIC_NET, .reach = message});
        lines(to, &like, d, path,
              &(line_t){.name = "adapter", .kind = ONIC_ADAPTER, .reach = adapter});
    }
}
