/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The flags of all groups: pieces of a few registered regions, which serve one group after another.
 *
 * So a group costs no registration, and memory follows the groups that there are at a time, not
 * those that there ever were. When the last put into a piece has come is not known, so pieces are
 * taken again in the order in which they were given back, and not before many others are idle.
 * Should a word come yet later it is known by its tag (word.h).
 *
 * Calls are for one thread at a time, and must not be made with the wire lock held.
 */
#ifndef NICBARRIER_PUT_FLAGS_H
#define NICBARRIER_PUT_FLAGS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire/put.h"

/** A flag, alone on its cache lines: word.h. */
typedef struct nicbarrier_put_flag {
    _Alignas(128) _Atomic uint64_t word;
} nicbarrier_put_flag_t;

/** The flags of a group: NICBARRIER_RULE_STEPS of them. */
typedef struct nicbarrier_put_flags {
    nicbarrier_put_flag_t *flag;
    onic_region_t *region;
    uint32_t offset;                   /**< bytes, in the region */
    uint32_t tag;                      /**< of the words that belong here now */
    struct nicbarrier_put_flags *next; /**< of those that are idle */
} nicbarrier_put_flags_t;

/** Flags for a group: zeros. NULL where no memory can be had that can be put into. */
nicbarrier_put_flags_t *nicbarrier_put_flags_take(void);

/** This process reads them no more. */
void nicbarrier_put_flags_give(nicbarrier_put_flags_t *flags);

/** Before the wire is closed, which keeps their memory until nothing can come any more. */
void nicbarrier_put_flags_close(void);

#endif
