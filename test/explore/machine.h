/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Within the machine: locations.c is what was stored where, machine.c what steps see of it
 *  and do, fibers.c the threads themselves. */
#pragma once

#include "test/explore/engine.h"

#define MAX_STORES 256
#define MAX_KNOWN  8192
#define BUFFERED   16
#define MAX_READS  MAX_LOCS
#define MAX_SHOWN  128
/** The location that full fences and sequentially consistent accesses touch. */
#define SC_LOC 0
/** And that those touch whose time is over. */
#define TIME_LOC 1

typedef struct store {
    uint64_t value;
    const knows_t *carries; /**< what who acquires it knows; NULL: nothing */
    uint8_t by;
    uint16_t step; /**< in which it was stored */
} store_t;

typedef struct loc {
    uintptr_t addr;
    unsigned size;
    unsigned nstores;
    unsigned floor; /**< none before is seen any more */
    bool overwritten;
    store_t store[MAX_STORES];
} loc_t;

typedef struct buffered {
    unsigned loc, step;
    uint64_t value;
    const knows_t *carries;
    uint8_t by;
} buffered_t;

typedef struct fiber {
    jmp_buf here, first; /**< where it goes on, and begins in a run, on its stack */
    bool has_stack, begun, over;
    op_t next;
    knows_t knows;    /**< what it does is ordered behind */
    knows_t acquired; /**< by loads that an acquire fence may follow */
    knows_t released; /**< at its last release fence */
    bool has_released;
    struct {
        unsigned loc, store;
    } read[MAX_READS]; /**< since its last pause */
    unsigned nreads;
    bool stale;        /**< one of those was not the last */
    unsigned timeouts; /**< pauses whose time was over while others could go on */
    bool fresh;        /**< until the next pause it sees the last */
    buffered_t buffer[BUFFERED];
    unsigned nbuffered, flushed; /**< the last step of the buffer */
} fiber_t;

typedef struct machine {
    unsigned nthreads, nlocs, nknown;
    loc_t loc[MAX_LOCS];
    uint16_t hash[4 * MAX_LOCS];
    uint16_t sc_view[MAX_LOCS];
    knows_t known[MAX_KNOWN];
    fiber_t fiber[EXPLORE_THREADS + 1];
    jmp_buf scheduler;
    char *stacks;
    uintptr_t words_from, words_to;
    /** What a thread's code sees of words is not what stands there. */
    struct {
        uintptr_t addr;
        uint64_t value;
    } shown[MAX_SHOWN];
    unsigned nshown;
    unsigned written; /**< the location of a word that its code has written; 0: none */
} machine_t;

extern machine_t *machine;

/* ---- locations.c ----------------------------------------------------------------------------- */

/** What `other` knows, too. */
void known_learn(knows_t *k, const knows_t *other);
/** Of locations that come to be known later nothing is known. */
void known_copy(knows_t *k, const knows_t *other);
/** A copy that lasts as long as the run. */
const knows_t *known_new(const knows_t *other);

uint64_t loc_read(uintptr_t addr, unsigned size);
void loc_write(uintptr_t addr, unsigned size, uint64_t value);
/** Stores behind all others. */
void loc_append(loc_t *l, uint64_t value, const knows_t *carries, unsigned by);
/** The location of an atomic word. */
unsigned loc_for(uintptr_t addr, unsigned size);
/** The word of a futex that counts what has woken its sleepers. */
unsigned loc_of_futex(uintptr_t word);

/* ---- machine.c ------------------------------------------------------------------------------- */

/** What the thread's code has written into a word is stored. */
void machine_settle(void);
/** A step of this thread reads or writes a location. */
void machine_touch(unsigned loc, bool writes, int order);
/** In a model with buffers this waits until the thread's own is empty. */
void machine_after_buffer(void);
/** This thread's next pause ends when something is stored behind that. */
void machine_note_read(fiber_t *f, unsigned loc, unsigned store);

/* ---- fibers.c -------------------------------------------------------------------------------- */

/** Before each step that others may see. In setup and finish there are no others. */
bool fiber_announce(kind_t kind, uintptr_t addr, unsigned size, int order, const void *from);
void fiber_trace(const char *what, uintptr_t addr, uint64_t value, const void *from);
