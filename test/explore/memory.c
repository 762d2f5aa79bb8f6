/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Accesses that are not atomic: two of different threads to the same byte, one of which
 *  writes, are ordered. Memory that is allocated in a run comes from here, and is touched only
 *  while it is allocated. */
#include "test/explore/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS       (1U << 15)
#define ARENA_BYTES ((size_t)4 << 20)
/** Between two blocks. */
#define GAP 64

typedef struct access {
    uint32_t clock;
    uint8_t bytes; /**< a bit for each of the word */
    const void *from;
} access_t;

enum { WRITES, READS, WRITES_ATOMIC, READS_ATOMIC, NACCESSES };
#define OF_KIND(kind) (((1U << NCLOCKS) - 1) << (kind)*NCLOCKS)
#define OF_THREAD(me) ((1U | 1U << NCLOCKS | 1U << 2 * NCLOCKS | 1U << 3 * NCLOCKS) << (me))

typedef struct word {
    uint32_t there; /**< bits of the accesses that have been in this run */
    access_t access[NACCESSES * NCLOCKS];
} word_t;

typedef struct slot {
    uintptr_t addr;
    uint32_t run, word;
} slot_t;

typedef struct memory {
    /** One beside the other, as a run touches them: few lines of the cache. */
    word_t word[WORDS / 4 * 3];
    slot_t slot[WORDS];
    uint32_t run;
    unsigned nwords;
    uintptr_t stacks_from, stacks_to;
    size_t used;
    uint8_t live[ARENA_BYTES / 8]; /**< 1: allocated, 2: was */
    _Alignas(4096) unsigned char arena[ARENA_BYTES];
} memory_t;

static memory_t *mem;

void memory_init(void)
{
    mem = aligned_alloc(4096, sizeof(*mem));
    memset(mem, 0, sizeof(*mem));
}

void memory_stacks(uintptr_t from, uintptr_t to)
{
    mem->stacks_from = from;
    mem->stacks_to = to;
}

void memory_reset(void)
{
    mem->run++;
    mem->nwords = 0;
    memset(mem->live, 0, mem->used / 8 + 1);
    mem->used = 0;
}

/* ---- accesses -------------------------------------------------------------------------------- */

static word_t *word_at(uintptr_t addr)
{
    /* Neighbours stay neighbours. */
    unsigned at = (unsigned)((addr >> 6) * 2654435761U * 8 + (addr >> 3) % 8) % WORDS;
    while (mem->slot[at].run == mem->run && mem->slot[at].addr != addr)
        at = (at + 1) % WORDS;
    slot_t *s = &mem->slot[at];
    if (s->run != mem->run) {
        if (mem->nwords == WORDS / 4 * 3)
            search_fail("touches too much memory for the engine");
        *s = (slot_t){.addr = addr, .run = mem->run, .word = mem->nwords++};
        mem->word[s->word].there = 0;
    }
    return &mem->word[s->word];
}

static const access_t *unordered(const word_t *w, uint32_t kinds, uint8_t bytes,
                                 const knows_t *knows)
{
    uint32_t others = w->there & kinds & ~OF_THREAD(machine_me);
    for (; others != 0; others &= others - 1) {
        const unsigned i = (unsigned)__builtin_ctz(others);
        const access_t *a = &w->access[i];
        if ((a->bytes & bytes) != 0 && a->clock > knows->clock[i % NCLOCKS])
            return a;
    }
    return NULL;
}

static void check_word(uintptr_t addr, uint8_t bytes, bool writes, bool atomic, const void *from)
{
    word_t *w = word_at(addr);
    const knows_t *knows = machine_knows();
    const uint32_t kinds = OF_KIND(WRITES) | (writes ? OF_KIND(READS) : 0);
    const uint32_t atomics = atomic ? 0 : kinds << WRITES_ATOMIC * NCLOCKS;
    const access_t *other = unordered(w, kinds | atomics, bytes, knows);
    if (other != NULL) {
        char here[120], there[120], name[80], text[380];
        hooks_place(from, here, sizeof(here));
        hooks_place(other->from, there, sizeof(there));
        hooks_name(addr, name, sizeof(name));
        snprintf(text, sizeof(text), "two threads touch %s, and nothing orders them: %s and %s",
                 name, there, here);
        search_fail(text);
    }
    const unsigned kind = (writes ? WRITES : READS) + (atomic ? 2 : 0);
    const unsigned i = kind * NCLOCKS + machine_me;
    const uint32_t clock = knows->clock[machine_me];
    access_t *a = &w->access[i];
    const bool again = (w->there >> i & 1) != 0 && a->clock == clock;
    *a = (access_t){clock, (uint8_t)(again ? a->bytes | bytes : bytes), from};
    w->there |= 1U << i;
}

static void check_live(uintptr_t addr, size_t len, const void *from)
{
    const uintptr_t arena = (uintptr_t)mem->arena;
    if (addr < arena || addr >= arena + ARENA_BYTES)
        return;
    for (uintptr_t at = addr; at < addr + len; at = (at | 7) + 1) {
        const uint8_t live = mem->live[(at - arena) / 8];
        if (live != 1) {
            char here[120], text[200];
            hooks_place(from, here, sizeof(here));
            snprintf(text, sizeof(text), "memory is touched that %s: %s",
                     live == 2 ? "was freed" : "nobody has allocated", here);
            search_fail(text);
        }
    }
}

void memory_access(uintptr_t addr, size_t len, bool writes, bool atomic, const void *from)
{
    if ((addr >= mem->stacks_from && addr < mem->stacks_to) || len == 0)
        return;
    check_live(addr, len, from);
    /* Setup comes before all threads, and finish after them. */
    for (uintptr_t at = addr & ~(uintptr_t)7; at < addr + len && machine_me != MAIN; at += 8) {
        unsigned bytes = 0xff;
        if (at < addr)
            bytes &= 0xffU << (addr - at);
        if (at + 8 > addr + len)
            bytes &= 0xffU >> (at + 8 - addr - len);
        check_word(at, (uint8_t)bytes, writes, atomic, from);
    }
    if (writes && !atomic)
        machine_overwritten(addr, len);
}

/* ---- allocation ------------------------------------------------------------------------------ */

void *memory_alloc(size_t len, size_t align)
{
    const size_t at = (mem->used + GAP + align - 1) / align * align;
    const size_t whole = (len + 7) / 8 * 8;
    if (at + whole + GAP > ARENA_BYTES)
        search_fail("allocates too much memory for the engine");
    /* The length, for who asks for it. */
    memcpy(mem->arena + at - sizeof(len), &len, sizeof(len));
    memset(mem->live + at / 8, 1, whole / 8);
    mem->used = at + whole;
    return mem->arena + at;
}

size_t memory_size(const void *block)
{
    size_t len;
    memcpy(&len, (const char *)block - sizeof(len), sizeof(len));
    return len;
}

void memory_free(void *block, const void *from)
{
    const uintptr_t addr = (uintptr_t)block, arena = (uintptr_t)mem->arena;
    if (addr < arena || addr >= arena + ARENA_BYTES || memory_size(block) == 0)
        return;
    memory_access(addr, memory_size(block), true, false, from);
    memset(mem->live + (addr - arena) / 8, 2, (memory_size(block) + 7) / 8);
}
