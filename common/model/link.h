/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The numbers that choices are based on: their meaning, and how they are read and written as
 * text. A job measures nothing: the numbers of networks are given; those of a node's ways are built
 *  in for a few processors, or measured once for a machine.
 *
 *  Across a network equations give the cost of a way: those of strided transfers (strided-RMA
 *  paper, section 4) are here, those of the superpipeline in pipeline.h. The distance of packed
 *  blocks is a separate term (onic_link_gather). On a node each way has its own cost of the start,
 * of a piece and of a byte, since these can be measured there. Pure; the caller serialises changes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/layout/layout.h"
#include "common/transport/shm/kind.h"
#include "common/support/export.h"

/** Nanoseconds, nanoseconds per byte, GB/s, or counts: all are positive and finite. For each
 *  number: its name, and its default for a peer on this node, for one across a network by messages
 *  only, and for one whose memory the adapter reads and writes.
 *
 *  Rows that lie a line or a page apart are mostly cold: programs sweep their memory between two
 *  exchanges. Registration costs as in the superpipeline paper, section 2; requests cost about what
 *  adapters of 100 Gb/s need. */
#define ONIC_LINK_NUMBERS(X)                                                                       \
    X(block, 0.5, 0.5, 0.5)      /* one block of a gather that shares cache lines with others */   \
    X(line, 2, 2, 2)             /* a block that has a cache line of its own */                    \
    X(page, 8, 8, 8)             /* a block that has a page of its own */                          \
    X(message, 700, 10000, 4000) /* an active message (ts of equation 2) */                        \
    X(byte, 0.15, 0.13, 0.19)    /* a packed byte in messages (tn + 2 tm of equation 2) */         \
    X(fragment, 1 << 30, 262144, 8192) /* most bytes of a message, handled by one side */          \
    X(grant, 1, 10000, 3000)         /* wait until a sender may put into its receiver's buffers */ \
    X(rendezvous, 5000, 30000, 6000) /* the handshake of a rendezvous */                           \
    X(rndv_byte, 0.10, 0.09, 0.09)   /* a byte moved by rendezvous (tn) */                         \
    X(pin, 68000, 68000, 68000)      /* registering memory with an adapter (lambda_reg) */         \
    X(pin_byte, 0.05, 0.05, 0.05)    /* for each byte registered (1 / Breg) */                     \
    X(wake, 15000, 15000, 15000)     /* wait of messages if a helper thread has to be woken */     \
    X(absence, 500000, 500000, 500000) /* wait if nobody polls and nobody can be woken */          \
    X(gap, 150, 300, 300)              /* between two chunks of a pipeline (g) */                  \
    X(latency, 150, 1500, 1000)   /* until the first byte of a chunk has arrived (lambda_net) */   \
    X(bcopy, 20, 20, 20)          /* packing or unpacking, long blocks, GB/s (Bcopy) */            \
    X(bnet, 20, 10, 11.5)         /* a chunk in flight, GB/s (Bnet) */                             \
    X(request, 60, 60, 60)        /* one work request of an adapter (ts of equation 1) */          \
    X(doorbell, 200, 200, 200)    /* notifying the adapter of a list of requests */                \
    X(batch, 32, 32, 32)          /* requests in such a list */                                    \
    X(entry, 20, 20, 20)          /* one more piece in the gather list of a request */             \
    X(entries, 16, 16, 16)        /* most pieces of such a list */                                 \
    X(window, 128, 128, 128)      /* most writes in flight at a time */                            \
    X(reads, 16, 16, 16)          /* most reads in flight at a time */                             \
    X(chunk, 12288, 12288, 12288) /* first chunk of a measured schedule (C_0) */                   \
    X(growth, 1.5, 1.5, 1.5)      /* factor from each chunk to the next (q) */

#define ONIC_LINK_MEMBER(name, node, net, adapter) double name;
typedef struct onic_link {
    ONIC_LINK_NUMBERS(ONIC_LINK_MEMBER)
} onic_link_t;
#undef ONIC_LINK_MEMBER

/* ---- the ways on a node --------------------------------------------------------------------- */

/** Lengths of blocks, in bytes, that have a separate cost. */
#define ONIC_COST_BLOCKS   4
#define ONIC_COST_BLOCK(i) (UINT64_C(8) << ((i) == 0 ? 0 : 4 * (i)-1)) /* 8, 64, 1024, 16384 */
/** Transfers of more bytes than this do not stay in caches. */
#define ONIC_COST_NEAR 262144

/** The cost of a transfer, in nanoseconds, none negative: equations (1) and (2) of the strided-RMA
 *  paper in one form, k ts + tn N. Both parts depend on caches: ts on the length of a piece, tn on
 *  the number of bytes. */
typedef struct onic_cost {
    double start;                   /**< including the first piece */
    double byte;                    /**< each of the first ONIC_COST_NEAR bytes */
    double beyond;                  /**< each further byte */
    double piece[ONIC_COST_BLOCKS]; /**< each further piece, by its length */
} onic_cost_t;

/** The cost of `bytes` > 0 in `pieces` >= 1 pieces of about `block` bytes. The cost of a piece is
 *  interpolated between the lengths, is that of the least length below it, and grows in proportion
 *  above the greatest. */
ONIC_EXPORT double onic_cost(const onic_cost_t *cost, double pieces, double block, double bytes);

/** The ways: those of one-sided transfers, from the call to the end of the following flush, and
 *  those of messages, from the sender's call to the end of the receive. */
