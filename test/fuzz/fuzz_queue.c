/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A queue whose ring a peer has filled with anything: no message leaves the ring. */
#include "common/transport/shm/queue.h"

#include <stdlib.h>
#include <string.h>

#include "test/fuzz/fuzz.h"

enum { RING = ONIC_QUEUE_RING_MIN, TURNS = 1000 };

/** So that the compiler reads all bytes of all messages. */
static volatile unsigned read_all;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const size_t bytes = onic_queue_bytes(RING), most = len < RING ? len : RING;
    void *memory = aligned_alloc(2 * ONIC_QUEUE_LINE, bytes);
    onic_queue_message_t m;
    unsigned sum = 0;

    FUZZ_CHECK(memory != NULL);
    memset(memory, 0, bytes);
    const onic_queue_t q = onic_queue_at(memory, RING);
    if (most > 0)
        memcpy(q.ring, data, most);
    onic_queue_receiver_t r = onic_queue_receiver(&q);
    for (int i = 0; i < TURNS && onic_queue_look(&r, &m); i++) {
        FUZZ_CHECK(m.header >= q.ring && m.header_len <= q.ring + RING - m.header);
        FUZZ_CHECK(m.len == 0 || (m.payload >= q.ring && m.len <= q.ring + RING - m.payload));
        for (uint32_t at = 0; at < m.len; at++)
            sum += m.payload[at];
        onic_queue_take(&r);
    }
    read_all = sum;
    free(memory);
    return 0;
}

/** Messages of some lengths in a row, as a sender of secret 0 writes them. */
size_t onic_fuzz_seed(unsigned i, uint8_t *buf, size_t cap)
{
    onic_queue_head_t head = {.id = 1};
    const uint32_t lens[] = {0, 8, 48, 49, 300};
    size_t at = 0;

    if (i >= 4)
        return 0;
    for (unsigned n = 0; n <= i && at + 512 <= cap; n++) {
        head.stamp = at;
        head.len = lens[n];
        memcpy(buf + at, &head, sizeof(head));
        at += onic_queue_use(lens[n]);
    }
    return at;
}
