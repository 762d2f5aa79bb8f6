/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The rule of a barrier in a group: what a member may send in which step (Yu, Buntinas, Graham and
 * Panda 2004, sections 3 and 6.2).
 *
 * Where the paper keeps a bit vector for each barrier, here everything is a number that only grows.
 * Barriers are numbered from 1 (epochs), and "epoch e" in a step stands for all epochs up to e.
 * With ready(0) = the last epoch entered here,
 *
 *     step k sends ready(k) whenever that has grown,
 *     ready(k + 1) = min(ready(k), received(k)),
 *     and the last of them is the last epoch that is complete.
 *
 * So any number of barriers may be outstanding; messages may come twice, late and out of order; a
 * later one makes up for lost earlier ones; and to repeat messages, one number for each step must
 * be kept. Epochs do not wrap.
 *
 * A failure is a bit beside the epoch. It stays, and a member that receives it sends it in all its
 * steps, whatever the epochs are: so it reaches all members that the schedule reaches without the
 * one that has failed. An epoch that not all have entered never becomes complete.
 *
 * No clock, no packet, no allocation, no header but <stdint.h>; loops are bounded by
 * NICBARRIER_RULE_STEPS, and nothing is called, so that this can be compiled for a network adapter
 * or as eBPF. The caller serialises.
 */
#pragma once

#include <stdint.h>

/** No schedule has more steps. */
#define NICBARRIER_RULE_STEPS 32

/** No member enters more epochs than this beyond the last that is complete for it: there is no
 *  memory for so many requests. So no word exceeds the receiver's last entered epoch by more than
 *  this: what its sender has completed, the receiver has entered. */
#define NICBARRIER_OUTSTANDING_MAX (UINT64_C(1) << 31)

/** Bit of a word: the sender knows that the group has failed. The other bits are the epoch. */
#define NICBARRIER_WORD_FAILED (UINT64_C(1) << 63)

/** A member's state; begin with nicbarrier_rule_init. */
typedef struct nicbarrier_rule {
    uint64_t entered;
    uint64_t completed;
    uint64_t sends;   /**< bit k: step k sends */
    uint64_t waits;   /**< bit k: step k waits */
    uint64_t blocked; /**< bit k: step k could go on, but what it waits for has not come */
    uint32_t nsteps;  /**< 0 .. NICBARRIER_RULE_STEPS */
    uint8_t failed;
    uint8_t notified;                     /**< the failure has been sent in all steps */
    uint64_t sent[NICBARRIER_RULE_STEPS]; /**< the last epoch sent in each step, to be repeated on
                                             demand */
    uint64_t received[NICBARRIER_RULE_STEPS]; /**< the last epoch received in each step */
} nicbarrier_rule_t;

/** The result of receiving a word. */
typedef enum nicbarrier_word {
    NICBARRIER_WORD_NEW,  /**< brings something new; nicbarrier_rule_advance must follow */
    NICBARRIER_WORD_OLD,  /**< a duplicate, or overtaken by a later word */
    NICBARRIER_WORD_WRONG /**< no such step, or an epoch that cannot be */
} nicbarrier_word_t;

static inline void nicbarrier_rule_init(nicbarrier_rule_t *r, uint32_t nsteps, uint64_t sends,
                                        uint64_t waits)
{
    r->entered = r->completed = r->blocked = 0;
    r->sends = sends;
    r->waits = waits;
    r->nsteps = nsteps;
    r->failed = r->notified = 0;
    for (uint32_t k = 0; k < NICBARRIER_RULE_STEPS; k++)
        r->sent[k] = r->received[k] = 0;
}

/** Enters all epochs up to `epoch`; does nothing if that is not new. Advance must follow. */
static inline void nicbarrier_rule_enter(nicbarrier_rule_t *r, uint64_t epoch)
{
    if (epoch > r->entered)
        r->entered = epoch;
}

/** Marks the group as failed. Advance must follow. */
static inline void nicbarrier_rule_fail(nicbarrier_rule_t *r)
{
    r->failed = 1;
}

/** The word of my step k as last sent or now to be sent; also repeated in answer to a NACK. */
static inline uint64_t nicbarrier_rule_word(const nicbarrier_rule_t *r, uint32_t k)
{
    return k < NICBARRIER_RULE_STEPS ? r->sent[k] | (r->failed ? NICBARRIER_WORD_FAILED : 0) : 0;
}

/** What nicbarrier_rule_receive would return for a word of my step k now. */
static inline nicbarrier_word_t nicbarrier_rule_judge(const nicbarrier_rule_t *r, uint32_t k,
                                                      uint64_t word)
{
    const uint64_t epoch = word & ~NICBARRIER_WORD_FAILED;

    if (k >= r->nsteps || k >= NICBARRIER_RULE_STEPS || !(r->waits >> k & 1) ||
        epoch > r->entered + NICBARRIER_OUTSTANDING_MAX)
        return NICBARRIER_WORD_WRONG;
    if (epoch <= r->received[k] && (!(word >> 63) || r->failed))
        return NICBARRIER_WORD_OLD;
    return NICBARRIER_WORD_NEW;
}

/** A word has come for my step k. Allowed before anything was entered. */
static inline nicbarrier_word_t nicbarrier_rule_receive(nicbarrier_rule_t *r, uint32_t k,
                                                        uint64_t word)
{
    const uint64_t epoch = word & ~NICBARRIER_WORD_FAILED;
    const nicbarrier_word_t verdict = nicbarrier_rule_judge(r, k, word);

    if (verdict != NICBARRIER_WORD_NEW)
        return verdict;
    if (epoch > r->received[k])
        r->received[k] = epoch;
    r->failed |= (uint8_t)(word >> 63);
    return NICBARRIER_WORD_NEW;
}

/** Advances as far as possible; sets `completed` and `blocked`.
 *  @return bit k: the word of step k must be sent (nicbarrier_rule_word) */
static inline uint64_t nicbarrier_rule_advance(nicbarrier_rule_t *r)
{
    uint64_t ready = r->entered, out = 0;

    r->blocked = 0;
    for (uint32_t k = 0; k < NICBARRIER_RULE_STEPS; k++) {
        /* What is complete has passed all steps, so later steps have nothing to do. */
        if (k >= r->nsteps || ready <= r->completed)
            break;
        if ((r->sends >> k & 1) && ready > r->sent[k]) {
            r->sent[k] = ready;
            out |= UINT64_C(1) << k;
        }
        if ((r->waits >> k & 1) && r->received[k] < ready) {
            r->blocked |= UINT64_C(1) << k;
            ready = r->received[k];
        }
    }
    if (ready > r->completed)
        r->completed = ready;
    if (r->failed && !r->notified) {
        r->notified = 1;
        out = r->sends;
    }
    return out;
}
