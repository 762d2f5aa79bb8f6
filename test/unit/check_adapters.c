/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Adapters that UCX may use: lists as users write them, directories made here. */
#include "common/wire/adapters.h"

#include <sys/stat.h>
#include <unistd.h>

#include "common/wire/tls.h"
#include "test/unit/unit.h"

START_TEST(transports)
{
    const char *const with[] = {
        NULL,        "",     "all",     "rc,self", "self,sm,rc_verbs", "tcp,dc_x", "ib",
        "\\rc_mlx5", "^tcp", "^ud,tcp", "^rc",     "^rc_verbs,dc"};
    const char *const without[] = {"tcp",           "tcp,self,sysv,posix,cma",
                                   "ud_verbs,self", "^ib",
                                   "^tcp,ib",       "sm",
                                   "\\tcp",         "^rc,dc",
                                   "^tcp,dc,ud,rc"};

    for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++)
        ck_assert_msg(onic_tls_have_rdma(with[i]), "%s", with[i] != NULL ? with[i] : "NULL");
    for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++)
        ck_assert_msg(!onic_tls_have_rdma(without[i]), "%s", without[i]);
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

int main(void)
{
    const TTest *const tests[] = {transports, ports};

    return unit_run("adapters", tests, sizeof(tests) / sizeof(tests[0]));
}
