/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Arithmetic of rings, leases, the pipe, credit and addresses, with any numbers that a peer
 *  may have written. */
#include "test/proof/proof.h"

/* cbmc has no body for it. */
void *memchr(const void *bytes, int c, size_t len)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < len; i++)
        if (at[i] == (unsigned char)c)
            return (void *)(uintptr_t)(at + i);
    return NULL;
}

#include "common/pipeline/core/grant_queue.h"
#include "common/pipeline/core/pipe.c"
#include "common/pipeline/core/pool.c"
#include "common/pipeline/core/rma_handshake.h"
#include "common/support/handle.c"
#include "common/transport/row/address.c"
#include "common/transport/row/credit.h"
#include "common/transport/shm/queue.c"

/* ---- rings -------------------------------------------------------------------------------------
 */

/* The functions take any power of two; the shorter one has all cases. */
enum { RING = 512 };

typedef struct memory {
    onic_queue_ends_t ends;
    unsigned char ring[RING];
} memory_t;

/** A receiver that finds any head at any place: what it takes lies in the ring, or the queue is
 *  broken. unwind: 3 */
void proof_ring_read(void)
{
    static memory_t memory;
    onic_queue_receiver_t r = {.q = onic_queue_at(&memory, RING), .secret = any_64()};
    onic_queue_message_t m;

    memory.ends.taken = any_64();
    ASSUME(memory.ends.taken % ONIC_QUEUE_LINE == 0);
    r.at = memory.ends.taken;
    onic_queue_head_t *h = onic_queue_head(&r.q, r.at);
    h->stamp = r.secret + r.at;
    h->len = any_32();
    h->header_len = any_16();
    h->id = any_8();
    onic_queue_head_t *first = onic_queue_head(&r.q, 0);
    first->len = any_32();
    first->header_len = any_16();
    if (any_bool())
        first->stamp = any_64();
    if (!onic_queue_look(&r, &m))
        return;
    PROVE(lies_in(m.header, m.header_len, memory.ring, RING));
    PROVE(m.payload == NULL || lies_in(m.payload, m.len, memory.ring, RING));
    onic_queue_take(&r);
    PROVE(r.at % ONIC_QUEUE_LINE == 0);
}

/** A sender in any state, whatever its receiver says that it has taken: it writes into the ring
 *  alone, and, where that is true, over nothing that was not taken. unwind: 6 */
void proof_ring_reserve(void)
{
    static memory_t memory;
    onic_queue_sender_t s = {
        .q = onic_queue_at(&memory, RING), .secret = any_64(), .round = any_32(), .at = any_64()};
    const uint32_t len = any_32();

    ASSUME(s.at % ONIC_QUEUE_LINE == 0 && s.at <= UINT64_MAX - 4 * RING);
    ASSUME(s.round % ONIC_QUEUE_LINE == 0 && s.round >= 4 * ONIC_QUEUE_LINE && s.round <= RING);
    /* It goes round there. */
    ASSUME((s.at & (RING - 1)) <= s.round && len <= onic_queue_longest(s.round));
    s.taken = any_64();
    memory.ends.taken = any_64();
    const bool honest =
        s.taken <= memory.ends.taken && memory.ends.taken <= s.at && s.at - s.taken <= RING;
    ASSUME(honest);
    unsigned char *at = onic_queue_reserve(&s, len);
    if (at == NULL)
        return;
    PROVE(lies_in(at, len, memory.ring, RING));
    PROVE(s.at + onic_queue_use(len) - memory.ends.taken <= RING);
    PROVE((s.at & (RING - 1)) + onic_queue_use(len) <= RING);
    onic_queue_send(&s, any_8(), any_16(), len);
}

/** Whatever round it goes in: a longer one is within the ring, and of whole lines. unwind: 1 */
void proof_ring_round(void)
{
    const uint32_t ring = any_32(), round = any_32();

    ASSUME(ring >= ONIC_QUEUE_RING_MIN && ring <= ONIC_QUEUE_RING_MAX &&
           ring % ONIC_QUEUE_LINE == 0);
    ASSUME(round >= 4 * ONIC_QUEUE_LINE && round <= ring && round % ONIC_QUEUE_LINE == 0);
    const uint32_t longer = onic_queue_longer_round(ring, round);
    PROVE(longer >= round && longer <= ring && longer % ONIC_QUEUE_LINE == 0);
    PROVE(onic_queue_touched(ring, round) <= onic_queue_bytes(ring));
    PROVE(onic_queue_use(onic_queue_longest(round)) <= round);
}

/** The ring for so many bytes fits into them. unwind: 32 */
void proof_ring_for(void)
{
    const size_t bytes = any_size();
    const uint32_t ring = onic_queue_ring_for(bytes);

    PROVE(ring == 0 || (ring >= ONIC_QUEUE_RING_MIN && ring <= ONIC_QUEUE_RING_MAX &&
                        (ring & (ring - 1)) == 0 && onic_queue_bytes(ring) <= bytes));
}

/* ---- the pool of buffers, and handles -----------------------------------------------------------
 */

