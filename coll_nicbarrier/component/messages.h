/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Barriers by point-to-point messages: dissemination, by the rule of epochs (rule.h). Pure: the
 * messages are a table of functions.
 *
 * A message is a word, 8 bytes. In step k of ceil(log2 n) a member sends to the one 2^k behind it,
 * and hears from the one 2^k before it; these are different members for different steps, so one tag
 * serves for all. Any number of barriers may be outstanding, and a word may stand for several.
 *
 * None is left over, neither a message nor a receive that was posted, once all barriers are
 * complete at all members. For the words of a step arrive in the order in which they are sent, and
 * grow; the last of them is the last epoch that was begun, since each member enters that. The
 * receiver posts a receive only while its word is less than an epoch that it has entered: so there
 * is still a message to come. And its last barrier is complete only when it has the last word, and
 * with that all before it. So whatever uses the same tag later finds nothing of this.
 *
 * Members may be told of a failure by its bit in a word; where it is over a connection that has
 * failed, what is under way stays so, and its memory is given up for that.
 *
 * Threads: the caller serialises.
 */
#ifndef NICBARRIER_MESSAGES_H
#define NICBARRIER_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "coll_nicbarrier/epoch/rule.h"

/** Bytes of a message. */
#define NICBARRIER_MESSAGE_BYTES 8

/** How messages go. Between two members they stay in order. A request is whatever the functions
 *  take for it, NULL being none. */
typedef struct nicbarrier_messages_ops {
    /** Starts one; `bytes` stay until it is complete. 0, or a code. */
    int (*send)(void *arg, int member, const void *bytes, void **request_p);
    int (*receive)(void *arg, int member, void *bytes, void **request_p);
    /** 1 where it is complete and *request_p NULL; 0 where it is not yet; or a code below 0 or
     *  above 1: it has failed, and *request_p is NULL. */
    int (*test)(void *arg, void **request_p);
} nicbarrier_messages_ops_t;

typedef struct nicbarrier_messages nicbarrier_messages_t;

/** The messages of member `me` of `n` >= 2. `failed` is the code where another member has said that
 *  there is a failure. NULL where memory is exhausted. Nothing is sent. */
nicbarrier_messages_t *nicbarrier_messages_new(int n, int me, int failed,
                                               const nicbarrier_messages_ops_t *ops, void *arg);

/** Where something is under way the memory is not freed, because it may still be written to. */
void nicbarrier_messages_free(nicbarrier_messages_t *m);

/** Enters all epochs up to `epoch`. */
void nicbarrier_messages_enter(nicbarrier_messages_t *m, uint64_t epoch);

/** Takes in what has come, sends what became due. Returns how many messages came. */
int nicbarrier_messages_progress(nicbarrier_messages_t *m);

/** Is the epoch complete? Of the last that was entered: and does nothing go on any more? */
bool nicbarrier_messages_done(const nicbarrier_messages_t *m, uint64_t epoch);

/** 0, or the code of what has failed. */
int nicbarrier_messages_failure(const nicbarrier_messages_t *m);

#endif
