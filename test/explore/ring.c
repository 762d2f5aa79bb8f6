/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Rings between processes of a node, and what wakes a receiver that sleeps: what was sent
 *  comes once, whole and in order; a line is not written again before its message was taken; who
 *  sleeps has nothing in its rings. */
#include "test/explore/explore.h"

#include <stdlib.h>
#include <string.h>

#include "opal/util/proc.h"

/* Each thread stands for a process. */
static opal_process_info_t process[EXPLORE_THREADS + 1];
#define opal_process_info process[explore_me()]

#include "common/transport/shm/inbox.c"
#include "common/transport/shm/queue.c"

/* ---- what the inbox takes from elsewhere ----------------------------------------------------- */

static unsigned char *segment;
static onic_presence_t *page;
static _Atomic unsigned pipe_bytes;

size_t onic_whole_pages(size_t bytes)
{
    return (bytes + 4095) / 4096 * 4096;
}

size_t onic_segment_part(size_t bytes, unsigned n)
{
    return bytes / n;
}

bool onic_segment_make(size_t size, size_t space, int shares, bool named, onic_segment_key_t *k,
                       onic_segment_t *made)
{
    (void)space, (void)shares, (void)named;
    segment = aligned_alloc(4096, size);
    memset(segment, 0, size);
    k->size = size;
    made->base = segment;
    return true;
}

void onic_segment_withdraw(onic_segment_key_t *k)
{
    (void)k;
}

void onic_segment_unmap(onic_segment_t *s)
{
    free(s->base);
}

bool onic_segment_map_part(const onic_segment_key_t *k, onic_mapped_t *part)
{
    (void)k;
    part->base = segment + part->from;
    return true;
}

void onic_unmap(onic_mapped_t *part)
{
    (void)part;
}

bool onic_segment_fill(const onic_mapped_t *part, const onic_file_key_t *file, size_t from,
                       size_t len)
{
    (void)part, (void)file, (void)from, (void)len;
    return true;
}

void onic_presence_use(onic_presence_t *mine)
{
    page = mine;
}

onic_presence_t *onic_presence_mine(void)
{
    return page;
}

void onic_wake_peer(const onic_file_key_t *pipe)
{
    (void)pipe;
    atomic_fetch_add(&pipe_bytes, 1);
}

ssize_t getrandom(void *bytes, size_t len, unsigned flags)
{
    (void)flags;
    memset(bytes, 0x5a, len);
    return (ssize_t)len;
}

/* No message here is gathered. */

void onic_copy_any(void *dst, const void *src, size_t len)
{
    memcpy(dst, src, len);
}

void onic_copy_streaming(void *dst, const void *src, size_t len)
{
    memcpy(dst, src, len);
}

size_t onic_pack_streaming(onic_cursor_t *cursor, const void *base, void *dest, size_t len)
{
    return onic_pack(cursor, base, dest, len);
}

size_t onic_pack(onic_cursor_t *cursor, const void *base, void *dest, size_t len)
{
    (void)cursor, (void)base, (void)dest;
    abort();
    return len;
}

/* ---- a ring by itself ------------------------------------------------------------------------ */

/* Two messages of this length go into the first round, so the third goes to its beginning, or the
 * round grows. */
#define LONG 3000

static onic_queue_sender_t sender;
static onic_queue_receiver_t receiver;
static onic_queue_t queue;
static uint32_t length[8];
static unsigned nmessages;

static bool has_no_memory(void *arg, uint32_t round)
{
    (void)arg, (void)round;
    return false;
}

static void new_queue(bool grows)
{
    void *memory = aligned_alloc(4096, onic_queue_bytes(ONIC_QUEUE_RING_MIN));
    memset(memory, 0, sizeof(onic_queue_ends_t));
    memset((char *)memory + sizeof(onic_queue_ends_t), 0xff, ONIC_QUEUE_RING_MIN);
    queue = onic_queue_at(memory, ONIC_QUEUE_RING_MIN);
    sender = onic_queue_sender(&queue, 77);
    sender.give = grows ? NULL : has_no_memory;
    receiver = onic_queue_receiver(&queue);
}

