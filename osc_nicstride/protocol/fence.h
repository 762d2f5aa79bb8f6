/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Fences between the processes of a node: who has entered the fence, and who is done with it.
 *
 * Fences of a window are numbered. A process *enters* fence k when all that it sent in the epoch
 * before is on its way and it has written, for each process, how many credits (credit.h) that took,
 * in all, since the window was made. It is *done* with fence k when it has applied as many of each
 * as the others have written. It leaves the fence at that moment. What the others do to its memory
 * in the next epoch waits until it is done: nobody needs to wait for all.
 *
 * That all have entered is found by dissemination: in step s a process tells the one 2^s places
 * behind it, once it has heard in all steps before. A flag holds the number of the last fence it
 * was told of and has one writer. It only grows, so a flag that runs ahead says no less.
 *
 * Why counts suffice. A count that a process reads in fence k is that of fence k: whoever wrote it
 * sends nothing more to this process, and so writes no higher one, before this process is done with
 * k. Messages applied up to that count are those of the epochs up to k for the same reason.
 *
 * Pure; flags and counts lie in memory that the processes share. The caller serialises the calls of
 * one process.
 */
#ifndef NICSTRIDE_FENCE_H
#define NICSTRIDE_FENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A flag alone in its cache line: it is polled by one process and written by another. */
typedef struct nicstride_fence_flag {
    _Alignas(64) uint32_t number;
} nicstride_fence_flag_t;

/** What a process of the node shows the others; behind it lies one flag for each step. All zero: no
 *  fence yet. */
typedef struct nicstride_fence_board {
    nicstride_fence_flag_t done;
    nicstride_fence_flag_t step[];
} nicstride_fence_board_t;

/** One process's state. Zero-initialise but for n, me and the boards. */
typedef struct nicstride_fence {
    int n;       /**< processes of the node, at least 1 */
    int me;      /**< 0 .. n - 1 */
    char *board; /**< that of process 0 */
    size_t next; /**< bytes from one to the next */
    uint32_t number;
    unsigned step;
    bool told; /**< in this step */
} nicstride_fence_t;

/** Steps until each of n processes has heard of all. */
static inline unsigned nicstride_fence_steps(int n)
{
    unsigned steps = 0;

    while (1LL << steps < n)
        steps++;
    return steps;
}

/** Bytes of a board. */
static inline size_t nicstride_fence_board_bytes(int n)
{
    return (1 + nicstride_fence_steps(n)) * sizeof(nicstride_fence_flag_t);
}

static inline nicstride_fence_board_t *nicstride_fence_board(const nicstride_fence_t *f, int of)
{
    return (nicstride_fence_board_t *)(void *)(f->board + (size_t)of * f->next);
}

/** Numbers wrap. */
static inline bool nicstride_fence_reached(const nicstride_fence_flag_t *flag, uint32_t number)
{
    return (int32_t)(__atomic_load_n(&flag->number, __ATOMIC_ACQUIRE) - number) >= 0;
}

/** The process comes to its next fence. */
static inline void nicstride_fence_begin(nicstride_fence_t *f)
{
    f->number++;
    f->step = 0;
    f->told = false;
}

/** Have all entered? To be called again until they have; never waits. What each of them wrote
 *  before it entered is visible then. */
static inline bool nicstride_fence_entered(nicstride_fence_t *f)
{
    const unsigned steps = nicstride_fence_steps(f->n);

    for (; f->step < steps; f->step++, f->told = false) {
        if (!f->told) {
            const int to = (int)((f->me + (1LL << f->step)) % f->n);

            __atomic_store_n(&nicstride_fence_board(f, to)->step[f->step].number, f->number,
                             __ATOMIC_RELEASE);
            f->told = true;
        }
        if (!nicstride_fence_reached(&nicstride_fence_board(f, f->me)->step[f->step], f->number))
            return false;
    }
    return true;
}

/** This process has applied all that the fence is about. */
static inline void nicstride_fence_set_done(const nicstride_fence_t *f)
{
    __atomic_store_n(&nicstride_fence_board(f, f->me)->done.number, f->number, __ATOMIC_RELEASE);
}

/** Is another process done with the last fence that this one has left? */
static inline bool nicstride_fence_is_done(const nicstride_fence_t *f, int of)
{
    return nicstride_fence_reached(&nicstride_fence_board(f, of)->done, f->number);
}

#endif
