/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The wire form of layouts. Internal to the layout code.
 *
 *  One byte says the form (low half) and the number of levels (high half). Then
 *
 *      empty   nothing
 *      stride  offset, block
 *      list    runs: flags (one byte), distance from the offset of the run before, then what the
 *              flags leave open of block, count, stride; the last run carries a flag
 *      around  offset; the list itself is known
 *
 *  and behind all of them the levels from the innermost: count, stride. Numbers are base-128
 *  varints, seven bits in a byte, the lowest first; signed ones are folded (0, -1, 1, -2 ...).
 *  Numbers, runs and the stride form have one encoding each, and the decoder refuses all others. */
#ifndef ONIC_LAYOUT_FORM_H
#define ONIC_LAYOUT_FORM_H

enum {
    FORM_EMPTY = 0,
    FORM_STRIDE = 1,
    FORM_LIST = 2,
    FORM_AROUND = 3,
    FORM_MASK = 15,
    LEVELS_SHIFT = 4
};

enum {
    RUN_SAME_BLOCK = 1,  /* the block is as long as in the run before */
    RUN_ONE = 2,         /* one block: no count, no stride */
    RUN_SAME_REPEAT = 4, /* count and stride as in the run before */
    RUN_LAST = 8,
    RUN_FLAGS = 15
};

#endif
