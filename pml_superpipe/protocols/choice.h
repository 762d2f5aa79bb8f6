/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * By which protocol the data of an announced message comes. The receiver chooses, when the message
 * has found its receive: it knows both sides then. Each protocol is a row: what it can do and what
 * it costs by the model (common/model/link.h).
 *
 * Pure.
 */
#ifndef SUPERPIPE_CHOICE_H
#define SUPERPIPE_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/model/learn.h"
#include "common/model/link.h"

typedef enum superpipe_protocol {
    SUPERPIPE_AUTO,  /**< as a parameter: the cheapest */
    SUPERPIPE_SHORT, /**< with its envelope; the sender's choice, by length */
    SUPERPIPE_STREAM,
    SUPERPIPE_MOVER,
    SUPERPIPE_COPY,
    SUPERPIPE_RENDEZVOUS,
    SUPERPIPE_PROTOCOLS
} superpipe_protocol_t;

/** What is known of a message that has found its receive. */
typedef struct superpipe_case {
    uint64_t length;        /**< bytes that are wanted, at least 1 */
    uint64_t send_block;    /**< bytes of a contiguous piece at the sender, on average */
    uint64_t receive_block; /**< and here */
    bool one_piece;         /**< the sender has it in one piece, and has told where */
    bool here_one_piece;    /**< and so has the receiver */
    bool node;              /**< sender and receiver are on one node */
    bool self;              /**< sender and receiver are one process */
    bool single_copy;       /**< the sender's memory can be read */
    bool mover;             /**< the mover reaches here from there */
    bool rendezvous;        /**< UCX can move it between the two memories */
    double pins; /**< registrations that it has to bear for that, 0 .. 2: one for each side
                    (reuse.h) */
} superpipe_case_t;

typedef struct superpipe_row {
    const char *name; /**< value of pml_superpipe_protocol */
    bool (*can)(const superpipe_case_t *c);
    double (*cost)(const superpipe_case_t *c, const onic_link_t *link); /**< nanoseconds */
} superpipe_row_t;

/** By superpipe_protocol_t. can and cost of the first two are NULL. */
extern const superpipe_row_t superpipe_rows[SUPERPIPE_PROTOCOLS];

/** The protocol of that name, or SUPERPIPE_PROTOCOLS where there is none. */
superpipe_protocol_t superpipe_protocol_named(const char *name);

/** Is a message of so many bytes sent as a whole, with its envelope? `eager`: the parameter;
 *  `fragment`: what a message of the wire holds besides the envelope. Where another protocol is
 * forced only those without data are. */
bool superpipe_is_short(uint64_t length, uint64_t eager, uint64_t fragment,
                        superpipe_protocol_t forced);

/** Bytes of a message that is announced which are sent without being asked for: all of it where the
 *  model sends them in fragments anyway and they are no more than `most`; else what is packed while
 *  the announcement is answered, C0 of the superpipeline (A. Denis 2011, section 4). Whole
 * fragments of `fragment` bytes, not more than `most` bytes, but for a message that ends. `c`: as
 * far as the sender knows it. None where another protocol is forced. */
uint64_t superpipe_early(const superpipe_case_t *c, const onic_link_t *link, uint64_t fragment,
                         uint64_t most, superpipe_protocol_t forced);

/** Bytes of a contiguous piece of a layout, on average; at least 1. */
uint64_t superpipe_mean_block(const onic_layout_t *l);

/** What each would take by the model, nanoseconds; infinite for those that cannot do it, and for
 *  what is not chosen here. By superpipe_protocol_t, of which there are fewer than
 *  ONIC_LEARN_CHOICES; the rest is infinite, too. */
void superpipe_estimate(const superpipe_case_t *c, const onic_link_t *link,
                        double cost[ONIC_LEARN_CHOICES]);

/** The cheapest of those. */
superpipe_protocol_t superpipe_cheapest(const double cost[ONIC_LEARN_CHOICES]);

/** The cheapest of those that can; `forced` where it can, unless that is SUPERPIPE_AUTO. */
superpipe_protocol_t superpipe_choose(const superpipe_case_t *c, const onic_link_t *link,
                                      superpipe_protocol_t forced);

/** Most bytes of superpipe_plan_table with the closing 0. */
#define SUPERPIPE_PLAN_MAX 4096

/** Writes what is chosen by size and block for peers of the node and of other hosts, as a table
 *  with a line for each kind of data. `eager`: up to how many bytes messages are short. */
void superpipe_plan_table(const onic_links_t *links, superpipe_protocol_t forced, bool single_copy,
                          bool mover, const uint64_t eager[2], char *text, size_t cap);

#endif
