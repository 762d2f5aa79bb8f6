/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The team: threads in place of processes, on segments that are real, between nodes that an
 *  engine of this test connects. */
#include "coll_nicbarrier/team/team.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/support/clock.h"
#include "common/transport/shm/segment.h"
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
    nicbarrier_net_events_t events;
};

static int fake_prepare(const nicbarrier_group_t *group, nicbarrier_net_t **net_p, void *bytes,
                        uint32_t *len_p, nicbarrier_reason_t *why)
{
    nicbarrier_net_t *net = calloc(1, sizeof(*net));

    (void)why;
    UNIT_CHECK(net != NULL);
    net->me = group->me;
    memcpy(bytes, "here", *len_p = 4);
    *net_p = net;
    return 0;
}

static int fake_connect(nicbarrier_net_t *net, const nicbarrier_endpoints_t *endpoints,
                        const nicbarrier_net_events_t *events, nicbarrier_reason_t *why)
{
    if (endpoints->n != fabric.n) {
        nicbarrier_reason(why, "endpoints are missing");
        return -1;
    }
    net->events = *events;
    return 0;
}

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
    if (net->events.complete != NULL)
        net->events.complete(net->events.arg, fake_completed(net));
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
    .prepare = fake_prepare,
    .connect = fake_connect,
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

static nicbarrier_team_config_t config = {
    .polls = 100, .processors = NICBARRIER_CROWDED, .progress = progress};

/** The parts on one node, in a segment that each of its ranks maps. */
static void make_node(int node)
{
    const int n = world.per_node;
    rank_t *ranks = &world.rank[node * n];
    const size_t offset = 256, bytes = offset + nicbarrier_shm_bytes(n, FANOUT);
    onic_segment_t segments[RANKS_MAX];
    onic_segment_key_t key;

    ck_assert(onic_segment_make(bytes, 0, 1, ONIC_BY_DESCRIPTOR, &key, &segments[0]));
    for (int i = 1; i < n; i++)
        ck_assert_int_eq(onic_segment_join(&key, bytes, i, &segments[i]), ONIC_JOINED);
    onic_segment_withdraw(&key);
    for (int i = 0; i < n; i++)
        nicbarrier_shm_introduce((char *)segments[i].base + offset, n, i, FANOUT);
    for (int i = 0; i < n; i++) {
        nicbarrier_team_attach(ranks[i].team, &segments[i], offset, n, i, FANOUT, world.nodes > 1);
        ck_assert_ptr_null(segments[i].base);
    }
}

static void connect_leader(nicbarrier_team_t *team, int node)
{
    const nicbarrier_group_t group = {1, world.nodes, node};
    nicbarrier_endpoint_t list[NODES_MAX];
    unsigned char bytes[NICBARRIER_ENDPOINT_MAX];
    nicbarrier_reason_t why;
    uint32_t len;

    ck_assert_int_eq(team->engine->prepare(&group, &team->net, bytes, &len, &why), 0);
    for (int i = 0; i < world.nodes; i++)
        list[i] = (nicbarrier_endpoint_t){i, len, bytes};
    const nicbarrier_endpoints_t endpoints = {world.nodes, list};
    ck_assert_int_eq(nicbarrier_team_connect(team, &endpoints, &why), 0);
}

/** The trial of all leaders. */
static void try_out(void)
{
    nicbarrier_reason_t why;

    for (int round = 0; round <= 1; round++)
        for (int node = 0; world.nodes > 1 && node < world.nodes; node++) {
            const int end = nicbarrier_team_try(world.rank[node * world.per_node].team, &why);
            ck_assert_int_eq(end, round == 1 || node == world.nodes - 1);
        }
}

static void make_world(int nodes, int per_node)
{
    memset(&world, 0, sizeof(world));
    memset(&fabric, 0, sizeof(fabric));
    world.nodes = fabric.n = nodes;
    world.per_node = per_node;
    world.n = nodes * per_node;
    for (int i = 0; i < world.n; i++) {
        world.rank[i] = (rank_t){.node = i / per_node, .me = i % per_node};
        world.rank[i].team = nicbarrier_team_new(&config);
        ck_assert_ptr_nonnull(world.rank[i].team);
        world.rank[i].team->engine = nodes > 1 ? &engine : NULL;
    }
    for (int node = 0; per_node > 1 && node < nodes; node++)
        make_node(node);
    for (int node = 0; nodes > 1 && node < nodes; node++)
        connect_leader(world.rank[node * per_node].team, node);
    try_out();
}

static void unmake_world(void)
{
    for (int i = 0; i < world.n; i++)
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

    for (uint64_t e = 2; e <= r->last; e++) {
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

    config.processors = _i % 2 == 0 ? NICBARRIER_CROWDED : NICBARRIER_SHARED;
    make_world(sizes[_i / 2][0], sizes[_i / 2][1]);
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

    make_world(2, 3);
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

    make_world(nodes, 3);
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
    make_world(1, 3);
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

    make_world(1, 2);
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
    make_world(2, 2);
    enter(&world.rank[0], 2);
    enter(&world.rank[1], 2);
    ck_assert_uint_eq(fabric.entered[0], NICBARRIER_TRIAL_EPOCH);
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

START_TEST(trial_fails)
{
    nicbarrier_reason_t why = {""};

    make_world(2, 2);
    atomic_store(&fabric.failed, true);
    ck_assert_int_eq(nicbarrier_team_try(world.rank[0].team, &why), -1);
    ck_assert_str_ne(why.text, "");
    unmake_world();
}
END_TEST

int main(void)
{
    return UNIT_RUN("nicbarrier_team", UNIT_LOOP(nobody_leaves_early, 0, 14),
                    UNIT_LOOP(process_dies, 0, 3), UNIT_ONCE(network_fails),
                    UNIT_ONCE(members_are_checked), UNIT_ONCE(ended), UNIT_ONCE(node_arrives),
                    UNIT_ONCE(trial_fails));
}
