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
 *     prints a line for each distance that this machine has: near or far, and the numbers
 *     of two processors so far from each other;
 *   ompi-nic-calibrate-run built-in VENDOR FAMILY MODEL
 *     prints for which kind numbers are built in that hold for such a processor, and what they rest
 *     on;
 *   mpirun -np 1 ompi-nic-calibrate-run window
 *     makes a window, so that the components print what show_plan asks for;
 *   mpirun -np 2 ompi-nic-calibrate-run GRID PROCESSOR PROCESSOR WAY...
 *     binds rank 0 to the first and rank 1 to the second one, and prints for each WAY (cma_put,
 *     stream, ... as in common/model/link.h) and each shape and size a line: the way, 1 for many
 *     transfers under way together or 0, bytes of a block (0: contiguous), pieces, bytes as they
 *     count, nanoseconds of one, nanoseconds in which a cache line goes from one processor to the
 *     other, before and behind it;
 *   ompi-nic-calibrate-run estimate VENDOR FAMILY MODEL DISTANCE [FILE] <LINES
 *     prints for each such line what the model says instead, nanoseconds: by the numbers that are
 *     built in for such a processor, or by those of a file.
 *
 * Shapes and sizes are a GRID: that of "fit", which costs are made of, since they are linear; that
 * of "check", which has none of them; that of "chunks", few; or that of "brief", for tests. Each
 * figure is the median of short rounds. Data is not checked: tests do that.
 */
#define _GNU_SOURCE
#include <hwloc.h>
#include <mpi.h>
#include <stdatomic.h>
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
/** What a system call of single copy may have to do for one figure. */
#define MOST_PIECES 8192
#define TAG         1

#define N(array) (sizeof(array) / sizeof((array)[0]))

/** Shapes and sizes, each ended by NO_MORE; of blocks 0: contiguous. */
typedef struct grid {
    const char *name;
    size_t blocks[6], sizes[8];
    bool many; /**< also many under way together */
} grid_t;

#define NO_MORE SIZE_MAX

static const grid_t grids[] = {
    {.name = "fit",
     .blocks = {0, 8, 64, 1 * KIB, 16 * KIB, NO_MORE},
     .sizes = {1 * KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, 1024 * KIB, 4096 * KIB, NO_MORE},
     .many = true},
    {.name = "check",
     .blocks = {0, 32, 256, 4 * KIB, NO_MORE},
     .sizes = {2 * KIB, 8 * KIB, 32 * KIB, 128 * KIB, 512 * KIB, 2048 * KIB, NO_MORE},
     .many = true},
    {.name = "chunks",
     .blocks = {0, 64, NO_MORE},
     .sizes = {64 * KIB, 256 * KIB, 1024 * KIB, NO_MORE}},
    {.name = "brief",
     .blocks = {0, 64, NO_MORE},
     .sizes = {16 * KIB, 64 * KIB, NO_MORE},
     .many = true},
};

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
/** Bytes from where one transfer begins to where the next does: of many each has a place of its
 * own. */
