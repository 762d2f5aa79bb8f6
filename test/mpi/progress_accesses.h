/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The one-sided operations of the matrix of progress, and what they must leave behind. */
#pragma once

#include "test/mpi/progress.h"
#include "test/mpi/rma.h"

/** Longs; where derived, every other one of them. */
typedef struct amount {
    const char *name;
    int longs;
    bool derived;
} amount_t;
enum { AMOUNTS = 4, ACCESS_LONGS = 45000 };
extern const amount_t access_amounts[AMOUNTS];

/** A target's memory is ACCESS_LONGS longs. */
#define ACCESS_BYTES ((MPI_Aint)ACCESS_LONGS * 8)

/** An operation on its way. */
typedef struct access {
    rma_t op;
    const amount_t *amount;
    long base;             /**< by which its values differ from those of others */
    long *origin, *result; /**< ACCESS_LONGS each */
    MPI_Request request;
} access_t;

/** Makes and frees; ends the job where there is no memory. */
access_t access_new(rma_t op, const amount_t *amount, long base);
void access_free(access_t *a);

/** At the target, before: what the operation finds. */
void access_prepare(const access_t *a, long *memory);
/** At the origin. `second`: a put of one long comes before it. */
void access_begin(access_t *a, const tl_window_t *w, int target, bool second);
/** What there must be then, at the origin and at the target. */
void access_check_origin(const access_t *a, const char *what);
void access_check_target(const access_t *a, const long *memory, bool second, const char *what);
/** Does the target's memory show the operation? */
bool access_arrived(const access_t *a, const volatile long *memory);
