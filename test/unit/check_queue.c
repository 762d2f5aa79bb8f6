/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Queues between processes: what is sent arrives as it was sent and in order, whatever the lengths
 * and whoever is ahead; what a sender writes that nobody writes leads the receiver nowhere.
 */
#include "common/transport/shm/queue.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "test/unit/unit.h"

enum {
    RING = ONIC_QUEUE_RING_MIN,
    LONGEST = ONIC_QUEUE_ROUND - ONIC_QUEUE_LINE,
    HEADER_MAX = 64,
    ROUNDS = 200000,
    CROSSING = 100000
};

#define SECRET UINT64_C(0x8000f00dfeed0001)

typedef struct pair {
    void *memory;
    onic_queue_sender_t sender;
    onic_queue_receiver_t receiver;
} pair_t;

static pair_t open_pair(uint32_t ring)
{
    pair_t p;
    const size_t bytes = (onic_queue_bytes(ring) + 127) / 128 * 128;

    p.memory = aligned_alloc(2 * ONIC_QUEUE_LINE, bytes);
    ck_assert(p.memory != NULL);
    memset(p.memory, 0, bytes);
    const onic_queue_t q = onic_queue_at(p.memory, ring);
    p.sender = onic_queue_sender(&q, SECRET);
    p.receiver = onic_queue_receiver(&q);
    return p;
}

/** Byte `i` of message `n`, and its lengths. */
static unsigned char byte_of(uint32_t n, uint32_t i)
{
    return (unsigned char)(n * 7 + i * 13 + (i >> 8));
}

static uint32_t length_of(uint32_t n, uint32_t longest)
{
    unit_random_t r = {n};
    /* Most messages are short, as in programs. */
    const uint32_t most[] = {8, 48, 49, 200, 4000, longest};

    return (uint32_t)unit_below(&r, most[unit_below(&r, 6)] + 1);
}

static uint16_t header_of(uint32_t n, uint32_t len)
{
    return (uint16_t)(n % HEADER_MAX < len ? n % HEADER_MAX : len);
}

static bool send_one(onic_queue_sender_t *s, uint32_t n)
{
    const uint32_t len = length_of(n, LONGEST);
    unsigned char *bytes = onic_queue_reserve(s, len);

    if (bytes == NULL)
        return false;
    UNIT_CHECK(bytes >= s->q.ring && bytes + len <= s->q.ring + s->q.ring_bytes);
    for (uint32_t i = 0; i < len; i++)
        bytes[i] = byte_of(n, i);
    onic_queue_send(s, (uint8_t)n, header_of(n, len), len);
    return true;
}

static bool receive_one(onic_queue_receiver_t *r, uint32_t n)
{
    const uint32_t len = length_of(n, LONGEST);
    onic_queue_message_t m;

    if (!onic_queue_look(r, &m)) {
        UNIT_CHECK(!r->broken);
        return false;
    }
    UNIT_CHECK(m.header_len == header_of(n, len) && m.header_len + m.len == len);
    UNIT_CHECK(m.id == (uint8_t)n && (m.payload != NULL) == (m.len > 0));
    for (uint32_t i = 0; i < len; i++)
        UNIT_CHECK((i < m.header_len ? m.header[i] : m.payload[i - m.header_len]) == byte_of(n, i));
    onic_queue_take(r);
    return true;
}

/** Gives no memory now and then. */
static bool give_sometimes(void *arg, uint32_t bytes)
{
    (void)bytes;
    return !unit_once_in(arg, 4);
}