static size_t span;
static char *memory; /* of MANY spans: of the window, or of messages */
static char *mine;   /* likewise: what is moved from or to */
static MPI_Win win;
static _Atomic unsigned *line; /* both ranks' */

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
        const size_t at = (size_t)i * span;

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
        /* There and back: both are messages of this kind. What is sent on is not what has come,
         * as with those that are under way together: else the receiver fetches it out of the
         * sender's cache. */
        if (rank == 0)
            MPI_Send(mine, s->count, s->type, 1, TAG, MPI_COMM_WORLD);
        MPI_Recv(memory, s->count, s->type, 1 - rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1)
            MPI_Send(mine, s->count, s->type, 0, TAG, MPI_COMM_WORLD);
        return;
    }
    for (int i = 0; i < s->n; i++)
        if (rank == 0)
            MPI_Isend(mine + (size_t)i * span, s->count, s->type, 1, TAG, MPI_COMM_WORLD,
                      &request[i]);
        else
            MPI_Irecv(memory + (size_t)i * span, s->count, s->type, 0, TAG, MPI_COMM_WORLD,
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

static double median(double v[ROUNDS])
{
    qsort(v, ROUNDS, sizeof(v[0]), by_value);
    return v[ROUNDS / 2];
}

/** Nanoseconds until the other processor sees a store. Where that changes, as on virtual machines,
 *  all that is moved does. Both ranks, together. */
static double line_time(void)
{
    enum { TRIPS = 64 };
    static unsigned turn;
    double took[ROUNDS];

    MPI_Barrier(MPI_COMM_WORLD);
    for (int r = 0; r < ROUNDS; r++) {
        const double begun = now();

        for (int i = 0; i < TRIPS; i++, turn += 2) {
            if (rank == 1)
                while (atomic_load_explicit(line, memory_order_acquire) != turn + 1)
                    ;
            atomic_store_explicit(line, turn + 1 + (unsigned)rank, memory_order_release);
            if (rank == 0)
                while (atomic_load_explicit(line, memory_order_acquire) != turn + 2)
                    ;
        }
        took[r] = (now() - begun) / (2.0 * TRIPS);
    }
    return median(took);
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
    return median(took);
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
    const double before = line_time(), nsec = measure(w, &s), behind = line_time();
    if (rank == 0)
        printf("%s %d %zu %zu %zu %.1f %.0f %.0f\n", w->name, many, block, pieces,
               w->covers ? s.extent : bytes, nsec, before, behind);
    if (block != 0)
        MPI_Type_free(&s.type);
}

static void one_way(const way_t *w, const grid_t *g)
{
    for (size_t b = 0; g->blocks[b] != NO_MORE; b++)
        for (size_t s = 0; g->sizes[s] != NO_MORE; s++) {
            one_case(w, g->blocks[b], g->sizes[s], false);
            if (g->many)
                one_case(w, g->blocks[b], g->sizes[s], true);
        }
}

static const grid_t *grid_of(const char *name)
{
    for (size_t g = 0; g < N(grids); g++)
        if (strcmp(grids[g].name, name) == 0)
            return &grids[g];
    return NULL;
}

/** Room for the largest size, with as much between its blocks. */
static size_t span_of(const grid_t *g)
{
    size_t most = 0;

    for (size_t s = 0; g->sizes[s] != NO_MORE; s++)
        most = g->sizes[s] > most ? g->sizes[s] : most;
    return 2 * most;
}

static int bind(hwloc_topology_t topology, const char *processor)
{
    const hwloc_obj_t pu =
        hwloc_get_pu_obj_by_os_index(topology, (unsigned)strtoul(processor, NULL, 10));

    return pu != NULL ? hwloc_set_cpubind(topology, pu->cpuset, 0) : -1;
}

static int run(int argc, char **argv)
{
    const grid_t *grid = grid_of(argv[1]);
    MPI_Win shared;
    MPI_Aint bytes;
    int size, unit;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2 || grid == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Win_allocate_shared(rank == 0 ? (MPI_Aint)(4 * KIB) : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                            (void *)&line, &shared);
    MPI_Win_shared_query(shared, 0, &bytes, &unit, (void *)&line);
    if (rank == 0)
        atomic_init(line, 0);
    span = span_of(grid);
    memory = map((size_t)MANY * span);
    mine = map((size_t)MANY * span);
    MPI_Win_create(memory, (MPI_Aint)((size_t)MANY * span), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    if (rank == 0)
        MPI_Win_lock_all(0, win);
    for (int a = 4; a < argc; a++)
        for (size_t i = 0; i < N(ways); i++)
            if (strcmp(ways[i].name, argv[a]) == 0)
                one_way(&ways[i], grid);
    if (rank == 0)
        MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Win_free(&shared);
    MPI_Finalize();
    return 0;
}

/* ---- the model ------------------------------------------------------------------------------- */

static const char *const distances[ONIC_DISTANCES] = {"near", "far"};
#define WAY_NAME(name) #name,
static const char *const way_names[ONIC_N_WAYS] = {ONIC_WAYS(WAY_NAME)};

/** The place of a name among `n`, or n. */
static size_t place(const char *name, const char *const *names, size_t n)
{
    size_t i = 0;

    while (i < n && strcmp(names[i], name) != 0)
        i++;
    return i;
}

static int estimate(char **argv, const char *file)
{
    onic_links_t links =
        onic_links_default(onic_processor_name(argv[2], atoi(argv[3]), atoi(argv[4])));
    const size_t distance = place(argv[5], distances, ONIC_DISTANCES);
    char text[256], name[32];
    double block, pieces, bytes;
    unsigned many;

    if (distance == ONIC_DISTANCES || (file != NULL && onic_links_load(&links, file) != 0)) {
        fprintf(stderr, "ompi-nic-calibrate-run: no costs of %s\n", file != NULL ? file : argv[5]);
        return 1;
    }
    while (fgets(text, sizeof(text), stdin) != NULL) {
        const bool whole =
            sscanf(text, "%31s %u %lf %lf %lf", name, &many, &block, &pieces, &bytes) == 5;
        const size_t way = whole ? place(name, way_names, ONIC_N_WAYS) : ONIC_N_WAYS;

        if (way == ONIC_N_WAYS || many > 1)
            return 1;
        printf("%.1f\n", onic_cost(&links.costs[distance].of[way][many], pieces, block, bytes));
    }
    return 0;
}

/* ---- processors ------------------------------------------------------------------------------ */

static bool share(hwloc_topology_t topology, hwloc_obj_t a, hwloc_obj_t b, hwloc_obj_type_t type)
{
    hwloc_obj_t over = hwloc_get_ancestor_obj_by_type(topology, type, a);

    return over != NULL && over == hwloc_get_ancestor_obj_by_type(topology, type, b);
}

/** As onic_distance has it. */
static onic_kind_t distance(hwloc_topology_t topology, hwloc_obj_t a, hwloc_obj_t b)
{
    const hwloc_obj_type_t cache = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_L3CACHE) > 0
                                       ? HWLOC_OBJ_L3CACHE
                                       : HWLOC_OBJ_PACKAGE;

    return hwloc_get_nbobjs_by_type(topology, cache) <= 1 || share(topology, a, b, cache)
               ? ONIC_NEAR
               : ONIC_FAR;
}

/** The first processor with another one at each distance; with one of its own core only where no
 *  processor has another core, since two processes of a job are seldom placed so. */
static void pairs(hwloc_topology_t topology)
{
    const int n = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    const hwloc_obj_t first = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, 0);
    hwloc_obj_t found[ONIC_DISTANCES] = {NULL};
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
    for (int d = 0; d < ONIC_DISTANCES; d++)
        if (found[d] != NULL)
            printf("%s %u %u\n", distances[d], first->os_index, found[d]->os_index);
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
    } else if ((argc == 6 || argc == 7) && strcmp(argv[1], "estimate") == 0) {
        rc = estimate(argv, argv[6]);
    } else if (argc < 5 || is_rank == NULL) {
        fprintf(stderr,
                "usage: ompi-nic-calibrate-run pairs\n"
                "       ompi-nic-calibrate-run built-in VENDOR FAMILY MODEL\n"
                "       mpirun -np 1 ompi-nic-calibrate-run window\n"
                "       mpirun -np 2 ompi-nic-calibrate-run GRID PROCESSOR PROCESSOR WAY...\n"
                "       ompi-nic-calibrate-run estimate VENDOR FAMILY MODEL DISTANCE [FILE]\n");
        rc = 2;
    } else {
        /* Before MPI makes threads and memory. */
        const char *processor = argv[is_rank[0] == '0' ? 2 : 3];

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
