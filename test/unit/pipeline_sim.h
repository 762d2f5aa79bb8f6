/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The pipeline between hosts without hosts: one receiver with a tiny receive pool, senders that put
 * into it and are asked by it, on the machines and the handshake of the pipeline. Messages keep
 * their order on each connection; puts arrive whenever they like, and words follow them in any
 * order. Senders die, or the connection to them is lost and they know nothing of it and go on to
 * put. What must never be is checked as it happens: a put that arrives in a buffer of another
 * transfer, wrong data, a transfer that ends twice.
 */
#pragma once

#include "common/pipeline/core/pool.h"
#include "common/pipeline/core/rma_handshake.h"
#include "common/pipeline/core/grant_queue.h"
#include "test/unit/unit.h"

enum {
    PEERS = 3,
    SIDES = 8, /* puts of a peer at a time */
    SENDERS = 4 * SIDES,
    RECEIVERS = 2 * PEERS * SIDES,
    BUFFER = 16,
    QUEUE = 512,
    FLIGHTS = 512,
    LONGEST = 200
};

typedef enum type { REQUEST, REQUEST_GET, GRANT, WORD, ACK } type_t;

typedef struct message {
    type_t type;
    uint32_t to, from;
    unsigned buffer;
    uint64_t value, len;
} message_t;

typedef struct channel {
    message_t m[QUEUE];
    unsigned first, n;
} channel_t;

/** One side of a transfer; the data is told by the receiver's or the sender's seed. */
typedef struct side {
    bool used, ended, cancelled, refused;
    int told; /**< how often an end was told of */
    unsigned peer;
    uint32_t name, other;
    uint64_t len, seed, buffers;
    unsigned wanted; /* buffers */
    unsigned refs;
    onic_rma_handshake_t handshake;
    onic_sender_t s;
    onic_receiver_t r;
    uint64_t early; /* the last word before there was a lease */
    unsigned char chunk[BUFFER];
} side_t;

/** A put, which is followed by its word; one that gives up is a word only. */
typedef struct flight {
    side_t *side;
    uint64_t word, number; /* the later the higher */
    unsigned buffer, from, bytes;
    bool landed;
    unsigned char chunk[BUFFER];
} flight_t;

typedef struct world {
    unit_random_t random;
    unsigned total, lazy;
    uint64_t free;
    onic_asker_t asker[PEERS]; /* `lost` tells what the receiver knows */
    side_t receivers[RECEIVERS], senders[PEERS][SENDERS];
    channel_t up[PEERS], down[PEERS];
    flight_t flight[FLIGHTS];
    unsigned nflights, requests[PEERS];
    uint64_t puts;
    bool dead[PEERS];
    uint32_t names, holder[ONIC_RX_BUFFERS_MAX];
    unsigned char memory[ONIC_RX_BUFFERS_MAX][BUFFER];
    unsigned starts, cancels, good, bad, refused;
} world_t;

extern world_t w;

/** Everything new, with a receive pool of so many buffers. */
void sim_begin(uint64_t seed, unsigned total);
/** One thing happens; no more than `most` transfers are started. */
void sim_happen(unsigned most, bool cancels, bool deaths);
/** The buffers of the lost. */
uint64_t sim_lost(void);
/** Is nothing left of those who live? */
bool sim_is_quiet(void);

/* What the two files of it share. */
unsigned any(unsigned n);
unsigned sim_free(void);
/** Buffers for a side, at most half of what is free; 0 where there is none. */
uint64_t sim_take(side_t *r);
void sim_release(uint64_t buffers);
side_t *find(side_t *sides, unsigned n, uint32_t name);
unsigned used(const side_t *sides, unsigned n);
side_t *receiver_named(uint32_t name);
side_t *new_side(side_t *sides, unsigned n, unsigned peer, uint64_t len, uint64_t seed);
side_t *new_sender(unsigned p, uint64_t len, uint64_t seed);
void post(channel_t *c, message_t m);
void to_receiver(const side_t *s, type_t type, unsigned buffer, uint64_t value);
void drop(side_t *x);
void serve(void);
void released(unsigned peer, uint64_t buffers);
/** What a word counts is put. */
void put_word(side_t *s, unsigned buffer, uint64_t word);
/** The machine of a side takes a step. */
void sim_receive(side_t *r);
void sim_send(side_t *s);
