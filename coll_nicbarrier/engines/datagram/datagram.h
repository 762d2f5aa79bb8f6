/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Engine datagram, inside: barriers over an unreliable network with receiver-driven retransmission
 * (Yu et al. 2004, section 6). What is decided stands in epoch/ and the pure files here:
 * farewell.h, reach.h, tombstone.h, packet.h, endpoint.h, udp_address.h, filter.h, budget.h.
 *
 *     datagram.c      the engine's functions: process, barriers, pokes
 *     group.c         likewise: groups
 *     stepper.h       who executes the rule of barriers
 *     flow.c          packets in
 *     send.c          packets out, timers
 *     leave.c         the farewell
 *     thread.c        the helper thread, which stands in for the MPI threads
 *     udp.c           transport UDP
 *     verbs_ud.c      transport verbs UD
 *     params.c        parameters and counters
 *
 * UDP is always there, verbs where a device is. Each pair of partners that both have a port, of
 * which each can reach the other, uses verbs, the others UDP: reach.h.
 *
 * One lock serves all groups of a process. Threads in enter and progress do not wait for it: who
 * finds it taken leaves a note of what is wanted for the holder. It is held for some microseconds
 * at a time, longer when groups are made.
 */
#ifndef NICBARRIER_DATAGRAM_H
#define NICBARRIER_DATAGRAM_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "coll_nicbarrier/engines/engine.h"
#include "coll_nicbarrier/engines/datagram/budget.h"
#include "coll_nicbarrier/engines/datagram/endpoint.h"
#include "coll_nicbarrier/engines/datagram/farewell.h"
#include "coll_nicbarrier/engines/datagram/packet.h"
#include "coll_nicbarrier/engines/datagram/udp_address.h"
#include "coll_nicbarrier/engines/datagram/reach.h"
#include "coll_nicbarrier/engines/datagram/stepper.h"
#include "coll_nicbarrier/engines/datagram/tombstone.h"
#include "coll_nicbarrier/epoch/nack.h"
#include "common/support/clock.h"

/** When datagrams go by verbs and not by UDP. */
typedef enum nicbarrier_verbs_use {
    NICBARRIER_VERBS_AUTO, /**< between all that have a device and can reach each other by it */
    NICBARRIER_VERBS_NEVER,
    NICBARRIER_VERBS_ALWAYS /**< whoever cannot does not use this engine */
} nicbarrier_verbs_use_t;

/** What the user asks of the engine; the values of its parameters, checked already. */
typedef struct nicbarrier_datagram_config {
    const char *interface; /**< udp_address.h: nicbarrier_ip_wanted; NULL: choose */
    int verbs;             /**< nicbarrier_verbs_use_t; the same on all members */
    const char *device;    /**< verbs devices (common/verbs/verbs_port.h); NULL: choose */
    int nack_usec;         /**< silence after which a NACK is sent; 10 .. 1000000 */
    int silence;           /**< seconds of a partner after which a group has failed; 0: never */
    int drop;              /**< for tests: of 1000 packets to send so many are dropped */
} nicbarrier_datagram_config_t;

extern nicbarrier_datagram_config_t nicbarrier_datagram_config;
extern const nicbarrier_param_t nicbarrier_datagram_params[];
extern const nicbarrier_counter_t nicbarrier_datagram_counter_table[];

/* ---- counters ---------------------------------------------------------------------------------
 */

