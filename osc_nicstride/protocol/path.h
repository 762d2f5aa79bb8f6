/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What the model knows of the way to a kind of peer, and the lengths that follow from it. Pure.
 */
#ifndef NICSTRIDE_PATH_H
#define NICSTRIDE_PATH_H

#include <stdint.h>

#include "common/model/link.h"

typedef struct nicstride_path {
    onic_link_t link;
    uint64_t sieve_piece; /**< bytes that one read of a sieve covers */
    uint64_t overlap;     /**< messages of transfers of fewer bytes than this overlap so much that
                               what one costs alone says nothing of several; a power of two */
} nicstride_path_t;

/** A path of such a link. Messages overlap as long as the bytes of one take less time than the
 *  message itself: a byte costs either side some, and ts is mostly waiting. */
static inline nicstride_path_t nicstride_path(const onic_link_t *link, uint64_t sieve_piece)
{
    nicstride_path_t path = {.link = *link, .sieve_piece = sieve_piece, .overlap = 64};

    while (path.overlap < UINT64_C(1) << 30 &&
           2 * (double)path.overlap * link->byte <= link->message)
        path.overlap *= 2;
    return path;
}

/** The ways to peers on the node and across a network. */
typedef struct nicstride_paths {
    nicstride_path_t node;
    nicstride_path_t net;
} nicstride_paths_t;

#endif
