/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The team: threads in place of processes, on nodes that an engine of this test connects. */
#include "coll_nicbarrier/team/team.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/support/clock.h"
#include "test/unit/unit.h"

enum { NODES_MAX = 3, RANKS_MAX = 6, FANOUT = 4 };

/* ---- an engine between the leaders: what each has entered stands in one table --------------- */

static struct {
    int n;
    _Atomic uint64_t entered[NODES_MAX];
    atomic_bool failed;
    atomic_int told; /**< calls of `fail` */
    atomic_int disconnected;
} fabric;

struct nicbarrier_net {
    int me;
    nicbarrier_shm_t *node;
};

static void fake_enter(nicbarrier_net_t *net, uint64_t epoch)
{
    uint64_t old = atomic_load(&fabric.entered[net->me]);

    while (old < epoch && !atomic_compare_exchange_weak(&fabric.entered[net->me], &old, epoch))
        ;
}

static uint64_t fake_completed(const nicbarrier_net_t *net)
{
    uint64_t low = UINT64_MAX;

    (void)net;
    for (int i = 0; i < fabric.n; i++) {
        const uint64_t epoch = atomic_load(&fabric.entered[i]);
        low = epoch < low ? epoch : low;
    }
    return low;
}

static int fake_progress(nicbarrier_net_t *net)
{
    if (net->node != NULL)
        nicbarrier_shm_release(net->node, fake_completed(net));
    return 0;
}

static void fake_disconnect(nicbarrier_net_t *net)
{
    atomic_fetch_add(&fabric.disconnected, 1);
    free(net);
}

static bool fake_failed(const nicbarrier_net_t *net)
{
    (void)net;
    return atomic_load(&fabric.failed);
}

static void fake_fail(nicbarrier_net_t *net)
{
    (void)net;
    atomic_fetch_add(&fabric.told, 1);
    atomic_store(&fabric.failed, true);
}

static void fake_wait(nicbarrier_net_t *net, unsigned usec)
{
    (void)net;
    usleep(usec / 10);
}

static const nicbarrier_engine_t engine = {
    .name = "fake",
    .enter = fake_enter,
    .completed = fake_completed,
    .progress = fake_progress,
    .disconnect = fake_disconnect,
    .failed = fake_failed,
    .fail = fake_fail,
    .wait = fake_wait,
};

/* ---- nodes with teams on them --------------------------------------------------------------- */

typedef struct rank {
    int node, me; /**< index on the node; 0 leads */
    nicbarrier_team_t *team;
    pthread_t thread;
    _Atomic uint64_t entered;
    uint64_t last;
    unit_random_t random;
    bool done;
} rank_t;

static struct {
    int nodes, per_node, n;
    rank_t rank[NODES_MAX * RANKS_MAX];
    atomic_long progressed;
} world;

static void progress(void)
{
    atomic_fetch_add(&world.progressed, 1);
}

/** The parts on one node. Its first rank has the memory. */
static void make_node(int node)
{
    const int n = world.per_node;
    const size_t offset = 256, bytes = offset + nicbarrier_shm_bytes(n, FANOUT);
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(base, MAP_FAILED);
    for (int i = 0; i < n; i++) {
        nicbarrier_team_t *team = world.rank[node * n + i].team;
        onic_segment_t segment = {base, bytes};
        nicbarrier_team_attach(team, &segment, offset, n, i, FANOUT, world.nodes > 1);
        ck_assert_ptr_null(segment.base);
        if (i > 0)
            team->segment = segment;
    }
}

static void connect_leader(nicbarrier_team_t *team, int node)
{
    team->engine = &engine;
    team->net = calloc(1, sizeof(*team->net));
    ck_assert_ptr_nonnull(team->net);
    team->net->me = node;
    team->net->node = team->on_node ? &team->shm : NULL;
}

