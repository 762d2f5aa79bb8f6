/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What an engine is: something that carries barriers between the members of a *group*. For a
 * network engine these are one leader of each node, the other processes of the node being behind
 * the leader in shared memory (shm.h does that part, team.h joins the two).
 *
 * Barriers of a group are numbered from 1: the *epoch*. Everything is cumulative. To enter epoch e
 * is to have entered all epochs up to e; epoch e is complete at a member when every member is known
 * to have entered e, and then all earlier ones are complete too. Any number of epochs may be
 * entered while earlier ones are not complete.
 *
 * An engine knows nothing of MPI. What its partners must know before it can begin stands in an
 * *endpoint*, a record of bytes that the agreement (agree.h) carries to its partners in the
 * schedule. So making a group is local calls, none of which waits for others:
 *
 *     open         once for each process, when the first group is to be made
 *       prepare    for each group: what the partners must know
 *       connect    for each group, with the partners' endpoints
 *         enter, completed, progress, wait, ...
 *       disconnect for each group, when its communicator is freed
 *     finish       once, when the process finalizes
 *     close        once, when all processes of the job have come so far
 *
 * Threads: `enter` and `progress` of one group are called by any number of MPI threads at once and
 * protect themselves (a thread that finds the engine busy in `progress` must not wait: it returns
 * 0), and so does `disconnect`. open, prepare, connect and close are called by one thread at a
 * time. An engine may have a helper thread, shared by its groups; it blocks all signals, sleeps in
 * the kernel, never touches an Open MPI object, and is joined by `close`.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/support/param.h"

/** Why something could not be had: one line for the user, without a full stop or a newline. */
typedef struct nicbarrier_reason {
    char text[200];
} nicbarrier_reason_t;

/** Writes the reason as printf does. @return -1, for callers that return that */
__attribute__((format(printf, 2, 3))) static inline int nicbarrier_reason(nicbarrier_reason_t *why,
                                                                          const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why->text, sizeof(why->text), format, args);
    va_end(args);
    return -1;
}

/* ---- parameters and counters ---------------------------------------------------------------- */

/** A parameter of an engine, or of the component. */
typedef onic_param_t nicbarrier_param_t;

/** A counter, read by MPI_T; a 64-bit atomic reads as what it holds. */
typedef struct nicbarrier_counter {
    const char *name; /**< NULL ends a table */
    const char *help;
    _Atomic uint64_t *value;
} nicbarrier_counter_t;

/** What holds for all engines. The agreement has made sure that the schedule is the same on all
 *  members. */
typedef struct nicbarrier_engine_settings {
    int schedule; /**< nicbarrier_schedule_kind_t */
    bool thread;  /**< a helper thread may be started */
} nicbarrier_engine_settings_t;

/* ---- groups --------------------------------------------------------------------------------- */

/** The members. */
typedef struct nicbarrier_group {
    uint64_t key; /**< names the group among all groups that ever were: drawn at random by one
                     member, the same on all. Never 0 */
    int n;        /**< members, at least 2 */
    int me;       /**< my index among them, 0 .. n - 1 */
} nicbarrier_group_t;

/** What an engine calls when something happens, from any thread, its helper thread included, and
 *  possibly with its locks held: they return soon, never call the engine, and touch no Open MPI
 *  object. Each may be NULL. */
typedef struct nicbarrier_net_events {
    /** Epoch `epoch` and all before it are complete here. Calls may be late and repeat. */
    void (*complete)(void *arg, uint64_t epoch);
    /** The epoch that this member has entered by now, which the engine enters before it looks on.
     *  Called by the helper thread whenever it is awake: so the last process of a node that arrives
     *  starts the network part although the leader's own thread is computing. */
    uint64_t (*entered)(void *arg);
    /** The epoch that this process itself has entered by now, others of its node maybe not yet. */
    uint64_t (*begun)(void *arg);
    void *arg;
} nicbarrier_net_events_t;

/** A group as the engine knows it. */
typedef struct nicbarrier_net nicbarrier_net_t;

/** What another process of a leader's node has of it. */
typedef struct nicbarrier_follower nicbarrier_follower_t;

/** Longest endpoint, and longest record for processes behind a leader, of any engine, in bytes. */
#define NICBARRIER_ENDPOINT_MAX 8192
#define NICBARRIER_FOLLOWER_MAX 192

/** The endpoint of a member, as the agreement has carried it. */
typedef struct nicbarrier_endpoint {
    int32_t member;
    uint32_t len;
    const unsigned char *bytes;
} nicbarrier_endpoint_t;

/** Those of all partners in the schedule, at least. */
typedef struct nicbarrier_endpoints {
    int n;
    const nicbarrier_endpoint_t *list;
} nicbarrier_endpoints_t;

/** The one of a member; NULL where it was not carried. */
static inline const nicbarrier_endpoint_t *nicbarrier_endpoint_of(const nicbarrier_endpoints_t *all,
                                                                  int32_t member)
{
    for (int i = 0; i < all->n; i++)
        if (all->list[i].member == member)
            return &all->list[i];
    return NULL;
}

/** An engine: a row of nicbarrier_engines. The functions of a network engine are all there, and it
 *  serves processes of one job; engine shm has none of them, since the team (team.h) uses it for
 *  its node in any case. */
