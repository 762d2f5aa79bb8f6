/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What the programs that test a point-to-point layer share: messages whose contents tell who sent
 * them, buffers of many layouts, and the sizes at which layers change their ways.
 *
 * Contents are a function of a seed, which p2p_seed() makes of sender, tag and number, and of the
 * place in the message: not of the layout, which may differ on both sides.
 */
#pragma once

#include <mpi.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "test/mpi/testlib.h"
#include "test/mpi/transfer.h"

/** Bytes: nothing, inline, eager, both sides of fragments of 8 KiB, long, longer than a ring. */
extern const int p2p_sizes[];
extern const int p2p_nsizes;
/** The largest of them. */
#define P2P_LARGEST ((3 << 20) + 5)

/** Was this layer asked for, as "ob1"? To work around what is wrong in it. */
bool p2p_layer(const char *name);

/** Are all ranks on this host? Also before MPI_Init; asking MPI would send messages. */
bool p2p_is_one_host(void);

/** An address of this host by which ranks of other hosts reach it; the loopback where there are
 *  none. */
in_addr_t p2p_own_address(void);

/** Two ranks hear of each other outside of MPI, by datagrams, from p2p_ears_open, which both call,
 *  to p2p_ears_close. */
void p2p_ears_open(void);
void p2p_ears_close(void);
/** Tells the other one a number, not below 0. */
void p2p_tell(int number);
/** What the other one has told; -1: nothing for longer than tests wait. */
int p2p_is_told(void);

/** The rank after this one, and the one before, in a ring. */
int p2p_next(void);
int p2p_before(void);

/** The seed of a message's contents. */
uint64_t p2p_seed(int source, int tag, int number);

/* ---- bytes in a row ---- */

/** Writes the contents of a message. */
void p2p_fill(void *memory, size_t bytes, uint64_t seed);

/** Are these the contents? Counts no check; for several threads at once. */
bool p2p_holds(const void *memory, size_t bytes, uint64_t seed);

/** Is a protocol forced by which a short MPI_Send may wait for its receive? */
bool p2p_waits(void);

/** Checks source and tag, that it has come whole, was not cancelled and has so many bytes. */
void p2p_check_status(const MPI_Status *status, int source, int tag, size_t bytes,
                      const char *what);

/** Finds a message by the `way`-th of MPI_Probe, Iprobe, Mprobe and Improbe; its handle is null for
 *  the first two. */
enum { P2P_PROBES = 4 };
MPI_Message p2p_find(int way, int source, int tag, MPI_Comm comm, MPI_Status *status);

/** Checks that a status is empty: of a null or an inactive request. */
void p2p_check_empty(const MPI_Status *status, const char *what);

/** What MPI_ERROR holds before calls that must not write it. */
enum { P2P_KEPT = 7654 };

/** Ways to complete a request: Wait, Waitall, Waitany, Waitsome, Test, Testall, Testany, Testsome,
 *  Request_get_status, also among null requests. */
enum { P2P_COMPLETIONS = 9 };

/** Completes the request by the `how`-th way, which must say the class `error`. Checks that calls
 *  of one status leave MPI_ERROR alone, which is P2P_KEPT afterwards unless there is an error. */
void p2p_complete_as(MPI_Request *request, MPI_Status *status, int how, int error);

/** The same without an error. */
void p2p_complete(MPI_Request *request, MPI_Status *status, int how);

/* ---- layouts ---- */

/** Layouts of a given number of bytes. */
typedef enum p2p_shape {
    P2P_PLAIN,
    P2P_VECTOR_8, /**< blocks of 8 bytes, 16 apart; the last one may be shorter */
    P2P_VECTOR_64,
    P2P_VECTOR_1024,
    P2P_INDEXED, /**< blocks of 1 to 200 bytes */
    P2P_STRUCT,  /**< records of three fields with gaps */
    P2P_DOWN,    /**< blocks of 24 bytes, the first one highest */
    P2P_SHAPES
} p2p_shape_t;

/** The type is committed and the caller's. */
tr_side_t p2p_side(p2p_shape_t shape, int bytes);

/** Memory with guards around it for one side of a message. Read only. */
typedef struct p2p_buffer {
    tr_side_t side;
    size_t bytes; /**< of data */
    unsigned char *memory;
    void *at; /**< what MPI is told */
} p2p_buffer_t;

/** Takes the side over. Holds background until a message is written or received. */
p2p_buffer_t p2p_buffer(tr_side_t side);

/** Writes the message. */
void p2p_write(p2p_buffer_t *b, uint64_t seed);

/** All background again. */
void p2p_wipe(p2p_buffer_t *b);

/** Checks that the first `bytes` of data are the message, and that all else is background. */
void p2p_check(const p2p_buffer_t *b, size_t bytes, uint64_t seed, const char *what);

/** Checks that all that is no data is background, whatever the data are. */
void p2p_check_outside(const p2p_buffer_t *b, const char *what);

void p2p_free(p2p_buffer_t *b);