/** So that the next message goes around. */
static void few(void)
{
    new_queue(false);
    for (unsigned i = 0; i < 2; i++) {
        onic_queue_message_t m;
        (void)onic_queue_reserve(&sender, LONG);
        onic_queue_send(&sender, 1, 0, LONG);
        EXPLORE_ASSERT(onic_queue_look(&receiver, &m));
        onic_queue_take(&receiver);
    }
    nmessages = 3;
    for (unsigned i = 0; i < nmessages; i++)
        length[i] = 20 + 10 * i;
    length[1] = LONG;
}

static void full(void)
{
    new_queue(false);
    nmessages = 4;
    for (unsigned i = 0; i < nmessages; i++)
        length[i] = LONG;
}

static void grows(void)
{
    full();
    sender.give = NULL;
    nmessages = 5;
    length[4] = LONG;
}

/** What must be whole of a message: its first and its last bytes. */
static void fill_in(unsigned char *at, uint32_t len, unsigned number)
{
    memset(at, (int)number + 1, 8);
    memset(at + len - 8, (int)number + 101, 8);
}

static void send_all(void)
{
    for (unsigned i = 0; i < nmessages; i++) {
        unsigned char *at;
        while ((at = onic_queue_reserve(&sender, length[i])) == NULL)
            explore_pause();
        fill_in(at, length[i], i);
        onic_queue_send(&sender, (uint8_t)i, 8, length[i]);
    }
}

static void receive_all(void)
{
    for (unsigned i = 0; i < nmessages; i++) {
        onic_queue_message_t m;
        while (!onic_queue_look(&receiver, &m))
            explore_pause();
        EXPLORE_ASSERT(m.id == i && m.header_len == 8 && m.header_len + m.len == length[i]);
        EXPLORE_ASSERT(m.header[0] == i + 1 && m.header[7] == i + 1);
        EXPLORE_ASSERT(m.payload[m.len - 8] == i + 101 && m.payload[m.len - 1] == i + 101);
        onic_queue_take(&receiver);
    }
}

static void ring_thread(unsigned me)
{
    if (me == 0)
        send_all();
    else
        receive_all();
}

static void ring_is_empty(void)
{
    onic_queue_message_t m;
    EXPLORE_ASSERT(!onic_queue_look(&receiver, &m));
    EXPLORE_ASSERT(receiver.broken == false && queue.ends->taken == sender.at);
}

/* ---- several senders, and a server thread that sleeps ---------------------------------------- */

static onic_segment_key_t key;
static onic_file_key_t pipe_of_receiver;
static onic_outbox_t outbox[3];
static unsigned got[3], nsenders, each;
static unsigned naps;

static void new_inbox(unsigned n)
{
    for (unsigned i = 0; i <= EXPLORE_THREADS; i++) {
        process[i].num_local_peers = n;
        process[i].my_local_rank = (uint16_t)i;
    }
    onic_inbox_open(64 << 10);
    key = onic_inbox.key;
    EXPLORE_ASSERT(onic_inbox.segment.base != NULL);
}

static void one_sender(void)
{
    new_inbox(1);
    nsenders = 1;
    each = 2;
}

static void two_senders(void)
{
    new_inbox(2);
    nsenders = 2;
    each = 1;
}

/** The sender has its queue already, so nobody meets it. */
static void open_sender(void)
{
    one_sender();
    opal_process_info.my_local_rank = 1;
    EXPLORE_ASSERT(
        onic_outbox_open(&outbox[1], &key, onic_inbox.segment.base, 1, &pipe_of_receiver));
    EXPLORE_ASSERT(onic_inbox_look() == 1);
}

static void send_from(unsigned me)
{
    onic_outbox_t *out = &outbox[me];
    if (out->head == NULL)
        EXPLORE_ASSERT(onic_outbox_open(out, &key, onic_inbox.segment.base, me, &pipe_of_receiver));
    for (unsigned i = 0; i < each; i++) {
        const unsigned header[2] = {me, i};
        EXPLORE_ASSERT(onic_outbox_put(out, 3, header, sizeof(header), NULL, true));
    }
}