typedef struct nicbarrier_engine {
    const char *name;                     /**< as in coll_nicbarrier_engine */
    const char *what;                     /**< for that parameter's help text */
    const nicbarrier_param_t *params;     /**< a table, or NULL */
    const nicbarrier_counter_t *counters; /**< a table, or NULL */

    /** How well it would do here, 1 .. 100; 0: not at all. Of all members' answers the least
     *  counts, and of several engines the one with the most. Cheap, and the same at each call. */
    int (*score)(void);

    /** Starts what the process needs (socket, worker). Called again after it failed or after close,
     *  within calls of MPI only, never within Open MPI's progress. 0, or -1 and the reason. */
    int (*open)(const nicbarrier_engine_settings_t *settings, nicbarrier_reason_t *why);

    /** Stops it. All groups have been disconnected, and no process of the job needs anything more
     * of another one: all have come so far, or for some seconds some have not. */
    void (*close)(void);

    /** Writes my endpoint for a new group, at most NICBARRIER_ENDPOINT_MAX bytes. Whatever it holds
     *  for the group goes into *net_p. Returns 0, or -1 and the reason (*net_p is NULL then). */
    int (*prepare)(const nicbarrier_group_t *group, nicbarrier_net_t **net_p, void *bytes,
                   uint32_t *len_p, nicbarrier_reason_t *why);

    /** Learns its partners' endpoints, which are checked as anything that a peer sends, and becomes
     *  ready. What peers send before this call, or before they have made it, must not be lost for
     *  good. Returns 0, or -1 and the reason: then disconnect follows. */
    int (*connect)(nicbarrier_net_t *net, const nicbarrier_endpoints_t *endpoints,
                   const nicbarrier_net_events_t *events, nicbarrier_reason_t *why);

    /** Enters all epochs up to `epoch`; one that was entered already is ignored. Sends what can be
     *  sent, waits for no other process. MPI threads. */
    void (*enter)(nicbarrier_net_t *net, uint64_t epoch);

    /** The last epoch that is complete here; an acquire load and nothing else. */
    uint64_t (*completed)(const nicbarrier_net_t *net);

    /** Takes in what has come, sends what became due. Never waits. Returns how many packets or
     *  flags were new. MPI threads, often. */
    int (*progress)(nicbarrier_net_t *net);

    /** The communicator is freed, all members having entered the same epochs; or connect failed
     * here or elsewhere, or was not called. That does not synchronise: peers may still need what
     * they missed of the last epochs, so the engine can answer them until close. */
    void (*disconnect)(nicbarrier_net_t *net);

    /** Has the group failed: is a member dead or out of reach, so that what is not complete now may
     *  never be? Stays so. An acquire load and nothing else. */
    bool (*failed)(const nicbarrier_net_t *net);

    /** This member has found that the group has failed (a process behind it has died): all other
     *  members are notified; one whose notice is lost hears of it when it waits. Any thread. */
    void (*fail)(nicbarrier_net_t *net);

    /* What not every network engine has: each may be NULL. */

    /** Before close, when all groups have been disconnected: what others may still need goes out.
     * Of an engine without this a thread sees to it meanwhile. */
    void (*finish)(void);

    /** When the component is opened: the engine may be chosen, or has been asked for by name. It
     *  registers with common/ what it needs there before other components start. */
    void (*announce)(bool by_name);

    /** In a trial, when all members have connected and entered an epoch that is not complete yet:
     *  is there reason to believe that it never will be? The engine judges by evidence (requests
     *  that remain unanswered), never by the time that a reachable member takes. */
    bool (*hopeless)(nicbarrier_net_t *net, nicbarrier_reason_t *why);

    /** Sleeps in the kernel until something may have come for any group of this process, or for
     *  `usec` microseconds. May return early. NULL: the caller yields. */
    void (*wait)(nicbarrier_net_t *net, unsigned usec);

    /** Lets other processes of this node, which are behind this one, do its part while it is away:
     *  writes a record of at most NICBARRIER_FOLLOWER_MAX bytes that means something to `attach`
     *  there; returns its length, or 0 where there is nothing of that kind. After connect. The
     *  other four are there where this is. */
    uint32_t (*follower_record)(nicbarrier_net_t *net, void *bytes);
    /** In the other process, where `open` may not have been called. NULL where memory is exhausted.
     *  By one thread at a time, as detach, which may come after the leader's disconnect. */
    nicbarrier_follower_t *(*attach)(const void *bytes, uint32_t len);
    /** The node has entered all epochs up to `epoch`. Enters them in the leader's place, or else,
     *  unless a thread of the leader polls (`attentive`), wakes its helper thread. A lost wake-up
     *  costs time only: the leader polls by itself when it is in MPI next. */
    void (*notify)(nicbarrier_follower_t *b, uint64_t epoch, bool attentive);
    /** The last epoch that is known to be complete, as far as that can be known here, with
     *  NICBARRIER_FOLLOWER_FAILED where the group is known to have failed. */
    uint64_t (*known)(const nicbarrier_follower_t *b);
    void (*detach)(nicbarrier_follower_t *b);
} nicbarrier_engine_t;

#define NICBARRIER_FOLLOWER_FAILED (UINT64_C(1) << 63)

/** In place of an engine's number: the best; and as what was found: none. */
#define NICBARRIER_ANY_ENGINE (-1)

/** The number of the engine of a node, shm; all others are network engines. */
#define NICBARRIER_NODE_ENGINE 0

/** Most engines there can be. */
#define NICBARRIER_ENGINES_MAX 8

/** The engines of this build, ended by NULL: team/engines.c. Where two do equally well the first
 *  wins. */
extern const nicbarrier_engine_t *const nicbarrier_engines[NICBARRIER_ENGINES_MAX + 1];

extern const nicbarrier_engine_t nicbarrier_engine_shm;      /* shm/ */
extern const nicbarrier_engine_t nicbarrier_engine_put;      /* put/ */
extern const nicbarrier_engine_t nicbarrier_engine_datagram; /* datagram/ */
extern const nicbarrier_engine_t nicbarrier_engine_mlx5;     /* mlx5/ */