/** What the engine has done in this process since it was started. May be read at any time. */
typedef struct nicbarrier_datagram_counters {
    _Atomic uint64_t messages;       /**< of steps, sent without being asked */
    _Atomic uint64_t nacks;          /**< sent */
    _Atomic uint64_t copies;         /**< of these, sent by UDP in addition */
    _Atomic uint64_t nacks_seen;     /**< received */
    _Atomic uint64_t retransmits;    /**< messages repeated because a NACK asked for them */
    _Atomic uint64_t promises;       /**< NACKs answered by LATE */
    _Atomic uint64_t repeats;        /**< promised messages repeated by my own timer */
    _Atomic uint64_t farewells;      /**< packets LEFT and STAY sent */
    _Atomic uint64_t tombstones;     /**< of the retransmits, for groups that were freed already */
    _Atomic uint64_t recovered;      /**< received that were repeated and brought something new */
    _Atomic uint64_t duplicates;     /**< received that brought nothing new */
    _Atomic uint64_t refused;        /**< received that were not understood, or from strangers */
    _Atomic uint64_t dropped;        /**< not sent, for tests (parameter drop) */
    _Atomic uint64_t unsent;         /**< that the kernel or the adapter did not take */
    _Atomic uint64_t verbs_sent;     /**< packets of all kinds that went by verbs */
    _Atomic uint64_t verbs_received; /**< likewise; some may be refused */
    _Atomic uint64_t fallbacks;      /**< from verbs to UDP, because nothing came by verbs */
    _Atomic uint64_t thread_wakeups; /**< of the helper thread while the MPI threads were away */
    _Atomic uint64_t completed;      /**< barriers, though several at once count as one */
    _Atomic uint64_t thread_completed; /**< of these, by the helper thread */
    _Atomic uint64_t handovers;        /**< times that it was told to stand in at once */
} nicbarrier_datagram_counters_t;

extern nicbarrier_datagram_counters_t nicbarrier_datagram_counters;

/** The lock is held, so no other thread counts: cheaper than an atomic addition. */
static inline void nicbarrier_count(_Atomic uint64_t *counter)
{
    const uint64_t n = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, n + 1, memory_order_relaxed);
}

/* ---- transport --------------------------------------------------------------------------------
 */

/** All functions but open, describe and close are called with the lock held; but a group that close
 * buries is released without it, when there is no other thread any more. */
typedef struct nicbarrier_transport {
    const char *name;
    int (*open)(const nicbarrier_datagram_config_t *config, uint32_t cookie,
                nicbarrier_reason_t *why);
    void (*close)(void);
    /** What partners must know; at most NICBARRIER_ENDPOINT_PART_MAX bytes. Returns its length. */
    uint32_t (*describe)(void *bytes);
    /** Understands a partner's description: adds candidates, UDP also the cookie. Without a way
     *  there it adds none and says why; -1 where the description is not understood. */
    int (*resolve)(nicbarrier_partner_t *p, const void *bytes, uint32_t len,
                   nicbarrier_reason_t *why);
    /** Gives up what resolve may have taken for the candidate, which is one of its own. */
    void (*release)(const nicbarrier_address_t *candidate);
    /** A packet that its receiver's host has refused, because nobody listens there; false where
     *  there is none. NULL: that cannot be known. */
    bool (*refused)(unsigned char packet[NICBARRIER_PACKET_SIZE]);
    /** One packet; false where it could not be sent, which is as if it were lost. `fast`: in the
     *  quickest way, though the receiver may then see a source that takes no answers. */
    bool (*send)(const nicbarrier_address_t *to, const unsigned char *packet, bool fast);
    nicbarrier_adopt_t *adopt; /**< to an address of its own */
    /** One packet of up to `size` bytes; its length (0 .. size; size where it is longer), or -1
     *  where there is none. Never waits. */
    int (*receive)(void *bytes, size_t size, nicbarrier_address_t *from);
    /** Becomes readable when something comes, once `arm` was called and nothing had come yet.
     *  Without the lock. */
    int (*descriptor)(void);
    /** False where something has come. */
    bool (*arm)(void);
} nicbarrier_transport_t;

extern const nicbarrier_transport_t nicbarrier_udp;
extern const nicbarrier_transport_t nicbarrier_verbs;

/* ---- groups -----------------------------------------------------------------------------------
 */

struct nicbarrier_net {
    nicbarrier_net_t *next; /**< in the table */
    nicbarrier_group_t group;
    nicbarrier_net_events_t events;
    bool connected; /**< there is a stepper */
    bool expected;  /**< all members are in what is not complete yet: silence means something */
    bool met;       /**< something has been complete, so its partners are peers (farewell.h) */
    bool gone;      /**< disconnected before it was complete, or before promises were kept */
    _Atomic uint64_t wanted;    /**< entered by threads that found the lock taken */
    _Atomic uint64_t completed; /**< what the stepper says, as the events were told */
    _Atomic int failure;        /**< nicbarrier_failure_t */
    const nicbarrier_stepper_t *stepper;
    nicbarrier_stepped_t *stepped;
    nicbarrier_nacks_t nacks;
    int nsteps;
    nicbarrier_step_t step[NICBARRIER_STEPS_MAX];
    int npartners;
    nicbarrier_partner_t *partner;
    nicbarrier_partner_t *to[NICBARRIER_STEPS_MAX];   /**< by step; NULL: nobody */
    nicbarrier_partner_t *from[NICBARRIER_STEPS_MAX]; /**< likewise */
    /** What came for a step before it was connected, and where from (of length 0: nowhere). */
    struct {
        nicbarrier_address_t from;
        uint64_t word;
        bool dead; /**< the word says so */
    } early[NICBARRIER_STEPS_MAX];
};

