/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Trees of the processes of a node: fixed machines, and properties on random ones. */
#include "coll_nicbarrier/engines/shm/arrange.h"

#include <stdlib.h>
#include <string.h>

#include "test/unit/unit.h"

enum { MANY = 300 };

static void check_shape(const nicbarrier_tree_t *t, int n, int fanout)
{
    static bool taken[8 * MANY];
    memset(taken, 0, sizeof(taken));
    ck_assert_int_eq(t->leaves, n);
    ck_assert_int_le(t->vertices, nicbarrier_tree_max(n));
    for (int i = 0; i < n; i++) {
        ck_assert_int_ge(t->leaf[i], 0);
        ck_assert_int_lt(t->leaf[i], n);
        ck_assert_msg(!taken[t->leaf[i]], "leaf %d is taken twice", t->leaf[i]);
        taken[t->leaf[i]] = true;
    }
    for (int v = 0; v < t->vertices; v++) {
        ck_assert_int_eq(v < n, t->vertex[v].count == 0);
        ck_assert_int_le(t->vertex[v].count, fanout);
        ck_assert_int_eq(v == t->vertices - 1, t->vertex[v].parent == -1);
        /* Those of leaves come first, in the order of the leaves. */
        ck_assert(v == 0 || v >= n || t->vertex[v].parent < 0 ||
                  (t->vertex[v].parent >= n && t->vertex[v].parent - t->vertex[v - 1].parent <= 1 &&
                   t->vertex[v].parent >= t->vertex[v - 1].parent));
        for (int c = t->vertex[v].first; c < t->vertex[v].first + t->vertex[v].count; c++) {
            ck_assert_int_lt(c, v);
            ck_assert_int_eq(t->vertex[c].parent, v);
        }
    }
}

static int depth(const nicbarrier_tree_t *t)
{
    int d = 0;
    for (int v = 0; t->vertex[v].parent >= 0; v = t->vertex[v].parent)
        d++;
    return d;
}

static nicbarrier_tree_t made(const nicbarrier_locality_t *where, int n, int fanout)
{
    void *memory = malloc(nicbarrier_tree_bytes(n));
    UNIT_CHECK(memory != NULL);
    nicbarrier_tree_t t = nicbarrier_tree_at(memory, n);
    ck_assert_int_eq(nicbarrier_arrange(&t, where, fanout), 0);
    check_shape(&t, n, fanout);
    return t;
}

static void unmake(nicbarrier_tree_t *t)
{
    free(t->vertex);
}

START_TEST(few_are_one_group)
{
    nicbarrier_locality_t where[4] = {{0, 0, 0}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}};
    nicbarrier_tree_t t = made(where, 4, 4);
    ck_assert_int_eq(t.vertices, 5);
    ck_assert_int_eq(t.leaf[0] + t.leaf[2], 1);
    unmake(&t);
    t = made(where, 1, 2);
    ck_assert_int_eq(t.vertices, 1);
    unmake(&t);
}
END_TEST

START_TEST(two_packages)
{
    nicbarrier_locality_t where[16];
    for (int i = 0; i < 16; i++)
        where[i] = (nicbarrier_locality_t){i % 2, i % 2, i % 4};
    nicbarrier_tree_t t = made(where, 16, 8);
    /* 4 caches of 4, then 2 packages of 2 caches, then the root. */
    ck_assert_int_eq(t.vertices, 16 + 4 + 2 + 1);
    for (int i = 0; i < 16; i++) {
        for (int j = 0; j < 16; j++) {
            ck_assert_int_eq(t.vertex[t.leaf[i]].parent == t.vertex[t.leaf[j]].parent,
                             i % 4 == j % 4);
        }
    }
    unmake(&t);
}
END_TEST

START_TEST(unknown_places)
{
    nicbarrier_locality_t where[MANY];
    for (int i = 0; i < MANY; i++)
        where[i] = (nicbarrier_locality_t){-1, -1, -1};
    nicbarrier_tree_t t = made(where, 64, 8);
    ck_assert_int_eq(t.vertices, 64 + 8 + 1);
    unmake(&t);
    t = made(where, 256, 2);
    ck_assert_int_eq(depth(&t), 8);
    unmake(&t);
}
END_TEST

START_TEST(random_machines)
{
    unit_random_t random = {unit_seed() + (uint64_t)_i};
    nicbarrier_locality_t where[MANY];
    int n = 1 + (int)unit_below(&random, MANY), fanout = 2 + (int)unit_below(&random, 19);
    uint64_t spread = 1 + unit_below(&random, 10);
    for (int i = 0; i < n; i++) {
        where[i].package = (int32_t)unit_below(&random, spread) - 1;
        where[i].numa = (int32_t)unit_below(&random, spread) - 1;
        where[i].cache = (int32_t)unit_below(&random, spread) - 1;
    }
    nicbarrier_tree_t t = made(where, n, fanout), again = made(where, n, fanout);
    ck_assert_int_eq(t.vertices, again.vertices);
    ck_assert_mem_eq(t.vertex, again.vertex, (size_t)t.vertices * sizeof(*t.vertex));
    ck_assert_mem_eq(t.leaf, again.leaf, (size_t)n * sizeof(int));
    unmake(&t);
    unmake(&again);
}
END_TEST

int main(void)
{
    return UNIT_RUN("arrange", UNIT_LOOP(random_machines, 0, 500), UNIT_ONCE(few_are_one_group),
                    UNIT_ONCE(two_packages), UNIT_ONCE(unknown_places));
}
