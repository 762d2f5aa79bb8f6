/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Fences: which processes have entered a fence, and which have finished it.
 *
 *  The fences of a window are numbered. Dissemination finds out that all have entered: in step s a
 *  process sets a flag of the process 2^s places after it, once its own flags of all earlier steps
 *  are set. First this runs among the processes of a node, in shared memory; then among the first
 *  processes of the nodes, by messages. When all nodes have entered, a first process sets a flag
 *  for the others on its node. A flag holds the number of the last fence for which it was set, has
 *  one writer, and only grows.
 *
 *  A process may enter with a mark, which flags and messages carry on: when all have entered, each
 *  knows whether one of them did.
 *
 *  If all processes are on one node, a process *enters* fence k when everything it sent in the
 *  previous epoch is on its way, and it has written for each process how many messages that took in
 *  all. The mark says that there were some. Without it, as with mapped memory, the fence is over
 *  when all have entered. With it a process is *done* when it has applied as many from each as the
 *  others have written; then it leaves. What others do to its memory in the next epoch waits until
 *  it is done, so nobody waits for all. Counts suffice: a process that wrote one sends nothing more
 *  to this process, and so writes no higher count, before this process is done with k.
 *
 *  Over several nodes a process enters fence k when the targets of all its earlier operations have
 *  acknowledged them. The mark says that an operation failed, since a process that leaves late
 *  could not tell errors of this epoch from those of the next.
 *
 *  If a process is lost, fences can never end. A process notices a loss while it waits for its own
 *  node, or, as the first of its node, for the first of another one; then all on its node learn of
 *  it. The first of a node sends the loss to the same processes as its fences, so every waiting
 *  process learns of it.
 *
 *  Pure; flags and counts lie in shared memory. The caller serialises the calls of one process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A flag alone in its cache line: one process polls it and another writes it. */
typedef struct nicstride_fence_flag {
    _Alignas(64) uint32_t number;
    uint32_t marked[2]; /**< the last even and the last odd fence that were entered with a mark: a
                           flag runs ahead by at most one */
} nicstride_fence_flag_t;

/** What a process shows the others of its node, with a flag for each step. Initially all zero. */
typedef struct nicstride_fence_board {
    nicstride_fence_flag_t done;
    /** Of the node's first process: the last fence that all nodes have entered. */
    nicstride_fence_flag_t over;
    /** Of the node's first process: the error class of a loss, or 0. */
    nicstride_fence_flag_t lost;
    nicstride_fence_flag_t step[];
} nicstride_fence_board_t;

/** One process's state. Zero-initialise, then set `n` to `next`. */
typedef struct nicstride_fence {
    int n;       /**< processes of the node, at least 1 */
    int me;      /**< 0 .. n - 1 */
    int nodes;   /**< at least 1 */
    int node;    /**< 0 .. nodes - 1 */
    char *board; /**< the board of process 0 */
    size_t next; /**< bytes from one board to the next */
    uint32_t number;
    unsigned step;   /**< steps among the processes of the node, then those between nodes */
    unsigned spread; /**< steps in which a loss was sent */
    bool passed;     /**< this process has sent its flag or message of this step */
    bool marked;     /**< a process is known to have entered with a mark */
} nicstride_fence_t;

/** The next action in a fence. */
typedef enum nicstride_fence_next {
    NICSTRIDE_FENCE_WAIT,
    NICSTRIDE_FENCE_SEND, /**< send a message, see nicstride_fence_to */
    NICSTRIDE_FENCE_OVER, /**< all have entered */
    NICSTRIDE_FENCE_LOST  /**< not all will ever enter */
} nicstride_fence_next_t;

/** The number of steps after which the entry of each of n processes is known to all. */
static inline unsigned nicstride_fence_steps(int n)
{
    unsigned steps = 0;

    while (1LL << steps < n)
        steps++;
    return steps;
}

/** Bytes of a board for n processes of a node and up to `nodes` nodes. */
static inline size_t nicstride_fence_board_bytes(int n, int nodes)
{
    return sizeof(nicstride_fence_board_t) +
           (nicstride_fence_steps(n) + nicstride_fence_steps(nodes)) *
               sizeof(nicstride_fence_flag_t);
}

static inline nicstride_fence_board_t *nicstride_fence_board(const nicstride_fence_t *f, int of)
{
    return (nicstride_fence_board_t *)(void *)(f->board + (size_t)of * f->next);
}

/** True if the flag has reached the number. Numbers wrap. */
static inline bool nicstride_fence_reached(const nicstride_fence_flag_t *flag, uint32_t number)
{
    return (int32_t)(__atomic_load_n(&flag->number, __ATOMIC_ACQUIRE) - number) >= 0;
}

static inline void nicstride_fence_set(nicstride_fence_flag_t *flag, uint32_t number, bool marked)
{
    if (marked)
        __atomic_store_n(&flag->marked[number % 2], number, __ATOMIC_RELAXED);
    __atomic_store_n(&flag->number, number, __ATOMIC_RELEASE);
}

