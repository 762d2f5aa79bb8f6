/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What this process keeps about another one, for all windows that the two share.
 */
#ifndef NICSTRIDE_PROCESS_H
#define NICSTRIDE_PROCESS_H

#include "common/model/learn.h"
#include "common/wire/wire.h"
#include "osc_nicstride/protocol/credit.h"

struct nicstride_peer;

typedef struct nicstride_process {
    struct nicstride_process *next;
    nicstride_quota_t quota;
    struct nicstride_peer *peers; /**< of all windows that have one for it */
    onic_learn_t *learn;          /**< what its transfers cost, or NULL; see channel/observe.h */
} nicstride_process_t;

/** All of them; wire lock. */
extern nicstride_process_t *nicstride_processes;

/** The record of a process, made if need be; NULL where memory is exhausted. Wire lock. */
nicstride_process_t *nicstride_process_locked(onic_peer_t *wire);

/** Frees them, at the end of the process. */
void nicstride_processes_fini(void);

#endif