/** As onic_queues_receive and park (common/transport) do. */
static unsigned take_what_there_is(void)
{
    const uint32_t n = onic_inbox_look();
    unsigned taken = 0;
    for (uint32_t i = 0; i < n; i++) {
        onic_queue_message_t m;
        while (onic_queue_look(&onic_inbox.queue[i].receiver, &m)) {
            unsigned header[2];
            memcpy(header, m.header, sizeof(header));
            EXPLORE_ASSERT(header[0] == onic_inbox.queue[i].owner && header[1] == got[header[0]]);
            got[header[0]]++;
            taken++;
            onic_queue_take(&onic_inbox.queue[i].receiver);
        }
    }
    return taken;
}

static void serve(void)
{
    for (unsigned all = 0; all < nsenders * each;) {
        const unsigned taken = take_what_there_is();
        all += taken;
        if (taken > 0)
            continue;
        onic_outbox_park(++naps);
        if (!onic_inbox_has_messages()) {
            while (atomic_load(&pipe_bytes) == 0)
                explore_pause();
            atomic_store(&pipe_bytes, 0);
        }
        onic_outbox_park(0);
    }
}

/* Messages that wake nobody fill the queue of a receiver that sleeps, and one is behind them that
 * is to wake it. */

static void full_of_quiet_ones(void)
{
    open_sender();
    onic_inbox_head_t *head = onic_inbox.segment.base;
    atomic_store(&head->spare, 0);
    each = 3;
}

static void send_quietly(void)
{
    static unsigned char bytes[LONG];
    for (unsigned i = 0; i < each; i++) {
        const unsigned header[2] = {1, i};
        memcpy(bytes, header, sizeof(header));
        while (!onic_outbox_put(&outbox[1], 3, bytes, sizeof(bytes), NULL, i + 1 == each))
            explore_pause();
    }
}

static void quiet_thread(unsigned me)
{
    if (me == 0)
        serve();
    else
        send_quietly();
}

/* Two daemons have given two processes of a node the same number: one of them gets its queue. */

static _Atomic unsigned nopen;

static void same_number(void)
{
    one_sender();
    process[1].my_local_rank = process[2].my_local_rank = 1;
    each = 1;
}

static void same_number_thread(unsigned me)
{
    if (me == 0) {
        serve();
    } else if (onic_outbox_open(&outbox[me], &key, onic_inbox.segment.base, me,
                                &pipe_of_receiver)) {
        atomic_fetch_add(&nopen, 1);
        send_from(me);
    }
}

static void one_has_sent(void)
{
    EXPLORE_ASSERT(nopen == 1 && got[1] + got[2] == 1);
}

static void inbox_thread(unsigned me)
{
    if (me == 0)
        serve();
    else
        send_from(me);
}

static void inbox_is_empty(void)
{
    for (unsigned i = 1; i <= nsenders; i++)
        EXPLORE_ASSERT(got[i] == each);
    EXPLORE_ASSERT(take_what_there_is() == 0);
}

static const explore_target_t targets[] = {
    {"ring-around", 2, few, ring_thread, ring_is_empty, 0, 0},
    {"ring-full", 2, full, ring_thread, ring_is_empty, 0, 0},
    {"ring-grows", 2, grows, ring_thread, ring_is_empty, 0, 0},
    {"ring-asleep", 2, open_sender, inbox_thread, inbox_is_empty, 0, 0},
    {"ring-quiet", 2, full_of_quiet_ones, quiet_thread, inbox_is_empty, 1, 0},
    {"ring-same-number", 3, same_number, same_number_thread, one_has_sent, 1, 0},
    {"ring-new-sender", 2, one_sender, inbox_thread, inbox_is_empty, 0, 0},
    {"ring-new-senders", 3, two_senders, inbox_thread, inbox_is_empty, 0, 0},
};

int main(int argc, char **argv)
{
    return explore_main(argc, argv, targets, sizeof(targets) / sizeof(targets[0]));
}
