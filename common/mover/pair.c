/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/mover/pair.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/constants.h"

#include "common/mover/mover.h"
#include "common/support/clock.h"

/** The shortest of so many runs counts: the first find nothing in its place. */
#define SHORT_RUNS 12
#define LONG_RUNS  4
/** Bytes of a short answer, more than a cache line. */
#define SHORT 128
/** Who asks asks again within such a time. */
#define STAY_NSEC UINT64_C(100000)
/** The longest piece of an answer in messages. */
#define PIECE ((size_t)8192)

enum { ASK, ANSWER, REFUSAL };

/** Header of all three; it comes from a peer. The pieces of an answer in messages are payload. They
 *  name their sender: who is asked at the start of a program has not looked up the asker. */
typedef struct pair_message {
    uint64_t sender;
    uint32_t type;
    uint32_t number;      /**< of the ask */
    uint32_t bytes;       /**< ASK: to be sent back */
    uint32_t by_slots;    /**< ASK: through those of the ticket, else in messages */
    onic_ticket_t ticket; /**< ASK */
} pair_message_t;

/** What is sent back. Nobody writes to it. */
static const char zeros[ONIC_SAMPLE_MOVED];

/** The ask under way in this process; wire lock. */
static struct {
    uint32_t number;
    uint64_t left;     /**< bytes still to come in messages, or all of them */
    uint64_t answered; /**< when this process has last answered an ask, nanoseconds */
    bool busy;         /**< somebody is measuring */
    bool refused;
    bool failed;
    onic_transfer_t *move; /**< they come through slots; NULL: in messages, or the move is over */
    char *memory;          /**< where they go */
} asked;

/* ---- answering: wire lock, any thread -------------------------------------------------------- */

static void sent(void *arg, int status)
{
    (void)arg;
    (void)status;
}

static bool answer_by_slots(onic_peer_t *peer, const pair_message_t *m)
{
    onic_mover_end_t source = {.len = m->bytes, .base = (char *)(uintptr_t)zeros, .done = sent};
    return onic_layout_contig(&source.layout, 0, m->bytes) == ONIC_LAYOUT_OK &&
           onic_mover_answer_locked(peer, &m->ticket, &source) == OMPI_SUCCESS;
}

static bool answer_in_messages(onic_peer_t *peer, const pair_message_t *m)
{
    const pair_message_t answer = {.sender = onic_wire_me(), .type = ANSWER, .number = m->number};
    /* Not known while there is no connection yet: UCX cuts what is too long for it. */
    const size_t most = onic_peer_message_max(peer, ONIC_AM_PAIR);
    const size_t room = most > 2 * sizeof(answer) && most < PIECE ? most : PIECE;
    onic_payload_t data = {.base = zeros};
    for (size_t left = m->bytes; left > 0; left -= data.len) {
        data.len = left < room - sizeof(answer) ? left : room - sizeof(answer);
        if (onic_peer_send(peer, ONIC_AM_PAIR, &answer, sizeof(answer), &data, 0, NULL, NULL) < 0) {
            return false;
        }
    }
    return true;
}

static void answer(onic_peer_t *peer, const pair_message_t *m)
{
    const pair_message_t no = {.sender = onic_wire_me(), .type = REFUSAL, .number = m->number};
    asked.answered = onic_now_nsec();
    if (m->bytes <= sizeof(zeros) &&
        !(m->by_slots != 0 ? answer_by_slots(peer, m) : answer_in_messages(peer, m))) {
        (void)onic_peer_send(peer, ONIC_AM_PAIR, &no, sizeof(no), NULL, 0, NULL, NULL);
    }
}

static void on_message(onic_peer_t *from, const void *header, size_t header_len, const void *data,
                       size_t len, onic_rndv_t *rndv)
{
    pair_message_t m;
    if (header_len != sizeof(m) || rndv != NULL) {
        return;
    }
    memcpy(&m, header, sizeof(m));
    if (m.type == ASK) {
        answer(from, &m);
    } else if (!asked.busy || m.number != asked.number) {
        return; /* the ask was given up */
    } else if (m.type == REFUSAL) {
        asked.refused = true;
    } else if (asked.move == NULL && len <= asked.left) {
        asked.left -= len;
        memcpy(asked.memory + asked.left, data, len);
    }
}

void onic_pair_open(void)
{
    (void)onic_wire_set_named_fn(ONIC_AM_PAIR, on_message);
}

