/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What the files of the mover share. Not for components.
 *
 * A transfer has an end in user memory, a machine (pipe.h) that decides, and a carrier that knows
 * how slots and words are reached. Locks, in this order: the wire lock, the mover's lock. The
 * latter guards lists and marks, is held for short and never while data moves or a callback runs.
 * Whoever works on a transfer has claimed it before.
 */
#ifndef ONIC_TRANSFER_INTERNAL_H
#define ONIC_TRANSFER_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/mover/area.h"
#include "common/mover/mover.h"
#include "common/mover/pipe/pipe.h"
#include "common/mover/pipe/policy.h"

/** How slots and words are reached: one row for each kind of peer. All are called by the thread
 *  that has claimed the transfer, without locks. Slots are numbers below 64. */
typedef struct onic_carrier {
    const char *name;
    uint32_t block;          /**< bytes of a sub-block (pipe.h) */
    onic_policy_kind_t best; /**< the schedule of chunks that AUTO stands for (policy.h) */
    /** Sender: where byte `offset` of a chunk is packed to. Receiver: where it is found. No more
     *  than *len_p bytes stand there behind one another, which may become fewer, for receivers. */
    char *(*at)(onic_transfer_t *t, unsigned slot, uint32_t offset, uint32_t *len_p);
    /** Sender: the word of a slot, after the bytes that it tells of. */
    void (*publish)(onic_transfer_t *t, unsigned slot, uint64_t word);
    /** Receiver: the word as it is now; the bytes that it tells of can be read. */
    uint64_t (*word)(onic_transfer_t *t, unsigned slot);
    /** Receiver: rounds of a slot that have been consumed. */
    void (*acknowledge)(onic_transfer_t *t, unsigned slot, uint64_t rounds);
    /** Sender: the same as it is now. */
    uint64_t (*acknowledged)(onic_transfer_t *t, unsigned slot);
    /** Receiver, or sender whose ticket nobody knows: these slots of the lease are free again. */
    void (*give_back)(onic_transfer_t *t, uint64_t slots);
    /** Is the other side known to be dead? May take some tens of microseconds. */
    bool (*is_dead)(const onic_transfer_t *t);
    /** The transfer is over and goes back to its pool; `withdrawn`: the other side does not know of
     *  it. With or without locks. NULL: nothing to be done. */
    void (*closed)(onic_transfer_t *t, bool withdrawn);
} onic_carrier_t;

/** The peers of this node. */
extern const onic_carrier_t onic_carrier_node;

typedef enum onic_role { ONIC_SENDS, ONIC_RECEIVES } onic_role_t;

/** What is known of another process, from the first time on until the mover is closed. */
typedef struct onic_mover_peer {
    struct onic_mover_peer *next;
    onic_peer_t *peer;
    const onic_carrier_t *carrier; /**< NULL: it is not reached */
    bool tried;                    /**< not reached, for good */
    onic_area_t area;              /**< of a peer of this node */
    onic_pool_wait_t wait;         /**< for slots of its area */
    onic_pool_wait_t own_wait;     /**< for slots of mine, on its behalf */
} onic_mover_peer_t;

/** Under the mover's lock. */
typedef enum onic_transfer_state {
    ONIC_TRANSFER_FREE,   /**< in the pool */
    ONIC_TRANSFER_NEW,    /**< known to its maker only */
    ONIC_TRANSFER_QUEUED, /**< waits for a thread */
    ONIC_TRANSFER_CLAIMED /**< a thread works on it, or its `done` is to be called */
} onic_transfer_state_t;

struct onic_transfer {
    onic_transfer_t *next, **link; /**< among those under way; or next in the pool */
    onic_transfer_t *next_report;  /**< among those whose `done` is to be called */
    onic_transfer_state_t state;
    onic_role_t role;
    bool has_end;     /**< false: nobody is told, and what comes is thrown away */
    bool over;        /**< the machine has come to its end */
    bool withdrawn;   /**< the other side knows nothing of it, or will do nothing with it */
    bool tells;       /**< `done` is to be called with `status`, by who has it claimed */
    int status;       /**< for `done` */
    uint32_t name;    /**< as in the ticket */
    atomic_uint stop; /**< what others ask of who has it claimed: a set of ONIC_STOP_... */
    const onic_carrier_t *carrier;
    onic_peer_t *peer;
    onic_area_t *area; /**< the receiver's, as mapped here; node only */
    uint64_t owner;    /**< who has the lease; node only */
    onic_life_t other; /**< the other side; node only */
    uint64_t slots;    /**< of the lease, that the receiver has to give back */
    uint64_t freed;    /**< of these, consumed for the last time */
    onic_mover_end_t end;
    onic_cursor_t cursor;
    union {
        onic_sender_t sender;
        onic_receiver_t receiver;
    };
    uint32_t chunks;      /**< packed so far, to be counted in the end */
    uint32_t waits;       /**< gaps, or stalls, likewise (counters.h) */
    bool waits_now;       /**< the last of them has not ended */
    unsigned stalls;      /**< looks in a row that found nothing to do */
    uint64_t stalled;     /**< nanoseconds: since when, or when it was last looked into */
    void *carrier_memory; /**< the carrier's own */
};

