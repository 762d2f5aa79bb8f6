/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What a fuzz target offers to libFuzzer, and to seeds.c.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/**
 * Feeds one input to the code under test. Returns 0 where the input got through the first checks
 * and its mutants are worth trying, -1 where it was refused. Everything wrong ends in abort().
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/**
 * Writes the `i`-th valid input of the target to `buf` and returns its length, or 0 where there is
 * none. Fuzzing begins with these, and none of them may be refused.
 */
size_t onic_fuzz_seed(unsigned i, uint8_t *buf, size_t cap);

/** Stops at a broken promise; works with NDEBUG too. */
#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: expected: %s\n", __FILE__, __LINE__, #condition);              \
            abort();                                                                               \
        }                                                                                          \
    } while (0)
