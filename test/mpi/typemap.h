/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What a datatype names, by MPI's definition of its constructors alone: an oracle that has nothing
 * in common with what Open MPI or we make of it. Only sizes of predefined types and extents are
 * asked of Open MPI, since those are its own choice.
 */
#pragma once

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

/** Bytes in a row, relative to the buffer address. */
typedef struct typemap_piece {
    MPI_Aint disp;
    MPI_Aint size; /**< > 0 */
} typemap_piece_t;

/** One element of a type: its bytes in the order in which they are sent. */
typedef struct typemap {
    typemap_piece_t *pieces;
    size_t n;
    size_t room;
    size_t size;     /**< of all pieces */
    MPI_Aint lo;     /**< lowest byte, and one more than the highest; 0 and 0 if there are none */
    MPI_Aint hi;     /**< */
    MPI_Aint extent; /**< from one element to the next */
} typemap_t;

/** Of any type but those that MPI_Type_create_f90_* make; free it by typemap_free(). Ends the
 *  program where it runs out of memory or meets a constructor that it does not know. */
typemap_t typemap_of(MPI_Datatype type);

void typemap_free(typemap_t *map);

/** The bytes that `count` elements touch: lo and hi as above; 0 and 0 if none. */
void typemap_span(const typemap_t *map, int count, MPI_Aint *lo, MPI_Aint *hi);

/** What MPI_Pack should do: `packed` has room for count * size bytes. */
void typemap_pack(const typemap_t *map, int count, const void *buffer, void *packed);

/** What MPI_Unpack should do. */
void typemap_unpack(const typemap_t *map, int count, const void *packed, void *buffer);