/** What the stepper says of a connected group; `room` is for its use. */
static inline const nicbarrier_rule_t *nicbarrier_net_state(const nicbarrier_net_t *net,
                                                            nicbarrier_rule_t *room)
{
    return net->stepper->snapshot(net->stepped, room);
}

/** Lists of groups in the table; a power of two. */
#define NICBARRIER_DATAGRAM_LISTS 64
/** Hosts that are remembered, and for how many nanoseconds: then they are tried again. */
#define NICBARRIER_DATAGRAM_UNREACHABLE      64
#define NICBARRIER_DATAGRAM_UNREACHABLE_NSEC UINT64_C(60000000000)

/** A host from which nothing comes through. */
typedef struct nicbarrier_unreachable {
    uint64_t host;
    uint64_t until;
} nicbarrier_unreachable_t;

typedef struct nicbarrier_datagram {
    bool open;
    int schedule; /**< nicbarrier_schedule_kind_t */
    nicbarrier_timing_t timing;
    const nicbarrier_transport_t *transport[NICBARRIER_VIAS]; /**< NULL where it is not open */
    atomic_bool udp_due;                                      /**< something has come by UDP */
    unsigned udp_looks;        /**< while there is verbs, too: since UDP was of use */
    uint32_t cookie;           /**< that packets to this process must carry */
    uint64_t random;           /**< state, for drop */
    atomic_bool locked;        /**< the lock */
    atomic_bool pending;       /**< somebody has posted an entry (nicbarrier_net::wanted) */
    _Atomic uint64_t ticks;    /**< grows with calls of MPI threads */
    uint64_t now;              /**< when somebody last found nothing more to take in; the lock */
    _Atomic uint64_t looked;   /**< when an MPI thread did; NICBARRIER_NEVER: it is about to */
    atomic_bool away;          /**< MPI threads have left, and the helper thread is to stand in */
    _Atomic uint64_t deadline; /**< of the first NACK that may become due */
    nicbarrier_net_t *list[NICBARRIER_DATAGRAM_LISTS];
    nicbarrier_tombstones_t *tombstones;
    nicbarrier_farewell_t *farewell;
    nicbarrier_budget_t budget; /**< for packets that bring nothing */
    nicbarrier_unreachable_t unreachable[NICBARRIER_DATAGRAM_UNREACHABLE];
    unsigned nunreachable; /**< found so far: the oldest are forgotten */
    /* the helper thread */
    bool has_thread;
    pthread_t thread;
    pid_t pid;
    int wake_fd;
    atomic_bool stop;
    atomic_bool watching; /**< it looks at `away` before it next sleeps without the network */
    bool helping;         /**< it holds the lock */
} nicbarrier_datagram_t;

extern nicbarrier_datagram_t nicbarrier_datagram;

static inline bool nicbarrier_datagram_trylock(void)
{
    return !atomic_load(&nicbarrier_datagram.locked) &&
           !atomic_exchange_explicit(&nicbarrier_datagram.locked, true, memory_order_seq_cst);
}

/** For calls that may wait some microseconds. */
void nicbarrier_datagram_lock(void);
/** Does what those wanted who found it taken. */
void nicbarrier_datagram_unlock(void);

/* ---- group.c ----------------------------------------------------------------------------------
 */

int nicbarrier_datagram_prepare(const nicbarrier_group_t *group, nicbarrier_net_t **net_p,
                                void *bytes, uint32_t *len_p, nicbarrier_reason_t *why);
int nicbarrier_datagram_connect(nicbarrier_net_t *net, const nicbarrier_endpoints_t *endpoints,
                                const nicbarrier_net_events_t *events, nicbarrier_reason_t *why);