enum {
    ONIC_STOP_END = 1,  /**< the end is to be told of an error */
    ONIC_STOP_LEASE = 2 /**< nothing will come: the lease is to be given back, nobody is told */
};

/** The process's mover. */
typedef struct onic_mover {
    int refs;
    atomic_bool open;
    atomic_uint inside; /**< threads in onic_mover_progress */
    bool has_area;
    onic_area_t area;
    onic_segment_key_t key;
    uint64_t me;              /**< as an owner of slots elsewhere; 0: not known */
    onic_mover_peer_t *peers; /**< under the wire lock */
    atomic_bool lock;
    /* Under it: */
    onic_transfer_t *first, **last;
    onic_transfer_t *pool[2]; /**< by role */
    uint32_t names;
    onic_transfer_t *reports, **last_report;
    unsigned ntransfers; /**< in memory */
    struct onic_transfer_block *blocks;
    /** Slots of my area that transfers here have to do with: others' tickets do not name them. */
    _Atomic uint64_t receiving;
    /** Transfers that are not in the pool nor new. */
    _Alignas(64) atomic_uint active;
} onic_mover_t;

/* Exported for the test of the mover. */
ONIC_EXPORT extern onic_mover_t onic_mover;

void onic_mover_lock(void);
void onic_mover_unlock(void);

/* peers.c; the wire lock is held */
/** What is known of a peer; NULL where the mover does not reach it. */
ONIC_EXPORT onic_mover_peer_t *onic_mover_peer(onic_peer_t *peer);
/** onic_wire_forget_fn_t: gives back what is known of one that has left. */
bool onic_mover_forget_peer(onic_peer_t *peer, bool left);
/** Gives back all that is known. */
void onic_mover_forget_peers(void);

/* transfer.c */
/** One from the pool, NULL where there is none. All zero but its role, its state and its name. */
onic_transfer_t *onic_transfer_new(onic_role_t role);
/** Moves an end in, NULL for none, and begins the machine over the lease `t->slots`. The wire lock
 *  is held. */
void onic_transfer_begin(onic_transfer_t *t, onic_mover_end_t *end, uint64_t len,
                         uint32_t slot_bytes);
/** From now on threads may work on it. */
void onic_transfer_queue(onic_transfer_t *t);
/** A new one that comes to nothing, without an end. */
void onic_transfer_drop(onic_transfer_t *t);
/** Has what waits told; the wire lock is held. Returns how many. */
int onic_transfers_tell_locked(void);
/** Is a transfer with that peer under way? The wire lock is held. */
bool onic_transfers_name(const onic_peer_t *peer);
/** Memory for receivers, as many as an area can have. False where there is none. */
bool onic_transfers_start(void);
/** Ends all with an error. The wire lock is held, no thread is inside. */
void onic_transfers_end_locked(void);
/** Frees the memory. Nothing is under way. */
void onic_transfers_stop(void);

/* chunks.c; the wire lock is held */
/** The schedule of a transfer of so many bytes, in multiples of `unit`, through slots with `room`.
 */
onic_schedule_t onic_transfer_schedule_locked(const onic_carrier_t *carrier, uint64_t len,
                                              uint32_t unit, uint32_t room);
/** Nobody has a wish any more. */
void onic_mover_forget_schedule_locked(void);

/* counters.c; any thread, with or without locks */
void onic_mover_count(unsigned long long *counter, unsigned long long n);
/** Counts a transfer that is over. */
void onic_mover_count_transfer(const onic_transfer_t *t);
/** So many slots of my area were in use. */
void onic_mover_count_slots(unsigned in_use);

/* work.c */
/** Does what others have asked for, then at most `limit` pieces of what can be done now; returns
 *  how many. The caller has claimed it. Sets over, tells and status. */
int onic_transfer_work(onic_transfer_t *t, int limit);

#endif
