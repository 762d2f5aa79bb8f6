/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The numbers that choices are made from: what they are, and how they are read and written
 *  as text. A job measures nothing: the numbers of networks are given, those of a node's ways are
 *  built in for a few processors, or are measured once for a machine.
 *
 *  Across a network equations say what a way costs: those of strided transfers (strided-RMA paper,
 *  section 4), here, and those of the superpipeline (pipeline.h). How far apart the blocks are that
 *  are packed is a term of its own (onic_link_gather). On a node each way has its own start, and
 *  its own cost of a piece and of a byte, as these can be measured there. Pure; the caller
 *  serialises changes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/layout/layout.h"
#include "common/transport/shm/kind.h"
#include "common/support/export.h"

/** Nanoseconds, nanoseconds per byte, GB/s, and how many: all are positive and finite. Of each the
 *  name, and what holds, unless a user gives others, for a peer on this node, across a network by
 *  messages only, and across one whose adapter reads and writes memory of the peer.
 *
 *  Rows that stand a line or a page apart are mostly cold: programs sweep their memory between two
 *  exchanges. Registering is as in the superpipeline paper, section 2, and requests are about as
 *  adapters of 100 Gb/s take them. */
#define ONIC_LINK_NUMBERS(X)                                                                       \
    X(block, 0.5, 0.5, 0.5)      /* one block of a gather that shares cache lines with others */   \
    X(line, 2, 2, 2)             /* one that has a cache line for itself */                        \
    X(page, 8, 8, 8)             /* one that has a page for itself */                              \
    X(message, 700, 10000, 4000) /* an active message (ts of equation 2) */                        \
    X(byte, 0.15, 0.13, 0.19)    /* a packed byte in messages (tn + 2 tm of equation 2) */         \
    X(fragment, 1 << 30, 262144, 8192) /* most bytes of a message, which only one side works on */ \
    X(grant, 1, 10000, 3000)           /* until a sender may put into slots of its receiver */     \
    X(rendezvous, 5000, 30000, 6000)   /* the handshake of a rendezvous */                         \
    X(rndv_byte, 0.10, 0.09, 0.09)     /* a byte that is moved by rendezvous (tn) */               \
    X(pin, 68000, 68000, 68000)        /* registering memory with an adapter (lambda_reg) */       \
    X(pin_byte, 0.05, 0.05, 0.05)      /* and for each byte of it (1 / Breg) */                    \
    X(wake, 15000, 15000, 15000)       /* what messages wait for where a helper is to be woken */  \
    X(absence, 500000, 500000, 500000) /* and where nobody looks yet, and nobody can be woken */   \
    X(gap, 150, 300, 300)              /* between two chunks of a pipeline (g) */                  \
    X(latency, 150, 1500, 1000)        /* until the first byte of a chunk is there (lambda_net) */ \
    X(bcopy, 20, 20, 20)               /* packing or unpacking, long blocks, GB/s (Bcopy) */       \
    X(bnet, 20, 10, 11.5)              /* a chunk once it is under way, GB/s (Bnet) */             \
    X(request, 60, 60, 60)             /* one work request of an adapter (ts of equation 1) */     \
    X(doorbell, 200, 200, 200)         /* telling the adapter of a list of them */                 \
    X(batch, 32, 32, 32)               /* so many are in such a list */                            \
    X(entry, 20, 20, 20)               /* one more piece in the gather list of a request */        \
    X(entries, 16, 16, 16)             /* most pieces of such a list */                            \
    X(window, 128, 128, 128)           /* most writes under way at a time */                       \
    X(reads, 16, 16, 16)               /* most reads under way at a time */                        \
    X(chunk, 12288, 12288, 12288)      /* first chunk of a measured schedule (C_0) */              \
    X(growth, 1.5, 1.5, 1.5)           /* how many times as long each next one is (q) */

#define ONIC_LINK_MEMBER(name, node, net, adapter) double name;
typedef struct onic_link {
    ONIC_LINK_NUMBERS(ONIC_LINK_MEMBER)
} onic_link_t;
#undef ONIC_LINK_MEMBER

/* ---- the ways on a node --------------------------------------------------------------------- */

/** Lengths of blocks, bytes, that have a cost of their own. */
#define ONIC_COST_BLOCKS   4
#define ONIC_COST_BLOCK(i) (UINT64_C(8) << ((i) == 0 ? 0 : 4 * (i)-1)) /* 8, 64, 1024, 16384 */
/** A transfer of more bytes than this does not stay in caches. */
#define ONIC_COST_NEAR 262144

/** What a transfer costs, nanoseconds, none negative: equations (1) and (2) of the strided-RMA
 *  paper in one form, k ts + tn N. Both depend on caches: ts on the length of a piece, tn on how
 *  many bytes there are. */
typedef struct onic_cost {
    double start;                   /**< with the first piece */
    double byte;                    /**< of the first ONIC_COST_NEAR bytes each */
    double beyond;                  /**< each other one */
    double piece[ONIC_COST_BLOCKS]; /**< each other piece, of so many bytes */
} onic_cost_t;

/** What `bytes` > 0 in `pieces` >= 1 of about `block` bytes cost. A piece between two lengths costs
 *  what is in proportion, one below the least length as much as that one, and one above the
 * greatest the more the longer it is. */
ONIC_EXPORT double onic_cost(const onic_cost_t *cost, double pieces, double block, double bytes);

/** The ways: those of one-sided transfers, from the call to the end of the flush behind it, and
 *  those of messages, from the call of the sender to the end of the receive. */
