/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What `ompi-nic-info calibrate` starts: it measures transfers between two processors, with the
 * method and the protocol that parameters force.
 *
 *   ompi-nic-calibrate-run pairs
 *     prints a line for each distance that this machine has: near, package or far, and the numbers
 *     of two processors so far from each other;
 *   ompi-nic-calibrate-run built-in VENDOR FAMILY MODEL
 *     prints for which kind numbers are built in that hold for such a processor, and what they rest
 *     on;
 *   mpirun -np 1 ompi-nic-calibrate-run window
 *     makes a window, so that the components print what show_plan asks for;
 *   mpirun -np 2 ompi-nic-calibrate-run PROCESSOR PROCESSOR WAY...
 *     binds rank 0 to the first and rank 1 to the second one, and prints for each WAY (cma_put,
 *     stream, ... as in common/model/link.h) and each shape and size a line: the way, 1 for many
 *     transfers under way together or 0, bytes of a block (0: contiguous), pieces, bytes as they
 *     count, nanoseconds of one.
 *
 * Shapes and sizes are a grid: the costs that are made of them are linear. Each figure is the
 * median of short rounds. Data is not checked: tests do that.
 */
#define _GNU_SOURCE
#include <hwloc.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "common/model/link.h"

#define KIB ((size_t)1024)

/** Transfers that are under way together. */
#define MANY   16
#define ROUNDS 9
/** Nanoseconds of a round, about. */
#define ROUND 200e3
/** Where one-sided transfers begin: of many each has a place of its own. */
#define SPAN (2 * 4096 * KIB)
/** What a system call of single copy may have to do for one figure. */
#define MOST_PIECES 8192
#define TAG         1

static const size_t blocks[] = {0, 8, 64, 1 * KIB, 16 * KIB};
static const size_t sizes[] = {1 * KIB,   4 * KIB,    16 * KIB,  64 * KIB,
                               256 * KIB, 1024 * KIB, 4096 * KIB};

#define N(array) (sizeof(array) / sizeof((array)[0]))

/** A way, and what it can do. */
typedef struct way {
    const char *name;
    enum { PUT, GET, MESSAGE } what;
    size_t least;    /**< bytes: below it another way stands in */
    bool contiguous; /**< nothing else */
    bool each_piece; /**< costs something of the kernel's */
    bool covers;     /**< reads what lies between the blocks, too, which counts */
} way_t;

static const way_t ways[] = {
    {.name = "cma_put", .what = PUT, .each_piece = true},
    {.name = "cma_get", .what = GET, .each_piece = true},
    {.name = "sieve", .what = GET, .covers = true},
    {.name = "pack_put", .what = PUT},
    {.name = "pack_get", .what = GET},
    {.name = "pipeline_put", .what = PUT, .least = 16 * KIB},
    {.name = "pipeline_get", .what = GET, .least = 16 * KIB},
    {.name = "stream", .what = MESSAGE, .least = 16 * KIB},
    {.name = "pipeline", .what = MESSAGE, .least = 16 * KIB},
    {.name = "copy", .what = MESSAGE, .least = 16 * KIB, .contiguous = true},
};

