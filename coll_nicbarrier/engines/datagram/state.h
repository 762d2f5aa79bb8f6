/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Engine datagram, inside: barriers over an unreliable network with receiver-driven retransmission
 * (Yu et al. 2004, section 6). What is decided stands in epoch/ and the pure files here: reach.h,
 * packet.h, udp_address.h. Below what stands here are the socket (udp.h) and steppers (stepper.h),
 * above it the row of the engine, in datagram.c.
 *
 * One lock serves all groups of a process, for some microseconds at a time; threads in progress do
 * not wait for it. Functions need it, unless they say otherwise.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "coll_nicbarrier/engines/datagram/params.h"
#include "coll_nicbarrier/engines/datagram/stepper.h"
#include "coll_nicbarrier/engines/datagram/udp.h"
#include "coll_nicbarrier/engines/engine.h"
#include "coll_nicbarrier/epoch/nack.h"
#include "common/support/clock.h"

/* ---- state: send.c --------------------------------------------------------------------------- */

struct nicbarrier_net {
    nicbarrier_net_t *next; /**< in the table */
    nicbarrier_group_t group;
    nicbarrier_net_events_t events;
    bool connected;
    bool expected; /**< all members are in what is not complete yet: silence means something */
    bool gone;     /**< disconnected, but others may still need answers */
    _Atomic uint64_t completed; /**< as the events have it */
    atomic_bool failed;         /**< likewise */
    nicbarrier_rule_t rule;     /**< the state; of a stepper's as it was last read */
    const nicbarrier_stepper_t *stepper;
    nicbarrier_offload_t *offload;     /**< stopped, it stays: others may still look at its view */
    _Atomic(nicbarrier_view_t *) view; /**< of the stepper; NULL: this process takes the steps */
    uint64_t heard[NICBARRIER_STEPS_MAX]; /**< received, as far as `reach` knows of it */
    uint64_t taken;                       /**< as counted */
    uint64_t entered;                     /**< as was found last */
    nicbarrier_nacks_t nacks;
    int nsteps;
    nicbarrier_step_t step[NICBARRIER_STEPS_MAX];
    int npartners;
    nicbarrier_partner_t *partner;
    nicbarrier_partner_t *to[NICBARRIER_STEPS_MAX];   /**< by step; NULL: none */
    nicbarrier_partner_t *from[NICBARRIER_STEPS_MAX]; /**< likewise */
};

/** Lists of groups in the table. */
#define NICBARRIER_DATAGRAM_LISTS 64

typedef struct nicbarrier_datagram {
    bool open;
    int schedule; /**< nicbarrier_schedule_kind_t */
    nicbarrier_timing_t timing;
    atomic_bool due;           /**< something has come */
    unsigned polls;            /**< since the socket was of use */
    unsigned shortcuts;        /**< barriers of a stepper that goes on by itself: datagram.c */
    uint32_t cookie;           /**< that packets to this process must carry */
    uint64_t random;           /**< state, for drop */
    atomic_bool locked;        /**< the lock */
    _Atomic uint64_t ticks;    /**< grows with calls of MPI threads */
    _Atomic uint64_t deadline; /**< of the first NACK that may become due */
    nicbarrier_net_t *list[NICBARRIER_DATAGRAM_LISTS];
    /* the helper thread */
    bool has_thread;
    pthread_t thread;
    int wake_fd;
    atomic_bool stop;
    bool helping; /**< it holds the lock */
} nicbarrier_datagram_t;

extern nicbarrier_datagram_t nicbarrier_datagram;

/** Any thread. False: it is taken. */
static inline bool nicbarrier_datagram_trylock(void)
{
    return !atomic_load_explicit(&nicbarrier_datagram.locked, memory_order_relaxed) &&
           !atomic_exchange_explicit(&nicbarrier_datagram.locked, true, memory_order_acquire);
}

/** Waits for it, some microseconds. Any thread. */
void nicbarrier_datagram_lock(void);
static inline void nicbarrier_datagram_unlock(void)
{
    atomic_store_explicit(&nicbarrier_datagram.locked, false, memory_order_release);
}

/* ---- packets out: send.c --------------------------------------------------------------------- */

/** Sends one packet, unless the parameter drop drops it; errors are as if it were lost. */
void nicbarrier_datagram_transmit(const nicbarrier_address_t *to, const unsigned char *packet);
/** Encodes and sends one that has this process's own cookie in it. */
void nicbarrier_datagram_post(const nicbarrier_address_t *to, nicbarrier_packet_t packet);
/** Sends a packet about my step k to its partner (the receiver of the step; for NACK the sender),
 * at this address; `word` as the kind has it. */
void nicbarrier_datagram_send(nicbarrier_net_t *net, nicbarrier_packet_kind_t kind, uint32_t k,
                              const nicbarrier_address_t *at, uint64_t word);

/* ---- offload.c ------------------------------------------------------------------------------- */

/** What the stepper shows, or NULL. Any thread. */
static inline nicbarrier_view_t *nicbarrier_net_view(const nicbarrier_net_t *net)
{
    return atomic_load_explicit(&net->view, memory_order_acquire);
}

