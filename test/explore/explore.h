/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Runs two to four threads of production code in every order that matters, and says which
 *  order breaks a property.
 *
 *  A target includes the files of the product that it is about. They are compiled as they stand,
 *  with the compiler's calls before each access to memory (-fsanitize=thread); the engine, not the
 *  library of that name, answers these. Each atomic access, fence and pause is a point at which
 *  another thread may go on. All other accesses are checked: those of two threads to the same
 *  bytes must be ordered by what is atomic, as C11 has it; then they see the same in each memory
 *  model. Memory that was freed, or never allocated, is not touched.
 *
 *  A target has no real thread, no clock, and does the same each time for the same choices. What is
 *  in the program's own data is put back before each run. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Threads of a target at most. */
#define EXPLORE_THREADS 4

typedef struct explore_target {
    const char *name;
    unsigned nthreads;
    /** What stands before the threads begin. */
    void (*setup)(void);
    /** Thread `me`, 0 .. nthreads - 1. */
    void (*thread)(unsigned me);
    /** When all have ended: looks whether all is as it should be. */
    void (*finish)(void);
    /** Preemptions at most, of a run; 0: any number. Such a search has no reduction. */
    unsigned preemptions;
    /** A fault, or what a memory model allows: the models (EXPLORE_IN) in which some run must break
     *  a property. */
    unsigned broken;
} explore_target_t;

typedef enum explore_model {
    EXPLORE_SC,  /**< one access after the other */
    EXPLORE_TSO, /**< x86: stores wait in a buffer */
    EXPLORE_WEAK /**< C11, as on Arm: loads may see old values, where nothing orders them */
} explore_model_t;

#define EXPLORE_IN(model) (1u << EXPLORE_##model)
#define EXPLORE_IN_ALL    (EXPLORE_IN(SC) | EXPLORE_IN(TSO) | EXPLORE_IN(WEAK))

/** main() of a target's program. */
int explore_main(int argc, char **argv, const explore_target_t *targets, unsigned ntargets);

/** Before the program's data changes; explore_main does it, too. */
void explore_init(void);

/** A property; the run that breaks it is printed. */
#define EXPLORE_ASSERT(what)                                                                       \
    do {                                                                                           \
        if (!(what))                                                                               \
            explore_fail(__FILE__, __LINE__, #what);                                               \
    } while (0)
_Noreturn void explore_fail(const char *file, int line, const char *what);

/** Memory, aligned to 8 bytes, that some touch by accesses that are not atomic though others may be
 *  there: each of these is one of a whole word, or of several, and relaxed. From setup. */
void explore_words(void *at, size_t len);

/** A thread waits until something changes that it has read since its last pause. That it never
 *  does, for all threads that have not ended, is a fault. */
void explore_pause(void);

/** The same with a time limit: it ends, too, when no other thread can go on, and a few times while
 *  others could: then it returns true. */
bool explore_pause_for_a_time(void);

/** 0 .. n - 1: each of them is tried. */
unsigned explore_choose(unsigned n);

/** The kernel's futex: waits, if the word is `value` still, until it is woken. */
void explore_futex_wait(const void *word, uint32_t value);
void explore_futex_wake(const void *word);

/** The thread that calls; EXPLORE_THREADS in setup and finish. */
unsigned explore_me(void);

/** What a run ends with, from finish; and how many different ends all runs of a target have, with a
 *  sum of them: by reduction, or without. For tests of the engine. */
void explore_end_with(uint64_t value);
unsigned explore_ends(const explore_target_t *target, explore_model_t model, bool reduce,
                      uint64_t *sum_p);

/** In a trace. */
void explore_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
