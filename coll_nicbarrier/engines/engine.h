/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The interface of engines. An engine carries barriers between the members of a *group*. For a
 * network engine the members are leaders of nodes; the other processes of a node are behind their
 * leader in shared memory (shm.h does that part, team.h joins the two).
 *
 * Barriers of a group are numbered from 1: the *epoch*. Everything is cumulative. To enter epoch e
 * is to have entered all epochs up to e; epoch e is complete at a member when every member is known
 * to have entered e, and then all earlier ones are complete too. Any number of epochs may be
 * entered while earlier ones are not complete.
 *
 * An engine knows nothing of MPI. Before a member can begin, its partners need its *endpoint*, a
 * record of bytes that the agreement (agree.h) carries to its partners in the schedule. So a group
 * is made by local calls, none of which waits for others:
 *
 *     open         once for each process, when the first group is to be made
 *       prepare    for each group: what the partners must know
 *       connect    for each group, with the partners' endpoints
 *         enter, completed, progress, wait, ...
 *       disconnect for each group, when its communicator is freed
 *     close        once, when all processes of the job have got this far
 *
 * Threads: `enter` and `progress` of one group are called by any number of MPI threads at once and
 * are thread-safe (if `progress` finds the engine busy it must not wait: it returns 0), and so is
 * `disconnect`. open, prepare, connect and close are called by one thread at a time. An engine may
 * have a helper thread, shared by its groups; it blocks all signals, sleeps in the kernel, never
 * touches an Open MPI object, and is joined by `close`.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "coll_nicbarrier/epoch/rule.h"
#include "coll_nicbarrier/schedule/schedule.h"
#include "common/support/param.h"

_Static_assert(NICBARRIER_STEPS_MAX == NICBARRIER_RULE_STEPS, "a schedule fits the rule");

/** Why something has failed: one line for the user, without a full stop or a newline. */
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

/* ---- groups --------------------------------------------------------------------------------- */

/** The group as the agreement defines it. */
typedef struct nicbarrier_group {
    uint64_t key; /**< identifies the group among all groups ever made: a random number drawn by one
                     member, the same on all. Never 0 */
    int n;        /**< members, at least 2 */
    int me;       /**< my index among them, 0 .. n - 1 */
    int nsteps;   /**< my steps in the schedule, which is the same on all members */
    nicbarrier_step_t step[NICBARRIER_STEPS_MAX];
} nicbarrier_group_t;

/** Sets a group's steps. */
static inline void nicbarrier_group_plan(nicbarrier_group_t *g, nicbarrier_schedule_kind_t kind)
{
    g->nsteps = nicbarrier_schedule(kind, g->me, g->n, g->step);
}

/** The rule of a group in which nothing was entered. */
static inline void nicbarrier_group_begin(const nicbarrier_group_t *g, nicbarrier_rule_t *rule)
{
    uint64_t sends, waits;

    nicbarrier_schedule_bits(g->step, g->nsteps, &sends, &waits);
    nicbarrier_rule_init(rule, (uint32_t)g->nsteps, sends, waits);
}

/** The processes behind a member, on its node (shm.h). The engine enters what has *arrived* there,
 *  also by its helper thread whenever that is awake, so that the network part starts although the
 *  leader's own thread is computing; and *releases* what is complete. While what this process has
 *  *begun* has not arrived, the helper thread looks now and then. Any thread, with or without locks
 *  of the engine. */
typedef struct nicbarrier_shm nicbarrier_shm_t;

/** The engine's state of a group. */
typedef struct nicbarrier_net nicbarrier_net_t;

/** Bytes of the longest endpoint of any engine. */
#define NICBARRIER_ENDPOINT_MAX 8192

/** A member's endpoint, as the agreement carries it, up to its last byte. */
typedef struct nicbarrier_endpoint {
    int32_t member; /**< its index */
    uint32_t len;   /**< 0: it has none */
    unsigned char bytes[NICBARRIER_ENDPOINT_MAX];
} nicbarrier_endpoint_t;

/** The endpoints of at least all partners in the schedule. */
typedef struct nicbarrier_endpoints {
    int n;
    const nicbarrier_endpoint_t *list;
} nicbarrier_endpoints_t;

/** The endpoint of a member; NULL if it was not carried. */
static inline const nicbarrier_endpoint_t *nicbarrier_endpoint_of(const nicbarrier_endpoints_t *all,
                                                                  int32_t member)
{
    for (int i = 0; i < all->n; i++)
        if (all->list[i].member == member)
            return &all->list[i];
    return NULL;
}

