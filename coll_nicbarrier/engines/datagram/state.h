/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Engine datagram, inside: barriers over an unreliable network with receiver-driven retransmission
 * (Yu et al. 2004, section 6). Decisions are made in epoch/ and in the pure files here: packet.h,
 * udp_address.h. Below this file are the socket (udp.h) and steppers (stepper.h), above it the
 * engine's row, in datagram.c.
 *
 * One lock serves all groups of a process and is held for some microseconds at a time; threads in
 * progress do not wait for it. Functions here are called with it held, unless they say otherwise.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "coll_nicbarrier/engines/datagram/bpf/client.h"
#include "coll_nicbarrier/engines/datagram/params.h"
#include "coll_nicbarrier/engines/datagram/stepper.h"
#include "coll_nicbarrier/engines/datagram/udp.h"
#include "coll_nicbarrier/engines/engine.h"
#include "coll_nicbarrier/epoch/nack.h"
#include "common/support/clock.h"

/* ---- state: send.c --------------------------------------------------------------------------- */

/** Consecutive NACKs refused by a host after which the partner there is dead. */
#define NICBARRIER_REFUSALS 3

/** A member that sends to this one or receives from it. */
typedef struct nicbarrier_partner {
    int32_t member;
    uint32_t cookie;         /**< must be in packets to it */
    nicbarrier_address_t at; /**< as chosen by udp_address.h */
    uint8_t refused;         /**< NACKs refused by its host since something came */
} nicbarrier_partner_t;

struct nicbarrier_net {
    nicbarrier_net_t *next;
    nicbarrier_group_t group;
    nicbarrier_shm_t *node; /**< NULL: none */
    bool connected;
    bool gone;                  /**< disconnected, but others may still need answers */
    _Atomic uint64_t completed; /**< as reported to the node */
    atomic_bool failed;         /**< likewise */
    nicbarrier_rule_t rule;     /**< the state; with a page, as last read */
    const nicbarrier_stepper_t *stepper;
    /* Of stepper bpf; its page stays when it is stopped, since others may read it. */
    nicbarrier_bpf_client_t kernel;
    _Atomic(nicbarrier_bpf_page_t *) page; /**< NULL: this process takes the steps */
    uint64_t taken;                        /**< words that the kernel has taken, counted so far */
    nicbarrier_nacks_t nacks;
    int npartners;
    nicbarrier_partner_t partner[2 * NICBARRIER_STEPS_MAX];
    nicbarrier_partner_t *to[NICBARRIER_STEPS_MAX];   /**< by step; NULL: none */
    nicbarrier_partner_t *from[NICBARRIER_STEPS_MAX]; /**< likewise */
};

typedef struct nicbarrier_datagram {
    uint64_t silence;          /**< nanoseconds after which a NACK is sent */
    uint32_t cookie;           /**< must be in packets to this process */
    uint64_t random;           /**< state of the random numbers for drop */
    atomic_bool locked;        /**< the lock */
    unsigned long long ticks;  /**< grows with calls of MPI threads */
    _Atomic uint64_t deadline; /**< of the first NACK that may become due */
    nicbarrier_net_t *first;   /**< of all groups: few, so that a packet's is soon found */
    /* the helper thread */
    pthread_t thread;
    bool has_thread; /**< from the first group on */
    int wake_fd;
    atomic_bool stop;
    bool helping;  /**< the helper thread holds the lock */
    bool awaiting; /**< processes behind this one have not entered what it has */
} nicbarrier_datagram_t;

extern nicbarrier_datagram_t nicbarrier_datagram;

/** Any thread. False if the lock is taken. */
static inline bool nicbarrier_datagram_trylock(void)
{
    return !atomic_load_explicit(&nicbarrier_datagram.locked, memory_order_relaxed) &&
           !atomic_exchange_explicit(&nicbarrier_datagram.locked, true, memory_order_acquire);
}

/** Waits for the lock, for some microseconds. Any thread. */
void nicbarrier_datagram_lock(void);
static inline void nicbarrier_datagram_unlock(void)
{
    atomic_store_explicit(&nicbarrier_datagram.locked, false, memory_order_release);
}

/* ---- packets out: send.c --------------------------------------------------------------------- */

/** Encodes and sends a packet with this process's own cookie, unless the parameter drop drops it;
 *  an error counts as a loss. */
void nicbarrier_datagram_post(nicbarrier_address_t to, nicbarrier_packet_t packet);
/** Sends a packet about my step k to its partner (the receiver of the step; for NACK the sender);
 *  the kind of packet says what `word` is. */
void nicbarrier_datagram_send(nicbarrier_net_t *net, nicbarrier_packet_kind_t kind, uint32_t k,
                              uint64_t word);

