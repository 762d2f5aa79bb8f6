/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll_nicbarrier/engines/mlx5/chain.h"

#include <string.h>

#include "common/support/bytes.h"

/* ---- the bytes of a request ------------------------------------------------------------------ */

enum { OPCODE_WRITE = 0x08, OPCODE_WAIT = 0x0f };
/** The flag of a wait for memory; 0 would mean a completion queue. */
#define WAIT_FOR_MEMORY 1U
/** The adapter compares the request's value with the word in memory, cyclically: the wait ends if
 *  not (value > word). */
#define NOT_BIGGER (UINT32_C(1) << 4 | 4U)
/** In the control segment: always make a completion. */
#define SHOWN 0x08
/** In the length field: the data is inside the request. */
#define INLINE (UINT32_C(1) << 31)
/** Both requests have three segments. */
#define SEGMENTS 3U

static void begin(nicbarrier_wqe_t *w, nicbarrier_wqe_place_t place, uint32_t modifier,
                  uint32_t opcode)
{
    memset(w, 0, sizeof(*w));
    onic_put32(w->bytes, modifier << 24 | (uint32_t)place.index << 8 | opcode);
    onic_put32(w->bytes + 4, place.qpn << 8 | SEGMENTS);
}

void nicbarrier_wqe_wait(nicbarrier_wqe_t *w, nicbarrier_wqe_place_t place,
                         nicbarrier_wqe_word_t mine, uint64_t least)
{
    begin(w, place, WAIT_FOR_MEMORY, OPCODE_WAIT);
    onic_put32(w->bytes + 16, NOT_BIGGER);
    onic_put32(w->bytes + 20, mine.key);
    /* The last three bits say what to do if the condition does not hold. 0: check again. */
    onic_put64(w->bytes + 24, mine.addr);
    onic_put64(w->bytes + 32, least);
    onic_put64(w->bytes + 40, UINT64_MAX);
}

void nicbarrier_wqe_write(nicbarrier_wqe_t *w, nicbarrier_wqe_place_t place,
                          nicbarrier_wqe_word_t theirs, uint64_t value)
{
    begin(w, place, 0, OPCODE_WRITE);
    w->bytes[11] = SHOWN;
    onic_put64(w->bytes + 16, theirs.addr);
    onic_put32(w->bytes + 24, theirs.key);
    onic_put32(w->bytes + 32, INLINE | (uint32_t)sizeof(value));
    onic_put64(w->bytes + 36, value);
}

/* ---- chains ---------------------------------------------------------------------------------- */

static uint64_t bit(uint32_t k)
{
    return UINT64_C(1) << k;
}

/** The words that step k has to wait for before it sends. */
static uint64_t awaited(uint64_t waits, uint32_t k)
{
    return (waits & (bit(k) - 1)) | bit(NICBARRIER_CHAIN_ENTERED);
}

uint32_t nicbarrier_chain_requests(uint64_t waits, uint32_t k)
{
    return (uint32_t)__builtin_popcountll(awaited(waits, k)) + 1;
}

uint32_t nicbarrier_chain_build(uint64_t waits, uint32_t k, uint64_t epoch,
                                nicbarrier_wqe_place_t *next, nicbarrier_wqe_word_t mine,
                                nicbarrier_wqe_word_t flag,
                                nicbarrier_wqe_t wqe[NICBARRIER_CHAIN_REQUESTS])
{
    uint32_t n = 0;

    for (uint32_t i = 0; i <= NICBARRIER_CHAIN_ENTERED; i++) {
        if ((awaited(waits, k) & bit(i)) == 0)
            continue;
        nicbarrier_wqe_wait(&wqe[n++], *next, nicbarrier_chain_word(mine, i), epoch);
        next->index++;
    }
    nicbarrier_wqe_write(&wqe[n++], *next, flag, epoch);
    next->index++;
    return n;
}
