/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * A group of engine datagram whose members are processes that do what they are told, one call at a
 * time; between calls their helper threads do what they like. Over sockets of this host, or
 * of several, and one packet in ten is dropped. The functions are those of a row
 * (nicbarrier_conformance.h).
 */
#pragma once

#include "coll_nicbarrier/engines/engine.h"
#include "coll_nicbarrier/schedule/schedule.h"

/** Each member calls `set_up` before it opens the engine, to set its parameters, which are of
 *  interface `lo` without one. */
void members_begin(int n, nicbarrier_schedule_kind_t schedule, void (*set_up)(int me));
void members_connect(int i);
void members_enter(int i, uint64_t epoch);
uint64_t members_completed(int i);
bool members_failed(int i);
void members_progress(int i);
void members_pass(void);
void members_disconnect(int i);
void members_end(void);
void members_fail(int i);
void members_together(uint64_t last);

/** All of a row but its name, how much it runs, and `begin`. */
#define MEMBERS_ROW                                                                                \
    .quiet = 10, .patience = 400000, .connect = members_connect, .enter = members_enter,           \
    .completed = members_completed, .failed = members_failed, .progress = members_progress,        \
    .pass = members_pass, .disconnect = members_disconnect, .end = members_end,                    \
    .fail = members_fail, .together = members_together,                                            \
    .cannot = {[CONFORMANCE_CUT] = "it has no connections: packets are lost all the time",         \
               [CONFORMANCE_ABANDON] = "a group that was freed grants what is asked"}
