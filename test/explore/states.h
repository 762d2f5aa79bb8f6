/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file All states that a pure rule comes to, each looked at once: for rules in which threads play
 *  no part. A program that includes this has a state_t that may be copied, and says by a key which
 *  two are the same. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/** In the table at most. */
#define STATES    (1U << 22)
#define KEY_BYTES 256

/** Of two states that go on in the same way the same bytes; returns how many. */
static size_t key_of(const state_t *s, uint8_t key[KEY_BYTES]);
/** Checks a state, and has all that follow it found by reach(). */
static void look_at(const state_t *s);

/** The one that is searched, by its name's first word; NULL: each. */
static const char *target;
/** What does not hold, or NULL. */
static const char *broken;
static unsigned long long looked_at;

typedef struct entry {
    uint64_t hash[2];
} entry_t;

static entry_t *found;
static unsigned found_len, found_room;
static state_t *queue;
static unsigned queue_len, queue_room;
static bool full, searched;

/** Where it stands, or is to stand. */
static entry_t *entry_of(const uint64_t h[2])
{
    unsigned at = (unsigned)(h[1] >> 20) % found_room;
    while (found[at].hash[0] != 0 && (found[at].hash[0] != h[0] || found[at].hash[1] != h[1]))
        at = (at + 1) % found_room;
    return &found[at];
}

/** Most searches are small: then so is what they touch. */
static void grow(void)
{
    entry_t *old = found;
    const unsigned room = found_room;
    found_room = room == 0 ? 1024 : 2 * room;
    found = calloc(found_room, sizeof(*found));
    for (unsigned i = 0; i < room; i++)
        if (old[i].hash[0] != 0)
            *entry_of(old[i].hash) = old[i];
    free(old);
}

static bool is_new(const state_t *s)
{
    uint8_t key[KEY_BYTES];
    uint64_t h[2] = {UINT64_C(1469598103934665603), UINT64_C(0x9e3779b97f4a7c15)};
    memset(key, 0, sizeof(key));
    const size_t len = key_of(s, key);
    if (len > KEY_BYTES) {
        fprintf(stderr, "explore: a key is too short\n");
        abort();
    }
    for (size_t i = 0; i < len; i++) {
        h[0] = (h[0] ^ key[i]) * UINT64_C(1099511628211);
        h[1] = (h[1] + key[i]) * UINT64_C(0xd6e8feb86659fd93);
        h[1] ^= h[1] >> 29;
    }
    h[0] |= 1;
    if (found_len == found_room / 4 * 3)
        grow();
    entry_t *e = entry_of(h);
    if (e->hash[0] != 0)
        return false;
    memcpy(e->hash, h, sizeof(h));
    found_len++;
    return true;
}

static void reach(const state_t *s)
{
    if (looked_at + queue_len >= STATES / 4 * 3) {
        full = true;
        return;
    }
    if (!is_new(s))
        return;
    if (queue_len == queue_room) {
        queue_room = queue_room == 0 ? 1024 : 2 * queue_room;
        queue = realloc(queue, queue_room * sizeof(*queue));
    }
    queue[queue_len++] = *s;
}

/** Of [--target NAME] [--all]: whether all. */
static bool states_options(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--target") == 0)
        target = argv[2];
    return argc > 1 && strcmp(argv[argc - 1], "--all") == 0;
}

/** What a program ends with: 2 where it has no such target. */
static int states_status(bool good)
{
    return !searched ? 2 : !good;
}

/** Looks at all states from this one on, and prints a line. False where one is broken. */
static bool search_states(const char *name, const state_t *first)
{
    struct timespec begin, end;
    if (target != NULL &&
        (strlen(target) != strcspn(name, " ") || strncmp(name, target, strlen(target)) != 0))
        return true;
    searched = true;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    free(found);
    found = NULL;
    found_len = found_room = 0;
    broken = NULL;
    full = false;
    looked_at = queue_len = 0;
    reach(first);
    while (queue_len > 0 && broken == NULL) {
        const state_t next = queue[--queue_len];
        looked_at++;
        look_at(&next);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%s: %llu states %6.2f s  %s\n", name, looked_at,
           (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec),
           broken != NULL ? broken
           : full         ? "not all"
                          : "all");
    fflush(stdout);
    return broken == NULL;
}