/** Whatever others have written: what is taken was free, and is of the pool. unwind: 3 */
void proof_pool_take(void)
{
    static onic_rx_buffer_words_t buffer[ONIC_RX_BUFFERS_MAX];
    onic_pool_words_t words;
    const onic_pool_t pool = {&words, buffer, any_8()};
    const unsigned want = any_8();

    ASSUME(pool.nbuffers >= 1 && pool.nbuffers <= ONIC_RX_BUFFERS_MAX && want <= 1);
    atomic_store(&words.free, any_64());
    atomic_store(&words.next_lease, any_32());
    atomic_store(&words.round, any_32());
    atomic_store(&words.uses, any_32());
    const uint64_t before = atomic_load(&words.free), taken = onic_pool_take(&pool, want);
    PROVE((taken & ~before) == 0 && (taken & ~onic_pool_all(&pool)) == 0);
    PROVE(atomic_load(&words.free) == (before & ~taken));
    (void)onic_pool_release(&pool, taken);
    PROVE(atomic_load(&words.free) == before);
}

/** Any handle that comes: it names an object that there is, or none. unwind: 3 */
void proof_handle(void)
{
    static onic_handle_slot_t slot[2];
    static int object[2];
    onic_handles_t t = {slot, 2, 0};
    const uint64_t handle = any_64();

    for (unsigned i = 0; i < 2; i++) {
        slot[i].generation = any_32();
        ASSUME(slot[i].generation >= 1 && slot[i].generation <= ONIC_GENERATION_MAX);
        slot[i].object = any_bool() ? &object[i] : NULL;
    }
    void *found = onic_handle_get(&t, handle);
    PROVE(found == NULL || found == &object[(uint32_t)handle & 1]);
    PROVE(onic_handle_free(&t, handle) == found);
    PROVE(onic_handle_get(&t, handle) == NULL);
}

/* ---- leases and the pipe
 * ------------------------------------------------------------------------- */

/** Any receiver with up to eight buffers, of which what it has seen lies in a buffer and in the
 *  transfer. */
static onic_receiver_t any_receiver(void)
{
    onic_receiver_t r = {.len = any_64(),
                         .pos = any_64(),
                         .lease = {any_8(), any_32()},
                         .taken = any_32(),
                         .published = any_32(),
                         .round = any_32(),
                         .buffer = any_8() % 8,
                         .ends = any_bool(),
                         .again = any_bool()};

    ASSUME(r.lease.buffer_bytes >= 1 && r.lease.buffer_bytes <= ONIC_RX_BUFFER_BYTES_MAX &&
           r.round < UINT32_MAX);
    ASSUME(r.pos <= r.len && r.taken <= r.published && r.published <= r.lease.buffer_bytes);
    ASSUME(r.published - r.taken <= r.len - r.pos);
    ASSUME((r.lease.buffers >> r.buffer & 1) != 0);
    return r;
}

/** Whatever word it finds: what it is to take lies in the buffer and in the transfer.
 *  unwind: 1 */
void proof_pipe_next(void)
{
    onic_receiver_t r = any_receiver();
    onic_piece_t piece;

    if (onic_receiver_next(&r, any_64(), &piece) != ONIC_PIPE_MOVE)
        return;
    PROVE(piece.len > 0 && piece.offset <= r.lease.buffer_bytes &&
          piece.len <= r.lease.buffer_bytes - piece.offset);
    PROVE(piece.pos <= r.len && piece.len <= r.len - piece.pos && piece.buffer == r.buffer);
    PROVE(r.taken <= r.published && r.published <= r.lease.buffer_bytes);
    PROVE(r.published - r.taken <= r.len - r.pos);
}

/** Any grant, word and acknowledgement: of buffers that there are.
 *  unwind: 1 */
void proof_pipe_handshake(void)
{
    onic_rma_handshake_t t;
    const uint64_t all = any_64(), buffers = any_64();

    t.sends = any_bool();
    t.waits = any_bool();
    t.over = any_bool();
    t.lease = 0;
    const onic_granted_t granted = onic_rma_handshake_on_grant(&t, buffers, all);
    PROVE((t.lease & ~all) == 0);
    PROVE(granted != ONIC_GRANT_TAKEN || (t.lease == buffers && buffers != 0));
    onic_rma_handshake_on_word(&t, any_32(), any_64());
    onic_rma_handshake_on_ack(&t, any_32(), any_64());
}

/* ---- credit
 * -------------------------------------------------------------------------------------- */

/** Whatever limits come: what was sent is never more than the highest of them.
 *  unwind: 1 */
void proof_credit(void)
{
    onic_credit_t c = {any_64(), any_64()};
    const uint64_t bytes = any_64(), floor = any_64();

    ASSUME(c.sent <= c.limit);
    onic_credit_raise(&c, any_64());
    const uint64_t before = c.sent;
    const bool taken = onic_credit_take(&c, bytes, floor);
    PROVE(c.sent <= c.limit &&
          (taken ? c.sent == before + bytes && c.sent >= before : c.sent == before));
}

/* ---- addresses
 * ----------------------------------------------------------------------------------- */

/** unwind: 65 */
void proof_address(void)
{
    const size_t len = any_length(sizeof(head_t) + 32);
    unsigned char *bytes = any_bytes(len);
    onic_address_t a;

    if (onic_address_read(bytes, len, &a))
        PROVE(lies_in(a.ucx, a.ucx_len, bytes, len) &&
              memchr(a.queues.name, 0, sizeof(a.queues.name)) != NULL);
}
