/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file All of rule.h, as a program for an adapter would use it; compiled by check_rule_bpf. */
#include "coll_nicbarrier/epoch/rule.h"

_Static_assert(NICBARRIER_RULE_STEPS == 32, "the loops are as short as their comments say");

/** What a packet filter would do with a word that has come. */
uint64_t take(nicbarrier_rule_t *r, uint32_t k, uint64_t word)
{
    return nicbarrier_rule_receive(r, k, word) == NICBARRIER_WORD_NEW ? nicbarrier_rule_advance(r)
                                                                      : 0;
}

uint64_t enter(nicbarrier_rule_t *r, uint64_t epoch, uint32_t k)
{
    nicbarrier_rule_enter(r, epoch);
    return nicbarrier_rule_advance(r) >> k & 1 ? nicbarrier_rule_word(r, k) : 0;
}

void begin(nicbarrier_rule_t *r, uint32_t nsteps, uint64_t sends, uint64_t waits)
{
    nicbarrier_rule_init(r, nsteps, sends, waits);
}

uint64_t fail(nicbarrier_rule_t *r)
{
    nicbarrier_rule_fail(r);
    return nicbarrier_rule_advance(r);
}
