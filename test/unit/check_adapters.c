/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What UCX may use: lists of transports, examples and random ones against a reference that knows
 * each name by itself; adapters, in directories made here; and how much memory it gets.
 */
#include "common/wire/adapters.h"

#include "common/wire/memory_plan.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/unit/unit.h"

#define ROOM 256

static const char *without(bool (*fn)(const char *, char *, size_t), const char *list)
{
    static char out[ROOM];

    return fn(list, out, sizeof(out)) ? out : "(none)";
}

/** Lists that have such transports, and some that have none. */
static const struct {
    onic_tls_t kind;
    const char *with[20], *none[10];
} kinds[] = {
    {ONIC_TLS_VERBS,
     {"", "all", "rc", "tcp,ud", "self,ib", "\\rc_verbs", "tcp,ud_verbs:aux", "dc_x,self", "^tcp",
      "^rc,ud", "^cuda", "tcp,all", "^rc,dc", "^ud,dc,rc_v", "rc_mlx5"},
     {"tcp", "cuda,tcp,self", "^ib", "^tcp,ib", "^rc,ud,dc", "posix", "self", "\\tcp,sm"}},
    {ONIC_TLS_RDMA,
     {"", "all", "rc,self", "self,sm,rc_verbs", "tcp,dc_x", "ib", "\\rc_mlx5", "^tcp", "^ud,tcp",
      "^rc", "^rc_verbs,dc"},
     {"tcp", "tcp,self,sysv,posix,cma", "ud_verbs,self", "^ib", "^tcp,ib", "sm", "\\tcp", "^rc,dc",
      "^tcp,dc,ud,rc"}},
    {ONIC_TLS_MEMORY,
     {"", "all", "tcp,posix", "sm", "\\sysv,rc", "^tcp", "^posix", "^ib,posix", "shm,tcp",
      "^posix,sysv"},
     {"tcp,self", "rc,ud:aux", "^sm", "^posix,sysv,xpmem", "^tcp,shm", "cma"}},
};

START_TEST(transports_are_found)
{
    ck_assert(onic_tls_have(kinds[_i].kind, NULL));
    for (const char *const *list = kinds[_i].with; *list != NULL; list++)
        ck_assert_msg(onic_tls_have(kinds[_i].kind, *list), "%s", *list);
    for (const char *const *list = kinds[_i].none; *list != NULL; list++)
        ck_assert_msg(!onic_tls_have(kinds[_i].kind, *list), "%s", *list);
}
END_TEST

START_TEST(verbs_are_taken_out)
{
    ck_assert_str_eq(without(onic_tls_without_verbs, NULL), "^ib");
    ck_assert_str_eq(without(onic_tls_without_verbs, "all"), "^ib");
    ck_assert_str_eq(without(onic_tls_without_verbs, "^tcp"), "^tcp,ib");
    ck_assert_str_eq(without(onic_tls_without_verbs, "rc,tcp,ud_verbs:aux,\\self"), "tcp,\\self");
    ck_assert_str_eq(without(onic_tls_without_verbs, "cuda,dc,sm"), "cuda,sm");
    ck_assert_str_eq(without(onic_tls_without_verbs, "rc,\\ud_verbs"), "(none)");
}
END_TEST

START_TEST(posix_is_taken_out)
{
    ck_assert_str_eq(without(onic_tls_without_posix, ""), "^posix");
    ck_assert_str_eq(without(onic_tls_without_posix, "^tcp"), "^tcp,posix");
    ck_assert_str_eq(without(onic_tls_without_posix, "^tcp,posix"), "(none)");
    ck_assert_str_eq(without(onic_tls_without_posix, "tcp,self"), "(none)");
    ck_assert_str_eq(without(onic_tls_without_posix, "posix"), "(none)");
    ck_assert_str_eq(without(onic_tls_without_posix, "tcp,shm,self"), "tcp,sysv,self");
    ck_assert_str_eq(without(onic_tls_without_posix, "\\posix,cma,tcp:aux"), "cma,tcp:aux");
}
END_TEST

START_TEST(what_does_not_fit_is_refused)
{
    const char *const lists[] = {"all", "^tcp", "tcp,self,rc"};
    char out[ROOM];

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        const size_t need = strlen(without(onic_tls_without_verbs, lists[i])) + 1;

        for (size_t size = 1; size < need + 3; size++) {
            memset(out, '#', sizeof(out));
            ck_assert_int_eq(onic_tls_without_verbs(lists[i], out, size), size >= need);
            for (size_t k = size; k < sizeof(out); k++)
                UNIT_CHECK(out[k] == '#');
        }
    }
}
END_TEST