/** True if the flag has been set for this fence. Takes over its mark. */
static inline bool nicstride_fence_has_come(nicstride_fence_t *f,
                                            const nicstride_fence_flag_t *flag)
{
    if (!nicstride_fence_reached(flag, f->number))
        return false;
    if (__atomic_load_n(&flag->marked[f->number % 2], __ATOMIC_RELAXED) == f->number)
        f->marked = true;
    return true;
}

/** Begins the process's next fence. Where numbers wrap, 0 is left out, as flags have that mark
 *  initially, and 1, so that even and odd ones take turns. */
static inline void nicstride_fence_begin(nicstride_fence_t *f, bool marked)
{
    if (++f->number == 0)
        f->number = 2;
    f->step = 0;
    f->passed = false;
    f->marked = marked;
}

/** The error class of the loss because of which fences cannot end any more, or 0. */
static inline int nicstride_fence_lost(const nicstride_fence_t *f)
{
    return (int)__atomic_load_n(&nicstride_fence_board(f, 0)->lost.number, __ATOMIC_RELAXED);
}

/** Notes that a process that others wait for was lost. `error` > 0 is the error class. */
static inline void nicstride_fence_lose(const nicstride_fence_t *f, int error)
{
    __atomic_store_n(&nicstride_fence_board(f, 0)->lost.number, (uint32_t)error, __ATOMIC_RELAXED);
}

/** Returns the next action. To be called until the fence is over or lost; never waits. When it is
 *  over, everything that each process wrote before it entered is visible. */
static inline nicstride_fence_next_t nicstride_fence_next(nicstride_fence_t *f)
{
    const unsigned near = nicstride_fence_steps(f->n);
    const unsigned steps = near + (f->me == 0 ? nicstride_fence_steps(f->nodes) : 0);
    nicstride_fence_flag_t *over = &nicstride_fence_board(f, 0)->over;

    if (nicstride_fence_lost(f) != 0) {
        if (near + f->spread >= steps)
            return NICSTRIDE_FENCE_LOST;
        f->step = near + f->spread++;
        return NICSTRIDE_FENCE_SEND;
    }
    for (; f->step < steps; f->step++, f->passed = false) {
        if (!f->passed && f->step < near) {
            const int to = (int)((f->me + (1LL << f->step)) % f->n);

            nicstride_fence_set(&nicstride_fence_board(f, to)->step[f->step], f->number, f->marked);
        }
        if (!f->passed) {
            f->passed = true;
            if (f->step >= near)
                return NICSTRIDE_FENCE_SEND;
        }
        if (!nicstride_fence_has_come(f, &nicstride_fence_board(f, f->me)->step[f->step]))
            return NICSTRIDE_FENCE_WAIT;
    }
    if (f->nodes > 1 && f->me == 0)
        nicstride_fence_set(over, f->number, f->marked);
    return f->nodes == 1 || nicstride_fence_has_come(f, over) ? NICSTRIDE_FENCE_OVER
                                                              : NICSTRIDE_FENCE_WAIT;
}

/** The node `places` after this one. */
static inline int nicstride_fence_node(const nicstride_fence_t *f, long long places)
{
    return (int)((f->node + f->nodes + places % f->nodes) % f->nodes);
}

/** For NICSTRIDE_FENCE_SEND: the node to whose first process to send, and the step between nodes.
 *  The message carries the number, the mark, and the error class if a process was lost. */
static inline int nicstride_fence_to(const nicstride_fence_t *f, unsigned *step_p)
{
    *step_p = f->step - nicstride_fence_steps(f->n);
    return nicstride_fence_node(f, 1LL << *step_p);
}

/** The node whose first process will send a message in this step; -1: none. */
static inline int nicstride_fence_from(const nicstride_fence_t *f)
{
    const unsigned near = nicstride_fence_steps(f->n);

    return f->me == 0 && f->step >= near ? nicstride_fence_node(f, -(1LL << (f->step - near))) : -1;
}

/** Takes a message to the first process of the node. */
static inline void nicstride_fence_receive(const nicstride_fence_t *f, unsigned step,
                                           uint32_t number, bool marked, int error)
{
    nicstride_fence_flag_t *flag;

    if (step >= nicstride_fence_steps(f->nodes))
        return;
    flag = &nicstride_fence_board(f, 0)->step[nicstride_fence_steps(f->n) + step];
    if (error != 0)
        nicstride_fence_lose(f, error);
    else if (!nicstride_fence_reached(flag, number))
        nicstride_fence_set(flag, number, marked);
}

/** Notes that this process has applied everything that the fence, which has a mark, covers. */
static inline void nicstride_fence_set_done(const nicstride_fence_t *f)
{
    nicstride_fence_set(&nicstride_fence_board(f, f->me)->done, f->number, false);
}

/** True if a process is done with a fence that has a mark. */
static inline bool nicstride_fence_is_done(const nicstride_fence_t *f, int of, uint32_t number)
{
    return nicstride_fence_reached(&nicstride_fence_board(f, of)->done, number);
}
