/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What an engine is: something that carries barriers between the members of a group.
 *
 * A *group* are the processes that take part: for a network engine one leader of each node, the
 * other processes of the node being behind the leader in shared memory (shm.h does that part and
 * the composition). A communicator has at most one group, made once by the agreement (agree.h).
 *
 * Barriers of a group are numbered from 1: the *epoch*. Everything is cumulative. To enter epoch e
 * is to have entered all epochs up to e; epoch e is complete at a member when every member is known
 * to have entered e, and then all earlier ones are complete too. Epochs may be entered while
 * earlier ones are not complete, any number of them (each outstanding MPI_Ibarrier is one), and one
 * call may enter several at once.
 *
 * An engine knows nothing of MPI: no header of Open MPI, no request, no communicator. What it has
 * to tell its partners before it can begin it says in an *endpoint*, a record of bytes that the
 * agreement carries to all members of the group. So making a group is three local calls, none of
 * which waits for anybody: endpoint, connect, and later disconnect. An MPI_Ibarrier may do it.
 *
 *     open         once for each process, when the first group is to be made
 *       endpoint      for each group: what the partners must know
 *       connect    for each group, with everybody's endpoints
 *         enter, completed, progress, wait, ...
 *       disconnect for each group, when its communicator is freed
 *     close        once, when the process finalizes
 *
 * Threads: `enter` and `progress` of one group are called by any number of MPI threads at once and
 * protect themselves (a thread that finds the engine busy in `progress` must not wait: it returns
 * 0). open, endpoint, connect, disconnect and close are called by one thread at a time. An engine
 * may have a helper thread of its own, shared by its groups; that thread blocks all signals, sleeps
 * in the kernel, never touches an Open MPI object, and is joined by `close`. After fork the child
 * has no helper thread and must not use the engine: it does not, because it may not call MPI.
 */
#ifndef NICBARRIER_ENGINE_H
#define NICBARRIER_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Why something could not be had: one line for the user, without a full stop or a newline. */
typedef struct nicbarrier_reason {
    char text[200];
} nicbarrier_reason_t;

/** When datagrams go by verbs and not by UDP. */
typedef enum nicbarrier_verbs_use {
    NICBARRIER_VERBS_AUTO, /**< between all that have a device and can reach each other by it */
    NICBARRIER_VERBS_NEVER,
    NICBARRIER_VERBS_ALWAYS /**< who cannot has no engine */
} nicbarrier_verbs_use_t;

/** What the user asks of the network engines; values of the MCA parameters, checked already. The
 *  agreement has made sure that all members have the same in the fields marked so. */
typedef struct nicbarrier_net_config {
    int schedule;          /**< nicbarrier_schedule_kind_t; the same on all members */
    const char *interface; /**< datagrams: name or address/prefix of the interface; NULL: choose */
    int verbs;             /**< datagrams: nicbarrier_verbs_use_t; the same on all members */
    const char *device;    /**< datagrams: verbs devices (port.h); NULL: choose */
    unsigned nack_usec;    /**< datagrams: silence after which a NACK is sent; 10 .. 1000000 */
    unsigned drop;         /**< datagrams, for tests: of 1000 packets to send so many are dropped */
    const char *tls;       /**< put: UCX transports as in UCX_TLS; NULL: of the environment */
    size_t tcp_segment;    /**< put: bytes of one TCP fragment of UCX; 0: UCX's default */
    bool thread;           /**< a helper thread may be started */
} nicbarrier_net_config_t;

/** Who takes part. */
typedef struct nicbarrier_group {
    uint64_t key; /**< names the group among all groups that ever were: one member drew it at
                     random, all have the same. Never 0 */
    int n;        /**< members, at least 2 */
    int me;       /**< my index among them, 0 .. n - 1 */
} nicbarrier_group_t;

/**
 * What an engine calls when something happens, from whatever thread notices it, its helper thread
 * included, and possibly with its locks held: they return soon, never call the engine, and touch no
 * Open MPI object. Both may be NULL.
 */
typedef struct nicbarrier_net_events {
    /** Epoch `epoch` and all before it are complete here. Calls may be late and repeat. */
    void (*complete)(void *arg, uint64_t epoch);
    /** The helper thread has been woken (by a datagram, by `poke`, by its timer): returns the epoch
     *  that this member has entered by now, which the engine enters before it looks on. Called by
     *  the helper thread only; lets the last process of a node that arrives start the network part
     *  although the leader's own thread is computing. */
    uint64_t (*entered)(void *arg);
    void *arg;
} nicbarrier_net_events_t;

/** A group as the engine knows it. */
typedef struct nicbarrier_net nicbarrier_net_t;

/** Longest endpoint and longest poke record of any engine, in bytes. */
#define NICBARRIER_ENDPOINT_MAX 8192
#define NICBARRIER_POKE_MAX     64

/** The endpoints of all members, as the agreement has carried them. */
typedef struct nicbarrier_endpoints {
    const unsigned char *bytes; /**< endpoint of member i at bytes + i * stride */
    size_t stride;
    const uint32_t *len; /**< its length */
} nicbarrier_endpoints_t;