START_TEST(lists_of_devices)
{
    ck_assert(onic_devices_have(NULL, "mlx5_1"));
    ck_assert(onic_devices_have("all", "mlx5_1"));
    ck_assert(onic_devices_have("eth0,mlx5_1:1", "mlx5_1"));
    ck_assert(onic_devices_have("mlx5_1", "mlx5_1"));
    ck_assert(!onic_devices_have("eth0", "mlx5_1"));
    ck_assert(!onic_devices_have("mlx5_10:1", "mlx5_1"));
    ck_assert(onic_devices_have("", "mlx5_1"));
    ck_assert(onic_devices_have("^eth0", "mlx5_1"));
    ck_assert(!onic_devices_have("^eth0,mlx5_1", "mlx5_1"));
    ck_assert(onic_devices_have("^mlx5_1:2", "mlx5_1"));
    ck_assert(!onic_devices_have("^mlx5_1,mlx5_0:2", "mlx5_1"));
    ck_assert(onic_devices_have("^mlx5_0,mlx5_1:2", "mlx5_1"));
}
END_TEST

static void make(const char *directory, const char *part)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", directory, part);
    ck_assert_int_eq(mkdir(path, 0700), 0);
}

static void set_state(const char *directory, const char *state)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/rxe0/ports/1/state", directory);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "%s\n", state);
    fclose(file);
}

static void clean(const char *directory)
{
    static const char *const parts[] = {"/rxe0/ports/1/state", "/rxe0/ports/1", "/rxe0/ports",
                                        "/rxe0", ""};
    char path[128];
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        snprintf(path, sizeof(path), "%s%s", directory, parts[i]);
        (void)remove(path);
    }
}

START_TEST(ports)
{
    char directory[] = "/tmp/onic-rdma-XXXXXX";

    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert(!onic_rdma_here(directory, NULL, NULL));
    make(directory, "rxe0");
    ck_assert(!onic_rdma_here(directory, NULL, NULL));
    ck_assert_uint_eq(onic_adapters(directory, NULL, false), 1);
    ck_assert_uint_eq(onic_adapters(directory, "^rxe0", false), 0);
    make(directory, "rxe0/ports");
    make(directory, "rxe0/ports/1");
    set_state(directory, "1: DOWN");
    ck_assert(!onic_rdma_here(directory, NULL, NULL));
    set_state(directory, "4: ACTIVE");
    ck_assert(onic_rdma_here(directory, NULL, NULL));
    ck_assert(!onic_rdma_here(directory, "tcp,self", NULL));
    ck_assert(!onic_rdma_here(directory, NULL, "eth0"));
    clean(directory);
    ck_assert(!onic_rdma_here(directory, NULL, NULL));
}
END_TEST

/* What is promised never takes more than there is. */
START_TEST(memory)
{
    unit_random_t r = {.state = unit_seed() + (uint64_t)_i};
    const uint64_t m = 1 << 20;

    for (int repeat = 0; repeat < 10000; repeat++) {
        const unsigned devices = 1 + (unsigned)unit_below(&r, 4);
        const uint64_t bytes = unit_below(&r, devices * (unit_once_in(&r, 2) ? 10 : 200) * m);
        const onic_memory_plan_t p = onic_memory_plan(bytes, devices);

        switch (p.queues) {
        case ONIC_MEMORY_OWN:
            UNIT_CHECK(bytes >= devices * 80 * m && p.rcache_max > 0);
            UNIT_CHECK(devices * 80 * m + p.rcache_max + 16 * p.rndv_max <= bytes + 1);
            break;
        case ONIC_MEMORY_SMALL:
            UNIT_CHECK(bytes < devices * 80 * m && bytes >= devices * 6 * m && p.rndv_max == 0);
            break;
        case ONIC_MEMORY_NONE:
            UNIT_CHECK(bytes < devices * 6 * m && p.rndv_max == UINT64_MAX);
            break;
        }
    }
    for (unsigned devices = 0; devices < 3; devices++) {
        const onic_memory_plan_t p = onic_memory_plan(devices > 0 ? UINT64_MAX : 0, devices);
        UNIT_CHECK(p.queues == ONIC_MEMORY_OWN && p.rndv_max == UINT64_MAX && p.rcache_max == 0);
    }
}
END_TEST