/* ---- steps.c --------------------------------------------------------------------------------- */

/** The page of a group whose steps the kernel takes, or NULL. Any thread. */
static inline nicbarrier_bpf_page_t *nicbarrier_net_page(const nicbarrier_net_t *net)
{
    return atomic_load_explicit(&net->page, memory_order_acquire);
}

/** Gives a group, whose partners are known, a stepper; false and the reason if none that the user
 *  wants can have it. Without the lock, for a group that is not connected: it may wait for seconds.
 */
bool nicbarrier_steps_begin(nicbarrier_net_t *net, nicbarrier_reason_t *why);
/** Shows a program in the kernel the packet of each step. For the receiver it is a repetition that
 *  is late. */
void nicbarrier_steps_teach(nicbarrier_net_t *net);
/** The state of a connected group. Notes which words the kernel has taken in by itself. */
const nicbarrier_rule_t *nicbarrier_net_state(nicbarrier_net_t *net);
/** Enters all epochs up to this one; takes in a word that is new for step k. What becomes due is
 *  sent. If the stepper can no longer do it, this process takes the steps over. */
void nicbarrier_steps_enter(nicbarrier_net_t *net, uint64_t epoch);
void nicbarrier_steps_take(nicbarrier_net_t *net, uint32_t k, uint64_t word);

/* ---- groups: group.c ------------------------------------------------------------------------- */

void nicbarrier_datagram_add(nicbarrier_net_t *net);
/** The group of that key, or NULL. */
nicbarrier_net_t *nicbarrier_datagram_find(uint64_t key);
/** Calls a function for every group; the function may free the group. */
void nicbarrier_datagram_each(void (*function)(nicbarrier_net_t *, uint64_t), uint64_t what);
/** Removes the group and frees it. */
void nicbarrier_datagram_free(nicbarrier_net_t *net);
/** The communicator is gone: frees the group now, or when it is over. A failed group stays, so that
 *  NACKs are answered with the failure; NACKs for an unknown group are answered as input.c says. */
void nicbarrier_datagram_leave(nicbarrier_net_t *net);

/** Enters all epochs up to `epoch` and sends what becomes due. False if they were already entered.
 */
bool nicbarrier_datagram_enter(nicbarrier_net_t *net, uint64_t epoch);
/** Enters in all groups the epochs in which the node has arrived, and follows those whose steps
 *  the kernel takes. Notes whether members are awaited. */
void nicbarrier_datagram_see_to_all(void);
/** The connected group has failed: its members are notified. It may be freed afterwards. */
void nicbarrier_datagram_fail(nicbarrier_net_t *net);
/** Sets timers and reports completion after the state has advanced. */
void nicbarrier_datagram_catch_up(nicbarrier_net_t *net, uint64_t now);
/** The same; the group may be freed afterwards. */
void nicbarrier_datagram_follow(nicbarrier_net_t *net, uint64_t now);
/** True if the kernel has completed something by itself; then the engine catches up. */
bool nicbarrier_datagram_look(nicbarrier_net_t *net);
/** A thread is about to sleep on the sockets until something is complete. False if something is. */
bool nicbarrier_datagram_want(nicbarrier_net_t *net);

/* ---- input.c --------------------------------------------------------------------------------- */

/** Takes in packets that have come, and sends NACKs that are due. Returns how many packets brought
 *  something new. `net`: return as soon as this group has completed something; NULL: when nothing
 *  is left. */
int nicbarrier_datagram_receive(nicbarrier_net_t *net);
/** Sleeps until something comes, until a further descriptor (-1: none) becomes readable, or until
 *  the time `until` (onic_now_nsec). Without the lock. */
void nicbarrier_datagram_sleep(int more, uint64_t until);

/* ---- thread.c; MPI threads ------------------------------------------------------------------- */

/** Starts the thread unless it runs; with the lock, as threads may prepare groups at the same time.
 *  @return 0, or an errno */
int nicbarrier_datagram_start_thread(void);
/** Joins it; without the lock. */
void nicbarrier_datagram_stop_thread(void);

/* ---- connect.c: functions of the engine, see engine.h ---------------------------------------- */

int nicbarrier_datagram_prepare(const nicbarrier_group_t *group, nicbarrier_net_t **net_p,
                                nicbarrier_endpoint_t *mine, nicbarrier_reason_t *why);
int nicbarrier_datagram_connect(nicbarrier_net_t *net, const nicbarrier_endpoints_t *endpoints,
                                nicbarrier_shm_t *node, nicbarrier_reason_t *why);
void nicbarrier_datagram_disconnect(nicbarrier_net_t *net);