static int rank;
static char *memory; /* of MANY spans: of the window, or of messages */
static char *mine;   /* likewise: what is moved from or to */
static MPI_Win win;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static char *map(size_t bytes)
{
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) {
        fprintf(stderr, "ompi-nic-calibrate-run: no memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(p, 1, bytes);
    return p;
}

/* ---- one round ------------------------------------------------------------------------------- */

/** What is moved. */
typedef struct shape {
    size_t bytes, extent;
    int count;
    MPI_Datatype type, packed;
    int n; /**< transfers under way together */
} shape_t;

/** Of rank 0; the other waits in a barrier, which makes progress. */
static void one_sided(const way_t *w, const shape_t *s)
{
    for (int i = 0; i < s->n; i++) {
        const size_t at = (size_t)i * SPAN;

        if (w->what == PUT)
            MPI_Put(mine + at, (int)s->bytes, MPI_BYTE, 1, (MPI_Aint)at, s->count, s->type, win);
        else
            MPI_Get(mine + at, (int)s->bytes, MPI_BYTE, 1, (MPI_Aint)at, s->count, s->type, win);
    }
    MPI_Win_flush(1, win);
}

static void messages(const shape_t *s)
{
    MPI_Request request[MANY];

    if (s->n == 1) {
        /* There and back: both are messages of this kind. */
        if (rank == 0)
            MPI_Send(memory, s->count, s->type, 1, TAG, MPI_COMM_WORLD);
        MPI_Recv(memory, s->count, s->type, 1 - rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1)
            MPI_Send(memory, s->count, s->type, 0, TAG, MPI_COMM_WORLD);
        return;
    }
    for (int i = 0; i < s->n; i++)
        if (rank == 0)
            MPI_Isend(memory + (size_t)i * SPAN, s->count, s->type, 1, TAG, MPI_COMM_WORLD,
                      &request[i]);
        else
            MPI_Irecv(memory + (size_t)i * SPAN, s->count, s->type, 0, TAG, MPI_COMM_WORLD,
                      &request[i]);
    MPI_Waitall(s->n, request, MPI_STATUSES_IGNORE);
    if (rank == 0)
        MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
}

static void once(const way_t *w, const shape_t *s)
{
    if (w->what == MESSAGE)
        messages(s);
    else if (rank == 0)
        one_sided(w, s);
}

/* ---- measuring ------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/** Nanoseconds of one transfer. Both ranks. */
static double measure(const way_t *w, const shape_t *s)
{
    const int transfers = w->what == MESSAGE && s->n == 1 ? 2 : s->n;
    double took[ROUNDS];
    int repeats;

    once(w, s);
    once(w, s);
    double begun = now();
    once(w, s);
    const double first = now() - begun;
    repeats = first < ROUND ? (int)(ROUND / first) : 1;
    MPI_Bcast(&repeats, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int r = 0; r < ROUNDS; r++) {
        begun = now();
        for (int i = 0; i < repeats; i++)
            once(w, s);
        took[r] = (now() - begun) / repeats / transfers;
    }
    /* One-sided: only here the other one comes back to a call of its own. */
    MPI_Barrier(MPI_COMM_WORLD);
    qsort(took, ROUNDS, sizeof(took[0]), by_value);
    return took[ROUNDS / 2];
}

static void one_case(const way_t *w, size_t block, size_t bytes, bool many)
{
    const size_t pieces = block == 0 ? 1 : bytes / block;
    shape_t s = {.bytes = bytes, .extent = bytes, .count = (int)bytes, .type = MPI_BYTE};

    if (bytes < w->least || (block != 0 && (w->contiguous || pieces < 2)) ||
        (w->each_piece && pieces > MOST_PIECES))
        return;
    s.n = many ? MANY : 1;
    if (block != 0) {
        MPI_Type_vector((int)pieces, (int)block, (int)(2 * block), MPI_BYTE, &s.type);
        MPI_Type_commit(&s.type);
        s.count = 1;
        s.extent = 2 * bytes;
    }
    const double nsec = measure(w, &s);
    if (rank == 0)
        printf("%s %d %zu %zu %zu %.1f\n", w->name, many, block, pieces,
               w->covers ? s.extent : bytes, nsec);
    if (block != 0)
        MPI_Type_free(&s.type);
}

static int bind(hwloc_topology_t topology, const char *processor)
{
    const hwloc_obj_t pu =
        hwloc_get_pu_obj_by_os_index(topology, (unsigned)strtoul(processor, NULL, 10));

    return pu != NULL ? hwloc_set_cpubind(topology, pu->cpuset, 0) : -1;
}

static int run(int argc, char **argv)
{
    int size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memory = map((size_t)MANY * SPAN);
    mine = map((size_t)MANY * SPAN);
    MPI_Win_create(memory, (MPI_Aint)((size_t)MANY * SPAN), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    if (rank == 0)
        MPI_Win_lock_all(0, win);
    for (int a = 3; a < argc; a++)
        for (size_t i = 0; i < N(ways); i++)
            for (size_t b = 0; strcmp(ways[i].name, argv[a]) == 0 && b < N(blocks); b++)
                for (size_t s = 0; s < N(sizes); s++) {
                    one_case(&ways[i], blocks[b], sizes[s], false);
                    one_case(&ways[i], blocks[b], sizes[s], true);
                }
    if (rank == 0)
        MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}

/* ---- processors ------------------------------------------------------------------------------ */

static bool share(hwloc_topology_t topology, hwloc_obj_t a, hwloc_obj_t b, hwloc_obj_type_t type)
{
    hwloc_obj_t over = hwloc_get_ancestor_obj_by_type(topology, type, a);

    return over != NULL && over == hwloc_get_ancestor_obj_by_type(topology, type, b);
}

/** How far apart: 0 near, 1 package, 2 far. */
static int distance(hwloc_topology_t topology, hwloc_obj_t a, hwloc_obj_t b)
{
    const int packages = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE);
    const bool package = packages <= 1 || share(topology, a, b, HWLOC_OBJ_PACKAGE);
    const bool cache = share(topology, a, b, HWLOC_OBJ_L3CACHE) ||
                       (package && hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_L3CACHE) <= 0);

    return cache ? 0 : package ? 1 : 2;
}

