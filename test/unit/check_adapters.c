/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What UCX may use: lists of transports and of devices; adapters, in directories made here; and
 * locked memory.
 */
#include "common/transport/ucx/adapters.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/unit/unit.h"

/** Lists that have such transports, and some that have none. */
static const struct {
    onic_tls_t kind;
    const char *with[20], *none[10];
} kinds[] = {
    {ONIC_TLS_VERBS,
     {"", "all", "rc", "tcp,ud", "self,ib", "\\rc_verbs", "tcp,ud_verbs:aux", "dc_x,self", "^tcp",
      "^rc,ud", "^cuda", "tcp,all", "^rc,dc", "^ud,dc,rc_v", "rc_mlx5"},
     {"tcp", "cuda,tcp,self", "^ib", "^tcp,ib", "posix", "self", "\\tcp,sm", "rocm,ibx"}},
    {ONIC_TLS_RDMA,
     {"", "all", "rc,self", "self,sm,rc_verbs", "tcp,dc_x", "ib", "\\rc_mlx5", "^tcp", "^ud,tcp",
      "^rc", "^rc_verbs,dc", "^rc,dc"},
     {"tcp", "tcp,self,sysv,posix,cma", "ud_verbs,self", "^ib", "^tcp,ib", "sm", "\\tcp", "rocm"}},
    {ONIC_TLS_MEMORY,
     {"", "all", "tcp,posix", "sm", "\\sysv,rc", "^tcp", "^posix", "^ib,posix", "shm,tcp",
      "^posix,sysv", "self,shared_memory"},
     {"tcp,self", "rc,ud:aux", "^sm", "^tcp,shm", "cma", "^shared_memory"}},
    {ONIC_TLS_TCP, {"", "all", "tcp,self", "\\tcp", "rc,tcp:aux", "^ib"}, {"rc,self", "^tcp"}},
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
    ck_assert(!onic_devices_have("^mlx5_1,mlx5_0:2", "mlx5_1"));
    ck_assert(onic_devices_have("^mlx5_0,mlx5_2:2", "mlx5_1"));
    for (unsigned port = 1; port < 3; port++) {
        ck_assert(onic_devices_have_port(NULL, "mlx5_1", port));
        ck_assert(onic_devices_have_port("eth0,mlx5_1", "mlx5_1", port));
        ck_assert(onic_devices_have_port("eth0,mlx5_1:1", "mlx5_1", port) == (port == 1));
        ck_assert(onic_devices_have_port("^eth0,mlx5_1:1", "mlx5_1", port) == (port != 1));
        ck_assert(!onic_devices_have_port("^mlx5_1", "mlx5_1", port));
        ck_assert(!onic_devices_have_port("mlx5_1:11,mlx5_11:1", "mlx5_1", port));
    }
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

/** As somebody whom the limit binds, with a limit of 64 KiB. */
static int ask_as_user(void)
{
    const struct rlimit limit = {1 << 16, 1 << 16};

    if ((getuid() == 0 && setuid(65534) != 0) || setrlimit(RLIMIT_MEMLOCK, &limit) != 0)
        return 1;
    if (!onic_can_lock(1 << 16))
        return 2;
    return onic_can_lock((1 << 16) + 1) ? 3 : 0;
}

START_TEST(locked_memory)
{
    const pid_t child = fork();
    int status;

    if (child == 0)
        _exit(ask_as_user());
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

int main(void)
{
    return UNIT_RUN("adapters",
                    UNIT_LOOP(transports_are_found, 0, (int)(sizeof(kinds) / sizeof(kinds[0]))),
                    UNIT_ONCE(ports), UNIT_ONCE(lists_of_devices), UNIT_ONCE(locked_memory));
}