void onic_pair_close(void)
{
    (void)onic_wire_set_named_fn(ONIC_AM_PAIR, NULL);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void moved(void *arg, int status)
{
    (void)arg;
    asked.move = NULL;
    asked.left = 0;
    asked.failed = asked.failed || status != OMPI_SUCCESS;
}

/** Leases slots for the answer, the same each time: memory is made for them in the first run alone,
 *  and is not what a run is to show. */
static bool lease_locked(onic_peer_t *peer, pair_message_t *m)
{
    onic_mover_rewind_locked();
    onic_mover_end_t sink = {.len = m->bytes, .base = asked.memory, .done = moved, .arg = &asked};
    if (onic_layout_contig(&sink.layout, 0, m->bytes) == ONIC_LAYOUT_OK) {
        asked.move = onic_mover_expect_locked(peer, &sink, &m->ticket);
    }
    return asked.move != NULL;
}

static bool ask_locked(onic_peer_t *peer, uint32_t bytes, bool by_slots)
{
    pair_message_t m = {.sender = onic_wire_me(),
                        .type = ASK,
                        .number = ++asked.number,
                        .bytes = bytes,
                        .by_slots = by_slots};
    asked.left = bytes;
    asked.refused = asked.failed = false;
    return (!by_slots || lease_locked(peer, &m)) &&
           onic_peer_send(peer, ONIC_AM_PAIR, &m, sizeof(m), NULL, 0, NULL, NULL) >= 0;
}

/** All has come, or will not; nothing is under way for it any more. */
static bool is_over_locked(onic_peer_t *peer, bool late)
{
    const bool refused = asked.refused || asked.failed || onic_peer_is_lost(peer);
    if (asked.left > 0 && !refused && !late) {
        return false;
    }
    asked.failed = asked.failed || asked.left > 0;
    if (asked.move != NULL && asked.refused && onic_mover_withdraw_locked(asked.move)) {
        asked.move = NULL;
    }
    return asked.move == NULL || onic_mover_cancel_locked(&asked);
}

/** Asks, and waits for the answer. */
static bool run(onic_peer_t *peer, uint32_t bytes, bool by_slots, uint64_t end)
{
    onic_wire_lock();
    asked.refused = !ask_locked(peer, bytes, by_slots);
    while (!is_over_locked(peer, onic_now_nsec() > end)) {
        onic_wire_unlock();
        (void)onic_wire_progress();
        onic_wire_lock();
    }
    const bool done = !asked.failed;
    onic_wire_unlock();
    return done;
}

/** The shortest of some runs; 0 where one of them fails. */
static double shortest(onic_peer_t *peer, uint32_t bytes, bool by_slots, uint64_t end)
{
    double best = 0;
    for (int runs = bytes == SHORT ? SHORT_RUNS : LONG_RUNS; runs > 0; runs--) {
        const uint64_t begun = onic_now_nsec();
        if (!run(peer, bytes, by_slots, end)) {
            return 0;
        }
        const double took = (double)(onic_now_nsec() - begun);
        best = best > 0 && best < took ? best : took;
    }
    return best;
}

/** Only one thread at a time, with its memory. */
static bool enter(void)
{
    char *memory = malloc(ONIC_SAMPLE_MOVED);
    if (memory == NULL) {
        return false;
    }
    memset(memory, 1, ONIC_SAMPLE_MOVED); /* which brings its pages */
    onic_wire_lock();
    const bool free_now = !asked.busy;
    if (free_now) {
        asked.busy = true;
        asked.memory = memory;
    }
    onic_wire_unlock();
    if (!free_now) {
        free(memory);
    }
    return free_now;
}

static void leave(void)
{
    onic_wire_lock();
    char *memory = asked.memory;
    asked.memory = NULL;
    asked.busy = false;
    onic_wire_unlock();
    free(memory);
}

/** A peer of another host is asked for its slots by who it has heard of before. */
static bool reaches(onic_peer_t *peer)
{
    onic_wire_lock();
    const bool reached = onic_mover_reaches_locked(peer);
    onic_wire_unlock();
    return reached;
}

void onic_pair_stay(unsigned usec)
{
    const uint64_t begun = onic_now_nsec(), end = begun + UINT64_C(1000) * usec;
    for (uint64_t now = begun, last = begun; now < end && now - last < STAY_NSEC;
         now = onic_now_nsec()) {
        (void)onic_wire_progress();
        onic_wire_lock();
        last = asked.answered > last ? asked.answered : last;
        onic_wire_unlock();
    }
}

void onic_measure_pair(onic_peer_t *peer, unsigned usec, onic_pair_samples_t *samples)
{
    const uint64_t end = onic_now_nsec() + UINT64_C(1000) * usec;
    memset(samples, 0, sizeof(*samples));
    if (!enter()) {
        return;
    }
    samples->ping = shortest(peer, SHORT, false, end);
    if (samples->ping > 0) {
        samples->messages = shortest(peer, ONIC_SAMPLE_SENT, false, end);
    }
    if (samples->messages > 0 && reaches(peer)) {
        samples->slot = shortest(peer, SHORT, true, end);
        samples->slots = samples->slot > 0 ? shortest(peer, ONIC_SAMPLE_MOVED, true, end) : 0;
    }
    leave();
}