/* Now one side is ahead, now the other, and now and then the ring is full or empty. */
static void check_order(uint32_t ring, uint32_t round)
{
    unit_random_t r = {unit_seed()};
    pair_t p = open_pair(ring);
    uint32_t sent = 0, received = 0, full = 0, empty = 0;

    p.sender.round = round;
    p.sender.give = give_sometimes;
    p.sender.arg = &r;
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t eagerness = (uint64_t)i / 1000 % 3 + 1;

        if (unit_below(&r, 4) < eagerness)
            send_one(&p.sender, sent) ? sent++ : full++;
        else
            receive_one(&p.receiver, received) ? received++ : empty++;
        UNIT_CHECK(received <= sent);
    }
    while (receive_one(&p.receiver, received))
        received++;
    UNIT_CHECK(received == sent && sent > ROUNDS / 8 && full > 100 && empty > 100);
    UNIT_CHECK(p.sender.round == ring);
    free(p.memory);
}

START_TEST(messages_arrive_in_order)
{
    check_order(RING, RING);
    check_order(4 * RING, ONIC_QUEUE_ROUND);
}
END_TEST

typedef struct given {
    uint32_t bytes;
    bool refuses;
} given_t;

static bool give(void *arg, uint32_t bytes)
{
    given_t *g = arg;

    if (!g->refuses)
        g->bytes = bytes;
    return !g->refuses;
}

/** Sends messages that are taken at once, and returns how many until the sender goes round in more
 *  than before. */
static uint32_t until_longer(pair_t *p, uint32_t len, uint32_t most)
{
    const uint32_t round = p->sender.round;
    onic_queue_message_t m;
    uint32_t n = 0;

    for (; p->sender.round == round && n < most; n++) {
        UNIT_CHECK(onic_queue_reserve(&p->sender, len) != NULL);
        UNIT_CHECK((p->sender.at & (p->sender.q.ring_bytes - 1)) + onic_queue_use(len) <=
                   p->sender.round);
        onic_queue_send(&p->sender, 1, 0, len);
        UNIT_CHECK(onic_queue_look(&p->receiver, &m));
        onic_queue_take(&p->receiver);
    }
    return n;
}

/* What is never needed gets no memory; what is gone round in often enough becomes longer. */
START_TEST(goes_round_in_the_beginning)
{
    enum { LONG = 4 * RING, LEN = 4000 };
    pair_t p = open_pair(LONG);
    given_t given = {ONIC_QUEUE_ROUND, true};

    p.sender.give = give;
    p.sender.arg = &given;
    UNIT_CHECK(until_longer(&p, LEN, 10000) == 10000);
    given.refuses = false;
    p.sender.rounds = 0;
    for (uint32_t round = ONIC_QUEUE_ROUND, longer; round < LONG; round = longer) {
        const uint32_t n = until_longer(&p, LEN, UINT32_MAX);

        longer = onic_queue_longer_round(LONG, round);
        UNIT_CHECK(longer > round && p.sender.round == longer && given.bytes == longer);
        UNIT_CHECK(longer == LONG ||
                   onic_queue_touched(LONG, longer) == 2 * onic_queue_touched(LONG, round));
        UNIT_CHECK(n > 4 * (round / onic_queue_use(LEN)));
        UNIT_CHECK(n < 16 * (round / onic_queue_use(LEN)));
    }
    free(p.memory);
}
END_TEST

/** Messages that there is room for while none is taken. */
static uint32_t fill_up(bool refuses, given_t *given)
{
    pair_t p = open_pair(4 * RING);
    uint32_t sent = 0;

    *given = (given_t){0, refuses};
    p.sender.give = give;
    p.sender.arg = given;
    for (; onic_queue_reserve(&p.sender, 0) != NULL; sent++)
        onic_queue_send(&p.sender, 1, 0, 0);
    free(p.memory);
    return sent;
}

/* Who is not taken from has the whole ring, if there is memory. */
START_TEST(what_is_full_becomes_longer)
{
    given_t given;

    UNIT_CHECK(fill_up(true, &given) == ONIC_QUEUE_ROUND / ONIC_QUEUE_LINE);
    UNIT_CHECK(fill_up(false, &given) == 4 * RING / ONIC_QUEUE_LINE && given.bytes == 4 * RING);
}
END_TEST

