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

/** What has become of something: which message went to which receive. */
typedef struct naive_pair {
    int message, receive;
} naive_pair_t;

typedef struct naive_pairs {
    naive_pair_t at[NAIVE_MOST];
    size_t n;
} naive_pairs_t;

/** A communicator, or the messages that came for one that does not exist. Zero-initialise. */
typedef struct naive_comm {
    bool exists;
    naive_list_t posted;
    naive_list_t unexpected;
    naive_list_t parked; /* before the communicator exists */
} naive_comm_t;

/** Adds the pairs that come of an arrival, in their order. */
void naive_arrive(naive_comm_t *c, naive_item_t message, naive_pairs_t *pairs);
/** It exists from now on; what came before arrives. */
void naive_create(naive_comm_t *c, naive_pairs_t *pairs);
/** The message for a receive, taken out, or NAIVE_NONE: then it is posted. */
int naive_post(naive_comm_t *c, naive_item_t receive);
/** The unexpected message that such a receive would get, or NAIVE_NONE. */
int naive_find(const naive_comm_t *c, int32_t source, int32_t tag);
/** Takes that item out; false where it is not there. */
bool naive_take(naive_list_t *list, int id);