/** An engine: an entry of nicbarrier_engines. A network engine has all functions up to `fail`, and
 *  serves processes of one job. Engine shm has none of them, since the team (team.h) uses it on its
 *  node in any case. */
typedef struct nicbarrier_engine {
    const char *name;               /**< a value of coll_nicbarrier_engine */
    const onic_param_t *params;     /**< a table, or NULL */
    const onic_counter_t *counters; /**< `ncounters` of them, or NULL */
    size_t ncounters;

    /** How well the engine suits this host, 1 .. 100; 0: not at all. The least value of all members
     *  counts, and the engine with the greatest is chosen. Cheap, and the same at each call. */
    int (*score)(void);

    /** Starts what the process needs (socket, worker), and, if it wants one, a helper `thread`. May
     *  be called again after close. Called within MPI calls only, never within Open MPI's progress.
     *  0, or -1 and the reason. */
    int (*open)(bool thread, nicbarrier_reason_t *why);

    /** Stops the engine. All groups have been disconnected, and no process of the job needs an
     *  answer of another: all have got this far, or some have not for some seconds. */
    void (*close)(void);

    /** Writes the bytes of my endpoint for a new group, and their number. *net_p gets the engine's
     *  state for the group. Returns 0, or -1 and the reason (*net_p is NULL then). */
    int (*prepare)(const nicbarrier_group_t *group, nicbarrier_net_t **net_p,
                   nicbarrier_endpoint_t *mine, nicbarrier_reason_t *why);

    /** Takes the partners' endpoints, which are checked as anything that a peer sends. The group
     *  is ready then. Messages sent before this call, here or there, must not be lost for good.
     *  `node` stays until disconnect; NULL: no process is behind this one. Returns 0, or -1 and
     *  the reason: then disconnect follows. */
    int (*connect)(nicbarrier_net_t *net, const nicbarrier_endpoints_t *endpoints,
                   nicbarrier_shm_t *node, nicbarrier_reason_t *why);

    /** Enters all epochs up to `epoch`; ignored if already entered. Sends what can be sent, waits
     *  for no other process. MPI threads. */
    void (*enter)(nicbarrier_net_t *net, uint64_t epoch);

    /** The last epoch that is complete here: an acquire load and nothing else. */
    uint64_t (*completed)(const nicbarrier_net_t *net);

    /** Takes in what has come and sends what has become due. Never waits. Returns how many packets
     *  or flags were new. MPI threads, often. */
    int (*progress)(nicbarrier_net_t *net);

    /** The communicator is freed, after all members have entered the same epochs; or connect has
     *  failed here or elsewhere, or was not called. Members are not synchronised: peers may still
     *  need messages of the last epochs that they have missed, so the engine must be able to answer
     *  until close. */
    void (*disconnect)(nicbarrier_net_t *net);

    /** True if the group has failed: a member is dead or out of reach, so that incomplete epochs
     *  may never be complete. Stays so. An acquire load and nothing else. */
    bool (*failed)(const nicbarrier_net_t *net);

    /** Marks the group as failed, because a process behind this member has died, and notifies all
     *  other members. A member whose notice is lost learns of it when it waits. Any thread. */
    void (*fail)(nicbarrier_net_t *net);

    /* Optional: each of these may be NULL. */

    /** Called when the component is opened, if the engine may be chosen or has been asked for by
     *  name. It registers with common/ what it needs there before other components start. */
    void (*announce)(bool by_name);

    /** Sleeps in the kernel until something may have come for any group of this process, or for
     *  `usec` microseconds. May return early. NULL: the caller yields. */
    void (*wait)(nicbarrier_net_t *net, unsigned usec);
} nicbarrier_engine_t;

/** Instead of an engine's number: the best one; as a result: none. */
#define NICBARRIER_ANY_ENGINE (-1)

/** The number of engine shm, used within nodes; all others are network engines. */
#define NICBARRIER_NODE_ENGINE 0

/** Most engines in a build. */
#define NICBARRIER_ENGINES_MAX 8

/** The engines of this build, ending with NULL: team/engines.c. If two have the same score the
 *  first wins. */
extern const nicbarrier_engine_t *const nicbarrier_engines[NICBARRIER_ENGINES_MAX + 1];

extern const nicbarrier_engine_t nicbarrier_engine_shm;      /* shm/ */
extern const nicbarrier_engine_t nicbarrier_engine_put;      /* put/ */
extern const nicbarrier_engine_t nicbarrier_engine_datagram; /* datagram/ */
extern const nicbarrier_engine_t nicbarrier_engine_mlx5;     /* mlx5/ */