/** The first processor with another one at each distance; with one of its own core only where no
 *  processor has another core, since two processes of a job are seldom placed so. */
static void pairs(hwloc_topology_t topology)
{
    const int n = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    const hwloc_obj_t first = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, 0);
    static const char *const names[] = {"near", "package", "far"};
    hwloc_obj_t found[3] = {NULL, NULL, NULL};
    bool any = false;

    for (int same_core = 0; same_core < 2 && !any; same_core++)
        for (int i = 1; i < n; i++) {
            const hwloc_obj_t other = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, (unsigned)i);
            hwloc_obj_t *place = &found[distance(topology, first, other)];

            if (share(topology, first, other, HWLOC_OBJ_CORE) != (same_core != 0) || *place != NULL)
                continue;
            *place = other;
            any = true;
        }
    for (int d = 0; d < 3; d++)
        if (found[d] != NULL)
            printf("%s %u %u\n", names[d], first->os_index, found[d]->os_index);
}

int main(int argc, char **argv)
{
    const char *is_rank = getenv("OMPI_COMM_WORLD_RANK");
    hwloc_topology_t topology;
    int rc = 0;

    if (hwloc_topology_init(&topology) != 0 || hwloc_topology_load(topology) != 0) {
        fprintf(stderr, "ompi-nic-calibrate-run: hwloc does not know this machine\n");
        return 1;
    }
    if (argc == 2 && strcmp(argv[1], "pairs") == 0) {
        pairs(topology);
    } else if (argc == 5 && strcmp(argv[1], "built-in") == 0) {
        const char *name = onic_processor_name(argv[2], atoi(argv[3]), atoi(argv[4]));

        printf("for processors of the kind %s, %s\n", name, onic_links_basis(name));
    } else if (argc == 2 && strcmp(argv[1], "window") == 0) {
        MPI_Init(&argc, &argv);
        MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        MPI_Win_free(&win);
        MPI_Finalize();
    } else if (argc < 4 || is_rank == NULL) {
        fprintf(stderr, "usage: ompi-nic-calibrate-run pairs\n"
                        "       ompi-nic-calibrate-run built-in VENDOR FAMILY MODEL\n"
                        "       mpirun -np 1 ompi-nic-calibrate-run window\n"
                        "       mpirun -np 2 ompi-nic-calibrate-run PROCESSOR PROCESSOR WAY...\n");
        rc = 2;
    } else {
        /* Before MPI makes threads and memory. */
        const char *processor = argv[is_rank[0] == '0' ? 1 : 2];

        if (bind(topology, processor) == 0) {
            rc = run(argc, argv);
        } else {
            /* Figures would be of another distance. */
            fprintf(stderr, "ompi-nic-calibrate-run: cannot be bound to processor %s\n", processor);
            rc = 1;
        }
    }
    hwloc_topology_destroy(topology);
    return rc;
}
