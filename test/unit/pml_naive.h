/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * MPI's matching as plainly as it can be said: lists that are gone through from their beginning.
 * Messages and receives are numbers of the test's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAIVE_RANKS 4
/** In a list; a program may have less. */
#ifndef NAIVE_MOST
#define NAIVE_MOST 1024
#endif
#define NAIVE_NONE (-1)
/* In place of a source or a tag. */
#define NAIVE_ANY (-1)

/** A message, or a receive. */
typedef struct naive_item {
    int id;
    int32_t source, tag;
} naive_item_t;

/** In the order in which they came. */
typedef struct naive_list {
    naive_item_t at[NAIVE_MOST];
    size_t n;
} naive_list_t;

/** A communicator. Zero-initialise. */
typedef struct naive_comm {
    naive_list_t posted;
    naive_list_t unexpected;
} naive_comm_t;

/** The receive of a message that comes, taken out, or NAIVE_NONE: then it is unexpected. */
int naive_arrive(naive_comm_t *c, naive_item_t message);
/** The message for a receive, taken out, or NAIVE_NONE: then it is posted. */
int naive_post(naive_comm_t *c, naive_item_t receive);
/** The unexpected message that such a receive would get, or NAIVE_NONE. */
int naive_find(const naive_comm_t *c, int32_t source, int32_t tag);
/** Takes that item out; false where it is not there. */
bool naive_take(naive_list_t *list, int id);
