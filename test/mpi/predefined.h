/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The predefined datatypes of MPI: what each is made of, so that tests can give them values that
 * every operation takes exactly, and compare values without the bytes that hold none.
 */
#pragma once

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Largest element: two long doubles. */
#define PREDEFINED_MAX 32

/** The groups by which the standard says which operation takes which type. */
enum {
    PREDEFINED_INTEGER = 1, /**< of C */
    PREDEFINED_FLOAT = 2,
    PREDEFINED_COMPLEX = 4,
    PREDEFINED_LOGICAL = 8,
    PREDEFINED_BYTE = 16,
    PREDEFINED_PAIR = 32,          /**< value and index */
    PREDEFINED_TEXT = 64,          /**< characters: MPI_REPLACE and MPI_NO_OP only */
    PREDEFINED_OTHER_INTEGER = 128 /**< of Fortran, addresses, offsets, counts */
};

typedef enum predefined_field { FIELD_NONE, FIELD_INTEGER, FIELD_FLOAT, FIELD_TRUTH } field_kind_t;

/** A type as one or two fields of numbers. */
typedef struct predefined {
    const char *name;
    MPI_Datatype type;
    unsigned class;
    int fields;
    field_kind_t kind[2];
    size_t at[2];
    size_t size[2];        /**< of the field in memory */
    size_t significant[2]; /**< bytes of it that hold the value, from its start */
    size_t extent;
} predefined_t;

/** The index-th type that this MPI has; false behind the last. Call after MPI_Init. */
bool predefined_get(int index, predefined_t *type);

/** Sets `count` elements to small values; bytes between the fields are left alone. */
void predefined_fill(const predefined_t *type, void *elements, int count, uint64_t seed);

/** Copies the fields and nothing else. */
void predefined_copy(const predefined_t *type, const void *from, void *to, int count);

/** Compares the bytes that hold values. */
bool predefined_equal(const predefined_t *type, const void *a, const void *b, int count);

/** Compares the bytes of `length` that belong to no field of the first `count` elements. */
bool predefined_gaps_equal(const predefined_t *type, const void *a, const void *b, int count,
                           size_t length);
