/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Memory as threads see it.
 *
 *  Each location has the list of what was stored there, in the order of the runs' steps. *sc* and
 *  *tso* load the last. *tso* has stores wait in their thread's buffer, which empties by steps of
 *  its own; what is locked and full fences wait for that. *weak* has a load take any that it may
 *  still see: none that is older than one which it has seen, or which is known to be older by what
 *  was acquired. That is C11 without loads that see what is stored only later in the run, and
 *  without stores that come before others of the same location in the run: compilers do neither
 *  here, and processors where nothing depends on the load.
 *
 *  Whatever the model, what a thread knows by C11's rules orders accesses that are not atomic. */
#include "test/explore/machine.h"

#include <string.h>

static bool acquires(int order)
{
    return order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME || order == __ATOMIC_ACQ_REL ||
           order == __ATOMIC_SEQ_CST;
}

static bool releases(int order)
{
    return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static bool is_tso(void)
{
    return search_model == EXPLORE_TSO && machine_me != MAIN;
}

void machine_touch(unsigned loc, bool writes, int order)
{
    if (machine_me == MAIN)
        return;
    search_touch(machine_me, loc, writes);
    if (order == __ATOMIC_SEQ_CST && search_model == EXPLORE_WEAK)
        search_touch(machine_me, SC_LOC, false);
}

/** In a model with buffers this waits until the thread's own is empty. */
void machine_after_buffer(void)
{
    const fiber_t *f = &machine->fiber[machine_me];
    if (is_tso() && f->flushed != 0)
        search_join(machine_me, f->flushed);
}

void machine_note_read(fiber_t *f, unsigned loc, unsigned store)
{
    /* What was read first may have decided that it waits. */
    for (unsigned i = 0; i < f->nreads; i++)
        if (f->read[i].loc == loc)
            return;
    if (f->nreads < MAX_READS) {
        f->read[f->nreads].loc = loc;
        f->read[f->nreads++].store = store;
    }
}

/** The thread has seen that store. */
static uint64_t see(unsigned loc, unsigned store, int order)
{
    fiber_t *f = &machine->fiber[machine_me];
    const store_t *st = &machine->loc[loc].store[store];
    if (store > f->knows.view[loc])
        f->knows.view[loc] = (uint16_t)store;
    f->stale = f->stale || store + 1 < machine->loc[loc].nstores;
    machine_note_read(f, loc, store);
    if (st->carries != NULL)
        known_learn(acquires(order) ? &f->knows : &f->acquired, st->carries);
    return st->value;
}

static unsigned first_seen(unsigned loc, int order)
{
    const fiber_t *f = &machine->fiber[machine_me];
    const loc_t *l = &machine->loc[loc];
    unsigned first = f->knows.view[loc] > l->floor ? f->knows.view[loc] : l->floor;
    if (order == __ATOMIC_SEQ_CST && machine->sc_view[loc] > first)
        first = machine->sc_view[loc];
    if (search_model != EXPLORE_WEAK || f->fresh || machine_me == MAIN)
        first = l->nstores - 1;
    return first;
}

/** What a store with that order tells those that acquire it. */
static const knows_t *carried(int order)
{
    fiber_t *f = &machine->fiber[machine_me];
    return releases(order)   ? known_new(&f->knows)
           : f->has_released ? known_new(&f->released)
                             : NULL;
}

static void put(unsigned loc, uint64_t value, const knows_t *carries, int order)
{
    loc_t *l = &machine->loc[loc];
    fiber_t *f = &machine->fiber[machine_me];
    loc_append(l, value, carries, machine_me);
    f->knows.view[loc] = (uint16_t)(l->nstores - 1);
    if (order == __ATOMIC_SEQ_CST)
        machine->sc_view[loc] = f->knows.view[loc];
    loc_write(l->addr, l->size, value);
}

static const buffered_t *in_buffer(const fiber_t *f, unsigned loc)
{
    const buffered_t *found = NULL;
    for (unsigned i = 0; i < f->nbuffered; i++)
        if (f->buffer[i].loc == loc)
            found = &f->buffer[i];
    return found;
}

uint64_t machine_load(uintptr_t addr, unsigned size, int order, const void *from)
{
    const bool thread = fiber_announce(OP_LOAD, addr, size, order, from);
    const unsigned loc = loc_for(addr, size);
    uint64_t value;
    machine_touch(loc, false, order);
    const buffered_t *own = thread ? in_buffer(&machine->fiber[machine_me], loc) : NULL;
    if (own != NULL) {
        value = own->value;
    } else {
        const unsigned first = first_seen(loc, order), last = machine->loc[loc].nstores - 1;
        value = see(loc, last - search_choose(last - first + 1), order);
    }
    fiber_trace("load ", addr, value, from);
    return value;
}

static void store_at(unsigned loc, uint64_t value, int order, const void *from);

void machine_store(uintptr_t addr, unsigned size, uint64_t value, int order, const void *from)
{
    (void)fiber_announce(OP_STORE, addr, size, order, from);
    store_at(loc_for(addr, size), value, order, from);
}

static void store_at(unsigned loc, uint64_t value, int order, const void *from)
{
    const uintptr_t addr = machine->loc[loc].addr;
    const unsigned size = machine->loc[loc].size;
    fiber_t *f = &machine->fiber[machine_me];
    if (is_tso() && order != __ATOMIC_SEQ_CST) {
        if (f->nbuffered == BUFFERED)
            search_fail("too many buffered stores for the engine");
        fiber_trace("store in buffer", addr, value, from);
        f->buffer[f->nbuffered++] = (buffered_t){
            .loc = loc, .step = search_now(), .value = value, .carries = carried(order)};
        /* Its thread may read it by accesses that are not atomic. Others may not, as yet. */
        loc_write(addr, size, value);
        return;
    }
    machine_after_buffer();
    machine_touch(loc, true, order);
    fiber_trace("store", addr, value, from);
    put(loc, value, carried(order), order);
}

/* ---- words ----------------------------------------------------------------------------------- */

void machine_words(uintptr_t addr, size_t len)
{
    machine->words_from = addr;
    machine->words_to = addr + len;
}

bool machine_is_word(uintptr_t addr)
{
    return addr >= machine->words_from && addr < machine->words_to && machine_me != MAIN;
}

void machine_settle(void)
{
    const unsigned written = machine->written;
    while (machine->nshown > 0) {
        machine->nshown--;
        loc_write(machine->shown[machine->nshown].addr, 8, machine->shown[machine->nshown].value);
    }
    machine->written = 0;
    if (written != 0)
        store_at(written, loc_read(machine->loc[written].addr, 8), __ATOMIC_RELAXED, NULL);
}

static void read_words(uintptr_t first, unsigned n, const void *from)
{
    uint64_t value[MAX_SHOWN];
    for (unsigned i = 0; i < n; i++)
        value[i] = machine_load(first + 8 * i, 8, __ATOMIC_RELAXED, from);
    for (unsigned i = 0; i < n; i++) {
        machine->shown[machine->nshown].addr = first + 8 * i;
        machine->shown[machine->nshown++].value = loc_read(first + 8 * i, 8);
        loc_write(first + 8 * i, 8, value[i]);
    }
}

void machine_word_access(uintptr_t addr, size_t len, bool writes, const void *from)
{
    const uintptr_t first = addr & ~(uintptr_t)7;
    const unsigned n = (unsigned)((addr + len - first + 7) / 8);
    if (n > MAX_SHOWN || (writes && n > 1))
        search_fail("touches more words at once than the engine can");
    if (writes) {
        (void)fiber_announce(OP_STORE, first, 8, __ATOMIC_RELAXED, from);
        machine->written = loc_for(first, 8);
    } else {
        machine_settle();
        read_words(first, n, from);
    }
}

/** Reads the last, and stores behind it. */
static void change_to(unsigned loc, uint64_t value, int order)
{
    const knows_t *before = machine->loc[loc].store[machine->loc[loc].nstores - 1].carries;
    const knows_t *carries = carried(order);
    /* It goes on with what was released before. */
    if (before != NULL && carries != NULL)
        known_learn((knows_t *)(uintptr_t)carries, before);
    put(loc, value, carries != NULL ? carries : before, order);
}

uint64_t machine_rmw(uintptr_t addr, unsigned size, uint64_t (*change)(uint64_t old, uint64_t arg),
                     uint64_t arg, int order, const void *from)
{
    (void)fiber_announce(OP_RMW, addr, size, order, from);
    const unsigned loc = loc_for(addr, size);
    machine_after_buffer();
    machine_touch(loc, true, order);
    const bool stale = machine->fiber[machine_me].stale;
    const uint64_t old = see(loc, machine->loc[loc].nstores - 1, order);
    machine->fiber[machine_me].stale = stale;
    const uint64_t value = change(old, arg);
    fiber_trace("change to", addr, value, from);
    change_to(loc, value, order);
    return old;
}

bool machine_cas(uintptr_t addr, unsigned size, uint64_t *old_p, uint64_t value, int order,
                 int failed_order, const void *from)
{
    (void)fiber_announce(OP_RMW, addr, size, order, from);
    const unsigned loc = loc_for(addr, size);
    const loc_t *l = &machine->loc[loc];
    const unsigned last = l->nstores - 1;
    unsigned failing[MAX_STORES], n = 0;
    machine_after_buffer();
    for (unsigned i = first_seen(loc, failed_order); i < last; i++)
        if (l->store[i].value != *old_p)
            failing[n++] = i;
    const bool can = l->store[last].value == *old_p;
    if (!can)
        failing[n++] = last;
    const unsigned choice = search_choose(n + can);
    if (can && choice == 0) {
        machine_touch(loc, true, order);
        fiber_trace("exchange for", addr, value, from);
        (void)see(loc, last, order);
        change_to(loc, value, order);
        return true;
    }
    machine_touch(loc, false, failed_order);
    *old_p = see(loc, failing[n - 1 - (choice - can)], failed_order);
    fiber_trace("exchange fails", addr, *old_p, from);
    return false;
}

void machine_fence(int order, const void *from)
{
    (void)fiber_announce(OP_FENCE, 0, 0, order, from);
    fiber_t *f = &machine->fiber[machine_me];
    machine_after_buffer();
    fiber_trace("fence", 0, (uint64_t)order, from);
    if (acquires(order))
        known_learn(&f->knows, &f->acquired);
    if (order == __ATOMIC_SEQ_CST) {
        if (machine_me != MAIN && search_model == EXPLORE_WEAK)
            search_touch(machine_me, SC_LOC, true);
        for (unsigned i = 0; i < machine->nlocs; i++) {
            if (machine->sc_view[i] > f->knows.view[i])
                f->knows.view[i] = machine->sc_view[i];
            machine->sc_view[i] = f->knows.view[i];
        }
    }
    if (releases(order)) {
        known_copy(&f->released, &f->knows);
        f->has_released = true;
    }
}
