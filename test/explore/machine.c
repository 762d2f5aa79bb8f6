/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Threads as fibers, and memory as they see it.
 *
 *  Each location has the list of what was stored there, in the order of the runs' steps. *sc* and
 *  *tso* load the last. *tso* has stores wait in their thread's buffer, which empties by steps of
 * its own; what is locked and full fences wait for that. *weak* has a load take any that it may
 * still see: none that is older than one which it has seen, or which is known to be older by what
 * was acquired. That is C11 without loads that see what is stored only later in the run, and
 * without stores that come before others of the same location in the run: compilers do neither
 * here, and processors where nothing depends on the load.
 *
 *  Whatever the model, what a thread knows by C11's rules orders accesses that are not atomic. */
#define _GNU_SOURCE
#include "test/explore/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define STACK_BYTES ((size_t)256 << 10)
#define MAX_STORES  256
#define MAX_KNOWN   8192
#define BUFFERED    16
#define MAX_READS   MAX_LOCS
#define MAX_SHOWN   128
/** So many pauses of a thread may end while others could go on; then only when none can. */
#define EARLY_TIMEOUTS 1
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
    jmp_buf here;
    ucontext_t first;
    bool begun, over;
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

unsigned machine_me;
bool machine_inside;
static machine_t *m;

void machine_init(void)
{
    m = calloc(1, sizeof(*m));
    m->stacks = mmap(NULL, EXPLORE_THREADS * STACK_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory_stacks((uintptr_t)m->stacks, (uintptr_t)m->stacks + EXPLORE_THREADS * STACK_BYTES);
}

void machine_reset(void)
{
    m->nthreads = m->nknown = 0;
    m->nlocs = 2;
    m->words_from = m->words_to = m->nshown = m->written = 0;
    memset(m->hash, 0, sizeof(m->hash));
    memset(m->sc_view, 0, sizeof(m->sc_view));
    for (unsigned i = 0; i <= EXPLORE_THREADS; i++) {
        fiber_t *f = &m->fiber[i];
        f->begun = f->over = f->has_released = f->stale = f->fresh = false;
        memset(&f->knows, 0, sizeof(f->knows));
        memset(&f->acquired, 0, sizeof(f->acquired));
        f->nreads = f->nbuffered = f->flushed = f->timeouts = 0;
        f->next = (op_t){.kind = OP_BEGIN};
        f->knows.clock[i] = 1;
    }
}

/* ---- what is known --------------------------------------------------------------------------- */

static void learn(knows_t *k, const knows_t *other)
{
    for (unsigned i = 0; i < NCLOCKS; i++)
        k->clock[i] = other->clock[i] > k->clock[i] ? other->clock[i] : k->clock[i];
    for (unsigned i = 0; i < m->nlocs; i++)
        k->view[i] = other->view[i] > k->view[i] ? other->view[i] : k->view[i];
}

/** Of locations that come to be known later nothing is known. */
static void copy(knows_t *k, const knows_t *other)
{
    memcpy(k->clock, other->clock, sizeof(k->clock));
    memcpy(k->view, other->view, m->nlocs * sizeof(k->view[0]));
    memset(k->view + m->nlocs, 0, (MAX_LOCS - m->nlocs) * sizeof(k->view[0]));
}

static knows_t *new_known(const knows_t *other)
{
    if (m->nknown == MAX_KNOWN)
        search_fail("does not end");
    knows_t *k = &m->known[m->nknown++];
    copy(k, other);
    return k;
}

const knows_t *machine_knows(void)
{
    return &m->fiber[machine_me].knows;
}

static bool acquires(int order)
{
    return order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME || order == __ATOMIC_ACQ_REL ||
           order == __ATOMIC_SEQ_CST;
}

static bool releases(int order)
{
    return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

/* ---- locations ------------------------------------------------------------------------------- */

static uint64_t read_memory(uintptr_t addr, unsigned size)
{
    switch (size) {
    case 1:
        return *(const uint8_t *)addr;
    case 2:
        return *(const uint16_t *)addr;
    case 4:
        return *(const uint32_t *)addr;
    default:
        return *(const uint64_t *)addr;
    }
}

static void write_memory(uintptr_t addr, unsigned size, uint64_t value)
{
    switch (size) {
    case 1:
        *(uint8_t *)addr = (uint8_t)value;
        break;
    case 2:
        *(uint16_t *)addr = (uint16_t)value;
        break;
    case 4:
        *(uint32_t *)addr = (uint32_t)value;
        break;
    default:
        *(uint64_t *)addr = value;
    }
}

static void append(loc_t *l, uint64_t value, const knows_t *carries, unsigned by)
{
    if (l->nstores == MAX_STORES)
        search_fail("does not end");
    l->store[l->nstores++] = (store_t){
        .value = value, .carries = carries, .by = (uint8_t)by, .step = (uint16_t)search_now()};
}

/** A new one if `size` is not 0; 0: there is none. */
static unsigned loc_of(uintptr_t addr, unsigned size)
{
    const unsigned mask = sizeof(m->hash) / sizeof(m->hash[0]);
    unsigned at = (unsigned)((addr >> 2) * 2654435761U % mask);
    while (m->hash[at] != 0 && m->loc[m->hash[at]].addr != addr)
        at = (at + 1) % mask;
    if (m->hash[at] == 0 && size != 0) {
        if (m->nlocs == MAX_LOCS)
            search_fail("too many locations for the engine");
        loc_t *l = &m->loc[m->nlocs];
        l->addr = addr;
        l->size = size;
        l->nstores = l->floor = 0;
        l->overwritten = false;
        append(l, size == UINT32_MAX ? 0 : read_memory(addr, size), NULL, MAIN);
        m->hash[at] = (uint16_t)m->nlocs++;
    }
    return m->hash[at];
}

static unsigned loc_for(uintptr_t addr, unsigned size)
{
    const unsigned i = loc_of(addr, size);
    loc_t *l = &m->loc[i];
    if (l->size != size)
        search_fail("an atomic word is accessed by another size");
    if (l->overwritten) {
        l->overwritten = false;
        append(l, read_memory(addr, size), NULL, MAIN);
        l->floor = l->nstores - 1;
    }
    return i;
}

void machine_overwritten(uintptr_t addr, size_t len)
{
    if (len > 64) {
        for (unsigned i = 2; i < m->nlocs; i++)
            if (m->loc[i].addr < addr + len && m->loc[i].addr + m->loc[i].size > addr)
                m->loc[i].overwritten = true;
        return;
    }
    /* Words are aligned. */
    for (uintptr_t at = addr & ~(uintptr_t)7; at < addr + len; at++) {
        const unsigned i = loc_of(at, 0);
        if (i != 0 && at + m->loc[i].size > addr)
            m->loc[i].overwritten = true;
    }
}

/** The word of a futex that counts what has woken its sleepers. */
static unsigned futex_of(uintptr_t word)
{
    return loc_of(word | 1, UINT32_MAX);
}

static void settle(void);

/* ---- fibers ---------------------------------------------------------------------------------- */

static void to_scheduler(void)
{
    fiber_t *f = &m->fiber[machine_me];
    machine_inside = false;
    if (_setjmp(f->here) == 0)
        _longjmp(m->scheduler, 1);
    machine_inside = true;
}

static const explore_target_t *started;

static void fiber_main(void)
{
    machine_inside = true;
    started->thread(machine_me);
    machine_inside = false;
    settle();
    m->fiber[machine_me].over = true;
    m->fiber[machine_me].next = (op_t){.kind = OP_END};
    _longjmp(m->scheduler, 1);
}

void machine_start(const explore_target_t *target)
{
    started = target;
    m->nthreads = target->nthreads;
    for (unsigned i = 0; i < target->nthreads; i++) {
        fiber_t *f = &m->fiber[i];
        learn(&f->knows, &m->fiber[MAIN].knows);
        getcontext(&f->first);
        f->first.uc_stack.ss_sp = m->stacks + i * STACK_BYTES;
        f->first.uc_stack.ss_size = STACK_BYTES;
        makecontext(&f->first, fiber_main, 0);
    }
    m->fiber[MAIN].knows.clock[MAIN]++;
}

void machine_finish(void)
{
    for (unsigned i = 0; i < m->nthreads; i++)
        learn(&m->fiber[MAIN].knows, &m->fiber[i].knows);
    for (unsigned i = 2; i < m->nlocs; i++)
        m->fiber[MAIN].knows.view[i] = (uint16_t)(m->loc[i].nstores - 1);
}

/** Before each step that others may see. In setup and finish there are no others. */
static bool announce(kind_t kind, uintptr_t addr, unsigned size, int order, const void *from)
{
    fiber_t *f = &m->fiber[machine_me];
    settle();
    f->next = (op_t){
        .kind = kind, .addr = addr, .size = (uint8_t)size, .order = (uint8_t)order, .from = from};
    if (machine_me == MAIN)
        return false;
    to_scheduler();
    f->knows.clock[machine_me]++;
    return true;
}

static void trace(const char *what, uintptr_t addr, uint64_t value, const void *from)
{
    char place[200], name[100];
    if (!search_tracing || machine_me == MAIN)
        return;
    hooks_place(from, place, sizeof(place));
    hooks_name(addr, name, sizeof(name));
    search_trace("%4u  %*s%u %s %s %llx   %s\n", search_now(), 2 * (int)machine_me, "", machine_me,
                 what, name, (unsigned long long)value, place);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static bool is_tso(void)
{
    return search_model == EXPLORE_TSO && machine_me != MAIN;
}

static void touch(unsigned loc, bool writes, int order)
{
    if (machine_me == MAIN)
        return;
    search_touch(machine_me, loc, writes);
    if (order == __ATOMIC_SEQ_CST && search_model == EXPLORE_WEAK)
        search_touch(machine_me, SC_LOC, false);
}

/** In a model with buffers this waits until the thread's own is empty. */
static void after_buffer(void)
{
    const fiber_t *f = &m->fiber[machine_me];
    if (is_tso() && f->flushed != 0)
        search_join(machine_me, f->flushed);
}

static void note_read(fiber_t *f, unsigned loc, unsigned store)
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
    fiber_t *f = &m->fiber[machine_me];
    const store_t *st = &m->loc[loc].store[store];
    if (store > f->knows.view[loc])
        f->knows.view[loc] = (uint16_t)store;
    f->stale = f->stale || store + 1 < m->loc[loc].nstores;
    note_read(f, loc, store);
    if (st->carries != NULL)
        learn(acquires(order) ? &f->knows : &f->acquired, st->carries);
    return st->value;
}

static unsigned first_seen(unsigned loc, int order)
{
    const fiber_t *f = &m->fiber[machine_me];
    const loc_t *l = &m->loc[loc];
    unsigned first = f->knows.view[loc] > l->floor ? f->knows.view[loc] : l->floor;
    if (order == __ATOMIC_SEQ_CST && m->sc_view[loc] > first)
        first = m->sc_view[loc];
    if (search_model != EXPLORE_WEAK || f->fresh || machine_me == MAIN)
        first = l->nstores - 1;
    return first;
}

/** What a store with that order tells those that acquire it. */
static const knows_t *carried(int order)
{
    fiber_t *f = &m->fiber[machine_me];
    return releases(order)   ? new_known(&f->knows)
           : f->has_released ? new_known(&f->released)
                             : NULL;
}

static void put(unsigned loc, uint64_t value, const knows_t *carries, int order)
{
    loc_t *l = &m->loc[loc];
    fiber_t *f = &m->fiber[machine_me];
    append(l, value, carries, machine_me);
    f->knows.view[loc] = (uint16_t)(l->nstores - 1);
    if (order == __ATOMIC_SEQ_CST)
        m->sc_view[loc] = f->knows.view[loc];
    write_memory(l->addr, l->size, value);
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
    const bool thread = announce(OP_LOAD, addr, size, order, from);
    const unsigned loc = loc_for(addr, size);
    uint64_t value;
    touch(loc, false, order);
    const buffered_t *own = thread ? in_buffer(&m->fiber[machine_me], loc) : NULL;
    if (own != NULL) {
        value = own->value;
    } else {
        const unsigned first = first_seen(loc, order), last = m->loc[loc].nstores - 1;
        value = see(loc, last - search_choose(last - first + 1), order);
    }
    trace("load ", addr, value, from);
    return value;
}

static void store_at(unsigned loc, uint64_t value, int order, const void *from);

void machine_store(uintptr_t addr, unsigned size, uint64_t value, int order, const void *from)
{
    (void)announce(OP_STORE, addr, size, order, from);
    store_at(loc_for(addr, size), value, order, from);
}

static void store_at(unsigned loc, uint64_t value, int order, const void *from)
{
    const uintptr_t addr = m->loc[loc].addr;
    const unsigned size = m->loc[loc].size;
    fiber_t *f = &m->fiber[machine_me];
    if (is_tso() && order != __ATOMIC_SEQ_CST) {
        if (f->nbuffered == BUFFERED)
            search_fail("too many buffered stores for the engine");
        trace("store in buffer", addr, value, from);
        f->buffer[f->nbuffered++] = (buffered_t){
            .loc = loc, .step = search_now(), .value = value, .carries = carried(order)};
        /* Its thread may read it by accesses that are not atomic. Others may not, as yet. */
        write_memory(addr, size, value);
        return;
    }
    after_buffer();
    touch(loc, true, order);
    trace("store", addr, value, from);
    put(loc, value, carried(order), order);
}

/* ---- words ----------------------------------------------------------------------------------- */

void machine_words(uintptr_t addr, size_t len)
{
    m->words_from = addr;
    m->words_to = addr + len;
}

bool machine_is_word(uintptr_t addr)
{
    return addr >= m->words_from && addr < m->words_to && machine_me != MAIN;
}

static void settle(void)
{
    const unsigned written = m->written;
    while (m->nshown > 0) {
        m->nshown--;
        write_memory(m->shown[m->nshown].addr, 8, m->shown[m->nshown].value);
    }
    m->written = 0;
    if (written != 0)
        store_at(written, read_memory(m->loc[written].addr, 8), __ATOMIC_RELAXED, NULL);
}

static void read_words(uintptr_t first, unsigned n, const void *from)
{
    uint64_t value[MAX_SHOWN];
    for (unsigned i = 0; i < n; i++)
        value[i] = machine_load(first + 8 * i, 8, __ATOMIC_RELAXED, from);
    for (unsigned i = 0; i < n; i++) {
        m->shown[m->nshown].addr = first + 8 * i;
        m->shown[m->nshown++].value = read_memory(first + 8 * i, 8);
        write_memory(first + 8 * i, 8, value[i]);
    }
}

void machine_word_access(uintptr_t addr, size_t len, bool writes, const void *from)
{
    const uintptr_t first = addr & ~(uintptr_t)7;
    const unsigned n = (unsigned)((addr + len - first + 7) / 8);
    if (n > MAX_SHOWN || (writes && n > 1))
        search_fail("touches more words at once than the engine can");
    if (writes) {
        (void)announce(OP_STORE, first, 8, __ATOMIC_RELAXED, from);
        m->written = loc_for(first, 8);
    } else {
        settle();
        read_words(first, n, from);
    }
}

/** Reads the last, and stores behind it. */
static void change_to(unsigned loc, uint64_t value, int order)
{
    const knows_t *before = m->loc[loc].store[m->loc[loc].nstores - 1].carries;
    const knows_t *carries = carried(order);
    /* It goes on with what was released before. */
    if (before != NULL && carries != NULL)
        learn((knows_t *)(uintptr_t)carries, before);
    put(loc, value, carries != NULL ? carries : before, order);
}

uint64_t machine_rmw(uintptr_t addr, unsigned size, uint64_t (*change)(uint64_t old, uint64_t arg),
                     uint64_t arg, int order, const void *from)
{
    (void)announce(OP_RMW, addr, size, order, from);
    const unsigned loc = loc_for(addr, size);
    after_buffer();
    touch(loc, true, order);
    const bool stale = m->fiber[machine_me].stale;
    const uint64_t old = see(loc, m->loc[loc].nstores - 1, order);
    m->fiber[machine_me].stale = stale;
    const uint64_t value = change(old, arg);
    trace("change to", addr, value, from);
    change_to(loc, value, order);
    return old;
}

bool machine_cas(uintptr_t addr, unsigned size, uint64_t *old_p, uint64_t value, int order,
                 int failed_order, const void *from)
{
    (void)announce(OP_RMW, addr, size, order, from);
    const unsigned loc = loc_for(addr, size);
    const loc_t *l = &m->loc[loc];
    const unsigned last = l->nstores - 1;
    unsigned failing[MAX_STORES], n = 0;
    after_buffer();
    for (unsigned i = first_seen(loc, failed_order); i < last; i++)
        if (l->store[i].value != *old_p)
            failing[n++] = i;
    const bool can = l->store[last].value == *old_p;
    if (!can)
        failing[n++] = last;
    const unsigned choice = search_choose(n + can);
    if (can && choice == 0) {
        touch(loc, true, order);
        trace("exchange for", addr, value, from);
        (void)see(loc, last, order);
        change_to(loc, value, order);
        return true;
    }
    touch(loc, false, failed_order);
    *old_p = see(loc, failing[n - 1 - (choice - can)], failed_order);
    trace("exchange fails", addr, *old_p, from);
    return false;
}

void machine_fence(int order, const void *from)
{
    (void)announce(OP_FENCE, 0, 0, order, from);
    fiber_t *f = &m->fiber[machine_me];
    after_buffer();
    trace("fence", 0, (uint64_t)order, from);
    if (acquires(order))
        learn(&f->knows, &f->acquired);
    if (order == __ATOMIC_SEQ_CST) {
        if (machine_me != MAIN && search_model == EXPLORE_WEAK)
            search_touch(machine_me, SC_LOC, true);
        for (unsigned i = 0; i < m->nlocs; i++) {
            if (m->sc_view[i] > f->knows.view[i])
                f->knows.view[i] = m->sc_view[i];
            m->sc_view[i] = f->knows.view[i];
        }
    }
    if (releases(order)) {
        copy(&f->released, &f->knows);
        f->has_released = true;
    }
}

/** The first store of another thread behind the one that was read; 0: none. */
static unsigned first_change(const fiber_t *f, unsigned me, unsigned i)
{
    const loc_t *l = &m->loc[f->read[i].loc];
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
        const unsigned step = k != 0 ? m->loc[f->read[i].loc].store[k].step : 0;
        if (step != 0 && (first == 0 || search_is_before(step, first)))
            first = step;
    }
    for (unsigned i = 0; i < f->nreads && first != 0; i++) {
        const unsigned k = first_change(f, machine_me, i);
        const unsigned step = k != 0 ? m->loc[f->read[i].loc].store[k].step : 0;
        if (step != 0 && step != first && !search_is_before(first, step))
            first = 0;
    }
    return first;
}

bool machine_pause(bool limited, const void *from)
{
    if (machine_me == MAIN)
        search_fail("waits in setup or finish");
    (void)announce(OP_PAUSE, 0, 0, limited, from);
    fiber_t *f = &m->fiber[machine_me];
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
    trace("goes on", 0, 0, from);
    f->fresh = f->stale;
    f->stale = false;
    f->nreads = 0;
    return over;
}

void machine_futex_wait(uintptr_t word, uint32_t value, const void *from)
{
    (void)announce(OP_FUTEX_WAIT, word, 4, __ATOMIC_ACQ_REL, from);
    const unsigned loc = loc_for(word, 4), wakes = futex_of(word);
    fiber_t *f = &m->fiber[machine_me];
    after_buffer();
    touch(loc, false, __ATOMIC_ACQ_REL);
    touch(wakes, false, __ATOMIC_ACQ_REL);
    const uint64_t found = m->loc[loc].store[m->loc[loc].nstores - 1].value;
    trace(found == value ? "sleeps" : "does not sleep", word, found, from);
    if (found != value)
        return;
    f->nreads = 0;
    f->stale = false;
    note_read(f, wakes, m->loc[wakes].nstores - 1);
    (void)machine_pause(false, from);
}

void machine_futex_wake(uintptr_t word, const void *from)
{
    (void)announce(OP_FUTEX_WAKE, word, 4, __ATOMIC_ACQ_REL, from);
    const unsigned wakes = futex_of(word);
    after_buffer();
    touch(wakes, true, __ATOMIC_ACQ_REL);
    trace("wakes", word, 0, from);
    append(&m->loc[wakes], 0, NULL, machine_me);
}

/* ---- for the search -------------------------------------------------------------------------- */

static unsigned fiber_of(unsigned proc)
{
    return proc % EXPLORE_THREADS;
}

const op_t *machine_next(unsigned proc)
{
    static op_t flush;
    fiber_t *f = &m->fiber[fiber_of(proc)];
    if (proc < EXPLORE_THREADS)
        return &f->next;
    flush = (op_t){.kind = OP_FLUSH, .addr = f->nbuffered > 0 ? m->loc[f->buffer[0].loc].addr : 0};
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
    const fiber_t *f = &m->fiber[i];
    if (f->over || (f->nbuffered > 0 && waits_for_buffer(&f->next)))
        return false;
    return f->next.kind != OP_PAUSE || f->stale || f->nreads == 0 || has_changed(f, i) ||
           (f->next.order != 0 && f->timeouts < EARLY_TIMEOUTS);
}

unsigned machine_enabled(void)
{
    unsigned enabled = 0;
    for (unsigned i = 0; i < m->nthreads; i++) {
        enabled |= is_enabled(i) ? 1U << i : 0;
        enabled |= m->fiber[i].nbuffered > 0 ? 1U << (EXPLORE_THREADS + i) : 0;
    }
    /* Time passes where nothing else does. */
    for (unsigned i = 0, others = enabled; i < m->nthreads && others == 0; i++)
        if (!m->fiber[i].over && m->fiber[i].next.kind == OP_PAUSE && m->fiber[i].next.order != 0)
            enabled |= 1U << i;
    return enabled;
}

bool machine_over(void)
{
    bool over = true;
    for (unsigned i = 0; i < m->nthreads; i++)
        over = over && m->fiber[i].over && m->fiber[i].nbuffered == 0;
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
    fiber_t *f = &m->fiber[i];
    const buffered_t b = f->buffer[0];
    search_join(EXPLORE_THREADS + i, b.step);
    search_touch(EXPLORE_THREADS + i, b.loc, true);
    f->nbuffered--;
    memmove(f->buffer, f->buffer + 1, f->nbuffered * sizeof(b));
    append(&m->loc[b.loc], b.value, b.carries, i);
    write_memory(m->loc[b.loc].addr, m->loc[b.loc].size, b.value);
    f->flushed = search_now();
    search_trace("%4u  %*s%u's buffer is stored: %llx\n", search_now(), 2 * (int)i, "", i,
                 (unsigned long long)b.value);
}

void machine_step(unsigned proc)
{
    fiber_t *f = &m->fiber[fiber_of(proc)];
    if (proc >= EXPLORE_THREADS) {
        flush(fiber_of(proc));
        return;
    }
    machine_me = proc;
    if (_setjmp(m->scheduler) != 0)
        return;
    if (f->begun)
        _longjmp(f->here, 1);
    f->begun = true;
    setcontext(&f->first);
}

void machine_describe(unsigned proc, char *text, size_t len)
{
    const fiber_t *f = &m->fiber[proc];
    char place[100];
    if (f->over) {
        snprintf(text, len, "has ended");
        return;
    }
    hooks_place(f->next.from, place, sizeof(place));
    snprintf(text, len, "waits at %s", place);
}
