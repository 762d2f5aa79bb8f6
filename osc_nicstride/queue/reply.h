/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What comes back to an origin: data, by message or in the shared cache line (slot.h).
 *
 * All is called with the wire lock held.
 */
#ifndef NICSTRIDE_REPLY_H
#define NICSTRIDE_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire/wire.h"
#include "osc_nicstride/protocol/message.h"
#include "osc_nicstride/window/module.h"

/** A message of a peer, checked but for what it says of the window's memory. */
typedef struct nicstride_incoming {
    nicstride_module_t *m;
    nicstride_peer_t *p;
    const nicstride_msg_t *msg;
    const void *layout;
    const void *data;
    size_t len;
    onic_rndv_t *rndv;
    struct nicstride_list
        *list; /**< that the message names; NULL: none, or one that is not there */
} nicstride_incoming_t;

/** GET_DATA or ACC_DATA: data for an operation of ours. */
void nicstride_on_data(const nicstride_incoming_t *in);

/** Puts in place what the peer answered in its slot (slot.h), which was just found. */
void nicstride_place_answer_locked(nicstride_peer_t *p);

/** An error class as a peer reports it; what is none becomes MPI_ERR_OTHER. */
int nicstride_error_class(int status);

#endif
