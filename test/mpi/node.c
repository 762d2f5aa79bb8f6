/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/**
 * @file
 * Nodes and mapped segments: members and their order, memory that is really shared and zeroed,
 * several communicators, space that cannot be had, processes that must not look into others, names
 * mappings and descriptors that are gone afterwards, sizes of the caches. On one host or several:
 * what MPI_Comm_split_type says is what is expected.
 */
#include "test/mpi/testlib.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/transport/shm/node.h"

#define MAX_RANKS 64

/** Files in shared memory that this process has mapped; or only segments whose names still exist.
 */
static int count_maps(bool named)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    int n = 0;

    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL)
        n += named ? strstr(line, "/onic-") != NULL && strstr(line, "(deleted)") == NULL
                   : strstr(line, "/dev/shm/") != NULL;
    if (maps != NULL)
        fclose(maps);
    return n;
}

static void set_limit(int which, rlim_t value)
{
    struct rlimit limit;

    getrlimit(which, &limit);
    limit.rlim_cur = value < limit.rlim_max ? value : limit.rlim_max;
    TL_CHECK(setrlimit(which, &limit) == 0, "setrlimit");
}

/**
 * Makes large segments impossible: for the first member, who makes them, by a limit on the size of
 * files, as good as a full /dev/shm; for the others by leaving no descriptor to open them with.
 */
static void hinder(bool first)
{
    int free_fd = dup(STDIN_FILENO);

    TL_CHECK(free_fd >= 0, "dup");
    close(free_fd);
    if (first)
        set_limit(RLIMIT_FSIZE, 65536);
    else
        set_limit(RLIMIT_NOFILE, (rlim_t)free_fd);
}

static void help(void)
{
    set_limit(RLIMIT_FSIZE, RLIM_INFINITY);
    set_limit(RLIMIT_NOFILE, 1024);
}

