/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Threads as fibers: which can go on, what they wait for, and a step of one. */
#define _GNU_SOURCE
#include "test/explore/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK_BYTES ((size_t)256 << 10)
/** So many pauses of a thread may end while others could go on; then only when none can. */
#define EARLY_TIMEOUTS 1

unsigned machine_me;
bool machine_inside;
machine_t *machine;

void machine_init(void)
{
    machine = calloc(1, sizeof(*machine));
    machine->stacks = mmap(NULL, EXPLORE_THREADS * STACK_BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory_stacks((uintptr_t)machine->stacks,
                  (uintptr_t)machine->stacks + EXPLORE_THREADS * STACK_BYTES);
}

void machine_reset(void)
{
    machine->nthreads = machine->nknown = 0;
    machine->nlocs = 2;
    machine->words_from = machine->words_to = machine->nshown = machine->written = 0;
    memset(machine->hash, 0, sizeof(machine->hash));
    memset(machine->sc_view, 0, sizeof(machine->sc_view));
    for (unsigned i = 0; i <= EXPLORE_THREADS; i++) {
        fiber_t *f = &machine->fiber[i];
        f->begun = f->over = f->has_released = f->stale = f->fresh = false;
        memset(&f->knows, 0, sizeof(f->knows));
        memset(&f->acquired, 0, sizeof(f->acquired));
        f->nreads = f->nbuffered = f->flushed = f->timeouts = 0;
        f->next = (op_t){.kind = OP_BEGIN};
        f->knows.clock[i] = 1;
    }
}

/* ---- fibers ---------------------------------------------------------------------------------- */

static void to_scheduler(void)
{
    fiber_t *f = &machine->fiber[machine_me];
    machine_inside = false;
    if (_setjmp(f->here) == 0)
        _longjmp(machine->scheduler, 1);
    machine_inside = true;
}

static const explore_target_t *started;

static void fiber_main(void)
{
    (void)_setjmp(machine->fiber[machine_me].first);
    machine_inside = true;
    started->thread(machine_me);
    machine_inside = false;
    machine_settle();
    machine->fiber[machine_me].over = true;
    machine->fiber[machine_me].next = (op_t){.kind = OP_END};
    _longjmp(machine->scheduler, 1);
}

void machine_start(const explore_target_t *target)
{
    started = target;
    machine->nthreads = target->nthreads;
    for (unsigned i = 0; i < target->nthreads; i++)
        known_learn(&machine->fiber[i].knows, &machine->fiber[MAIN].knows);
    machine->fiber[MAIN].knows.clock[MAIN]++;
}

void machine_finish(void)
{
    for (unsigned i = 0; i < machine->nthreads; i++)
        known_learn(&machine->fiber[MAIN].knows, &machine->fiber[i].knows);
    for (unsigned i = 2; i < machine->nlocs; i++)
        machine->fiber[MAIN].knows.view[i] = (uint16_t)(machine->loc[i].nstores - 1);
}

/** Before each step that others may see. In setup and finish there are no others. */
bool fiber_announce(kind_t kind, uintptr_t addr, unsigned size, int order, const void *from)
{
    fiber_t *f = &machine->fiber[machine_me];
    machine_settle();
    f->next = (op_t){
        .kind = kind, .addr = addr, .size = (uint8_t)size, .order = (uint8_t)order, .from = from};
    if (machine_me == MAIN)
        return false;
    to_scheduler();
    f->knows.clock[machine_me]++;
    return true;
}

void fiber_trace(const char *what, uintptr_t addr, uint64_t value, const void *from)
{
    char place[200], name[100];
    if (!search_tracing || machine_me == MAIN)
        return;
    hooks_place(from, place, sizeof(place));
    hooks_name(addr, name, sizeof(name));
    search_trace("%4u  %*s%u %s %s %llx   %s\n", search_now(), 2 * (int)machine_me, "", machine_me,
                 what, name, (unsigned long long)value, place);
}

/* ---- waiting ------------------------------------------------------------------------------- */

/** The first store of another thread behind the one that was read; 0: none. */
static unsigned first_change(const fiber_t *f, unsigned me, unsigned i)
{
    const loc_t *l = &machine->loc[f->read[i].loc];
    for (unsigned k = f->read[i].store + 1; k < l->nstores; k++)
        if (l->store[k].by != me)
            return k;
    return 0;
}

static bool has_changed(const fiber_t *f, unsigned me)
{
    for (unsigned i = 0; i < f->nreads; i++)
        if (first_change(f, me, i) != 0)
            return true;
    return false;
}

/** Of the stores that have ended the pause: the step without which it would not have, 0 for none:
 *  where there are several that nothing orders each does. */
static unsigned ended_by(const fiber_t *f)
{
    unsigned first = 0;
    for (unsigned i = 0; i < f->nreads; i++) {
        const unsigned k = first_change(f, machine_me, i);
        const unsigned step = k != 0 ? machine->loc[f->read[i].loc].store[k].step : 0;
        if (step != 0 && (first == 0 || search_is_before(step, first)))
            first = step;
    }
    for (unsigned i = 0; i < f->nreads && first != 0; i++) {
        const unsigned k = first_change(f, machine_me, i);
        const unsigned step = k != 0 ? machine->loc[f->read[i].loc].store[k].step : 0;
        if (step != 0 && step != first && !search_is_before(first, step))
            first = 0;
    }
    return first;
}

bool machine_pause(bool limited, const void *from)
{
    if (machine_me == MAIN)
        search_fail("waits in setup or finish");
    (void)fiber_announce(OP_PAUSE, 0, 0, limited, from);
    fiber_t *f = &machine->fiber[machine_me];
    const bool over = limited && !f->stale && f->nreads != 0 && !has_changed(f, machine_me);
    if (over) {
        /* Early, or because nothing else happens. */
        if (f->timeouts == EARLY_TIMEOUTS) {
            search_touch(machine_me, TIME_LOC, true);
            search_join_all(machine_me);
        } else {
            f->timeouts++;
        }
    }
    if (!f->stale && ended_by(f) != 0)
        search_join(machine_me, ended_by(f));
    for (unsigned i = 0; i < f->nreads; i++)
        search_touch(machine_me, f->read[i].loc, false);
    fiber_trace("goes on", 0, 0, from);
    f->fresh = f->stale;
    f->stale = false;
    f->nreads = 0;
    return over;
}

void machine_futex_wait(uintptr_t word, uint32_t value, const void *from)
{
    (void)fiber_announce(OP_FUTEX_WAIT, word, 4, __ATOMIC_ACQ_REL, from);
    const unsigned loc = loc_for(word, 4), wakes = loc_of_futex(word);
    fiber_t *f = &machine->fiber[machine_me];
    machine_after_buffer();
    machine_touch(loc, false, __ATOMIC_ACQ_REL);
    machine_touch(wakes, false, __ATOMIC_ACQ_REL);
    const uint64_t found = machine->loc[loc].store[machine->loc[loc].nstores - 1].value;
    fiber_trace(found == value ? "sleeps" : "does not sleep", word, found, from);
    if (found != value)
        return;
    f->nreads = 0;
    f->stale = false;
    machine_note_read(f, wakes, machine->loc[wakes].nstores - 1);
    (void)machine_pause(false, from);
}

void machine_futex_wake(uintptr_t word, const void *from)
{
    (void)fiber_announce(OP_FUTEX_WAKE, word, 4, __ATOMIC_ACQ_REL, from);
    const unsigned wakes = loc_of_futex(word);
    machine_after_buffer();
    machine_touch(wakes, true, __ATOMIC_ACQ_REL);
    fiber_trace("wakes", word, 0, from);
    loc_append(&machine->loc[wakes], 0, NULL, machine_me);
}

/* ---- for the search -------------------------------------------------------------------------- */

static unsigned fiber_of(unsigned proc)
{
    return proc % EXPLORE_THREADS;
}

const op_t *machine_next(unsigned proc)
{
    static op_t flush;
    fiber_t *f = &machine->fiber[fiber_of(proc)];
    if (proc < EXPLORE_THREADS)
        return &f->next;
    flush = (op_t){.kind = OP_FLUSH,
                   .addr = f->nbuffered > 0 ? machine->loc[f->buffer[0].loc].addr : 0};
    return &flush;
}

static bool waits_for_buffer(const op_t *op)
{
    switch (op->kind) {
    case OP_RMW:
    case OP_FUTEX_WAIT:
    case OP_FUTEX_WAKE:
        return true;
    case OP_STORE:
    case OP_FENCE:
        return op->order == __ATOMIC_SEQ_CST;
    default:
        return false;
    }
}

static bool is_enabled(unsigned i)
{
    const fiber_t *f = &machine->fiber[i];
    if (f->over || (f->nbuffered > 0 && waits_for_buffer(&f->next)))
        return false;
    return f->next.kind != OP_PAUSE || f->stale || f->nreads == 0 || has_changed(f, i) ||
           (f->next.order != 0 && f->timeouts < EARLY_TIMEOUTS);
}

unsigned machine_enabled(void)
{
    unsigned enabled = 0;
    for (unsigned i = 0; i < machine->nthreads; i++) {
        enabled |= is_enabled(i) ? 1U << i : 0;
        enabled |= machine->fiber[i].nbuffered > 0 ? 1U << (EXPLORE_THREADS + i) : 0;
    }
    /* Time passes where nothing else does. */
    for (unsigned i = 0, others = enabled; i < machine->nthreads && others == 0; i++)
        if (!machine->fiber[i].over && machine->fiber[i].next.kind == OP_PAUSE &&
            machine->fiber[i].next.order != 0)
            enabled |= 1U << i;
    return enabled;
}

bool machine_over(void)
{
    bool over = true;
    for (unsigned i = 0; i < machine->nthreads; i++)
        over = over && machine->fiber[i].over && machine->fiber[i].nbuffered == 0;
    return over;
}

static bool writes(const op_t *op)
{
    return op->kind == OP_STORE || op->kind == OP_RMW || op->kind == OP_FLUSH;
}

static bool is_local(const op_t *op)
{
    return op->kind == OP_BEGIN || op->kind == OP_END ||
           (op->kind == OP_FENCE &&
            (op->order != __ATOMIC_SEQ_CST || search_model != EXPLORE_WEAK)) ||
           (op->kind == OP_STORE && search_model == EXPLORE_TSO && op->order != __ATOMIC_SEQ_CST);
}

static bool is_futex(const op_t *op)
{
    return op->kind == OP_FUTEX_WAIT || op->kind == OP_FUTEX_WAKE;
}

bool machine_independent(const op_t *a, const op_t *b)
{
    if (is_local(a) || is_local(b))
        return true;
    if (a->kind == OP_PAUSE || b->kind == OP_PAUSE)
        return false;
    if (is_futex(a) && is_futex(b))
        return a->addr != b->addr;
    if (a->kind == OP_FENCE || b->kind == OP_FENCE)
        return a->order != __ATOMIC_SEQ_CST || b->order != __ATOMIC_SEQ_CST;
    return a->addr != b->addr || (!writes(a) && !writes(b));
}

static void flush(unsigned i)
{
    fiber_t *f = &machine->fiber[i];
    const buffered_t b = f->buffer[0];
    search_join(EXPLORE_THREADS + i, b.step);
    search_touch(EXPLORE_THREADS + i, b.loc, true);
    f->nbuffered--;
    memmove(f->buffer, f->buffer + 1, f->nbuffered * sizeof(b));
    loc_append(&machine->loc[b.loc], b.value, b.carries, i);
    loc_write(machine->loc[b.loc].addr, machine->loc[b.loc].size, b.value);
    f->flushed = search_now();
    search_trace("%4u  %*s%u's buffer is stored: %llx\n", search_now(), 2 * (int)i, "", i,
                 (unsigned long long)b.value);
}

void machine_step(unsigned proc)
{
    fiber_t *f = &machine->fiber[fiber_of(proc)];
    if (proc >= EXPLORE_THREADS) {
        flush(fiber_of(proc));
        return;
    }
    machine_me = proc;
    if (_setjmp(machine->scheduler) != 0)
        return;
    if (f->begun)
        _longjmp(f->here, 1);
    f->begun = true;
    /* A context is made and entered by calls of the kernel: once, not in each run. */
    if (f->has_stack)
        _longjmp(f->first, 1);
    f->has_stack = true;
    ucontext_t first;
    getcontext(&first);
    first.uc_stack.ss_sp = machine->stacks + proc * STACK_BYTES;
    first.uc_stack.ss_size = STACK_BYTES;
    makecontext(&first, fiber_main, 0);
    setcontext(&first);
}

void machine_describe(unsigned proc, char *text, size_t len)
{
    const fiber_t *f = &machine->fiber[proc];
    char place[100];
    if (f->over) {
        snprintf(text, len, "has ended");
        return;
    }
    hooks_place(f->next.from, place, sizeof(place));
    snprintf(text, len, "waits at %s", place);
}
