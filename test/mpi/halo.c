/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * A stencil on a periodic grid whose parts exchange halos, eight neighbours each, in every way MPI
 * has to synchronise, by vectors and by subarrays; compared bit for bit with the same stencil on
 * the whole grid.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>

/** Points of a part across and down, and the width of its halo. */
enum { NX = 13, NY = 9, HALO = 2, WIDTH = NX + 2 * HALO, HEIGHT = NY + 2 * HALO };
enum { STEPS = 5, SIDES = 8 };

/** The eight directions; side 7 - i is opposite to side i. */
static const int side_x[SIDES] = {-1, 0, 1, -1, 1, -1, 0, 1};
static const int side_y[SIDES] = {-1, -1, -1, 0, 0, 1, 1, 1};

/** A rectangle of a part as a datatype, and where its first point is (0 for a subarray). */
typedef struct patch {
    MPI_Datatype type;
    MPI_Aint offset; /**< bytes */
} patch_t;

typedef struct part {
    tl_window_t w;
    double *u; /**< the window's memory: HEIGHT rows of WIDTH points */
    int parts_x, parts_y;
    int x, y;                /**< which part I am */
    int neighbour[SIDES];    /**< ranks, maybe equal, maybe mine */
    patch_t edge[SIDES];     /**< my points that the neighbour needs */
    patch_t halo[SIDES];     /**< copies of the neighbour's points */
    MPI_Group neighbourhood; /**< every neighbour once */
} part_t;

/* ---- the stencil ---- */

/** Reads two points far in each direction; the one function makes both results the same bits. */
static __attribute__((noinline)) double stencil(const double *row[5], const int column[5])
{
    double sum = 0.0;

    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++)
            sum += row[i][column[j]] * (double)(1 + (i * 5 + j) % 7);
    return sum / 97.0;
}

static double initial(int x, int y)
{
    return (double)((x * 31 + y * 17) % 101) / 3.0;
}

static void step_part(const part_t *p)
{
    double next[NY][NX];

    for (int y = 0; y < NY; y++) {
        for (int x = 0; x < NX; x++) {
            const double *row[5];
            int column[5];

            for (int i = 0; i < 5; i++) {
                row[i] = p->u + (y + i) * WIDTH;
                column[i] = x + i;
            }
            next[y][x] = stencil(row, column);
        }
    }
    for (int y = 0; y < NY; y++)
        memcpy(p->u + (y + HALO) * WIDTH + HALO, next[y], sizeof(next[y]));
}

static void step_whole(double *u, double *next, int nx, int ny)
{
    for (int y = 0; y < ny; y++) {
        for (int x = 0; x < nx; x++) {
            const double *row[5];
            int column[5];

            for (int i = 0; i < 5; i++) {
                row[i] = u + (y + i - HALO + ny) % ny * nx;
                column[i] = (x + i - HALO + nx) % nx;
            }
            next[y * nx + x] = stencil(row, column);
        }
    }
    memcpy(u, next, (size_t)nx * (size_t)ny * sizeof(double));
}

/** The whole grid after all steps. Free with free(). */
static double *reference(const part_t *p)
{
    int nx = NX * p->parts_x, ny = NY * p->parts_y;
    double *u = tl_alloc((size_t)nx * (size_t)ny * sizeof(double));
    double *next = tl_alloc((size_t)nx * (size_t)ny * sizeof(double));

    for (int i = 0; i < nx * ny; i++)
        u[i] = initial(i % nx, i / nx);
    for (int s = 0; s < STEPS; s++)
        step_whole(u, next, nx, ny);
    free(next);
    return u;
}

/* ---- parts ---- */

static patch_t make_patch(int x, int y, int nx, int ny, bool subarray)
{
    int sizes[2] = {HEIGHT, WIDTH}, lengths[2] = {ny, nx}, starts[2] = {y, x};
    patch_t patch = {.offset = 0};

    if (subarray) {
        MPI_Type_create_subarray(2, sizes, lengths, starts, MPI_ORDER_C, MPI_DOUBLE, &patch.type);
    } else {
        MPI_Type_vector(ny, nx, WIDTH, MPI_DOUBLE, &patch.type);
        patch.offset = (MPI_Aint)(y * WIDTH + x) * (MPI_Aint)sizeof(double);
    }
    MPI_Type_commit(&patch.type);
    return patch;
}

/** Start of the inner points, or of the copies, on the side d (-1, 0, 1) of n points. */
static int edge_start(int d, int n)
{
    return d > 0 ? n : HALO;
}

static int halo_start(int d, int n)
{
    return d < 0 ? 0 : d > 0 ? HALO + n : HALO;
}

