/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Between the parts of the engine: search.c chooses, the machine (machine.h) runs one step
 *  of a thread in a memory model, memory.c checks accesses that are not atomic, hooks.c is what the
 *  compiler calls. */
#pragma once

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#include "test/explore/explore.h"

/** What stands for setup and finish among threads. */
#define MAIN    EXPLORE_THREADS
#define NCLOCKS (EXPLORE_THREADS + 1)
/** Threads, and their store buffers. */
#define NPROCS    (2 * EXPLORE_THREADS)
#define MAX_LOCS  384
#define MAX_STEPS 4000

typedef enum kind {
    OP_BEGIN,
    OP_LOAD,
    OP_STORE,
    OP_RMW,
    OP_FENCE,
    OP_PAUSE,
    OP_FUTEX_WAIT,
    OP_FUTEX_WAKE,
    OP_FLUSH,
    OP_END
} kind_t;

/** The next step of a thread. */
typedef struct op {
    kind_t kind;
    uintptr_t addr;
    uint8_t size;
    uint8_t order;    /**< __ATOMIC_... */
    const void *from; /**< where in the code */
} op_t;

/** What a thread, or a message in memory, knows: how far each thread had come, by which accesses
 *  that are not atomic are ordered, and for each location the first store that may still be seen.
 */
typedef struct knows {
    uint32_t clock[NCLOCKS];
    uint16_t view[MAX_LOCS];
} knows_t;

/* ---- search.c -------------------------------------------------------------------------------- */

/** Takes a branch of `n`; MAIN or a thread. */
unsigned search_choose(unsigned n);
/** Step of `proc` touches a location: finds which of the steps before it could have come later. */
void search_touch(unsigned proc, unsigned loc, bool writes);
/** Does one step come before the other in all orders that do the same? */
bool search_is_before(unsigned step, unsigned other);
/** The present step, of `proc`, comes after that one, and could not have been before. */
void search_join(unsigned proc, unsigned step);
/** It comes after all others so far. */
void search_join_all(unsigned proc);
/** The number of the present step. */
unsigned search_now(void);
void search_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void search_fail(const char *what);
extern explore_model_t search_model;
extern bool search_tracing;

/* ---- the machine -------------------------------------------------------------------------------
 */

void machine_init(void);
void machine_reset(void);
void machine_start(const explore_target_t *target);
void machine_finish(void);
/** Bits of the threads and store buffers that can take a step. */
unsigned machine_enabled(void);
/** Have all ended? */
bool machine_over(void);
const op_t *machine_next(unsigned proc);
/** May the steps change places? */
bool machine_independent(const op_t *a, const op_t *b);
/** Takes a step of a thread, up to its next. */
void machine_step(unsigned proc);
/** What a thread that cannot go on waits for, in words. */
void machine_describe(unsigned proc, char *text, size_t len);

uint64_t machine_load(uintptr_t addr, unsigned size, int order, const void *from);
void machine_store(uintptr_t addr, unsigned size, uint64_t value, int order, const void *from);
/** Stores change(old, arg), and returns the old value. */
uint64_t machine_rmw(uintptr_t addr, unsigned size, uint64_t (*change)(uint64_t old, uint64_t arg),
                     uint64_t arg, int order, const void *from);
/** Stores `value` where it finds *old_p, else sets that to what it finds. */
bool machine_cas(uintptr_t addr, unsigned size, uint64_t *old_p, uint64_t value, int order,
                 int failed_order, const void *from);
void machine_fence(int order, const void *from);
/** `limited`: until no other thread can go on, at most. True where it ends by that. */
bool machine_pause(bool limited, const void *from);
/** See explore_words. Accesses by a thread's code that follows the call: what it reads stands in
 *  memory until its next step, and what it has written is stored behind that. */
void machine_words(uintptr_t addr, size_t len);
bool machine_is_word(uintptr_t addr);
void machine_word_access(uintptr_t addr, size_t len, bool writes, const void *from);
void machine_futex_wait(uintptr_t word, uint32_t value, const void *from);
void machine_futex_wake(uintptr_t word, const void *from);
/** What the thread that runs knows. */
const knows_t *machine_knows(void);
/** Memory was written otherwise: what was stored there before is seen no more. */
void machine_overwritten(uintptr_t addr, size_t len);
extern unsigned machine_me;
/** Is this a thread of the target, or setup or finish, rather than the engine? */
extern bool machine_inside;

/* ---- memory.c -------------------------------------------------------------------------------- */

void memory_init(void);
void memory_reset(void);
/** An access to memory that is not atomic, or the trace of one that is. */
void memory_access(uintptr_t addr, size_t len, bool writes, bool atomic, const void *from);
void *memory_alloc(size_t len, size_t align);
void memory_free(void *block, const void *from);
size_t memory_size(const void *block);
/** Stacks are a thread's own. */
void memory_stacks(uintptr_t from, uintptr_t to);

/* ---- hooks.c --------------------------------------------------------------------------------- */

/** A place in the code, in words. */
void hooks_place(const void *from, char *text, size_t len);
/** And what lies there. */
void hooks_name(uintptr_t addr, char *text, size_t len);
