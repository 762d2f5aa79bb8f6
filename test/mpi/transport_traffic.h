/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Messages for the test of the transport: each says what it is and carries bytes that follow from
 * its header, so that who receives it can tell whether they are right.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/transport/transport.h"

/** No wait takes longer where all is well, in seconds, be the machine ever so busy. */
#define TRAFFIC_PATIENCE TL_PATIENCE

/** What is done with a message: its bytes are verified, sent at once or by rendezvous; it is
 * refused; it is answered; it is an answer; or its sender says that it goes away from MPI. */
typedef enum traffic_kind { BYTES = 1, MEET, REFUSE, PING, PONG, AWAY } traffic_kind_t;

typedef struct traffic_header {
    uint32_t kind;
    uint32_t from;
    uint64_t seq;
    uint64_t len;
} traffic_header_t;

/** What all of this works on. The counters are those of this process; handlers and callbacks, which
 *  may run in the server thread, count them. */
typedef struct traffic {
    onic_peer_t **peers;       /**< by rank; set by the program */
    pthread_t mpi_thread;      /**< set by the program */
    atomic_long arrived;       /**< messages with bytes, verified or refused */
    atomic_long completed;     /**< sends */
    atomic_long pongs;         /**< answers */
    atomic_long foreign_pings; /**< questions answered by another thread than the MPI thread */
    atomic_long aways;
} traffic_t;

extern traffic_t traffic;

/** The transport's function for messages. */
void traffic_handle(onic_peer_t *from, const void *header, size_t header_len, const void *data,
                    size_t len, onic_rndv_t *rndv);

/** Sends one message with `header_len` bytes of header, of which ours are the first. */
void traffic_send(int to, traffic_kind_t kind, uint64_t seq, uint64_t len, size_t header_len,
                  bool strided);

/** Progresses until a counter has reached `want`; `what` names it where it does not. */
void traffic_wait(atomic_long *counter, long want, const char *what);

/** Checks that no message so far was wrong in any way. */
void traffic_check(const char *what);

/** Sets the counts of messages that arrived and were completed to 0, on all ranks. Collective. */
void traffic_reset(void);