/** A network engine. All functions are there unless it says that they may be NULL. */
typedef struct nicbarrier_engine {
    const char *name; /**< as in coll_nicbarrier_engine */

    /** Starts what the process needs (socket, worker, helper thread). Called again after it failed
     *  or after close. Returns 0, or -1 and the reason. */
    int (*open)(const nicbarrier_net_config_t *config, nicbarrier_reason_t *why);

    /** Stops it. All groups have been disconnected; every process of the job has completed its
     *  barriers, so nobody asks for anything any more. */
    void (*close)(void);

    /** Writes my endpoint for a new group of the key, at most NICBARRIER_ENDPOINT_MAX bytes.
     * Whatever it holds for the group goes into *net_p. The group's members are not known yet
     * beyond group->n and group->me. Returns 0, or -1 and the reason (*net_p is NULL then). */
    int (*prepare)(const nicbarrier_group_t *group, nicbarrier_net_t **net_p, void *bytes,
                   uint32_t *len_p, nicbarrier_reason_t *why);

    /** Learns everybody's endpoints, own included, and becomes ready. Peers may be slower or
     * faster: what they send before this call, or before they have made it, must not be lost for
     * good. Offers are checked as anything that a peer sends. Returns 0, or -1 and the reason: then
     *  disconnect follows. */
    int (*connect)(nicbarrier_net_t *net, const nicbarrier_endpoints_t *endpoints,
                   const nicbarrier_net_events_t *events, nicbarrier_reason_t *why);

    /** All members have connected and entered an epoch that is not complete yet: who is silent from
     *  now on cannot be reached that way. May be NULL. */
    void (*expect)(nicbarrier_net_t *net);

    /** Enters all epochs up to `epoch`; an epoch that was entered already is ignored. Sends what
     * can be sent, waits for nothing. Called by MPI threads. */
    void (*enter)(nicbarrier_net_t *net, uint64_t epoch);

    /** The last epoch that is complete here; an acquire load and nothing else. */
    uint64_t (*completed)(const nicbarrier_net_t *net);

    /** Can a partner no longer be reached, so that what is not complete here may never be? Stays
     * so. An acquire load and nothing else. NULL: the engine tries for ever. */
    bool (*failed)(const nicbarrier_net_t *net);

    /** Takes in what has come, sends what became due, NACKs included. Never waits. Returns how many
     *  packets or flags were new. Called by MPI threads, often. */
    int (*progress)(nicbarrier_net_t *net);

    /** The MPI threads go away with epochs entered that are not complete, probably for longer than
     *  these take: the helper thread is to stand in at once, and not only when they have been away
     *  for a while. It stays until it finds them polling. Called by MPI threads; NULL: there is no
     *  such thread, or it cannot do better. */
    void (*leave)(nicbarrier_net_t *net);

    /** Sleeps in the kernel until something may have come for any group of this process, or for
     *  `usec` microseconds; used after a long wait, when the processor is better given away. May
     *  return early without a reason. NULL: there is nothing to sleep on, and the caller yields. */
    void (*wait)(nicbarrier_net_t *net, unsigned usec);

    /** Lets another process of this node wake this process's helper thread, which then asks
     *  events.entered: writes a record of at most NICBARRIER_POKE_MAX bytes that means something to
     *  `poke` in that process; returns its length, or 0 where there is no helper thread. Both NULL:
     *  cannot be done. After connect. */
    uint32_t (*poke_record)(nicbarrier_net_t *net, void *bytes);
    /** In the other process, where `net` does not exist and `open` may not have been called. A lost
     *  poke costs time only, because the leader looks by itself when it is in MPI next. */
    void (*poke)(const void *bytes, uint32_t len);

    /** All members have entered the first epoch long ago, but it is not complete here: what has not
     *  come will not come. The engine may remember between whom, so that it refuses in `connect`
     *  other groups that would depend on the same. NULL: it cannot tell. */
    void (*lost)(nicbarrier_net_t *net);

    /** Before disconnect, where others may be ahead of this member: its endpoint has gone out, but
     * the agreement came to no good end here, or the program has forgotten a barrier of which this
     *  member was not told. They may go on sending. NULL: that does no harm. */
    void (*abandon)(nicbarrier_net_t *net);

    /** The communicator is freed, or connect failed here or elsewhere. Nobody synchronises: peers
     *  may still need what they missed of the last epochs, so the engine keeps what it needs to
     *  answer them (a tombstone) until close. Also called where connect was not. */
    void (*disconnect)(nicbarrier_net_t *net);
} nicbarrier_engine_t;

/** Writes the reason as printf does. */
void nicbarrier_reason(nicbarrier_reason_t *why, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The network engines. */
extern const nicbarrier_engine_t nicbarrier_engine_put;      /* put.c: UCX puts into flags */
extern const nicbarrier_engine_t nicbarrier_engine_datagram; /* datagram.c: UDP, verbs UD */

#endif