static void make_world(int nodes, int per_node, nicbarrier_processors_t processors)
{
    memset(&world, 0, sizeof(world));
    memset(&fabric, 0, sizeof(fabric));
    world.nodes = fabric.n = nodes;
    world.per_node = per_node;
    world.n = nodes * per_node;
    for (int i = 0; i < world.n; i++) {
        world.rank[i] = (rank_t){.node = i / per_node, .me = i % per_node};
        world.rank[i].team = nicbarrier_team_new(100, progress);
        ck_assert_ptr_nonnull(world.rank[i].team);
        world.rank[i].team->processors = processors;
    }
    for (int node = 0; node < nodes; node++) {
        if (per_node > 1)
            make_node(node);
        if (nodes > 1)
            connect_leader(world.rank[node * per_node].team, node);
    }
}

static void unmake_world(void)
{
    for (int i = world.n; i-- > 0;)
        nicbarrier_team_free(world.rank[i].team);
    if (world.nodes > 1)
        ck_assert_int_eq(fabric.disconnected, world.nodes);
}

static void run(void *(*body)(void *), int first)
{
    for (int i = first; i < world.n; i++)
        ck_assert_int_eq(pthread_create(&world.rank[i].thread, NULL, body, &world.rank[i]), 0);
    for (int i = first; i < world.n; i++)
        pthread_join(world.rank[i].thread, NULL);
}

static void check_all_entered(uint64_t epoch)
{
    for (int i = 0; i < world.n; i++)
        UNIT_CHECK(atomic_load(&world.rank[i].entered) >= epoch);
}

static void enter(rank_t *r, uint64_t epoch)
{
    atomic_store(&r->entered, epoch);
    nicbarrier_team_enter(r->team, epoch);
}

/** Some outstanding, then waiting for the last: asleep where others take long. */
static void *barriers(void *arg)
{
    rank_t *r = arg;

    for (uint64_t e = 1; e <= r->last; e++) {
        enter(r, e);
        if (unit_once_in(&r->random, 4)) {
            nicbarrier_team_depart(r->team);
            continue;
        }
        if (unit_once_in(&r->random, 50))
            usleep(2000);
        UNIT_CHECK(nicbarrier_team_wait(r->team, e));
        UNIT_CHECK(nicbarrier_team_done(r->team, e));
        check_all_entered(e);
    }
    UNIT_CHECK(nicbarrier_team_wait(r->team, r->last));
    return NULL;
}

/* Nodes of any size, any number of them, with as many processors as ranks or not: nobody leaves
 * before all have entered. */
START_TEST(nobody_leaves_early)
{
    static const int sizes[][2] = {{1, 2}, {1, 4}, {1, 6}, {2, 1}, {3, 1}, {2, 2}, {3, 3}};

    make_world(sizes[_i / 2][0], sizes[_i / 2][1],
               _i % 2 == 0 ? NICBARRIER_CROWDED : NICBARRIER_SHARED);
    for (int i = 0; i < world.n; i++) {
        world.rank[i].last = 600;
        world.rank[i].random.state = unit_seed() + (uint64_t)i;
    }
    run(barriers, 0);
    for (int i = 0; i < world.n; i++) {
        ck_assert(!nicbarrier_team_done(world.rank[i].team, 601));
        ck_assert(!nicbarrier_team_failed(world.rank[i].team));
    }
    ck_assert_int_gt(world.progressed, 0);
    unmake_world();
}
END_TEST

static void *one_barrier(void *arg)
{
    rank_t *r = arg;

    enter(r, 2);
    r->done = nicbarrier_team_wait(r->team, 2);
    return NULL;
}

static void *lose(void *arg)
{
    usleep(20000);
    atomic_store((atomic_bool *)arg, true);
    return NULL;
}

static void check_failed(int first)
{
    for (int i = first; i < world.n; i++) {
        ck_assert(!world.rank[i].done);
        ck_assert(nicbarrier_team_failed(world.rank[i].team));
    }
}

/* A leader's engine loses a connection: all who wait on the nodes end. */
START_TEST(network_fails)
{
    pthread_t thread;

    make_world(2, 3, NICBARRIER_CROWDED);
    pthread_create(&thread, NULL, lose, &fabric.failed);
    /* The last one does not come. */
    world.n--;
    run(one_barrier, 0);
    pthread_join(thread, NULL);
    check_failed(0);
    world.n++;
    unmake_world();
}
END_TEST

