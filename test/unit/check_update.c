/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Accumulates as steps of an adapter: origins update one word, and their steps
 * come in any order. Against a word that is updated in one go: each update takes effect with its
 * last step, once, and gives the value from before; no other step changes anything.
 */
#include "osc_nicstride/protocol/apply.h"

#include <string.h>

#include "test/unit/unit.h"

enum { ORIGINS = 5, STEPS = 3000, ROUNDS = 200, LONGEST = 1000 };

/** Not commutative; now and then nothing changes. */
static void reduce(void *ctx, const void *src, void *dst, size_t n)
{
    const size_t size = *(const size_t *)ctx;
    uint64_t s = 0, d = 0;

    UNIT_CHECK(n == 1);
    memcpy(&s, src, size);
    memcpy(&d, dst, size);
    if (s % 4 != 0)
        d = 3 * d + s + 1;
    memcpy(dst, &d, size);
}

/** What the adapter does with the word: gives the old value, and stores in `size` bytes. */
static void do_step(nicstride_atomic_t *a, uint64_t *word, size_t size)
{
    uint64_t old = *word, now = old;

    switch (a->op) {
    case ONIC_ATOMIC_ADD:
        now = old + a->operand;
        break;
    case ONIC_ATOMIC_SWAP:
        now = a->operand;
        break;
    case ONIC_ATOMIC_COMPARE_SWAP:
        now = old == a->operand ? a->value : old;
        break;
    }
    memcpy(word, &now, size);
    memcpy(&a->value, &old, size);
}

typedef struct origin {
    nicstride_update_t update;
    nicstride_atomic_t atomic;
    uint64_t value, compare;
    unsigned steps;
} origin_t;

/** The word behind the update, in one go. */
static uint64_t updated(const origin_t *o, uint64_t word)
{
    uint64_t now = 0;

    switch (o->update.kind) {
    case NICSTRIDE_UPDATE_FETCH:
        return word;
    case NICSTRIDE_UPDATE_REPLACE:
        return o->value;
    case NICSTRIDE_UPDATE_COMPARE:
        return word == o->compare ? o->value : word;
    case NICSTRIDE_UPDATE_LOOP:
        o->update.apply->reduce(o->update.apply->ctx, &o->value, &word, 1);
        return word;
    case NICSTRIDE_UPDATE_ADD:
        word += o->value;
        memcpy(&now, &word, o->update.size);
        return now;
    }
    return 0;
}

static uint64_t random_word(unit_random_t *r, size_t size)
{
    const uint64_t any = unit_once_in(r, 4) ? unit_random64(r) : unit_below(r, 8);
    uint64_t word = 0;

    memcpy(&word, &any, size);
    return word;
}

static void begin(unit_random_t *r, origin_t *o, const nicstride_apply_t *apply, size_t size,
                  uint64_t word)
{
    o->update = (nicstride_update_t){
        .kind = (nicstride_update_kind_t)unit_below(r, 5), .size = size, .apply = apply};
    o->value = random_word(r, size);
    o->compare = unit_once_in(r, 2) ? word : random_word(r, size);
    o->steps = 0;
    nicstride_atomic_begin(&o->atomic, &o->update, o->value, o->compare);
}

static void interleave(unit_random_t *r, size_t size)
{
    const nicstride_apply_t apply = {.size = size, .extent = size, .reduce = reduce, .ctx = &size};
    uint64_t word = random_word(r, size), naive = word;
    origin_t origins[ORIGINS];

    for (int i = 0; i < ORIGINS; i++)
        begin(r, &origins[i], &apply, size, word);
    for (int i = 0; i < STEPS; i++) {
        origin_t *o = &origins[unit_below(r, ORIGINS)];

        do_step(&o->atomic, &word, size);
        o->steps++;
        UNIT_CHECK(o->steps < LONGEST);
        if (nicstride_atomic_is_over(&o->atomic, &o->update)) {
            UNIT_CHECK(o->atomic.value == naive);
            UNIT_CHECK(o->steps == 1 || o->update.kind == NICSTRIDE_UPDATE_LOOP);
            naive = updated(o, naive);
            begin(r, o, &apply, size, word);
        }
        UNIT_CHECK(word == naive);
    }
}

START_TEST(steps_in_any_order_are_whole_updates)
{
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < ROUNDS; round++)
        interleave(&r, unit_once_in(&r, 2) ? 4 : 8);
}
END_TEST

START_TEST(what_an_adapter_can_update)
{
    UNIT_CHECK(nicstride_update_fits(4, 4, 12) && nicstride_update_fits(8, 8, 16));
    UNIT_CHECK(!nicstride_update_fits(8, 8, 12) && !nicstride_update_fits(4, 4, 10));
    UNIT_CHECK(!nicstride_update_fits(2, 2, 16) && !nicstride_update_fits(16, 16, 16));
    UNIT_CHECK(!nicstride_update_fits(6, 8, 16) && !nicstride_update_fits(4, 8, 16));
}
END_TEST

int main(void)
{
    return UNIT_RUN("update", UNIT_ONCE(steps_in_any_order_are_whole_updates),
                    UNIT_ONCE(what_an_adapter_can_update));
}