/** Empties the queue. */
static void take_all(pair_t *p)
{
    onic_queue_message_t m;

    while (onic_queue_look(&p->receiver, &m))
        onic_queue_take(&p->receiver);
    UNIT_CHECK(!p->receiver.broken);
}

/* Wherever in its round the sender is that gets no more memory: at the latest when the receiver has
 * seen that it goes on at the beginning. */
START_TEST(the_longest_fits_where_all_is_taken)
{
    const uint32_t len = LONGEST;
    const uint32_t rings[] = {RING, 8 * RING};
    given_t given = {0, true};
    onic_queue_message_t m;

    for (uint32_t i = 0; i < 2 * (ONIC_QUEUE_ROUND / ONIC_QUEUE_LINE + 1); i++) {
        pair_t p = open_pair(rings[i % 2]);

        p.sender.give = give;
        p.sender.arg = &given;
        for (uint32_t line = 0; line < i / 2; line++) {
            UNIT_CHECK(onic_queue_reserve(&p.sender, 0) != NULL);
            onic_queue_send(&p.sender, 1, 0, 0);
            take_all(&p);
        }
        for (int n = 0; n < 3; n++) {
            if (onic_queue_reserve(&p.sender, len) == NULL) {
                take_all(&p);
                UNIT_CHECK(onic_queue_reserve(&p.sender, len) != NULL);
            }
            onic_queue_send(&p.sender, 2, 1, len);
            UNIT_CHECK(onic_queue_look(&p.receiver, &m) && m.header_len == 1);
            UNIT_CHECK(m.len == LONGEST - 1);
            onic_queue_take(&p.receiver);
        }
        UNIT_CHECK(p.sender.round == ONIC_QUEUE_ROUND && !onic_queue_lengthen(&p.sender));
        UNIT_CHECK(onic_queue_longest(p.sender.round) == LONGEST);
        free(p.memory);
    }
}
END_TEST

/* Stamps of the rounds before, as data. */
START_TEST(old_stamps_are_no_messages)
{
    pair_t p = open_pair(RING);
    const uint32_t words = 4000 / sizeof(uint64_t);
    onic_queue_message_t m;

    for (uint64_t n = 0; n < 1000; n++) {
        unsigned char *at = onic_queue_reserve(&p.sender, words * sizeof(uint64_t));
        const uint64_t place = p.sender.at;

        UNIT_CHECK(at != NULL);
        for (uint64_t i = 0; i < words; i++) {
            const uint64_t old = SECRET + place + 16 + i * sizeof(uint64_t) - RING;
            memcpy(at + i * sizeof(uint64_t), &old, sizeof(old));
        }
        onic_queue_send(&p.sender, 0, 0, words * sizeof(uint64_t));
        UNIT_CHECK(onic_queue_look(&p.receiver, &m) && m.len == words * sizeof(uint64_t));
        onic_queue_take(&p.receiver);
        UNIT_CHECK(!onic_queue_look(&p.receiver, &m) && !p.receiver.broken);
    }
    free(p.memory);
}
END_TEST

/* The first line of a message is anything at all. */
START_TEST(a_receiver_stays_in_the_ring)
{
    unit_random_t r = {unit_seed()};
    int broken = 0;

    for (int i = 0; i < 20000; i++) {
        pair_t p = open_pair(RING);
        const uint32_t lines = (uint32_t)unit_below(&r, RING / ONIC_QUEUE_LINE);
        onic_queue_message_t m;

        p.receiver.at = (uint64_t)lines * ONIC_QUEUE_LINE;
        onic_queue_head_t *h = onic_queue_head(&p.receiver.q, p.receiver.at);
        h->len = (uint32_t)unit_random64(&r) >> unit_below(&r, 32);
        h->header_len = (uint16_t)unit_below(&r, 200);
        h->stamp = SECRET + p.receiver.at;
        if (onic_queue_look(&p.receiver, &m)) {
            const unsigned char *end = p.receiver.q.ring + RING;
            UNIT_CHECK(m.header >= p.receiver.q.ring && m.header_len <= end - m.header);
            UNIT_CHECK(m.len == 0 || (m.payload >= m.header && m.len <= end - m.payload));
            onic_queue_take(&p.receiver);
        } else if (p.receiver.broken) {
            broken++;
            UNIT_CHECK(!onic_queue_look(&p.receiver, &m));
        }
        free(p.memory);
    }
    UNIT_CHECK(broken > 1000);
}
END_TEST