#define ONIC_WAYS(X)                                                                               \
    X(cma_put)                                                                                     \
    X(cma_get)                                                                                     \
    X(sieve)                                                                                       \
    /* a byte: of what is read */ X(pack_put) X(pack_get) X(pipeline_put) X(pipeline_get)          \
        X(stream) X(pipeline) X(copy)

#define ONIC_WAY_NUMBER(name) ONIC_WAY_##name,
typedef enum onic_way { ONIC_WAYS(ONIC_WAY_NUMBER) ONIC_N_WAYS } onic_way_t;
#undef ONIC_WAY_NUMBER

/** The costs of all: of one transfer that is waited for, and of one of many that are under way
 *  together, for which the slower side counts. */
typedef struct onic_costs {
    onic_cost_t of[ONIC_N_WAYS][2]; /**< [1]: of many */
} onic_costs_t;

/* ---- all of them ---------------------------------------------------------------------------- */

/** The kinds of peer. */
typedef struct onic_links {
    onic_link_t node;    /**< on this node */
    onic_link_t net;     /**< across a network, by messages only */
    onic_link_t adapter; /**< across one whose adapter reads and writes memory of the peer */
    onic_costs_t costs[ONIC_DISTANCES];
} onic_links_t;

/** The numbers that hold unless a user gives others, with the costs of the processor of that name,
 * or of "other" where none are built in for it. */
ONIC_EXPORT onic_links_t onic_links_default(const char *processor);

/** Says, for a line, whether those costs were measured on such a processor, as the first line of
 *  their text says (", measured on ", ", derived "). */
ONIC_EXPORT const char *onic_links_basis(const char *processor);

/** The name of a processor that costs are built in for, or "other", by what CPUID says: the vendor
 *  ("AuthenticAMD"), family and model. "xeon" are Intel's
 *  servers from Skylake to Granite Rapids with cores of the large kind. */
ONIC_EXPORT const char *onic_processor_name(const char *vendor, int family, int model);

/* ---- the model of strided transfers --------------------------------------------------------- */

/** Equation (2): the same packed into messages: ts + tn N + 2 tm N. What packing and unpacking take
 *  beside the moving of the bytes is not in it: onic_link_gather. */
ONIC_EXPORT double onic_link_packed(const onic_link_t *link, double bytes);

/** The NIC-based method (strided-RMA paper, section 5.2): so many work requests, at least 1, with
 *  `entries` pieces in their gather lists, no fewer, and bytes in all. Behind the first request
 *  what takes longest counts: making the others (k ts of equation (1)), the sliding window (figure
 *  5), or moving the bytes (tn N). Nanoseconds until the last answer has come. */
ONIC_EXPORT double onic_link_requests(const onic_link_t *link, bool read, double requests,
                                      double entries, double bytes);

/** Nanoseconds that gathering or scattering the blocks of a layout takes beside moving its bytes:
 *  more where the blocks are farther from each other, on average; 0 where the layout is contiguous.
 */
ONIC_EXPORT double onic_link_gather(const onic_link_t *link, const onic_layout_t *l);

/** Blocks this far from each other, in bytes, have a cache line, or a page, each. */
#define ONIC_LINK_LINE 64
#define ONIC_LINK_PAGE 4096

/* ---- as text -------------------------------------------------------------------------------- */

/** Replaces numbers by what the lines of a text name. Kinds of peer are node, net and adapter, with
 *  numbers as in "net: message=9000,byte=0.25", node where there is none; names are those of the
 *  struct. Distances are near, package and far, with costs as in
 *  "near: pack_put=700/0.1/0.1/1/2/9/90:300/0.05/0.1/1/2/9/90": the members of onic_cost_t, of one
 *  transfer, and of one of many. Blanks around what stands there, empty lines and what follows a #
 * do not count; a kind may come more than once. Returns 0; or, nothing replaced, the line, from 1
 * on, that is too long or has an unknown name, a number that is not positive and finite (of costs:
 * is negative), or anything between them; or the one behind the last where it names nothing. */
ONIC_EXPORT int onic_links_read(onic_links_t *links, const char *text);

/** Writes all numbers so, at most `cap` > 0 bytes with the closing 0. */
ONIC_EXPORT void onic_links_write(const onic_links_t *links, char *buf, size_t cap);

/** Enough for that. */
#define ONIC_LINKS_TEXT_MAX 16384

/* ---- glue: link_file.c, link_given.c --------------------------------------------------------- */

/** Reads a file of such lines likewise. Negative: -EFBIG and -EILSEQ where it is no text of less
 *  than 64 KiB, another errno where it cannot be read. Any thread. */
ONIC_EXPORT int onic_links_load(onic_links_t *links, const char *path);

/** Bytes of a text that says where numbers come from. */
#define ONIC_LINKS_FROM 512

/** Reads what a user has given as a component's parameter `cost`: "default", such lines, or @FILE;
 *  the others are as by default for this processor. These are what calibration has measured on such
 *  a processor, in a file VENDOR-FAMILY-MODEL.txt in the user's .openmpi/ompi-nic or in the folder
 *  `costs` beside the components; else, and where that file is broken, which a line says, what is
 *  built in. `from` says which it was. False where `cost` is none of these: then a text has been
 *  printed, "bad-cost" of that help file. MPI thread. */
ONIC_EXPORT bool onic_links_given(onic_links_t *links, const char *cost, char from[ONIC_LINKS_FROM],
                                  const char *help_file);
