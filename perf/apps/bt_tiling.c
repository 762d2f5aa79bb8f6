/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "perf/apps/bt_tiling.h"

enum { Z, Y, X };

static int modulo(int a, int n)
{
    return (a % n + n) % n;
}

bt_tiling_t bt_tiling_make(int ranks)
{
    int root = 1;
    while ((root + 1) * (root + 1) <= ranks)
        root++;
    bool square = root * root == ranks;
    int cuts = square ? root : ranks;
    return (bt_tiling_t){ranks, {square ? root : 1, cuts, cuts}, cuts};
}

/* A square: rank (i, j) has the cells x = i + c, y = j - c, z = c. Otherwise: x = rank + c, y = c.
 */

void bt_tiling_place(const bt_tiling_t *t, int rank, int cell, int place[BT_DIMS])
{
    int q = t->cells;
    if (t->cuts[Z] == q) {
        place[Z] = cell;
        place[Y] = modulo(rank / q - cell, q);
        place[X] = modulo(rank % q + cell, q);
    } else {
        place[Z] = 0;
        place[Y] = cell;
        place[X] = modulo(rank + cell, q);
    }
}

int bt_tiling_owner(const bt_tiling_t *t, const int place[BT_DIMS], int *cell_p)
{
    int q = t->cells;
    for (int d = 0; d < BT_DIMS; d++)
        if (place[d] < 0 || place[d] >= t->cuts[d])
            return -1;
    if (t->cuts[Z] == q) {
        *cell_p = place[Z];
        return modulo(place[Y] + place[Z], q) * q + modulo(place[X] - place[Z], q);
    }
    *cell_p = place[Y];
    return modulo(place[X] - place[Y], q);
}

void bt_tiling_extent(const bt_tiling_t *t, int n, const int place[BT_DIMS], bt_cell_t *c)
{
    for (int d = 0; d < BT_DIMS; d++) {
        int end = (int)((long)n * (place[d] + 1) / t->cuts[d]);
        c->start[d] = (int)((long)n * place[d] / t->cuts[d]);
        c->size[d] = end - c->start[d];
        c->room[d] = n / t->cuts[d] + 1;
        c->first[d] = place[d] == 0;
        c->last[d] = place[d] == t->cuts[d] - 1;
    }
}
