/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Handling of what comes from peers. All is called with the wire lock held.
 */
#ifndef NICSTRIDE_HANDLERS_H
#define NICSTRIDE_HANDLERS_H

#include "osc_nicstride/module.h"

/* ---- for the wire and for windows ------------------------------------------------------------ */

/** The wire's function for messages; wire.h describes the parameters. */
void nicstride_am(const void *header, size_t header_len, const void *data, size_t len,
                  onic_rndv_t *rndv);
/** Tries what had to be put off; the wire's deferred function. */
int nicstride_run_deferred(void);
/** Drops what was put off for a window that goes away. */
void nicstride_drop_deferred_locked(uint32_t win);
/** An operation of the peer has had its effect: counts it, acknowledges where due. */
void nicstride_applied_locked(nicstride_module_t *m, nicstride_peer_t *p, int error);

/* ---- among the files that handle messages ---------------------------------------------------- */

/** What a message is about, once checked. */
typedef struct nicstride_incoming {
    nicstride_module_t *m;
    nicstride_peer_t *p;
    const nicstride_msg_t *msg;
    const void *layout;
    const void *data;
    size_t len;
    onic_rndv_t *rndv;
} nicstride_incoming_t;

/** An operation of the peer has had its effect: counts it. True where an acknowledgement is due. */
static inline bool nicstride_count_applied(nicstride_module_t *m, nicstride_peer_t *p, int error)
{
    if (p->local < 0)
        m->applied_far++;
    if (error != 0 && m->applied_error == 0 && (nicstride_is_active(m) || m->epoch.exposed))
        m->applied_error = error;
    return nicstride_rx_applied(&p->rx, error);
}

/** Tells the peer what is applied. */
void nicstride_acknowledge_locked(nicstride_module_t *m, nicstride_peer_t *p);

/** Handles a message with nothing beside it if that can be done quickly (handlers_short.c). False
 *  where it cannot: nothing was done. */
bool nicstride_on_short(const void *bytes, size_t len);

/** The window of that name, or NULL where it is gone. */
nicstride_module_t *nicstride_find_window(uint32_t name);

/**
 * Decodes the layout of a message and makes sure that all it names is in the window. Returns an
 * MPI error class, 0 where all is well; the caller frees the layout then. `*base_p` is where the
 * layout's offsets count from and `*at_p` the packed position where the message begins in it.
 */
int nicstride_open_target(const nicstride_incoming_t *in, onic_layout_t *l, char **base_p,
                          uint64_t *at_p);

/** True where all bytes of the layout at `disp` belong to the window. */
bool nicstride_target_holds(const nicstride_module_t *m, int64_t disp, const onic_layout_t *l);

/** The bytes of a message without a layout, in a window that is not dynamic; NULL where it is not
 *  such a message, or where they are not in the window. */
char *nicstride_plain_target(const nicstride_incoming_t *in);

/** Begins a reply of `len` bytes to the operation that the message belongs to. */
void nicstride_reply_init(const nicstride_incoming_t *in, nicstride_msg_t *msg,
                          nicstride_msg_type_t type, uint64_t len);

/** Answers with a few bytes, up to nicstride_small_max, that are copied; with that the message is
 *  applied. An acknowledgement that is due goes along. */
void nicstride_reply_small(const nicstride_incoming_t *in, nicstride_msg_type_t type,
                           const void *data, uint64_t len);

/** Tells the origin that `len` bytes of its operation will get no data; `type` is that of the
 *  reply. */
void nicstride_refuse(const nicstride_incoming_t *in, nicstride_msg_type_t type, uint64_t len,
                      int error);

/** An error class as a peer reports it; what is none becomes MPI_ERR_OTHER. */
int nicstride_error_class(int status);

/** A get of a peer. */
void nicstride_on_get(const nicstride_incoming_t *in);
/** An accumulate of any kind. False where the accumulate lock is busy: nothing was done, try
 *  later. */
bool nicstride_on_accumulate(const nicstride_incoming_t *in);
/** Most bytes of an element of any type. */
#define NICSTRIDE_ELEMENT_MAX 64
/** Applies a GET_ACC or CAS of exactly one element, `len` bytes without gaps at `at` in the window,
 *  that changes it; `old`, of NICSTRIDE_ELEMENT_MAX bytes, gets the value from before. `data` is
 * the operand, or both of a CAS. False where it is not so plain, or has to wait: nothing was done.
 */
bool nicstride_fetch_element(nicstride_module_t *m, nicstride_msg_type_t type, unsigned op,
                             unsigned dtype, void *at, const void *data, size_t len, void *old);
/** Does anything that takes locks wait for one? Others that do must wait behind it. */
bool nicstride_any_deferred_locked(void);
/** Data for an operation of ours. */
void nicstride_on_data(const nicstride_incoming_t *in);

#endif
