/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The outbox of a peer: short messages that wait for others, to travel in one (batch.h).
 *
 * What waits is sent when the outbox is full, before anything else that is sent to the same peer
 * (so that messages keep their order), by every flush, and whenever anybody progresses the wire: an
 * MPI thread that waits for anything, or the server thread, which is woken for that. So nothing
 * waits while anybody waits for it; while the origin is away from MPI and has no server thread, it
 * may stay until the origin's next call.
 *
 * All is called with the wire lock held.
 */
#ifndef NICSTRIDE_OUTBOX_H
#define NICSTRIDE_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>

struct nicstride_peer;

/** Zero-initialise. */
typedef struct nicstride_outbox {
    struct nicstride_parcel *parcel; /**< what waits; NULL: nothing */
    struct nicstride_peer *next;     /**< of those with something that waits */
    struct nicstride_peer **link;    /**< who points at this one */
} nicstride_outbox_t;

/** Sends a message, which is copied, behind what waits; or lets it wait, too, where it may and
 * there is room. */
void nicstride_outbox_post_locked(struct nicstride_peer *p, const void *message, size_t len,
                                  bool may_wait);
/** One of several messages. */
typedef struct nicstride_piece {
    const void *bytes;
    size_t len;
} nicstride_piece_t;

/** Sends these messages in one, alone, after what waits. False where they do not fit or memory is
 *  exhausted: they were not sent. */
bool nicstride_outbox_bundle_locked(struct nicstride_peer *p, const nicstride_piece_t *pieces,
                                    unsigned n);
/** Sends what waits for this peer. */
void nicstride_outbox_send_locked(struct nicstride_peer *p);
/** Sends what waits for anybody; returns how many messages of several. */
int nicstride_outboxes_send_locked(void);
/** Forgets what waits, before the peer is freed. */
void nicstride_outbox_drop_locked(struct nicstride_peer *p);
/** Frees the memory kept for reuse, at the end of the process. */
void nicstride_outboxes_fini(void);

/** While this holds, all short messages to anybody wait: the replies to what came in one message
 *  go back in one. Whoever ends it calls nicstride_outboxes_send_locked. */
extern bool nicstride_outboxes_collect;

#endif
