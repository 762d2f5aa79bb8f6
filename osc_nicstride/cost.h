/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The constants of the cost model: what they are by default, how they follow from measurements on
 * the running machine, and how they are given by hand.
 *
 * Pure; calibrate.h measures.
 */
#ifndef NICSTRIDE_COST_H
#define NICSTRIDE_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/layout.h"

/** The model's parameters: nanoseconds, and nanoseconds per byte. */
typedef struct nicstride_cost {
    double call;       /**< one system call of single copy */
    double piece;      /**< one more piece in it (ts of equation 1) */
    double copy;       /**< tn of single copy, per byte */
    double block;      /**< one block of a gather or scatter that shares cache lines with others */
    double line;       /**< one that has a cache line for itself */
    double page;       /**< one that has a page for itself */
    double message;    /**< ts of an active message on this path */
    double byte;       /**< tn + 2 tm of packed data on this path (equation 2) */
    double rendezvous; /**< handshake of a rendezvous */
    double rndv_byte;  /**< tn of data moved by rendezvous */
    double wake;       /**< what messages wait for where the target's helper has to be woken */
    double absence;    /**< and where nobody looks yet, and nobody can be woken */
    uint64_t sieve_piece; /**< bytes that one read of a sieve covers */
} nicstride_cost_t;

/** Defaults for a peer on this node and for one across a network. */
extern const nicstride_cost_t nicstride_cost_node;
extern const nicstride_cost_t nicstride_cost_net;

/** What gathering or scattering the blocks of a layout takes beside the moving of its bytes;
 * nothing where it is contiguous. */
double nicstride_gather_cost(const onic_layout_t *l, const nicstride_cost_t *cost);

/** How far from each other the blocks are that the model takes to have a line, and a page, each. */
#define NICSTRIDE_COST_LINE 64
#define NICSTRIDE_COST_PAGE 4096

/** The shortest times of some runs, in nanoseconds; 0 where nothing could be measured. */
typedef struct nicstride_samples {
    double call;   /**< single copy of one short piece */
    double pieces; /**< of `npieces` of them in one call */
    double bytes;  /**< of one piece of `nbytes` */
    double dense;  /**< gather and scatter of `ndense` short blocks, some in each cache line */
    double lines;  /**< of `nlines`, one in each */
    double pages;  /**< of `npages`, one in each page */
    unsigned npieces;
    unsigned ndense;
    unsigned nlines;
    unsigned npages;
    uint64_t nbytes;
} nicstride_samples_t;

/** The most by which measurements change a constant: a processor that was lost while it was
 *  measured shall not spoil it. */
#define NICSTRIDE_COST_FACTOR 8

/** Replaces what was measured; the rest stays. */
void nicstride_cost_fit(nicstride_cost_t *cost, const nicstride_samples_t *samples);

/** Replaces constants by what a text names: "call=1200,piece=400". False, and nothing replaced,
 *  where it is none: an unknown name, or a value that is not positive and finite. */
bool nicstride_cost_read(nicstride_cost_t *cost, const char *text);

/** Writes all constants in that form, at most `cap` bytes with the closing 0. */
void nicstride_cost_write(const nicstride_cost_t *cost, char *buf, size_t cap);

#endif
