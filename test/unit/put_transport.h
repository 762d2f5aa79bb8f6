/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * A wire in place of the one over UCX, for puts alone (common/transport/transport.h,
 * common/transport/put.h): it takes its time, brings puts in whatever order, and its connections
 * break when the test says so. It watches that nobody puts into memory that was given back.
 */
#pragma once

#include "common/transport/transport.h"
#include "common/transport/put.h"
#include "test/unit/unit.h"

enum { PUTS_MAX = 4096, REGIONS_MAX = 128, REMOTES_MAX = 16384 };

struct onic_region {
    void *base;
    size_t size;
    bool left, freed;
};

struct onic_remote {
    onic_region_t *region;
    bool cut;
    int failures; /**< puts that were refused or have failed */
};

/** A put: first UCX has it and reads the word when it likes, then the network. */
typedef struct put {
    onic_remote_t *remote;
    onic_region_t *region;
    size_t offset;
    const uint64_t *word; /**< NULL once it has been read */
    uint64_t value;
    onic_send_cb_t cb;
    void *arg;
} put_t;

extern struct put_transport {
    unit_random_t random;
    bool at_once;   /**< puts are locally complete when they are made */
    bool overtaken; /**< puts into one flag may arrive in another order */
    onic_work_fn_t deferred;
    bool defer; /**< it is to be run */
    put_t put[PUTS_MAX];
    int puts;
    onic_region_t *region[REGIONS_MAX];
    int regions;
    onic_remote_t *remote[REMOTES_MAX];
    int remotes, open_remotes;
    unsigned losses;
    bool silent; /**< of puts that cannot arrive nothing is said */
    bool ends;   /**< when the transport is closed it still says so */
    int told;    /**< losses of which the user was told */
    int wants_server, references;
} wire;

/** The next thing happens to put `i`: UCX is done with its word, or the network brings it. The lock
 *  is held. */
void put_wire_step(int i);

/** Something happens if `any`, or nothing; then what the transport runs behind its progress. */
int put_wire_progress(bool any);

/** Until all puts have arrived that were made. */
void put_wire_drain(void);
