/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What every engine must do (nicbarrier_conformance.h), for barriers in the kernel, by the engine
 * itself over interfaces of hosts. That the programs do what the rule says, whatever packets come,
 * check_nicbarrier_bpf tests.
 */
#include "coll_nicbarrier/engines/datagram/params.h"
#include "test/unit/bpf_hosts.h"
#include "test/unit/nicbarrier_members.h"

static void to_host(int me)
{
    nicbarrier_datagram_config.interface = "eth0";
    nicbarrier_datagram_config.stepper = NICBARRIER_BPF;
    bpf_hosts_go(me, 65534);
}

static void hosts_begin(int n, nicbarrier_schedule_kind_t schedule, uint64_t seed)
{
    (void)seed;
    members_begin(n, schedule, to_host);
}

static const conformance_row_t over_interfaces = {.name = "datagram, stepped in the kernel",
                                                  .every = 8,
                                                  .steps = 1500,
                                                  .begin = hosts_begin,
                                                  MEMBERS_ROW};

int main(void)
{
    const conformance_row_t *const rows[] = {&over_interfaces};
    Suite *suite = suite_create("nicbarrier_bpf_conformance");
    const char *obstacle = bpf_hosts_obstacle();
    if (obstacle == NULL && !bpf_hosts_make(CONFORMANCE_MEMBERS_MAX))
        return EXIT_FAILURE;
    if (obstacle != NULL) {
        unit_skip(obstacle);
        return EXIT_SUCCESS;
    }
    conformance_add(suite, rows, 1);
    const int status = unit_run_suite(suite);
    return bpf_hosts_remove() ? status : EXIT_FAILURE;
}
