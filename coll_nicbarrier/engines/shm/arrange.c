/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll_nicbarrier/engines/shm/arrange.h"

#include <stdbool.h>
#include <stdlib.h>

/** What two neighbours must share to be gathered, from near to far. */
typedef enum reach { CACHE, NUMA, PACKAGE, ALL, REACHES } reach_t;

/** The top of what has been gathered so far: a range of vertices, each of one locality. */
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
    /* Each reach makes fewer vertices than there were, and gathering by twos doubles them. */
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
    for (int i = 0; i < 4; i++) {
        if (keys[i][0] != keys[i][1]) {
            return keys[i][0] < keys[i][1] ? -1 : 1;
        }
    }
    return 0;
}

static void add_group(nicbarrier_tree_t *tree, nicbarrier_locality_t *locality, int first, int n)
{
    int v = tree->vertices++;
    tree->parent[v] = -1;
    tree->first[v] = first;
    tree->count[v] = n;
    locality[v] = locality[first];
    for (int i = first; i < first + n; i++) {
        tree->parent[i] = v;
    }
}

/** Vertices from `first` on, before `end`, that are near to the first. */
static int run_of(const nicbarrier_locality_t *locality, int first, int end, reach_t reach)
{
    int n = 1;
    while (first + n < end && near(&locality[first], &locality[first + n], reach)) {
        n++;
    }
    return n;
}

/** Would gathering by this reach leave as many as there are? */
static bool pointless(const nicbarrier_locality_t *locality, level_t top, reach_t reach)
{
    for (int i = top.first; i + 1 < top.first + top.n; i++) {
        if (near(&locality[i], &locality[i + 1], reach)) {
            return false;
        }
    }
    return true;
}

/** Puts a group over each run of near vertices, several of about the same size where a run is
 * longer than the fanout. */
static level_t gather(nicbarrier_tree_t *tree, nicbarrier_locality_t *locality, level_t top,
                      reach_t reach, int fanout)
{
    level_t above = {tree->vertices, 0};
    int end = top.first + top.n;
    for (int at = top.first; at < end;) {
        int run = run_of(locality, at, end, reach), groups = (run + fanout - 1) / fanout;
        for (int g = 0; g < groups; g++) {
            int n = run / groups + (g < run % groups);
            add_group(tree, locality, at, n);
            at += n;
        }
    }
    above.n = tree->vertices - above.first;
    return above;
}

static bool longer_than(const nicbarrier_locality_t *locality, level_t top, reach_t reach,
                        int fanout)
{
    int end = top.first + top.n;
    for (int at = top.first; at < end;) {
        int run = run_of(locality, at, end, reach);
        if (run > fanout) {
            return true;
        }
        at += run;
    }
    return false;
}

static void build(nicbarrier_tree_t *tree, nicbarrier_locality_t *locality, int fanout)
{
    level_t top = {0, tree->leaves};
    for (reach_t reach = top.n <= fanout ? ALL : CACHE; reach < REACHES; reach++) {
        bool again = true;
        while (again && top.n > 1 && !pointless(locality, top, reach)) {
            again = longer_than(locality, top, reach, fanout);
            top = gather(tree, locality, top, reach, fanout);
        }
    }
}

/** The order of the leaves; `locality` gets their localities. */
static int order_leaves(nicbarrier_tree_t *tree, nicbarrier_locality_t *locality,
                        const nicbarrier_locality_t *where, int n)
{
    item_t *items = malloc((size_t)n * sizeof(*items));
    if (items == NULL) {
        return -1;
    }
    for (int i = 0; i < n; i++) {
        items[i] = (item_t){where[i], i};
    }
    qsort(items, (size_t)n, sizeof(*items), compare);
    for (int i = 0; i < n; i++) {
        locality[i] = items[i].where;
        tree->leaf[items[i].process] = i;
        tree->parent[i] = -1;
        tree->first[i] = tree->count[i] = 0;
    }
    free(items);
    return 0;
}

size_t nicbarrier_tree_bytes(int leaves)
{
    return ((size_t)leaves + 3 * (size_t)nicbarrier_tree_max(leaves)) * sizeof(int32_t);
}

nicbarrier_tree_t nicbarrier_tree_at(void *base, int leaves)
{
    nicbarrier_tree_t tree = {.leaves = leaves, .leaf = base};
    const int max = nicbarrier_tree_max(leaves);
    tree.parent = tree.leaf + leaves;
    tree.first = tree.parent + max;
    tree.count = tree.first + max;
    return tree;
}

int nicbarrier_arrange(nicbarrier_tree_t *tree, const nicbarrier_locality_t *where, int fanout)
{
    const size_t max = (size_t)nicbarrier_tree_max(tree->leaves);
    nicbarrier_locality_t *locality = malloc(max * sizeof(*locality));
    int rc = -1;

    if (locality != NULL) {
        rc = order_leaves(tree, locality, where, tree->leaves);
    }
    if (rc == 0) {
        tree->vertices = tree->leaves;
        build(tree, locality, fanout);
    }
    free(locality);
    return rc;
}