/** A process has introduced itself as this member, and ends. */
static void kill_member(rank_t *r)
{
    onic_life_t *life = (onic_life_t *)(uintptr_t)&r->team->shm.life[r->me];

    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        *life = onic_life_mine();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert_int_eq(life->pid, pid);
}

/* A process of a node dies: its node ends, its leader tells the engine, and so the others end, too.
 * Then the leader of a node; and on a node without network. */
START_TEST(process_dies)
{
    const int nodes = _i == 2 ? 1 : 2, victim = _i == 0 ? 1 : 0;

    make_world(nodes, 3, NICBARRIER_CROWDED);
    kill_member(&world.rank[victim]);
    /* Where the leader is dead nobody tells the others: their engine has to notice by itself. */
    world.n = victim == 0 ? 3 : world.n;
    if (victim == 1) {
        pthread_t leader;
        pthread_create(&leader, NULL, one_barrier, &world.rank[0]);
        run(one_barrier, 2);
        pthread_join(leader, NULL);
        ck_assert_int_gt(fabric.told, 0);
        ck_assert(!world.rank[0].done);
        check_failed(2);
    } else {
        run(one_barrier, 1);
        check_failed(1);
    }
    world.n = nodes * 3;
    unmake_world();
}
END_TEST

/* Nonblocking: to check the members is all that is needed, at most once in a while. */
START_TEST(members_are_checked)
{
    make_world(1, 3, NICBARRIER_CROWDED);
    nicbarrier_team_t *team = world.rank[2].team;
    kill_member(&world.rank[1]);
    uint64_t now = onic_now_nsec();
    /* The first only begins the time. */
    nicbarrier_team_check_members(team, now);
    ck_assert(!nicbarrier_team_failed(team));
    nicbarrier_team_check_members(team, now + 1000000);
    ck_assert(!nicbarrier_team_failed(team));
    nicbarrier_team_check_members(team, now + 1000000000);
    ck_assert(nicbarrier_team_failed(team));
    ck_assert(nicbarrier_team_failed(world.rank[0].team));
    unmake_world();
}
END_TEST

static bool is_over(void *arg)
{
    return atomic_fetch_add((atomic_int *)arg, 1) > 20;
}

/* Something else ends a barrier: its communicator was revoked, say. */
START_TEST(ended)
{
    atomic_int looks = 0;

    make_world(1, 2, NICBARRIER_CROWDED);
    world.rank[1].team->ended = is_over;
    world.rank[1].team->ended_arg = &looks;
    run(one_barrier, 1);
    ck_assert(!world.rank[1].done);
    ck_assert(!nicbarrier_team_failed(world.rank[1].team));
    unmake_world();
}
END_TEST

/* The leader enters in the engine when its node has arrived: at once if it is the last, else when
 * it looks next. If it sleeps, the last to arrive wakes it. */
START_TEST(node_arrives)
{
    make_world(2, 2, NICBARRIER_CROWDED);
    enter(&world.rank[0], 2);
    enter(&world.rank[1], 2);
    ck_assert_uint_eq(fabric.entered[0], 0);
    (void)nicbarrier_team_progress(world.rank[0].team);
    ck_assert_uint_eq(fabric.entered[0], 2);
    enter(&world.rank[3], 2);
    enter(&world.rank[2], 2);
    ck_assert_uint_eq(fabric.entered[1], 2);
    for (int i = 0; i < world.n; i++) {
        (void)nicbarrier_team_progress(world.rank[i].team);
        world.rank[i].entered = 0;
    }
    unmake_world();
}
END_TEST

int main(void)
{
    return UNIT_RUN("nicbarrier_team", UNIT_LOOP(nobody_leaves_early, 0, 14),
                    UNIT_LOOP(process_dies, 0, 3), UNIT_ONCE(network_fails),
                    UNIT_ONCE(members_are_checked), UNIT_ONCE(ended), UNIT_ONCE(node_arrives));
}
