/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Queues by key against a plain list of all elements, with and without memory. */
#include "pml_superpipe/matching/rings.h"

#include <string.h>

#include "test/unit/unit.h"

/* In place of the C library's (linked with --wrap). */
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

static bool no_memory;

void *__wrap_calloc(size_t n, size_t size)
{
    return no_memory ? NULL : __real_calloc(n, size);
}

enum { ELEMENTS = 400, MANY = 100000 };

/** All elements that are in, in the order in which they came. */
typedef struct plain {
    superpipe_link_t *at[ELEMENTS];
    uint64_t key[ELEMENTS];
    size_t n;
} plain_t;

static superpipe_link_t *plain_first(const plain_t *p, uint64_t key, uint64_t mask)
{
    for (size_t i = 0; i < p->n; i++)
        if (((p->key[i] ^ key) & mask) == 0)
            return p->at[i];
    return NULL;
}

static void plain_remove(plain_t *p, const superpipe_link_t *link)
{
    size_t i = 0;

    while (p->at[i] != link)
        i++;
    p->n--;
    memmove(&p->at[i], &p->at[i + 1], (p->n - i) * sizeof(p->at[0]));
    memmove(&p->key[i], &p->key[i + 1], (p->n - i) * sizeof(p->key[0]));
}

static uint64_t some_key(unit_random_t *r, uint64_t keys)
{
    const uint64_t k = unit_below(r, keys);

    return unit_below(r, 3) << 32 | (unit_once_in(r, 4) ? (uint32_t)-k : k);
}

static void take_all_of(superpipe_rings_t *t, plain_t *p, uint64_t key, uint64_t mask)
{
    superpipe_link_t *link;
    size_t cursor = 0;

    while ((link = superpipe_rings_some(t, key, mask, &cursor)) != NULL) {
        /* Any ring's first. */
        UNIT_CHECK(plain_first(p, link->key, UINT64_MAX) == link);
        UNIT_CHECK(((link->key ^ key) & mask) == 0);
        superpipe_rings_remove(t, link);
        plain_remove(p, link);
    }
    UNIT_CHECK(plain_first(p, key, mask) == NULL);
}

static void step(unit_random_t *r, superpipe_rings_t *t, plain_t *p, superpipe_link_t *element,
                 uint64_t keys)
{
    superpipe_link_t *link = &element[unit_below(r, ELEMENTS)];
    const uint64_t key = some_key(r, keys);

    if (superpipe_link_is_in(link)) {
        superpipe_rings_remove(t, link);
        plain_remove(p, link);
        UNIT_CHECK(!superpipe_link_is_in(link));
    } else {
        superpipe_rings_append(t, link, key);
        p->at[p->n] = link;
        p->key[p->n++] = key;
        UNIT_CHECK(superpipe_link_is_in(link));
    }
    const uint64_t other = some_key(r, keys);
    UNIT_CHECK(superpipe_rings_first(t, key) == plain_first(p, key, UINT64_MAX));
    UNIT_CHECK(superpipe_rings_first(t, other) == plain_first(p, other, UINT64_MAX));
    if (unit_once_in(r, 500))
        take_all_of(t, p, key, UINT64_MAX << 32);
}

/* Memory fails always, never, or now and then. */
START_TEST(as_a_plain_list)
{
    unit_random_t r = {unit_seed() + (uint64_t)_i};

    for (int round = 0; round < 30; round++) {
        superpipe_link_t element[ELEMENTS] = {0};
        const uint64_t keys = 1 + unit_below(&r, round % 2 == 0 ? 10 : 500);
        plain_t plain = {.n = 0};
        superpipe_rings_t t;

        superpipe_rings_init(&t);
        for (int i = 0; i < 2000; i++) {
            no_memory = _i == 0 || (_i == 2 && unit_once_in(&r, 2));
            step(&r, &t, &plain, element, keys);
        }
        no_memory = false;
        if (_i == 0)
            UNIT_CHECK(t.bits == SUPERPIPE_RINGS_OWN_BITS);
        take_all_of(&t, &plain, 0, 0);
        UNIT_CHECK(plain.n == 0 && t.keys == 0);
        superpipe_rings_fini(&t);
    }
}
END_TEST

static superpipe_link_t *new_elements(void)
{
    superpipe_link_t *element = __real_calloc(MANY, sizeof(*element));

    UNIT_CHECK(element != NULL);
    return element;
}

enum { KINDS = 7 };

/** Key i of many that are different: in rows of some width in one half or both, or in a square. */
static uint64_t key_of(size_t kind, uint64_t i)
{
    static const uint64_t apart[KINDS - 1] = {1,    UINT64_C(1) << 32, (UINT64_C(1) << 32) + 1,
                                              1024, UINT64_C(1) << 44, (UINT64_C(1) << 32) - 1};

    return kind < KINDS - 1 ? i * apart[kind] : i % 317 << 32 | i / 317;
}

/* Each element is found after few steps, and the table becomes short again. */
START_TEST(many_keys)
{
    superpipe_link_t *element = new_elements();
    superpipe_rings_t t;

    superpipe_rings_init(&t);
    for (size_t kind = 0; kind < KINDS; kind++) {
        t.steps = 0;
        for (uint64_t i = 0; i < MANY; i++)
            superpipe_rings_append(&t, &element[i], key_of(kind, i));
        UNIT_CHECK(t.keys == MANY && t.bits > SUPERPIPE_RINGS_KEPT_BITS);
        for (uint64_t i = 0; i < MANY; i++)
            UNIT_CHECK(superpipe_rings_first(&t, key_of(kind, i)) == &element[i]);
        ck_assert_uint_lt(t.steps, 6 * MANY);
        for (uint64_t i = 0; i < MANY; i++)
            superpipe_rings_remove(&t, &element[i]);
        UNIT_CHECK(t.keys == 0 && t.bits == SUPERPIPE_RINGS_OWN_BITS);
    }
    superpipe_rings_fini(&t);
    free(element);
}
END_TEST

/* A ring is no longer way to others of its bucket. */
START_TEST(long_ring)
{
    superpipe_link_t *element = new_elements();
    superpipe_rings_t t;

    no_memory = true;
    superpipe_rings_init(&t);
    for (uint64_t i = 0; i < MANY; i++)
        superpipe_rings_append(&t, &element[i], i < MANY - 8 ? 5 : i);
    ck_assert_uint_lt(t.steps, 3 * MANY);
    t.steps = 0;
    for (uint64_t i = MANY; i-- > 0;) {
        const uint64_t key = i < MANY - 8 ? 5 : i;
        UNIT_CHECK(superpipe_rings_first(&t, key) == &element[key == 5 ? 0 : i]);
        superpipe_rings_remove(&t, &element[i]);
    }
    ck_assert_uint_lt(t.steps, 3 * MANY);
    superpipe_rings_fini(&t);
    free(element);
}
END_TEST

int main(void)
{
    return UNIT_RUN("pml rings", UNIT_LOOP(as_a_plain_list, 0, 3), UNIT_ONCE(many_keys),
                    UNIT_ONCE(long_ring));
}