#define ONIC_WAYS(X)                                                                               \
    X(cma_put)                                                                                     \
    X(cma_get)                                                                                     \
    X(sieve)                                                                                       \
    /* a byte: of what is read */ X(pack_put) X(pack_get) X(pipeline_put) X(pipeline_get)          \
        X(stream) X(pipeline) X(copy)

#define ONIC_WAY_NUMBER(name) ONIC_WAY_##name,
typedef enum onic_way { ONIC_WAYS(ONIC_WAY_NUMBER) ONIC_N_WAYS } onic_way_t;
#undef ONIC_WAY_NUMBER

/** The costs of all ways: for a single transfer that is waited for, and for one of many in flight
 *  together, where the slower side counts. */
typedef struct onic_costs {
    onic_cost_t of[ONIC_N_WAYS][2]; /**< [0]: a single one; [1]: one of many */
} onic_costs_t;

/* ---- all of them ---------------------------------------------------------------------------- */

/** The numbers of all kinds of peer. */
typedef struct onic_links {
    onic_link_t node;    /**< on this node */
    onic_link_t net;     /**< across a network, by messages only */
    onic_link_t adapter; /**< across a network whose adapter reads and writes the peer's memory */
    onic_costs_t costs[ONIC_DISTANCES];
} onic_links_t;

/** The default numbers, with the costs of the processor of that name, or of "other" if there are
 *  none for it. */
ONIC_EXPORT onic_links_t onic_links_default(const char *processor);

/** A text fragment that says whether those costs were measured on such a processor, as the first
 *  line of their text says (", measured on ", ", derived "). */
ONIC_EXPORT const char *onic_links_basis(const char *processor);

/** The name of a processor with built-in costs, or "other", from what CPUID gives: the vendor
 *  ("AuthenticAMD"), family and model. "xeon" are Intel's servers from Skylake to Granite Rapids
 *  with performance cores. */
ONIC_EXPORT const char *onic_processor_name(const char *vendor, int family, int model);

/* ---- the model of strided transfers --------------------------------------------------------- */

/** Equation (2): the bytes are packed into messages: ts + tn N + 2 tm N. The cost of packing and
 *  unpacking beyond moving the bytes is not included: see onic_link_gather. */
ONIC_EXPORT double onic_link_packed(const onic_link_t *link, double bytes);

/** The NIC-based method (strided-RMA paper, section 5.2): the cost of `requests` work requests (at
 * least 1), with in all `entries` pieces in their gather lists (no fewer than requests) and `bytes`
 *  bytes. After the first request the longest of these counts: making the others (k ts of equation
 *  (1)), the sliding window (figure 5), or moving the bytes (tn N). Nanoseconds until the last
 *  answer. */
ONIC_EXPORT double onic_link_requests(const onic_link_t *link, bool read, double requests,
                                      double entries, double bytes);

/** Nanoseconds that gathering or scattering the blocks of a layout takes beyond moving the bytes:
 *  the more, the farther blocks are apart on average; 0 if the layout is contiguous. */
ONIC_EXPORT double onic_link_gather(const onic_link_t *link, const onic_layout_t *l);

/** Blocks at least this many bytes apart each have their own cache line, or page. */
#define ONIC_LINK_LINE 64
#define ONIC_LINK_PAGE 4096

/* ---- as text -------------------------------------------------------------------------------- */

/** Replaces the numbers that the lines of a text give. Kinds of peer are node, net and adapter,
 *  with numbers as in "net: message=9000,byte=0.25"; without a kind, node; names are those of the
 *  struct. Distances are near and far, with costs as in "near:
 *  pack_put=700/0.1/0.1/1/2/9/90:300/0.05/0.1/1/2/9/90": the members of onic_cost_t, for a single
 * transfer, and for one of many. Blanks around items, empty lines and comments after # are ignored;
 *  a kind may occur more than once. Returns 0; or, nothing replaced, the line, from 1 on, that is
 *  too long or has an unknown name, a number that is not positive and finite (of costs: is
 *  negative), or anything between them; or the line after the last if the text has no items. */
ONIC_EXPORT int onic_links_read(onic_links_t *links, const char *text);

/** Writes all numbers in that form, at most `cap` > 0 bytes with the closing 0. */
ONIC_EXPORT void onic_links_write(const onic_links_t *links, char *buf, size_t cap);

/** Bytes that are enough for that. */
#define ONIC_LINKS_TEXT_MAX 16384

/* ---- glue: link_file.c, link_given.c --------------------------------------------------------- */

/** Reads a file of such lines, with the same result. Negative: -EFBIG or -EILSEQ if it is not a
 *  text of less than 64 KiB, another errno if it cannot be read. Any thread. */
ONIC_EXPORT int onic_links_load(onic_links_t *links, const char *path);

/** Most bytes of a text that says where numbers come from. */
#define ONIC_LINKS_FROM 512

/** Reads the user's value of a component's parameter `cost`: "default", such lines, or @FILE.
 *  Numbers not given are the defaults for this processor: what calibration has measured on such a
 *  processor, in a file VENDOR-FAMILY-MODEL.txt in the user's .openmpi/ompi-nic or in the folder
 *  `costs` beside the components; otherwise, or if that file is malformed, which is reported in a
 *  line, the built-in ones. `from` gets the source. False if `cost` is none of these; then
 *  "bad-cost" of that help file has been shown. MPI thread. */
ONIC_EXPORT bool onic_links_given(onic_links_t *links, const char *cost, char from[ONIC_LINKS_FROM],
                                  const char *help_file);
