/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The two sides of a transfer in a test: a datatype, a count, and where its data lie in a buffer;
 * and what a transfer should do, computed from MPI's definition of the types (typemap.h).
 */
#pragma once

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "test/mpi/testlib.h"
#include "test/mpi/typemap.h"

/** Starts of buffers' data are multiples of this, so of every displacement unit in use. */
#define TR_ALIGN 16

/**
 * One side. The address given to MPI is buffer + start; all data then lie in
 * [buffer, buffer + span). The type is committed.
 */
typedef struct tr_side {
    MPI_Datatype type;
    int count;
    MPI_Aint start;
    MPI_Aint span;
    typemap_t map; /**< of the type, if tr_place has made the side: that takes long */
} tr_side_t;

/** The elements shapes are made of. Those with a record have gaps that differ by side. */
typedef enum tr_element {
    TR_BYTE,
    TR_SHORT,
    TR_INT,
    TR_DOUBLE,
    TR_COMPLEX,
    TR_PAIR,      /**< MPI_SHORT_INT */
    TR_WIDE_PAIR, /**< MPI_DOUBLE_INT */
    TR_RECORD,
    TR_ELEMENTS
} tr_element_t;

/** What a shape may be. */
enum {
    TR_ORIGIN = 1, /**< origin's layout of a record; otherwise the target's */
    TR_OVERLAP = 2 /**< the same bytes may occur twice: for sources of data only */
};

/** The predefined type of an element; MPI_DATATYPE_NULL for the record. */
MPI_Datatype tr_basic(tr_element_t element);

/** Takes the type over, computes start and span. Any lower bound, extent and count. */
tr_side_t tr_place(MPI_Datatype type, int count);

/** A random type (random_type.h) or several of `n` (>= 0) elements. Equal element and n mean equal
 *  signature. */
tr_side_t tr_shape(tl_rng_t *rng, tr_element_t element, int n, unsigned flags);

/** `bytes` of MPI_BYTE in blocks that are `stride` bytes apart; block must divide bytes. */
tr_side_t tr_strided(MPI_Aint bytes, MPI_Aint block, MPI_Aint stride);

/** `n` elements of a predefined type behind each other. */
tr_side_t tr_plain(MPI_Datatype basic, int n);

/** A type that holds the address of its data, for MPI_BOTTOM; its count is 1. The caller frees it.
 */
MPI_Datatype tr_at_address(const tr_side_t *side, MPI_Aint address);

/** Frees the type, and what is known of it. */
void tr_free(tr_side_t *side);

/** The reference: copies what `from` says out of `src` to where `to` says in `dst`, which may have
 *  room for more. */
void tr_copy(const tr_side_t *from, const void *src, const tr_side_t *to, void *dst);
