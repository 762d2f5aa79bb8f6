/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Groups of a network engine whose members are all in this process; the functions are those
 *  of a row (nicbarrier_conformance.h). */
#pragma once

#include <string.h>

#include "coll_nicbarrier/engines/shm/shm.h"
#include "test/unit/nicbarrier_conformance.h"

enum { NODE_ROOM = 2048 };

static struct {
    const nicbarrier_engine_t *engine;
    nicbarrier_schedule_kind_t schedule;
    int n;
    nicbarrier_net_t *net[CONFORMANCE_MEMBERS_MAX];
    nicbarrier_endpoint_t endpoint[CONFORMANCE_MEMBERS_MAX];
    /** Of members that here_connect connects: a node on which each is alone. */
    nicbarrier_shm_t node[CONFORMANCE_MEMBERS_MAX];
    _Alignas(128) unsigned char memory[CONFORMANCE_MEMBERS_MAX][NODE_ROOM];
} here;

/** All members of another group. */
static void here_prepare(void)
{
    nicbarrier_reason_t why = {""};

    for (int i = 0; i < here.n; i++) {
        nicbarrier_group_t group = {.key = 7, .n = here.n, .me = i};

        nicbarrier_group_plan(&group, here.schedule);
        here.endpoint[i].member = i;
        ck_assert_int_eq(here.engine->prepare(&group, &here.net[i], &here.endpoint[i], &why), 0);
    }
}

static void here_begin(const nicbarrier_engine_t *engine, int n,
                       nicbarrier_schedule_kind_t schedule)
{
    nicbarrier_reason_t why = {""};

    memset(&here, 0, sizeof(here));
    here.engine = engine;
    here.schedule = schedule;
    here.n = n;
    ck_assert_int_eq(engine->open(false, &why), 0);
    here_prepare();
}

static void connect_with(int i, nicbarrier_shm_t *node)
{
    const nicbarrier_endpoints_t endpoints = {here.n, here.endpoint};
    nicbarrier_reason_t why = {""};

    ck_assert_int_eq(here.engine->connect(here.net[i], &endpoints, node, &why), 0);
}

static void here_connect(int i)
{
    memset(here.memory[i], 0, NODE_ROOM);
    ck_assert_uint_le(nicbarrier_shm_bytes(1, 2), NODE_ROOM);
    nicbarrier_shm_attach(&here.node[i], here.memory[i], 1, 0, 2, true);
    connect_with(i, &here.node[i]);
}

static void here_enter(int i, uint64_t epoch)
{
    here.engine->enter(here.net[i], epoch);
}

static uint64_t here_completed(int i)
{
    if (here.node[i].head != NULL)
        conformance_told(i, nicbarrier_shm_completed(&here.node[i]));
    return here.engine->completed(here.net[i]);
}

static bool here_failed(int i)
{
    return here.engine->failed(here.net[i]);
}

static void here_progress(int i)
{
    (void)here.engine->progress(here.net[i]);
}

static void here_disconnect(int i)
{
    here.engine->disconnect(here.net[i]);
}

static void here_end(void)
{
    here.engine->close();
}

static void here_fail(int i)
{
    here.engine->fail(here.net[i]);
}

#define IN_THIS_PROCESS                                                                            \
    .every = 1, .steps = 5000, .quiet = 400, .patience = 20000, .enter = here_enter,               \
    .completed = here_completed, .failed = here_failed, .progress = here_progress,                 \
    .disconnect = here_disconnect
