/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The names of the methods that move data, and what the model knows of the way to a kind of peer.
 * Pure.
 */
#ifndef NICSTRIDE_METHOD_H
#define NICSTRIDE_METHOD_H

#include <stdint.h>

#include "common/model/link.h"

typedef enum nicstride_method {
    NICSTRIDE_METHOD_AUTO = 0, /**< not a method: let the chooser choose */
    NICSTRIDE_METHOD_DIRECT,   /**< load and store: the target is mapped, or is this process */
    NICSTRIDE_METHOD_CMA,      /**< process_vm_readv/writev of the pieces: private, same node */
    NICSTRIDE_METHOD_SIEVE,    /**< get: process_vm_readv of the covering extent, then gather */
    NICSTRIDE_METHOD_PACK,     /**< packed fragments by active messages: everywhere */
    NICSTRIDE_METHOD_MOVER,    /**< pipelined through slots of the receiver's landing area */
    NICSTRIDE_METHOD_ZCOPY,    /**< contiguous on both sides: rendezvous into place */
    NICSTRIDE_METHOD_LAST
} nicstride_method_t;

typedef enum nicstride_direction {
    NICSTRIDE_PUT,
    NICSTRIDE_GET,
    NICSTRIDE_ACC
} nicstride_direction_t;

/** Who would answer a message now? */
typedef enum nicstride_presence {
    NICSTRIDE_PRESENT = 0, /**< an MPI thread of the target, as far as is known */
    NICSTRIDE_SERVED,      /**< its server thread, which has to be woken and can be */
    NICSTRIDE_ABSENT       /**< nobody, until the server thread takes over */
} nicstride_presence_t;

typedef struct nicstride_path {
    onic_link_t link;
    uint64_t sieve_piece; /**< bytes that one read of a sieve covers */
} nicstride_path_t;

/** The ways to peers on the node and across a network. */
typedef struct nicstride_paths {
    nicstride_path_t node;
    nicstride_path_t net;
} nicstride_paths_t;

#endif
