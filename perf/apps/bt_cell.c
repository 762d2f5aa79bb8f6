/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "perf/apps/bt_cell.h"

const int bt_doubles[BT_ARRAYS] = {BT_UNKNOWNS, BT_UNKNOWNS, BT_BLOCK};
const int bt_layers[BT_ARRAYS] = {BT_LAYERS, BT_GHOSTS, BT_GHOSTS};

int bt_extent(const int room[BT_DIMS], bt_array_t a, int dim)
{
    return room[dim] + 2 * bt_layers[a];
}

size_t bt_elements(const int room[BT_DIMS], bt_array_t a)
{
    size_t n = (size_t)bt_doubles[a];
    for (int d = 0; d < BT_DIMS; d++)
        n *= (size_t)bt_extent(room, a, d);
    return n;
}

/** The distance from one point to the next along `dim`, in doubles. */
static ptrdiff_t stride(const bt_cell_t *c, bt_array_t a, int dim)
{
    ptrdiff_t s = bt_doubles[a];
    for (int d = BT_DIMS - 1; d > dim; d--)
        s *= bt_extent(c->room, a, d);
    return s;
}

/** The address of a point, counted from the first one that is no ghost. */
static double *at(const bt_cell_t *c, bt_array_t a, const int point[BT_DIMS])
{
    double *p = c->array[a];
    for (int d = 0; d < BT_DIMS; d++)
        p += (point[d] + bt_layers[a]) * stride(c, a, d);
    return p;
}

/** Moves to the next point; the first one is {0, 0, 0}. False after the last one. */
static bool next_point(const int size[BT_DIMS], int point[BT_DIMS])
{
    for (int d = BT_DIMS - 1; d >= 0; d--) {
        if (++point[d] < size[d])
            return true;
        point[d] = 0;
    }
    return false;
}

/* ---- Right-hand side ------------------------------------------------------------------------- */

/** Changes with each step, so that old data is never right. */
static double force(const bt_cell_t *c, const int point[BT_DIMS], int unknown, int step)
{
    int z = c->start[0] + point[0], y = c->start[1] + point[1], x = c->start[2] + point[2];
    return 0.01 * ((z * 7 + y * 5 + x * 3 + unknown * 11) % 13 - 6) * (1 + step % 3);
}

void bt_right_side(const bt_cell_t *c, int step)
{
    int point[BT_DIMS] = {0};
    do {
        const double *u = at(c, BT_U, point);
        double *r = at(c, BT_RHS, point);
        for (int m = 0; m < BT_UNKNOWNS; m++)
            r[m] = force(c, point, m, step) - 0.05 * u[m];
        for (int d = 0; d < BT_DIMS; d++) {
            ptrdiff_t s = stride(c, BT_U, d);
            for (int m = 0; m < BT_UNKNOWNS; m++) {
                r[m] -=
                    0.005 * (u[m - 2 * s] - 4 * u[m - s] + 6 * u[m] - 4 * u[m + s] + u[m + 2 * s]);
            }
        }
    } while (next_point(c->size, point));
}

/* ---- Solving --------------------------------------------------------------------------------- */

/** Turns b, c and r into the identity, inv(b) c and inv(b) r. */
static void divide(double b[BT_UNKNOWNS][BT_UNKNOWNS], double c[BT_BLOCK], double r[BT_UNKNOWNS])
{
    for (int p = 0; p < BT_UNKNOWNS; p++) {
        double pivot = 1 / b[p][p];
        for (int j = 0; j < BT_UNKNOWNS; j++) {
            b[p][j] *= pivot;
            c[p * BT_UNKNOWNS + j] *= pivot;
        }
        r[p] *= pivot;
        for (int i = 0; i < BT_UNKNOWNS; i++) {
            double factor = i == p ? 0 : b[i][p];
            for (int j = 0; j < BT_UNKNOWNS; j++) {
                b[i][j] -= factor * b[p][j];
                c[i * BT_UNKNOWNS + j] -= factor * c[p * BT_UNKNOWNS + j];
            }
            r[i] -= factor * r[p];
        }
    }
}

/** Eliminates one point of a line; `c_before` and `r_before` belong to the point before it, or are
 *  NULL at the first. */
static void eliminate(const double *u, const double *c_before, const double *r_before, double *c,
                      double *r)
{
    double b[BT_UNKNOWNS][BT_UNKNOWNS], scale = 1 + 0.05 * u[0];
    for (int i = 0; i < BT_UNKNOWNS; i++) {
        for (int j = 0; j < BT_UNKNOWNS; j++) {
            b[i][j] = i == j ? 1.8 : 0.02;
            c[i * BT_UNKNOWNS + j] = i == j ? -0.3 : 0.01 * scale;
        }
    }
    for (int i = 0; c_before != NULL && i < BT_UNKNOWNS; i++) {
        for (int k = 0; k < BT_UNKNOWNS; k++) {
            double a = i == k ? -0.3 * scale : 0.01;
            for (int j = 0; j < BT_UNKNOWNS; j++)
                b[i][j] -= a * c_before[k * BT_UNKNOWNS + j];
            r[i] -= a * r_before[k];
        }
    }
    divide(b, c, r);
}

void bt_forward(const bt_cell_t *c, int dim)
{
    ptrdiff_t block = stride(c, BT_LHS, dim), side = stride(c, BT_RHS, dim);
    int point[BT_DIMS] = {0};
    do {
        double *lhs = at(c, BT_LHS, point), *rhs = at(c, BT_RHS, point);
        bool starts = point[dim] == 0 && c->first[dim];
        eliminate(at(c, BT_U, point), starts ? NULL : lhs - block, starts ? NULL : rhs - side, lhs,
                  rhs);
    } while (next_point(c->size, point));
}

void bt_backward(const bt_cell_t *c, int dim)
{
    ptrdiff_t side = stride(c, BT_RHS, dim);
    int point[BT_DIMS] = {0};
    do {
        int here[BT_DIMS];
        for (int d = 0; d < BT_DIMS; d++)
            here[d] = c->size[d] - 1 - point[d];
        if (point[dim] == 0 && c->last[dim])
            continue;
        const double *lhs = at(c, BT_LHS, here);
        double *rhs = at(c, BT_RHS, here);
        for (int i = 0; i < BT_UNKNOWNS; i++)
            for (int j = 0; j < BT_UNKNOWNS; j++)
                rhs[i] -= lhs[i * BT_UNKNOWNS + j] * rhs[side + j];
    } while (next_point(c->size, point));
}

void bt_add(const bt_cell_t *c, double factor)
{
    int point[BT_DIMS] = {0};
    do {
        double *u = at(c, BT_U, point);
        const double *r = at(c, BT_RHS, point);
        for (int m = 0; m < BT_UNKNOWNS; m++)
            u[m] += factor * r[m];
    } while (next_point(c->size, point));
}

long bt_differences(const bt_cell_t *c, const bt_cell_t *whole)
{
    int point[BT_DIMS] = {0};
    long different = 0;
    do {
        int there[BT_DIMS];
        for (int d = 0; d < BT_DIMS; d++)
            there[d] = c->start[d] + point[d];
        const double *u = at(c, BT_U, point), *v = at(whole, BT_U, there);
        for (int m = 0; m < BT_UNKNOWNS; m++)
            different += memcmp(&u[m], &v[m], sizeof(u[m])) != 0;
    } while (next_point(c->size, point));
    return different;
}
