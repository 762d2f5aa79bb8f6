/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll_nicbarrier/engines/shm/arrange.h"

#include <stdbool.h>
#include <stdlib.h>

/** What two neighbours must share to be put into one group, from near to far. */
typedef enum reach { CACHE, NUMA, PACKAGE, ALL, REACHES } reach_t;

/** The topmost level so far: a range of vertices, each with a locality. */
typedef struct level {
    int first;
    int n;
} level_t;

typedef struct item {
    nicbarrier_locality_t where;
    int process;
} item_t;

int nicbarrier_tree_max(int leaves)
{
    /* Each reach makes fewer vertices than there were, and grouping by twos doubles the number. */
    return 8 * leaves;
}

static bool near(const nicbarrier_locality_t *a, const nicbarrier_locality_t *b, reach_t reach)
{
    return (reach >= ALL || a->package == b->package) && (reach >= PACKAGE || a->numa == b->numa) &&
           (reach >= NUMA || a->cache == b->cache);
}

static int compare(const void *left, const void *right)
{
    const item_t *a = left, *b = right;
    int32_t keys[4][2] = {{a->where.package, b->where.package},
                          {a->where.numa, b->where.numa},
                          {a->where.cache, b->where.cache},
                          {a->process, b->process}};
    for (int i = 0; i < 4; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

static void add_group(nicbarrier_tree_t *tree, int first, int n)
{
    const int v = tree->vertices++;
    tree->vertex[v] = (nicbarrier_vertex_t){-1, first, n, tree->vertex[first].leaf};
    for (int i = first; i < first + n; i++)
        tree->vertex[i].parent = v;
}

/**
 * Puts a group over each run of near vertices. A run longer than the fanout gets several groups of
 * about the same size, and sets *longer_p. Nothing is done if the number of vertices would not
 * shrink.
 */
static level_t gather(nicbarrier_tree_t *tree, const item_t *items, level_t top, reach_t reach,
                      int fanout, bool *longer_p)
{
    const level_t above = {tree->vertices, 0};
    const int end = top.first + top.n;
    *longer_p = false;
    for (int at = top.first, run; at < end; at += run) {
        const nicbarrier_locality_t *first = &items[tree->vertex[at].leaf].where;
        for (run = 1;
             at + run < end && near(first, &items[tree->vertex[at + run].leaf].where, reach);)
            run++;
        const int groups = (run + fanout - 1) / fanout;
        *longer_p |= groups > 1;
        for (int g = 0, from = at; g < groups; g++) {
            const int n = run / groups + (g < run % groups);
            add_group(tree, from, n);
            from += n;
        }
    }
    if (tree->vertices - above.first == top.n) {
        tree->vertices = above.first;
        return top;
    }
    return (level_t){above.first, tree->vertices - above.first};
}

static void build(nicbarrier_tree_t *tree, const item_t *items, int fanout)
{
    level_t top = {0, tree->leaves};
    for (reach_t reach = top.n <= fanout ? ALL : CACHE; reach < REACHES; reach++) {
        bool again = true;
        while (again && top.n > 1)
            top = gather(tree, items, top, reach, fanout, &again);
    }
}

size_t nicbarrier_tree_bytes(int leaves)
{
    return (size_t)leaves * sizeof(int32_t) +
           (size_t)nicbarrier_tree_max(leaves) * sizeof(nicbarrier_vertex_t);
}

nicbarrier_tree_t nicbarrier_tree_at(void *base, int leaves)
{
    nicbarrier_vertex_t *vertex = base;
    return (nicbarrier_tree_t){.leaves = leaves,
                               .vertex = vertex,
                               .leaf = (int32_t *)(vertex + nicbarrier_tree_max(leaves))};
}

int nicbarrier_arrange(nicbarrier_tree_t *tree, const nicbarrier_locality_t *where, int fanout)
{
    const int n = tree->leaves;
    item_t *items = malloc((size_t)n * sizeof(*items));
    if (items == NULL)
        return -1;
    for (int i = 0; i < n; i++)
        items[i] = (item_t){where[i], i};
    qsort(items, (size_t)n, sizeof(*items), compare);
    for (int i = 0; i < n; i++) {
        tree->leaf[items[i].process] = i;
        tree->vertex[i] = (nicbarrier_vertex_t){-1, 0, 0, i};
    }
    tree->vertices = n;
    build(tree, items, fanout);
    free(items);
    return 0;
}
