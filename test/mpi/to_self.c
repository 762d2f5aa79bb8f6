/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1 */
/* arguments: rings */
/* arguments: ucx */
/**
 * @file
 * What a process sends to itself is handled in a later progress, never within the send, in its
 * order, whatever its length, where it has rings and where UCX carries it. A handler's own such
 * messages are for a later progress, too. The transport is not left before all have come.
 */
#include <stdlib.h>
#include <string.h>

#include "test/mpi/peers.h"
#include "test/mpi/testlib.h"

enum { MESSAGES = 64, LONGEST = 4096, ANSWERS = 8 };

static onic_peer_t *self;
static bool sending;
static int came, answers, sent;
static unsigned char bytes[LONGEST];

static size_t length(int i)
{
    return i % 2 ? (size_t)(i * 7919 % LONGEST) : (size_t)(i % 32);
}

static void sent_cb(void *arg, int status)
{
    (void)arg;
    TL_CHECK(status == 0 && !sending, "the end of a send: %d", status);
    sent++;
}

static void send_locked(int number)
{
    const onic_payload_t payload = {.base = bytes, .len = number < MESSAGES ? length(number) : 0};
    const bool nested = sending;

    sending = true;
    if (!onic_peer_send_now(self, ONIC_AM_COLL, &number, sizeof(number), &payload)) {
        const int rc =
            onic_peer_send(self, ONIC_AM_COLL, &number, sizeof(number), &payload, 0, sent_cb, NULL);
        TL_CHECK(rc >= 0, "send %d: %d", number, rc);
        sent += rc == 1;
    } else {
        sent++;
    }
    sending = nested;
}

/** A short message may come as a header alone. */
static void handle(onic_peer_t *from, const void *header, size_t header_len, const void *data,
                   size_t len, onic_rndv_t *rndv)
{
    int number;

    (void)from;
    TL_CHECK(!sending, "a handler within a send");
    TL_CHECK(rndv == NULL && header_len >= sizeof(number), "a header of %zu bytes", header_len);
    memcpy(&number, header, sizeof(number));
    if (number >= MESSAGES) {
        answers++;
        return;
    }
    TL_CHECK(number == came, "message %d in place of %d", number, came);
    TL_CHECK(header_len - sizeof(number) + len == length(number), "%zu and %zu bytes of message %d",
             header_len, len, number);
    TL_CHECK(memcmp((const char *)header + sizeof(number), bytes, header_len - sizeof(number)) ==
                     0 &&
                 (len == 0 || memcmp(data, bytes, len) == 0),
             "other bytes of message %d", number);
    came++;
    if (number < ANSWERS)
        send_locked(MESSAGES + number);
}

static bool all_there(void)
{
    return came == MESSAGES && answers == ANSWERS && sent == MESSAGES + ANSWERS;
}

int main(int argc, char **argv)
{
    const onic_transport_config_t config = {
        .queues = argc > 1 && strcmp(argv[1], "rings") == 0 ? 1 << 20 : 0};

    setenv("OMPI_MCA_osc_nicstride_queues", "0", 1);
    setenv("OMPI_MCA_pml_superpipe_queues", "0", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    if (onic_transport_open(&config) != 0)
        tl_die("the transport cannot be opened");
    TL_CHECK(peers_get(MPI_COMM_SELF, &self) == 0, "no peer");
    for (int i = 0; i < LONGEST; i++)
        bytes[i] = (unsigned char)(i * 31);
    onic_transport_set_fns(ONIC_AM_COLL, &(onic_transport_fns_t){.am = handle});
    onic_transport_lock();
    for (int i = 0; i < MESSAGES; i++)
        send_locked(i);
    TL_CHECK(came == 0, "%d messages have come while they were sent", came);
    onic_transport_unlock();
    TL_CHECK(peers_await(all_there), "%d messages, %d answers, %d sent", came, answers, sent);
    /* What is under way is handed over before the transport is closed. */
    onic_transport_lock();
    came = 0;
    send_locked(0);
    onic_transport_unlock();
    onic_transport_flush();
    while (came == 0 && onic_transport_progress() > 0)
        ;
    TL_CHECK(came == 1, "a message was left behind");
    onic_transport_set_fns(ONIC_AM_COLL, ONIC_TRANSPORT_NO_FNS);
    onic_transport_close();
    return tl_finish();
}
