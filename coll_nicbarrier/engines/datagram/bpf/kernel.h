/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Barriers in the kernel: loads the programs, attaches them to an interface, and installs groups
 * (state.h). Needs CAP_BPF and CAP_NET_ADMIN. Not for several threads at once.
 *
 * What is loaded lives as long as its attachment, which stays behind a process that was killed,
 * until detach or the next attach.
 */
#pragma once

#include <stdint.h>

#include "coll_nicbarrier/engines/datagram/bpf/state.h"

typedef struct nicbarrier_bpf_kernel nicbarrier_bpf_kernel_t;

/** Descriptors of the programs: for what runs them by hand. */
typedef struct nicbarrier_bpf_programs {
    int in, out;
} nicbarrier_bpf_programs_t;

/** @return NULL and errno: EPERM without the capabilities, else what the kernel says */
nicbarrier_bpf_kernel_t *nicbarrier_bpf_load(void);
/** Detaches where it is attached, and frees it. */
void nicbarrier_bpf_unload(nicbarrier_bpf_kernel_t *k);
nicbarrier_bpf_programs_t nicbarrier_bpf_programs(const nicbarrier_bpf_kernel_t *k);

/** Attaches to an interface; what another process has left behind there is replaced.
 *  @return 0, or an errno */
int nicbarrier_bpf_attach(nicbarrier_bpf_kernel_t *k, int interface);
/** Removes what a process that was killed has left behind on an interface. */
void nicbarrier_bpf_sweep(int interface);

/** What is installed of a group; read during the call only. */
typedef struct nicbarrier_bpf_plan {
    nicbarrier_bpf_id_t id;
    nicbarrier_rule_t rule; /**< the state to begin with */
    nicbarrier_bpf_group_t group;
} nicbarrier_bpf_plan_t;

/** @return a descriptor of the page, to be mapped, which the caller closes; or -1 and errno: EEXIST
 *          where there is such a group, E2BIG where there is no room */
int nicbarrier_bpf_install(nicbarrier_bpf_kernel_t *k, const nicbarrier_bpf_plan_t *plan);
/** Another packet and sender for a step of it, as the plan has them. @return 0, or an errno */
int nicbarrier_bpf_update(nicbarrier_bpf_kernel_t *k, const nicbarrier_bpf_plan_t *plan,
                          uint32_t step);
/** Its counters, and how far it is by its page, a descriptor. @return 0, or an errno */
int nicbarrier_bpf_look(const nicbarrier_bpf_kernel_t *k, const nicbarrier_bpf_id_t *id, int page,
                        uint64_t count[NICBARRIER_BPF_COUNTERS], uint64_t *entered,
                        uint64_t *completed);
/** When it returns, no program sees the group any more. */
void nicbarrier_bpf_remove(nicbarrier_bpf_kernel_t *k, const nicbarrier_bpf_id_t *id);
/** Likewise of all groups, in the time of one: before unload, which frees what they have. */
void nicbarrier_bpf_remove_all(nicbarrier_bpf_kernel_t *k);