static bool all_zero(const onic_segment_t *segment)
{
    const unsigned char *bytes = segment->base;

    for (size_t i = 0; i < segment->size; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

/** Members are in rank order and name each other. */
static void check_members(const onic_node_t *node, MPI_Comm comm)
{
    int size, rank, seen = 0;

    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    TL_CHECK(node->n >= 1 && node->n <= size && node->me >= 0 && node->me < node->n, "%d of %d",
             node->me, node->n);
    TL_CHECK(node->ranks[node->me] == rank, "I am rank %d", node->ranks[node->me]);
    for (int i = 0; i < size; i++) {
        const int index = onic_node_index(node, i);
        if (index >= 0) {
            TL_CHECK(index == seen && node->ranks[seen] == i, "rank %d is member %d", i, index);
            seen++;
        }
    }
    TL_CHECK(seen == node->n, "%d members instead of %d", seen, node->n);
}

/** Everybody writes its own word; then everybody must read those of all. */
static void check_shared(const onic_node_t *node, const onic_segment_t *segment, MPI_Comm comm)
{
    volatile int *words = segment->base;
    int last = (int)(segment->size / sizeof(int)) - 1;

    TL_CHECK(all_zero(segment), "the segment is not zeroed");
    TL_MPI(MPI_Barrier(comm));
    words[node->me] = 100 + node->ranks[node->me];
    if (node->me == node->n - 1)
        words[last] = 77;
    TL_MPI(MPI_Barrier(comm));
    for (int i = 0; i < node->n; i++)
        TL_CHECK(words[i] == 100 + node->ranks[i], "word %d is %d", i, words[i]);
    TL_CHECK(words[last] == 77, "the last word is %d", words[last]);
}

/** The members of a communicator that are on the host of one of them. */
typedef struct host {
    int size;  /**< how many they are */
    int first; /**< the lowest rank of them */
    bool mine; /**< this process is one of them */
} host_t;

/** Collective; `rank` may differ between the callers. */
static host_t host_of(MPI_Comm comm, int rank)
{
    int first[MAX_RANKS], size, me, here;
    host_t host = {0, -1, false};
    MPI_Comm node;

    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &me);
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    here = me;
    MPI_Bcast(&here, 1, MPI_INT, 0, node);
    MPI_Allgather(&here, 1, MPI_INT, first, 1, MPI_INT, comm);
    for (int i = 0; i < size; i++)
        host.size += first[i] == first[rank];
    host.first = first[rank];
    host.mine = first[rank] == first[me];
    MPI_Comm_free(&node);
    return host;
}

/** The node with its first segment; true where nobody is missing. */
static bool create(MPI_Comm comm, size_t bytes, onic_node_t *node, onic_segment_t *segment)
{
    int32_t leaders[MAX_RANKS], mine = onic_node_leader(comm);
    onic_made_t made;

    MPI_Allgather(&mine, 1, MPI_INT32_T, leaders, 1, MPI_INT32_T, comm);
    onic_node_find(comm, leaders, sizeof(*leaders), node);
    const int all = node->n;
    do {
        TL_CHECK(onic_node_segment(comm, node, bytes, false, segment, &made) == 0, "no node");
        if (made == ONIC_NO_SPACE)
            onic_node_alone(node);
    } while (made != ONIC_MADE);
    return node->n == all;
}

/** One more, to which all contribute; false where that cannot be had. */
static bool add_segment(MPI_Comm comm, onic_node_t *node, size_t bytes, onic_segment_t *segment)
{
    onic_made_t made;

    TL_CHECK(onic_node_segment(comm, node, bytes, true, segment, &made) == 0, "an error");
    TL_CHECK(made != ONIC_NODE_SPLIT, "it was not asked for a split");
    return made == ONIC_MADE;
}

static void test_create(MPI_Comm comm, size_t bytes)
{
    onic_node_t node;
    onic_segment_t segment, more;
    bool shared;
    int rank, expected;

    MPI_Comm_rank(comm, &rank);
    expected = host_of(comm, rank).size;
    shared = create(comm, bytes, &node, &segment);
    TL_CHECK(shared && node.n == expected, "%d of %d ranks on the node", node.n, expected);
    TL_CHECK(segment.size == bytes, "%zu bytes", segment.size);
    check_members(&node, comm);
    check_shared(&node, &segment, comm);

    TL_CHECK(add_segment(comm, &node, 3 * bytes + 5, &more), "no segment");
    check_shared(&node, &more, comm);
    TL_MPI(MPI_Barrier(comm));
    TL_CHECK(count_maps(true) == 0, "%d names are left", count_maps(true));
    onic_segment_unmap(&more);
    TL_CHECK(more.base == NULL, "still mapped");
    onic_segment_unmap(&segment);
    onic_node_fini(&node);
}

static void test_split(void)
{
    MPI_Comm half;

    TL_MPI(MPI_Comm_split(MPI_COMM_WORLD, tl_rank() % 2, -tl_rank(), &half));
    test_create(half, 10000);
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    TL_MPI(MPI_Comm_free(&half));
    test_create(MPI_COMM_SELF, 100);
}

/** No space at `culprit`: nobody of its host has the segment, and nobody is killed. A process that
 *  is alone on its host needs no space there. */
static void test_no_segment(int culprit)
{
    host_t host = host_of(MPI_COMM_WORLD, culprit);
    onic_node_t node;
    onic_segment_t segment, more;

    (void)create(MPI_COMM_WORLD, 4096, &node, &segment);
    if (tl_rank() == culprit)
        hinder(culprit == host.first);
    const bool ok = add_segment(MPI_COMM_WORLD, &node, 16 << 20, &more);
    TL_CHECK(ok == (!host.mine || host.size == 1), "one has the segment, the others not");
    help();
    onic_segment_unmap(&more);

    TL_CHECK(add_segment(MPI_COMM_WORLD, &node, 16 << 20, &more), "not even now");
    check_shared(&node, &more, MPI_COMM_WORLD);
    onic_segment_unmap(&more);
    onic_segment_unmap(&segment);
    onic_node_fini(&node);
}

/** No space for the first segment: one node for each process, with memory of its own. */
static void test_no_node(void)
{
    onic_node_t node;
    onic_segment_t segment;
    bool shared, alone = host_of(MPI_COMM_WORLD, tl_rank()).size == 1;

    hinder(true);
    shared = create(MPI_COMM_WORLD, 1 << 20, &node, &segment);
    help();
    TL_CHECK(shared == alone && node.n == 1, "%d members", node.n);
    check_members(&node, MPI_COMM_WORLD);
    check_shared(&node, &segment, MPI_COMM_WORLD);
    onic_segment_unmap(&segment);
    onic_node_fini(&node);
}

/** The last rank cannot map: it is alone, the others are together and agree on it. Where it is the
 *  only one of its host, or on another host, nothing is amiss. */
static void test_one_alone(void)
{
    onic_node_t node;
    onic_segment_t segment;
    bool shared;
    int last = tl_size() - 1, expected = host_of(MPI_COMM_WORLD, tl_rank()).size;
    host_t host = host_of(MPI_COMM_WORLD, last);
    bool amiss = host.mine && host.size > 1;

    if (tl_rank() == last)
        hinder(false);
    shared = create(MPI_COMM_WORLD, 1 << 20, &node, &segment);
    help();
    if (amiss)
        expected = tl_rank() == last ? 1 : expected - 1;
    TL_CHECK(shared == !amiss && node.n == expected, "%d members", node.n);
    check_members(&node, MPI_COMM_WORLD);
    check_shared(&node, &segment, MPI_COMM_WORLD);
    onic_segment_unmap(&segment);
    onic_node_fini(&node);
}

/** Nobody may look into others: from now on segments have names, which are gone when all have it.
 */
static void test_closed(void)
{
    int expected = host_of(MPI_COMM_WORLD, tl_rank()).size;
    onic_node_t node;
    onic_segment_t segment, more;
    bool shared;

    shared = create(MPI_COMM_WORLD, 4096, &node, &segment);
    tl_closed(true);
    TL_CHECK(add_segment(MPI_COMM_WORLD, &node, 1 << 20, &more), "no segment");
    check_shared(&node, &more, MPI_COMM_WORLD);
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    TL_CHECK(count_maps(true) == 0, "%d names are left", count_maps(true));
    onic_segment_unmap(&more);
    onic_segment_unmap(&segment);
    onic_node_fini(&node);
    shared = create(MPI_COMM_WORLD, 4096, &node, &segment);
    TL_CHECK(shared && node.n == expected, "%d of %d ranks on the node", node.n, expected);
    tl_closed(false);
    onic_segment_unmap(&segment);
    onic_node_fini(&node);
}

static int count_descriptors(void)
{
    int n = 0;

    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void test_caches(void)
{
    const size_t l2 = onic_l2_size();

    TL_CHECK(l2 >= 64 << 10 && l2 <= 64 << 20, "L2 of %zu bytes", l2);
}

int main(int argc, char **argv)
{
    tl_growth_t growth = {0};
    int rounds, files, maps;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    rounds = tl_one_host() && !tl_slow() ? 200 : 20;
    signal(SIGXFSZ, SIG_DFL);
    test_create(MPI_COMM_WORLD, 4096);
    test_create(MPI_COMM_WORLD, (size_t)1000003 * (size_t)tl_factor());
    test_split();
    files = count_descriptors();
    maps = count_maps(false);
    for (int culprit = 0; culprit < tl_size(); culprit++)
        test_no_segment(culprit);
    test_no_node();
    if (tl_size() > 1)
        test_one_alone();
    test_closed();
    TL_CHECK(count_descriptors() == files, "%d open files, %d before", count_descriptors(), files);
    TL_CHECK(count_maps(false) == maps, "%d mapped files, %d before", count_maps(false), maps);
    test_caches();

    for (int i = 0; i < rounds; i++) {
        tl_growth_step(&growth, i, 2, rounds);
        test_create(MPI_COMM_WORLD, 65536);
    }
    tl_growth_step(&growth, rounds, 2, rounds);
    TL_CHECK(growth.least < 1 << 20, "%d rounds have cost %zu bytes and more", rounds / 3,
             growth.least);
    return tl_finish();
}