void nicbarrier_datagram_expect(nicbarrier_net_t *net);
bool nicbarrier_datagram_hopeless(nicbarrier_net_t *net, nicbarrier_reason_t *why);
void nicbarrier_datagram_disconnect(nicbarrier_net_t *net);

/* The lock is held, or there is no other thread any more. */

/** Out of the table, into a tombstone, and freed. */
void nicbarrier_datagram_bury(nicbarrier_net_t *net);
/** Does nobody need it any more but for what a tombstone can answer? */
bool nicbarrier_datagram_is_over(const nicbarrier_net_t *net);
/** The partners' processes are peers from now on. */
void nicbarrier_datagram_meet(nicbarrier_net_t *net);

/* ---- flow.c; the lock is held -----------------------------------------------------------------
 */

nicbarrier_net_t **nicbarrier_datagram_list(uint64_t key);
/** Calls a function for every group; it may bury the group. */
void nicbarrier_datagram_each(void (*function)(nicbarrier_net_t *, uint64_t), uint64_t now);
/** The stepper has gone on: timers, completion. The group may be buried afterwards. */
void nicbarrier_datagram_follow(nicbarrier_net_t *net, uint64_t now);
/** The group has failed; follow must come after it. */
void nicbarrier_datagram_note_failure(nicbarrier_net_t *net, nicbarrier_failure_t failure);
/** Enters all epochs up to `epoch` and sends what becomes due. */
void nicbarrier_datagram_enter(nicbarrier_net_t *net, uint64_t epoch);
/** What was left behind by those who found the lock taken. */
void nicbarrier_datagram_enter_posted(void);
/**
 * Takes in what has come, and sends NACKs that are due.
 *
 * @param net  return at once when this one has completed something; NULL: when nothing is left
 * @return packets that said something new
 */
int nicbarrier_datagram_receive(nicbarrier_net_t *net);
/** Asks all groups what has been entered (events.entered), enters it. */
void nicbarrier_datagram_ask(void);
/** Prepares all transports for sleep; false where something has come. */
bool nicbarrier_datagram_arm(void);

/** What to sleep on after that: fills in up to NICBARRIER_VIAS records. Without the lock. */
nfds_t nicbarrier_datagram_descriptors(struct pollfd *fds);

/* ---- send.c; the lock is held -----------------------------------------------------------------
 */

/** One packet; it may fall out as the parameter drop says. */
void nicbarrier_datagram_throw(const nicbarrier_address_t *to, const unsigned char *packet,
                               bool fast);
/** A packet for the partner of my step k (whom I tell, or for NACK and GOT, whom I hear), at this
 *  address. */
void nicbarrier_datagram_send(nicbarrier_net_t *net, nicbarrier_packet_kind_t kind, uint32_t k,
                              const nicbarrier_address_t *at, uint64_t word, uint8_t flags);
/** The partner has moved: the stepper must know. */
void nicbarrier_datagram_moved(nicbarrier_net_t *net, const nicbarrier_partner_t *p);
/** The first deadline of the group counts from now on. */
void nicbarrier_datagram_note_deadline(const nicbarrier_net_t *net);
/** Sends what is due: NACKs, and repetitions. */
void nicbarrier_datagram_expire(void);
/** Takes in what hosts have refused. */
void nicbarrier_datagram_take_refusals(void);

/* ---- leave.c ----------------------------------------------------------------------------------
 */

/** Stays until nobody needs this process any more (farewell.h). There is no helper thread. */
void nicbarrier_datagram_leave(void);
/** LEFT or STAY has come. The lock is held. */
void nicbarrier_datagram_hear(const nicbarrier_packet_t *p, const nicbarrier_address_t *from);

/* ---- thread.c ---------------------------------------------------------------------------------
 */

/** Starts it where there is none yet. @return 0, or an errno */
int nicbarrier_datagram_start_thread(void);
void nicbarrier_datagram_stop_thread(void);
/** Of an MPI thread, which goes away: the helper thread is to stand in. */
void nicbarrier_datagram_hand_over(void);

/* ---- udp.c ------------------------------------------------------------------------------------
 */

/** Sends one packet from a socket of its own: for processes that have not opened the engine. */
void nicbarrier_udp_throw(const nicbarrier_address_t *to, const unsigned char *packet);
/** How processes of this node reach me. False where they cannot. */
bool nicbarrier_udp_local(nicbarrier_address_t *a);

#endif
