/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Costs for tests: plain ones, and what they come to, by a way of its own; and random ones.
 */
#pragma once

#include <math.h>

#include "common/model/link.h"
#include "test/unit/unit.h"

/** Numbers as far apart as they are on machines. */
static inline void any_numbers(unit_random_t *r, onic_links_t *links)
{
    double *number = (double *)links;

    *links = onic_links_default("other");
    for (size_t i = 0; i < sizeof(*links) / sizeof(double); i++)
        number[i] *= pow(2, (double)unit_below(r, 9) - 4);
}

/** A piece costs the same whatever its length is, up to the greatest known one, and a byte whatever
 *  comes before it. */
static inline onic_cost_t plain_cost(double start, double piece, double byte)
{
    return (onic_cost_t){start, byte, byte, {piece, piece, piece, piece}};
}

/** onic_cost by its words: a piece is looked up between the two lengths that it lies between. */
static inline double naive_cost(const onic_cost_t *c, double pieces, double block, double bytes)
{
    static const double lengths[] = {8, 64, 1024, 16384};
    double piece = c->piece[3] * block / lengths[3];
    double sum = c->start;

    for (int i = 2; i >= 0; i--)
        if (block <= lengths[i + 1]) {
            const double part = (block - lengths[i]) / (lengths[i + 1] - lengths[i]);

            piece = part <= 0 ? c->piece[i] : (1 - part) * c->piece[i] + part * c->piece[i + 1];
        }
    sum += (pieces - 1) * piece;
    return bytes <= 262144 ? sum + bytes * c->byte
                           : sum + 262144 * c->byte + (bytes - 262144) * c->beyond;
}
