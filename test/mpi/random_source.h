/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Random numbers that a seed repeats, the same on all machines. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** State of a small generator (splitmix64). Copy it to replay. */
typedef struct random_source {
    uint64_t state;
} random_source_t;

/** Starts a generator; every seed is good. */
void random_seed(random_source_t *r, uint64_t seed);

/** 64 random bits. */
uint64_t random_bits(random_source_t *r);

/** A number in lo .. hi, both included; lo <= hi. */
int64_t random_between(random_source_t *r, int64_t lo, int64_t hi);

/** True once in `n` times (n > 0). */
bool random_one_in(random_source_t *r, int n);

/** Fills memory with random bytes. */
void random_fill(random_source_t *r, void *buf, size_t len);
