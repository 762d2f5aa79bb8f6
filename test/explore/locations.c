/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What was stored at each location, and what a thread knows of that. */
#include "test/explore/machine.h"

#include <string.h>

/* ---- what is known --------------------------------------------------------------------------- */

void known_learn(knows_t *k, const knows_t *other)
{
    for (unsigned i = 0; i < NCLOCKS; i++)
        k->clock[i] = other->clock[i] > k->clock[i] ? other->clock[i] : k->clock[i];
    for (unsigned i = 0; i < machine->nlocs; i++)
        k->view[i] = other->view[i] > k->view[i] ? other->view[i] : k->view[i];
}

/** Of locations that come to be known later nothing is known. */
void known_copy(knows_t *k, const knows_t *other)
{
    memcpy(k->clock, other->clock, sizeof(k->clock));
    memcpy(k->view, other->view, machine->nlocs * sizeof(k->view[0]));
    memset(k->view + machine->nlocs, 0, (MAX_LOCS - machine->nlocs) * sizeof(k->view[0]));
}

const knows_t *known_new(const knows_t *other)
{
    if (machine->nknown == MAX_KNOWN)
        search_fail("does not end");
    knows_t *k = &machine->known[machine->nknown++];
    known_copy(k, other);
    return k;
}

const knows_t *machine_knows(void)
{
    return &machine->fiber[machine_me].knows;
}

/* ---- locations ------------------------------------------------------------------------------- */

uint64_t loc_read(uintptr_t addr, unsigned size)
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

void loc_write(uintptr_t addr, unsigned size, uint64_t value)
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

void loc_append(loc_t *l, uint64_t value, const knows_t *carries, unsigned by)
{
    if (l->nstores == MAX_STORES)
        search_fail("does not end");
    l->store[l->nstores++] = (store_t){
        .value = value, .carries = carries, .by = (uint8_t)by, .step = (uint16_t)search_now()};
}

/** A new one if `size` is not 0; 0: there is none. */
static unsigned loc_of(uintptr_t addr, unsigned size)
{
    const unsigned mask = sizeof(machine->hash) / sizeof(machine->hash[0]);
    unsigned at = (unsigned)((addr >> 2) * 2654435761U % mask);
    while (machine->hash[at] != 0 && machine->loc[machine->hash[at]].addr != addr)
        at = (at + 1) % mask;
    if (machine->hash[at] == 0 && size != 0) {
        if (machine->nlocs == MAX_LOCS)
            search_fail("too many locations for the engine");
        loc_t *l = &machine->loc[machine->nlocs];
        l->addr = addr;
        l->size = size;
        l->nstores = l->floor = 0;
        l->overwritten = false;
        loc_append(l, size == UINT32_MAX ? 0 : loc_read(addr, size), NULL, MAIN);
        machine->hash[at] = (uint16_t)machine->nlocs++;
    }
    return machine->hash[at];
}

unsigned loc_for(uintptr_t addr, unsigned size)
{
    const unsigned i = loc_of(addr, size);
    loc_t *l = &machine->loc[i];
    if (l->size != size)
        search_fail("an atomic word is accessed by another size");
    if (l->overwritten) {
        l->overwritten = false;
        loc_append(l, loc_read(addr, size), NULL, MAIN);
        l->floor = l->nstores - 1;
    }
    return i;
}

void machine_overwritten(uintptr_t addr, size_t len)
{
    if (len > 64) {
        for (unsigned i = 2; i < machine->nlocs; i++)
            if (machine->loc[i].addr < addr + len &&
                machine->loc[i].addr + machine->loc[i].size > addr)
                machine->loc[i].overwritten = true;
        return;
    }
    /* Words are aligned. */
    for (uintptr_t at = addr & ~(uintptr_t)7; at < addr + len; at++) {
        const unsigned i = loc_of(at, 0);
        if (i != 0 && at + machine->loc[i].size > addr)
            machine->loc[i].overwritten = true;
    }
}

/** The word of a futex that counts what has woken its sleepers. */
unsigned loc_of_futex(uintptr_t word)
{
    return loc_of(word | 1, UINT32_MAX);
}