static void make_patches(part_t *p, bool subarray)
{
    for (int s = 0; s < SIDES; s++) {
        int dx = side_x[s], dy = side_y[s];
        int nx = dx ? HALO : NX, ny = dy ? HALO : NY;

        p->edge[s] = make_patch(edge_start(dx, NX), edge_start(dy, NY), nx, ny, subarray);
        p->halo[s] = make_patch(halo_start(dx, NX), halo_start(dy, NY), nx, ny, subarray);
    }
}

static void free_patches(part_t *p)
{
    for (int s = 0; s < SIDES; s++) {
        MPI_Type_free(&p->edge[s].type);
        MPI_Type_free(&p->halo[s].type);
    }
}

static void find_neighbours(part_t *p)
{
    int *ranks = tl_alloc((size_t)p->w.size * sizeof(int)), n = 0;
    MPI_Group all;

    p->parts_x = p->w.size % 2 == 0 ? p->w.size / 2 : p->w.size;
    p->parts_y = p->w.size / p->parts_x;
    p->x = p->w.rank % p->parts_x;
    p->y = p->w.rank / p->parts_x;
    for (int s = 0; s < SIDES; s++) {
        int x = (p->x + side_x[s] + p->parts_x) % p->parts_x;
        int y = (p->y + side_y[s] + p->parts_y) % p->parts_y, known = 0;

        p->neighbour[s] = y * p->parts_x + x;
        while (known < n && ranks[known] != p->neighbour[s])
            known++;
        if (known == n)
            ranks[n++] = p->neighbour[s];
    }
    MPI_Comm_group(p->w.comm, &all);
    MPI_Group_incl(all, n, ranks, &p->neighbourhood);
    MPI_Group_free(&all);
    free(ranks);
}

/** Inner points at their initial values, halos at a value that no exchange leaves there. */
static void set_up(part_t *p)
{
    TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, p->w.rank, 0, p->w.win));
    for (int y = 0; y < HEIGHT; y++) {
        for (int x = 0; x < WIDTH; x++) {
            bool inner = x >= HALO && x < HALO + NX && y >= HALO && y < HALO + NY;

            p->u[y * WIDTH + x] =
                inner ? initial(p->x * NX + x - HALO, p->y * NY + y - HALO) : -1e300;
        }
    }
    TL_MPI(MPI_Win_unlock(p->w.rank, p->w.win));
    MPI_Barrier(p->w.comm);
}

/* ---- transfers ---- */

static void *point(const part_t *p, const patch_t *patch)
{
    return (unsigned char *)p->u + patch->offset;
}

/** My points to the neighbour's copies of them. */
static void put_side(const part_t *p, int s)
{
    const patch_t *from = &p->edge[s], *to = &p->halo[SIDES - 1 - s];
    int t = p->neighbour[s];

    TL_MPI(MPI_Put(point(p, from), 1, from->type, t, tl_disp(&p->w, t, to->offset), 1, to->type,
                   p->w.win));
}

static void replace_side(const part_t *p, int s)
{
    const patch_t *from = &p->edge[s], *to = &p->halo[SIDES - 1 - s];
    int t = p->neighbour[s];

    TL_MPI(MPI_Accumulate(point(p, from), 1, from->type, t, tl_disp(&p->w, t, to->offset), 1,
                          to->type, MPI_REPLACE, p->w.win));
}

/** The neighbour's points to my copies of them. */
static void get_side(const part_t *p, int s)
{
    const patch_t *to = &p->halo[s], *from = &p->edge[SIDES - 1 - s];
    int t = p->neighbour[s];

    TL_MPI(MPI_Get(point(p, to), 1, to->type, t, tl_disp(&p->w, t, from->offset), 1, from->type,
                   p->w.win));
}

static void for_all_sides(const part_t *p, void (*transfer)(const part_t *, int))
{
    for (int s = 0; s < SIDES; s++)
        transfer(p, s);
}

/* ---- ways to synchronise; each leaves all copies right, and everybody done with them before -- */

static void fence_put(const part_t *p)
{
    TL_MPI(MPI_Win_fence(0, p->w.win));
    for_all_sides(p, put_side);
    TL_MPI(MPI_Win_fence(0, p->w.win));
}

static void fence_get(const part_t *p)
{
    TL_MPI(MPI_Win_fence(MPI_MODE_NOPUT, p->w.win));
    for_all_sides(p, get_side);
    TL_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, p->w.win));
}

static void fence_replace(const part_t *p)
{
    TL_MPI(MPI_Win_fence(0, p->w.win));
    for_all_sides(p, replace_side);
    TL_MPI(MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOSUCCEED, p->w.win));
}

static void post_put(const part_t *p)
{
    TL_MPI(MPI_Win_post(p->neighbourhood, 0, p->w.win));
    TL_MPI(MPI_Win_start(p->neighbourhood, 0, p->w.win));
    for_all_sides(p, put_side);
    TL_MPI(MPI_Win_complete(p->w.win));
    TL_MPI(MPI_Win_wait(p->w.win));
}

