/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Random MPI datatypes for property tests, from a seed: the same seed gives the same type.
 */
#pragma once

#include <mpi.h>
#include <stdbool.h>

#include "test/mpi/testlib.h"

/** What a random type may be. */
enum random_type_flags {
    /** Elements never share a byte, neither in one type nor between the `count` elements of any
     *  count: fit to be received into and to be a target of RMA. */
    RANDOM_TYPE_NO_OVERLAP = 1,
    /** Not an empty type. */
    RANDOM_TYPE_NOT_EMPTY = 2,
    /** No byte of any count of elements lies below the buffer address. */
    RANDOM_TYPE_NOT_NEGATIVE = 4
};

/** Most bytes of data of one random type. */
#define RANDOM_TYPE_MAX_SIZE 4096
/** The bytes and the extent of one random type stay within +- this many bytes. */
#define RANDOM_TYPE_REACH 65536

/**
 * Makes and commits a random datatype; free it with MPI_Type_free. Constructors: contiguous,
 * vector, hvector, indexed, hindexed, indexed_block, hindexed_block, struct, subarray, darray,
 * resized, dup, nested `depth` deep (0: a basic type, dup'ed), strides and displacements of both
 * signs, blocks of no elements.
 *
 * @param basic  the only basic type it is made of, predefined, such as MPI_INT; all displacements
 *               are then multiples of its extent. MPI_DATATYPE_NULL: a mix of many types, pair
 *               types with gaps among them, with displacements of any alignment.
 * @param lo,hi  lowest byte that one element touches and one more than the highest, relative to
 *               the buffer address; both 0 if it touches none.
 */
MPI_Datatype random_type(tl_rng_t *r, int depth, unsigned flags, MPI_Datatype basic, MPI_Aint *lo,
                         MPI_Aint *hi);

/** The bytes that `count` elements of any type touch: lo and hi as above; 0 and 0 if none. */
void random_type_span(MPI_Datatype type, int count, MPI_Aint *lo, MPI_Aint *hi);

/** True where any two elements of `count` elements of a type share a byte. Exact; allocates as
 *  many bytes as they span. */
bool random_type_overlaps(MPI_Datatype type, int count);
