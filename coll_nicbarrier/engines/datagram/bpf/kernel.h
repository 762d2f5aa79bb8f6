/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Barriers in the kernel: loads the programs, attaches them to an interface, and installs groups
 * (state.h). Needs CAP_BPF and CAP_NET_ADMIN. One thread at a time.
 *
 * Loaded programs live as long as their attachment, which outlives a killed process until detach or
 * the next attach.
 */
#pragma once

#include <stdint.h>

#include "coll_nicbarrier/engines/datagram/bpf/state.h"

typedef struct nicbarrier_bpf_kernel nicbarrier_bpf_kernel_t;

/** Descriptors of the programs, for tests that run them directly. */
typedef struct nicbarrier_bpf_programs {
    int in, out;
} nicbarrier_bpf_programs_t;

/** @return NULL and errno: EPERM without the capabilities, else what the kernel says */
nicbarrier_bpf_kernel_t *nicbarrier_bpf_load(void);
/** Detaches from the interface, if attached, and frees everything. */
void nicbarrier_bpf_unload(nicbarrier_bpf_kernel_t *k);
nicbarrier_bpf_programs_t nicbarrier_bpf_programs(const nicbarrier_bpf_kernel_t *k);

/** Attaches to an interface; replaces what another process has left there.
 *  @return 0, or an errno */
int nicbarrier_bpf_attach(nicbarrier_bpf_kernel_t *k, int interface);
/** Removes what a killed process has left on an interface. */
void nicbarrier_bpf_sweep(int interface);

/** A group to be installed; read during the call only. */
typedef struct nicbarrier_bpf_plan {
    nicbarrier_bpf_id_t id;
    nicbarrier_rule_t rule; /**< the initial state */
    nicbarrier_bpf_group_t group;
} nicbarrier_bpf_plan_t;

/** @return a descriptor of the page, to be mapped, which the caller closes; or -1 and errno: EEXIST
 *  if the group exists, E2BIG if there is no room */
int nicbarrier_bpf_install(nicbarrier_bpf_kernel_t *k, const nicbarrier_bpf_plan_t *plan);
/** Removes the group. When it returns, no program uses the group any more. */
void nicbarrier_bpf_remove(nicbarrier_bpf_kernel_t *k, const nicbarrier_bpf_id_t *id);