static void post_get(const part_t *p)
{
    TL_MPI(MPI_Win_post(p->neighbourhood, MPI_MODE_NOPUT, p->w.win));
    TL_MPI(MPI_Win_start(p->neighbourhood, 0, p->w.win));
    for_all_sides(p, get_side);
    TL_MPI(MPI_Win_complete(p->w.win));
    TL_MPI(MPI_Win_wait(p->w.win));
}

static void lock_put(const part_t *p)
{
    MPI_Barrier(p->w.comm);
    for (int s = 0; s < SIDES; s++) {
        int type = s % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE;

        TL_MPI(MPI_Win_lock(type, p->neighbour[s], 0, p->w.win));
        put_side(p, s);
        TL_MPI(MPI_Win_unlock(p->neighbour[s], p->w.win));
    }
    MPI_Barrier(p->w.comm);
}

static void lock_all_put(const part_t *p)
{
    MPI_Barrier(p->w.comm);
    TL_MPI(MPI_Win_lock_all(0, p->w.win));
    for_all_sides(p, put_side);
    TL_MPI(MPI_Win_flush_all(p->w.win));
    MPI_Barrier(p->w.comm);
    TL_MPI(MPI_Win_sync(p->w.win));
    TL_MPI(MPI_Win_unlock_all(p->w.win));
}

static void lock_all_get(const part_t *p)
{
    TL_MPI(MPI_Win_lock_all(0, p->w.win));
    TL_MPI(MPI_Win_sync(p->w.win));
    MPI_Barrier(p->w.comm);
    for_all_sides(p, get_side);
    TL_MPI(MPI_Win_flush_local_all(p->w.win));
    TL_MPI(MPI_Win_unlock_all(p->w.win));
    MPI_Barrier(p->w.comm);
}

static void request_put(const part_t *p)
{
    MPI_Request requests[SIDES];

    MPI_Barrier(p->w.comm);
    TL_MPI(MPI_Win_lock_all(0, p->w.win));
    for (int s = 0; s < SIDES; s++) {
        const patch_t *from = &p->edge[s], *to = &p->halo[SIDES - 1 - s];
        int t = p->neighbour[s];

        TL_MPI(MPI_Rput(point(p, from), 1, from->type, t, tl_disp(&p->w, t, to->offset), 1,
                        to->type, p->w.win, &requests[s]));
    }
    TL_MPI(MPI_Waitall(SIDES, requests, MPI_STATUSES_IGNORE));
    TL_MPI(MPI_Win_unlock_all(p->w.win));
    MPI_Barrier(p->w.comm);
}

static const struct {
    const char *name;
    void (*exchange)(const part_t *);
} ways[] = {{"fence, put", fence_put},
            {"fence, get", fence_get},
            {"fence, accumulate", fence_replace},
            {"post and start, put", post_put},
            {"post and start, get", post_get},
            {"lock, put", lock_put},
            {"lock_all, put", lock_all_put},
            {"lock_all, get", lock_all_get},
            {"lock_all, rput", request_put}};
enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

static void compare(const part_t *p, const double *whole, const char *way, bool subarray)
{
    int wrong = 0;

    for (int y = 0; y < NY; y++) {
        for (int x = 0; x < NX; x++) {
            double want = whole[(p->y * NY + y) * NX * p->parts_x + p->x * NX + x];

            wrong += memcmp(&p->u[(y + HALO) * WIDTH + x + HALO], &want, sizeof(want)) != 0;
        }
    }
    TL_CHECK(wrong == 0, "%s, %s: %d of %d points wrong", way, subarray ? "subarrays" : "vectors",
             wrong, NX * NY);
}

static void test_halo(tl_kind_t kind)
{
    part_t p = {
        .w = tl_win_make(kind, WIDTH * HEIGHT * sizeof(double), 1, MPI_COMM_WORLD, MPI_INFO_NULL)};

    p.u = (double *)p.w.base;
    find_neighbours(&p);
    double *whole = reference(&p);
    for (int i = 0; i < 2 * WAYS; i++) {
        bool subarray = i >= WAYS;

        make_patches(&p, subarray);
        set_up(&p);
        for (int step = 0; step < STEPS; step++) {
            ways[i % WAYS].exchange(&p);
            step_part(&p);
        }
        compare(&p, whole, ways[i % WAYS].name, subarray);
        free_patches(&p);
        MPI_Barrier(p.w.comm);
    }
    free(whole);
    MPI_Group_free(&p.neighbourhood);
    tl_win_free(&p.w);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind))
        test_halo(kind);
    return tl_finish();
}