/* Where one plan ends and the next begins, and that what there is is used. */
START_TEST(limits_of_memory)
{
    const uint64_t m = 1 << 20;

    for (unsigned devices = 1; devices < 5; devices++) {
        const uint64_t own = 80 * m * devices, small = 6 * m * devices, left = 64 * m;
        onic_memory_plan_t p = onic_memory_plan(own, devices);

        /* Nothing is left, which is not the same as no limit. */
        ck_assert(p.queues == ONIC_MEMORY_OWN && p.rndv_max == 0 && p.rcache_max == 1);
        p = onic_memory_plan(own + left, devices);
        ck_assert(p.queues == ONIC_MEMORY_OWN);
        ck_assert_uint_eq(p.rcache_max, 32 * m + 1);
        ck_assert_uint_eq(p.rndv_max, 2 * m);
        ck_assert_int_eq(onic_memory_plan(own - 1, devices).queues, ONIC_MEMORY_SMALL);
        ck_assert_int_eq(onic_memory_plan(small, devices).queues, ONIC_MEMORY_SMALL);
        ck_assert_int_eq(onic_memory_plan(small - 1, devices).queues, ONIC_MEMORY_NONE);
        ck_assert_int_eq(onic_memory_plan(0, devices).queues, ONIC_MEMORY_NONE);
    }
}
END_TEST

/** Names, and whether they are of verbs. */
static const struct {
    const char *name;
    bool verbs;
} names[] = {{"rc", true},      {"rc_v", true},    {"rc_x", true},  {"rc_verbs", true},
             {"rc_mlx5", true}, {"ud", true},      {"ud_v", true},  {"ud_x", true},
             {"ud_mlx5", true}, {"dc_mlx5", true}, {"ib", true},    {"dc", true},
             {"tcp", false},    {"self", false},   {"cuda", false}, {"sm", false},
             {"posix", false},  {"ugni", false},   {"sysv", false}, {"rocm", false}};

START_TEST(random_lists)
{
    unit_random_t r = {.state = unit_seed() + (uint64_t)_i};

    for (int repeat = 0; repeat < 1000; repeat++) {
        char list[ROOM] = "", expected[ROOM] = "", out[ROOM];
        const unsigned n = 1 + (unsigned)unit_below(&r, 6);
        bool have = false;

        for (unsigned i = 0; i < n; i++) {
            const size_t k = unit_below(&r, sizeof(names) / sizeof(names[0]));
            char word[32];

            snprintf(word, sizeof(word), "%s%s%s", unit_once_in(&r, 5) ? "\\" : "", names[k].name,
                     unit_once_in(&r, 5) ? ":aux" : "");
            strcat(strcat(list, i > 0 ? "," : ""), word);
            have = have || names[k].verbs;
            if (!names[k].verbs)
                strcat(strcat(expected, *expected != '\0' ? "," : ""), word);
        }
        UNIT_CHECK(onic_tls_have(ONIC_TLS_VERBS, list) == have);
        UNIT_CHECK(onic_tls_without_verbs(list, out, sizeof(out)) == (*expected != '\0'));
        UNIT_CHECK(*expected == '\0' || strcmp(out, expected) == 0);
        UNIT_CHECK(*expected == '\0' || !onic_tls_have(ONIC_TLS_VERBS, out));
        /* What is left after an exclusion is without verbs, too. */
        snprintf(expected, sizeof(expected), "^%.200s", list);
        UNIT_CHECK(onic_tls_without_verbs(expected, out, sizeof(out)));
        UNIT_CHECK(!onic_tls_have(ONIC_TLS_VERBS, out));
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("adapters", UNIT_LOOP(random_lists, 0, 5), UNIT_LOOP(memory, 0, 5),
                    UNIT_LOOP(transports_are_found, 0, (int)(sizeof(kinds) / sizeof(kinds[0]))),
                    UNIT_ONCE(ports), UNIT_ONCE(verbs_are_taken_out), UNIT_ONCE(posix_is_taken_out),
                    UNIT_ONCE(what_does_not_fit_is_refused), UNIT_ONCE(lists_of_devices),
                    UNIT_ONCE(limits_of_memory));
}
