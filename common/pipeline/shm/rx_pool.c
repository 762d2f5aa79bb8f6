/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include "common/pipeline/shm/rx_pool.h"

#include <stddef.h>
#include <string.h>

#include "common/transport/shm/segment.h"

#define MIB  ((size_t)1 << 20)
#define PAGE ((size_t)4096)

/** The header before the buffers. */
typedef struct rx_pool_head {
    uint32_t nbuffers;
    uint32_t buffer_bytes;
    /** Mask of the buffers that have memory. */
    _Alignas(64) _Atomic uint64_t filled;
    onic_pool_words_t pool;
    onic_rx_buffer_words_t buffer[ONIC_RX_BUFFERS_MAX];
} rx_pool_head_t;

#define HEAD_BYTES ((sizeof(rx_pool_head_t) + PAGE - 1) / PAGE * PAGE)

size_t onic_rx_pool_derived(void)
{
    const size_t l2 = onic_l2_size();
    return l2 <= MIB / 2 ? MIB : l2 >= 8 * MIB ? 16 * MIB : 2 * l2;
}

/** The lowest run of adjacent bits in a mask. */
static uint64_t first_row(uint64_t mask)
{
    const uint64_t first = mask & -mask;
    return mask & ~(mask + first);
}

uint64_t onic_rx_pool_have(onic_rx_pool_t *rx_pool, uint64_t buffers, bool make)
{
    rx_pool_head_t *head = rx_pool->segment.base;
    const onic_mapped_t all = {rx_pool->segment.base, 0, rx_pool->segment.size};
    uint64_t filled = atomic_load_explicit(&head->filled, memory_order_acquire);
    for (uint64_t left = make ? buffers & ~filled : 0, row; left != 0; left &= ~row) {
        row = first_row(left);
        const char *at = onic_rx_pool_buffer(rx_pool, (unsigned)__builtin_ctzll(row));
        if (!onic_segment_fill(&all, &rx_pool->file,
                               (size_t)(at - (const char *)rx_pool->segment.base),
                               (size_t)__builtin_popcountll(row) * rx_pool->buffer_bytes))
            continue;
        filled |= row;
        atomic_fetch_or_explicit(&head->filled, row, memory_order_release);
    }
    return buffers & filled;
}

static void lay_out(onic_rx_pool_t *rx_pool, unsigned nbuffers, uint32_t buffer_bytes)
{
    rx_pool_head_t *head = rx_pool->segment.base;
    rx_pool->pool = (onic_pool_t){&head->pool, head->buffer, nbuffers};
    rx_pool->buffers = (char *)rx_pool->segment.base + HEAD_BYTES;
    rx_pool->buffer_bytes = buffer_bytes;
}

bool onic_rx_pool_make(size_t bytes, size_t buffer, onic_rx_pool_t *rx_pool,
                       onic_segment_key_t *key)
{
    const onic_pool_shape_t shape = onic_pool_cut(bytes, buffer);
    const size_t total = HEAD_BYTES + (size_t)shape.nbuffers * shape.buffer_bytes;
    if (!onic_segment_make(total, HEAD_BYTES, 1, false, key, &rx_pool->segment))
        return false;
    rx_pool->file = key->file;
    lay_out(rx_pool, shape.nbuffers, shape.buffer_bytes);
    rx_pool_head_t *head = rx_pool->segment.base;
    head->nbuffers = shape.nbuffers;
    head->buffer_bytes = shape.buffer_bytes;
    onic_pool_init(&rx_pool->pool);
    return true;
}

/** Takes over the sizes, if they lie within the segment. */
static bool read_head(onic_rx_pool_t *rx_pool)
{
    rx_pool_head_t head;
    memcpy(&head, rx_pool->segment.base, offsetof(rx_pool_head_t, pool));
    if (head.nbuffers < 1 || head.nbuffers > ONIC_RX_BUFFERS_MAX || head.buffer_bytes == 0 ||
        head.buffer_bytes > ONIC_RX_BUFFER_BYTES_MAX ||
        rx_pool->segment.size != HEAD_BYTES + (size_t)head.nbuffers * head.buffer_bytes)
        return false;
    lay_out(rx_pool, head.nbuffers, head.buffer_bytes);
    return true;
}

bool onic_rx_pool_map(const onic_segment_key_t *key, onic_rx_pool_t *rx_pool)
{
    if (key->size < HEAD_BYTES ||
        onic_segment_join(key, key->size, 1, &rx_pool->segment) != ONIC_JOINED)
        return false;
    if (!read_head(rx_pool)) {
        onic_segment_unmap(&rx_pool->segment);
        return false;
    }
    rx_pool->file = key->file;
    return true;
}

void onic_rx_pool_close(onic_rx_pool_t *rx_pool, onic_segment_key_t *key)
{
    onic_segment_withdraw(key);
    onic_segment_unmap(&rx_pool->segment);
}