/** The state of a connected group. */
static inline const nicbarrier_rule_t *nicbarrier_net_state(nicbarrier_net_t *net)
{
    if (nicbarrier_net_view(net) != NULL)
        net->stepper->snapshot(net->offload, &net->rule);
    return &net->rule;
}

/** The group gets a stepper, or this process takes its steps; false and the reason where the user
 *  wants it otherwise. Without the lock, of a group that is not connected: it may wait for seconds.
 */
bool nicbarrier_offload_install(nicbarrier_net_t *net, nicbarrier_reason_t *why);
/** Of a group that has a stepper: this process takes its place. */
void nicbarrier_offload_fall_back(nicbarrier_net_t *net);
/** As in stepper.h. Of readdress: the partners of step k are reached by other addresses now. */
void nicbarrier_offload_enter(nicbarrier_net_t *net, uint64_t epoch);
void nicbarrier_offload_take(nicbarrier_net_t *net, uint32_t k, uint64_t word);
void nicbarrier_offload_readdress(nicbarrier_net_t *net, uint32_t k);
void nicbarrier_offload_remove(nicbarrier_net_t *net);

/* ---- groups: group.c ------------------------------------------------------------------------- */

/** Adds the group to the table. */
void nicbarrier_datagram_add(nicbarrier_net_t *net);
/** The group of that key, or NULL. */
nicbarrier_net_t *nicbarrier_datagram_find(uint64_t key);
/** Calls a function for every group; it may free the group. */
void nicbarrier_datagram_each(void (*function)(nicbarrier_net_t *, uint64_t), uint64_t what);
/** True if it has nothing more to send but answers. */
bool nicbarrier_datagram_is_over(nicbarrier_net_t *net);
/** Removes the group from the table and frees it. */
void nicbarrier_datagram_free(nicbarrier_net_t *net);
/** The communicator is gone: frees the group now, or when it is over. One that has failed stays,
 *  to answer so; for others that are not there any more every question is granted (input.c). */
void nicbarrier_datagram_leave(nicbarrier_net_t *net);

/** Enters all epochs up to `epoch` and sends what becomes due; false where they were entered. */
bool nicbarrier_datagram_enter(nicbarrier_net_t *net, uint64_t epoch);
/** Enters in all groups what members behind this one have (events.entered), and follows steppers
 *  that go on by themselves. */
void nicbarrier_datagram_see_to_all(void);
/** The connected group has failed: its members are notified. Follow must come after it. */
void nicbarrier_datagram_set_failed(nicbarrier_net_t *net);
/** Fails the group, and follows. */
void nicbarrier_datagram_fail(nicbarrier_net_t *net);
/** The stepper has gone on: timers, completion. */
void nicbarrier_datagram_catch_up(nicbarrier_net_t *net, uint64_t now);
/** The same; the group may be freed afterwards. */
void nicbarrier_datagram_follow(nicbarrier_net_t *net, uint64_t now);
/** Has the stepper completed something by itself? Then the engine catches up, as where another
 *  process of the node has entered. */
bool nicbarrier_datagram_look(nicbarrier_net_t *net);
/** A thread is about to sleep on the sockets until something is complete; false: something is. */
bool nicbarrier_datagram_want(nicbarrier_net_t *net);
/** The partner is reached by another address from now on: the stepper is updated. */
void nicbarrier_datagram_moved(nicbarrier_net_t *net, const nicbarrier_partner_t *p);

/* ---- input.c --------------------------------------------------------------------------------- */

/** Takes in what has come, and sends NACKs that are due; how many packets brought something new.
 *  `net`: return at once when this one has completed something; NULL: when nothing is left. */
int nicbarrier_datagram_receive(nicbarrier_net_t *net);
/** Sleeps until something comes, a descriptor more (-1: none) becomes readable, or it is
 *  `until` (onic_now_nsec). Without the lock. */
void nicbarrier_datagram_sleep(int more, uint64_t until);

/* ---- thread.c; MPI threads ------------------------------------------------------------------- */

/** Starts it where there is none yet. @return 0, or an errno */
int nicbarrier_datagram_start_thread(void);
/** Joins it, if there is one. */
void nicbarrier_datagram_stop_thread(void);

/* ---- connect.c: functions of the engine, see engine.h ---------------------------------------- */

int nicbarrier_datagram_prepare(const nicbarrier_group_t *group, nicbarrier_net_t **net_p,
                                void *bytes, uint32_t *len_p, nicbarrier_reason_t *why);
int nicbarrier_datagram_connect(nicbarrier_net_t *net, const nicbarrier_endpoints_t *endpoints,
                                const nicbarrier_net_events_t *events, nicbarrier_reason_t *why);
bool nicbarrier_datagram_hopeless(nicbarrier_net_t *net, nicbarrier_reason_t *why);
void nicbarrier_datagram_disconnect(nicbarrier_net_t *net);

/* All but the first in processes that may have opened nothing. */
uint32_t nicbarrier_datagram_follower_record(nicbarrier_net_t *net, void *bytes);
nicbarrier_follower_t *nicbarrier_datagram_attach(const void *bytes, uint32_t len);
void nicbarrier_datagram_notify(nicbarrier_follower_t *b, uint64_t epoch, bool attentive);
uint64_t nicbarrier_datagram_known(const nicbarrier_follower_t *b);
void nicbarrier_datagram_detach(nicbarrier_follower_t *b);
