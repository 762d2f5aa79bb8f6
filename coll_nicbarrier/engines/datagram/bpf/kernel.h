/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Barriers in the kernel: loads the programs, attaches them to an interface, and installs groups
 * (state.h). Needs CAP_BPF and CAP_NET_ADMIN. One thread at a time, and one set of programs.
 *
 * Loaded programs live as long as their attachment, which outlives a killed process until detach or
 * the next attach.
 */
#pragma once

#include <stdint.h>

#include "coll_nicbarrier/engines/datagram/bpf/state.h"

/** Descriptors of the programs, for tests that run them directly. */
typedef struct nicbarrier_bpf_programs {
    int in, out;
} nicbarrier_bpf_programs_t;

/** @return 0, or -1 and errno: EPERM without the capabilities, else what the kernel says */
int nicbarrier_bpf_load(void);
/** Frees everything that is not attached. */
void nicbarrier_bpf_unload(void);
nicbarrier_bpf_programs_t nicbarrier_bpf_programs(void);

/** Attaches to an interface; replaces what another process has left there.
 *  @return 0, or an errno: then some of it may be attached */
int nicbarrier_bpf_attach(int interface);
/** Detaches what this process, or one that was killed, has attached. */
void nicbarrier_bpf_detach(int interface);

/** Installs a group with an empty page.
 *  @return a descriptor of the page, to be mapped, which the caller closes; or -1 and errno: EEXIST
 *  if the group exists, E2BIG if there is no room */
int nicbarrier_bpf_install(const nicbarrier_bpf_id_t *id);
/** Removes the group. When it returns, no program uses the group any more. */
void nicbarrier_bpf_remove(const nicbarrier_bpf_id_t *id);