/** Is there anything behind the first `touched` bytes of a queue? */
static bool is_clean(const pair_t *p, size_t touched)
{
    const unsigned char *at = p->memory, *end = at + onic_queue_bytes(p->sender.q.ring_bytes);

    for (at += touched; at < end && *at == 0; at++) {
    }
    return at == end;
}

/* Only that has memory. A round that ends with a message touches the line behind it. */
START_TEST(no_more_is_touched_than_has_memory)
{
    for (uint32_t ring = ONIC_QUEUE_RING_MIN; ring <= 8 * RING; ring *= 2) {
        for (uint32_t len = 0; len < 5000; len += 312) {
            pair_t p = open_pair(ring);
            const uint32_t round = p.sender.round;
            const size_t touched = onic_queue_touched(ring, round);

            /* So often that the round is not lengthened, which ends at once where it could. */
            while (p.sender.rounds < 3 && p.sender.round == round &&
                   p.sender.at < 4 * (uint64_t)ring) {
                onic_queue_message_t m;

                UNIT_CHECK(onic_queue_reserve(&p.sender, len) != NULL);
                onic_queue_send(&p.sender, 1, 0, len);
                UNIT_CHECK(onic_queue_look(&p.receiver, &m));
                onic_queue_take(&p.receiver);
            }
            UNIT_CHECK(p.sender.round == round && is_clean(&p, touched));
            if (round < ring && round % onic_queue_use(len) == 0)
                UNIT_CHECK(!is_clean(&p, touched - ONIC_QUEUE_LINE));
            free(p.memory);
        }
    }
    for (uint32_t ring = ONIC_QUEUE_RING_MIN; ring <= ONIC_QUEUE_RING_MAX; ring *= 2)
        for (uint32_t round = ONIC_QUEUE_ROUND; round < ring;
             round = onic_queue_longer_round(ring, round))
            UNIT_CHECK(onic_queue_touched(ring, round) <= onic_queue_bytes(ring));
    UNIT_CHECK(onic_queue_touched(RING, ONIC_QUEUE_ROUND) == 8192);
}
END_TEST

START_TEST(rings_have_the_size_that_fits)
{
    UNIT_CHECK(onic_queue_ring_for(0) == 0);
    UNIT_CHECK(onic_queue_ring_for(ONIC_QUEUE_RING_MIN) == 0);
    for (size_t bytes = onic_queue_bytes(ONIC_QUEUE_RING_MIN); bytes < 1 << 22; bytes += 1111) {
        const uint32_t ring = onic_queue_ring_for(bytes);

        UNIT_CHECK(ring >= ONIC_QUEUE_RING_MIN && (ring & (ring - 1)) == 0);
        UNIT_CHECK(onic_queue_bytes(ring) <= bytes && onic_queue_bytes(2 * ring) > bytes);
    }
    UNIT_CHECK(onic_queue_ring_for(SIZE_MAX) == ONIC_QUEUE_RING_MAX);
}
END_TEST

int main(void)
{
    return UNIT_RUN(
        "queue", UNIT_ONCE(messages_arrive_in_order), UNIT_ONCE(goes_round_in_the_beginning),
        UNIT_ONCE(what_is_full_becomes_longer), UNIT_ONCE(the_longest_fits_where_all_is_taken),
        UNIT_ONCE(old_stamps_are_no_messages), UNIT_ONCE(a_receiver_stays_in_the_ring),
        UNIT_ONCE(no_more_is_touched_than_has_memory), UNIT_ONCE(rings_have_the_size_that_fits));
}
