/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll_nicbarrier/engines/mlx5/wqe.h"

#include <string.h>

#include "common/support/bytes.h"

enum { OPCODE_WRITE = 0x08, OPCODE_WAIT = 0x0f };
/** Of the latter: for memory; 0 would be for a completion queue. */
#define WAIT_FOR_MEMORY 1U
/** The adapter compares the request's value with memory's; so: not (value > memory), cyclically. */
#define NOT_BIGGER (UINT32_C(1) << 4 | 4U)
/** In the control segment: a completion, always. */
#define SHOWN 0x08
/** In the length of data that stand in the request. */
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
    /* The last three bits say what to do where it does not hold: 0, look again. */
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
