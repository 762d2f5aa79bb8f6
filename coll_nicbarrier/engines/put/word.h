/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What stands in a flag: a word of the rule (rule.h), marked as one of this group.
 *
 * Flags serve one group after another. A member that learns late that a group has failed puts that
 * into flags that may serve another one by then; so each word carries the tag that the flags' owner
 * has chosen for the group. Pure.
 */
#ifndef NICBARRIER_PUT_WORD_H
#define NICBARRIER_PUT_WORD_H

#include <stdint.h>

#include "coll_nicbarrier/epoch/rule.h"

/** From the highest bit: failed (rule.h), the tag, the epoch. So of two words of a group the
 * greater one says more. */
#define NICBARRIER_PUT_TAG_SHIFT 48
#define NICBARRIER_PUT_TAGS      32768
/** At a barrier each microsecond these last for nine years. */
#define NICBARRIER_PUT_EPOCH_MAX ((UINT64_C(1) << NICBARRIER_PUT_TAG_SHIFT) - 1)

/** @param word  of the rule, of an epoch up to NICBARRIER_PUT_EPOCH_MAX
 *  @param tag   1 .. NICBARRIER_PUT_TAGS - 1 */
static inline uint64_t nicbarrier_put_mark(uint64_t word, uint32_t tag)
{
    return word | (uint64_t)tag << NICBARRIER_PUT_TAG_SHIFT;
}

static inline uint32_t nicbarrier_put_tag(uint64_t marked)
{
    return (uint32_t)(marked >> NICBARRIER_PUT_TAG_SHIFT) & (NICBARRIER_PUT_TAGS - 1);
}

/** The word of the rule. */
static inline uint64_t nicbarrier_put_word(uint64_t marked)
{
    return marked & (NICBARRIER_WORD_FAILED | NICBARRIER_PUT_EPOCH_MAX);
}

#endif
