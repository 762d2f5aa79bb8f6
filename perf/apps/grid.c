/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdint.h>
#include <string.h>

#include "perf/apps/grid.h"

grid_t grid_make(const int n[GRID_DIMS])
{
    grid_t g;
    for (int d = 0; d < GRID_DIMS; d++) {
        g.n[d] = n[d];
        g.full[d] = n[d] + 2;
    }
    return g;
}

size_t grid_doubles(const grid_t *g)
{
    return (size_t)g->full[GRID_Z] * (size_t)g->full[GRID_Y] * (size_t)g->full[GRID_X];
}

size_t grid_index(const grid_t *g, int z, int y, int x)
{
    size_t line = (size_t)z * (size_t)g->full[GRID_Y] + (size_t)y;
    return line * (size_t)g->full[GRID_X] + (size_t)x;
}

grid_box_t grid_interior(const grid_t *g)
{
    grid_box_t box;
    for (int d = 0; d < GRID_DIMS; d++) {
        box.start[d] = 1;
        box.size[d] = g->n[d];
    }
    return box;
}

grid_box_t grid_face(const grid_t *g, int dim, int side, bool ghost)
{
    grid_box_t box = grid_interior(g);
    box.size[dim] = 1;
    box.start[dim] = side == 0 ? !ghost : g->n[dim] + ghost;
    return box;
}

void grid_parts(const grid_t *g, grid_box_t box[1 + 2 * GRID_DIMS])
{
    grid_box_t rest = grid_interior(g);
    for (int d = 0; d < GRID_DIMS; d++) {
        grid_box_t *low = &box[1 + 2 * d], *high = &box[2 + 2 * d];
        *low = *high = rest;
        low->size[d] = 1;
        high->size[d] = g->n[d] > 1;
        high->start[d] = g->n[d];
        rest.start[d] = 2;
        rest.size[d] = g->n[d] > 2 ? g->n[d] - 2 : 0;
    }
    box[0] = rest;
}

/** A pseudo-random number in [0, 1), by integer arithmetic, so that every rank gets the same bits.
 */
static double value_at(uint64_t z, uint64_t y, uint64_t x)
{
    uint64_t h = (z << 42) ^ (y << 21) ^ x;
    h = (h ^ (h >> 31)) * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ (h >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
    return (double)(h >> 11) * 0x1p-53;
}

void grid_init(const grid_t *g, double *u, const int origin[GRID_DIMS])
{
    for (int z = 0; z < g->n[GRID_Z]; z++) {
        for (int y = 0; y < g->n[GRID_Y]; y++) {
            double *row = u + grid_index(g, 1 + z, 1 + y, 1);
            for (int x = 0; x < g->n[GRID_X]; x++) {
                row[x] = value_at((uint64_t)(origin[GRID_Z] + z), (uint64_t)(origin[GRID_Y] + y),
                                  (uint64_t)(origin[GRID_X] + x));
            }
        }
    }
}

static void sweep_row(const grid_t *g, int n, const double *restrict from, double *restrict to)
{
    ptrdiff_t y = g->full[GRID_X], z = y * g->full[GRID_Y];
    for (ptrdiff_t i = 0; i < n; i++) {
        to[i] = (from[i] + from[i - 1] + from[i + 1] + from[i - y] + from[i + y] + from[i - z] +
                 from[i + z]) /
                    7 +
                1;
    }
}

void grid_sweep(const grid_t *g, const grid_box_t *box, const double *from, double *to)
{
    for (int z = 0; z < box->size[GRID_Z]; z++) {
        for (int y = 0; y < box->size[GRID_Y]; y++) {
            size_t row =
                grid_index(g, box->start[GRID_Z] + z, box->start[GRID_Y] + y, box->start[GRID_X]);
            sweep_row(g, box->size[GRID_X], from + row, to + row);
        }
    }
}

static void copy_box(const grid_t *g, double *u, const grid_box_t *to, const grid_box_t *from)
{
    for (int z = 0; z < to->size[GRID_Z]; z++) {
        for (int y = 0; y < to->size[GRID_Y]; y++) {
            memcpy(
                u + grid_index(g, to->start[GRID_Z] + z, to->start[GRID_Y] + y, to->start[GRID_X]),
                u + grid_index(g, from->start[GRID_Z] + z, from->start[GRID_Y] + y,
                               from->start[GRID_X]),
                (size_t)to->size[GRID_X] * sizeof(*u));
        }
    }
}

void grid_wrap(const grid_t *g, double *u)
{
    for (int d = 0; d < GRID_DIMS; d++) {
        for (int side = 0; side < 2; side++) {
            grid_box_t ghost = grid_face(g, d, side, true);
            grid_box_t inside = grid_face(g, d, !side, false);
            copy_box(g, u, &ghost, &inside);
        }
    }
}

size_t grid_differences(const grid_t *g, const double *u, const grid_t *whole_grid,
                        const double *whole, const int origin[GRID_DIMS])
{
    size_t different = 0;
    for (int z = 0; z < g->n[GRID_Z]; z++) {
        for (int y = 0; y < g->n[GRID_Y]; y++) {
            const double *a = u + grid_index(g, 1 + z, 1 + y, 1);
            const double *b = whole + grid_index(whole_grid, 1 + origin[GRID_Z] + z,
                                                 1 + origin[GRID_Y] + y, 1 + origin[GRID_X]);
            for (int x = 0; x < g->n[GRID_X]; x++)
                different += memcmp(&a[x], &b[x], sizeof(a[x])) != 0;
        }
    }
    return different;
}
