/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdint.h>
#include <string.h>

#include "perf/halo_grid.h"

grid_t grid_make(int dims, const int n[GRID_DIMS], int fields)
{
    grid_t g = {.fields = fields};
    for (int d = 0; d < GRID_DIMS; d++) {
        bool used = d >= GRID_DIMS - dims;
        g.n[d] = used ? n[d] : 1;
        g.full[d] = used ? n[d] + 2 : 1;
    }
    return g;
}

bool grid_uses(const grid_t *g, int dim)
{
    return g->full[dim] > 1;
}

size_t grid_doubles(const grid_t *g)
{
    return (size_t)g->full[GRID_Z] * (size_t)g->full[GRID_Y] * (size_t)g->full[GRID_X] *
           (size_t)g->fields;
}

size_t grid_index(const grid_t *g, int z, int y, int x)
{
    size_t line = (size_t)z * (size_t)g->full[GRID_Y] + (size_t)y;
    return (line * (size_t)g->full[GRID_X] + (size_t)x) * (size_t)g->fields;
}

grid_box_t grid_interior(const grid_t *g)
{
    grid_box_t box;
    for (int d = 0; d < GRID_DIMS; d++) {
        box.start[d] = grid_uses(g, d);
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

/** A number in [0, 1) that looks random; integer arithmetic, so every rank gets the same bits. */
static double value_at(uint64_t z, uint64_t y, uint64_t x, uint64_t field)
{
    uint64_t h = (z << 42) ^ (y << 21) ^ x ^ (field << 58);
    h = (h ^ (h >> 31)) * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ (h >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
    return (double)(h >> 11) * 0x1p-53;
}

void grid_init(const grid_t *g, double *u, const int origin[GRID_DIMS])
{
    grid_box_t in = grid_interior(g);
    for (int z = 0; z < g->n[GRID_Z]; z++) {
        for (int y = 0; y < g->n[GRID_Y]; y++) {
            double *row =
                u + grid_index(g, in.start[GRID_Z] + z, in.start[GRID_Y] + y, in.start[GRID_X]);
            for (int i = 0; i < g->n[GRID_X] * g->fields; i++) {
                row[i] =
                    value_at((uint64_t)(origin[GRID_Z] + z), (uint64_t)(origin[GRID_Y] + y),
                             (uint64_t)(origin[GRID_X] + i / g->fields), (uint64_t)(i % g->fields));
            }
        }
    }
}

static void sweep_row(const grid_t *g, const double *restrict from, double *restrict to)
{
    ptrdiff_t x = g->fields, y = x * g->full[GRID_X], z = y * g->full[GRID_Y];
    ptrdiff_t n = (ptrdiff_t)g->n[GRID_X] * g->fields;
    if (grid_uses(g, GRID_Z)) {
        for (ptrdiff_t i = 0; i < n; i++) {
            to[i] = (from[i - x] + from[i + x] + from[i - y] + from[i + y] + from[i - z] +
                     from[i + z]) /
                    6;
        }
    } else {
        for (ptrdiff_t i = 0; i < n; i++) {
            to[i] = (from[i - x] + from[i + x] + from[i - y] + from[i + y]) / 4;
        }
    }
}

void grid_sweep(const grid_t *g, const double *from, double *to)
{
    grid_box_t in = grid_interior(g);
    for (int z = 0; z < g->n[GRID_Z]; z++) {
        for (int y = 0; y < g->n[GRID_Y]; y++) {
            size_t row =
                grid_index(g, in.start[GRID_Z] + z, in.start[GRID_Y] + y, in.start[GRID_X]);
            sweep_row(g, from + row, to + row);
        }
    }
}

static void copy_box(const grid_t *g, double *u, const grid_box_t *to, const grid_box_t *from)
{
    size_t bytes = (size_t)to->size[GRID_X] * (size_t)g->fields * sizeof(*u);
    for (int z = 0; z < to->size[GRID_Z]; z++) {
        for (int y = 0; y < to->size[GRID_Y]; y++) {
            memcpy(
                u + grid_index(g, to->start[GRID_Z] + z, to->start[GRID_Y] + y, to->start[GRID_X]),
                u + grid_index(g, from->start[GRID_Z] + z, from->start[GRID_Y] + y,
                               from->start[GRID_X]),
                bytes);
        }
    }
}

void grid_wrap(const grid_t *g, double *u)
{
    for (int d = 0; d < GRID_DIMS; d++) {
        for (int side = 0; side < 2 && grid_uses(g, d); side++) {
            grid_box_t ghost = grid_face(g, d, side, true);
            grid_box_t inside = grid_face(g, d, !side, false);
            copy_box(g, u, &ghost, &inside);
        }
    }
}

size_t grid_differences(const grid_t *g, const double *u, const grid_t *whole_grid,
                        const double *whole, const int origin[GRID_DIMS])
{
    grid_box_t in = grid_interior(g), all = grid_interior(whole_grid);
    size_t different = 0;
    for (int z = 0; z < g->n[GRID_Z]; z++) {
        for (int y = 0; y < g->n[GRID_Y]; y++) {
            const double *a =
                u + grid_index(g, in.start[GRID_Z] + z, in.start[GRID_Y] + y, in.start[GRID_X]);
            const double *b = whole + grid_index(whole_grid, all.start[GRID_Z] + origin[GRID_Z] + z,
                                                 all.start[GRID_Y] + origin[GRID_Y] + y,
                                                 all.start[GRID_X] + origin[GRID_X]);
            for (int i = 0; i < g->n[GRID_X] * g->fields; i++) {
                different += memcmp(&a[i], &b[i], sizeof(a[i])) != 0;
            }
        }
    }
    return different;
}
