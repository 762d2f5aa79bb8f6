/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The link to a kind of peer, as the models know it: a few numbers, what they are by
 *  default, and how they are read and written as text. Nothing is measured at the start: what
 *  transfers take changes with where processors are and with what else runs. The models say with
 *  which choice to begin; what transfers take is learned from them (learn.h).
 *
 *  Two models use them: that of strided transfers, here (strided-RMA paper, section 4), and that of
 *  the superpipeline (pipeline.h). How far apart the blocks are that are packed is a term of its
 *  own (onic_link_gather). Pure; the caller serialises changes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/layout/layout.h"
#include "common/support/export.h"

/** Nanoseconds, nanoseconds per byte, GB/s, and how many: all are positive and finite. Of each the
 *  name, and what holds, unless a user gives others, for a peer on this node, across a network by
 *  messages only, and across one whose adapter reads and writes memory of the peer.
 *
 *  Rows that stand a line or a page apart are mostly cold: programs sweep their memory between two
 *  exchanges. Registering is as in the superpipeline paper, section 2, and requests are about as
 *  adapters of 100 Gb/s take them. */
#define ONIC_LINK_NUMBERS(X)                                                                       \
    X(call, 700, 500, 500)       /* one system call of single copy, with its first piece (ts) */   \
    X(piece, 150, 500, 500)      /* one more piece in it (ts of equation 1) */                     \
    X(copy, 0.05, 0.09, 0.09)    /* a byte by single copy (tn of equation 1) */                    \
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
    X(reads, 16, 16, 16)               /* most reads under way at a time */

#define ONIC_LINK_MEMBER(name, node, net, adapter) double name;
typedef struct onic_link {
    ONIC_LINK_NUMBERS(ONIC_LINK_MEMBER)
} onic_link_t;
#undef ONIC_LINK_MEMBER

/** The kinds of peer. */
typedef struct onic_links {
    onic_link_t node;    /**< on this node */
    onic_link_t net;     /**< across a network, by messages only */
    onic_link_t adapter; /**< across one whose adapter reads and writes memory of the peer */
} onic_links_t;

/** What holds unless a user gives others. */
ONIC_EXPORT extern const onic_links_t onic_links_default;

/* ---- the model of strided transfers --------------------------------------------------------- */

/** Equation (1): `pieces` >= 1 contiguous pieces, `bytes` in all, each moved by itself:
 *  k ts + tn N, of which the first piece takes `call` and the others `piece`. Nanoseconds. */
ONIC_EXPORT double onic_link_strided(const onic_link_t *link, double pieces, double bytes);

/** Equation (2): the same packed into messages: ts + tn N + 2 tm N. What packing and unpacking take
 *  beside the moving of the bytes is not in it: onic_link_gather. */
ONIC_EXPORT double onic_link_packed(const onic_link_t *link, double bytes);

/** The NIC-based method (strided-RMA paper, section 5.2): so many work requests, at least 1, with
 *  `entries` pieces in their gather lists, no fewer, and bytes in all. Behind the first request
 *  what takes longest counts: making the others (k ts of equation (1)), the sliding window (figure
 *  5), or moving the bytes (tn N). Nanoseconds until the last answer has come. */
ONIC_EXPORT double onic_link_requests(const onic_link_t *link, bool read, double requests,
                                      double entries, double bytes);

/** What gathering or scattering the blocks of a layout takes beside the moving of its bytes: the
 *  more the farther they are from each other, on average. Nothing where it is contiguous. */
ONIC_EXPORT double onic_link_gather(const onic_link_t *link, const onic_layout_t *l);

/** How far from each other the blocks are that have a cache line, and a page, each for itself. */
#define ONIC_LINK_LINE 64
#define ONIC_LINK_PAGE 4096

/* ---- as text -------------------------------------------------------------------------------- */

/** Replaces numbers by what the lines of a text name: "kind: name=value,...". Kinds are node, net
 *  and adapter, node where there is none; names are those of the struct. Blanks around what stands
 *  there, empty lines and what follows a # do not count; a kind may come more than once. Returns 0;
 *  or, nothing replaced, the line, from 1 on, that is too long or has an unknown name, a value that
 *  is not a positive finite number, or anything between them; or the one behind the last where it
 *  names nothing. */
ONIC_EXPORT int onic_links_read(onic_links_t *links, const char *text);

/** Writes all numbers so, a line for each kind, at most `cap` > 0 bytes with the closing 0. */
ONIC_EXPORT void onic_links_write(const onic_links_t *links, char *buf, size_t cap);

/** Enough for that. */
#define ONIC_LINKS_TEXT_MAX 2048

/* ---- glue: link_file.c, link_given.c --------------------------------------------------------- */

/** Reads a file of such lines likewise. Negative: -EFBIG and -EILSEQ where it is no text of less
 *  than 64 KiB, another errno where it cannot be read. Any thread. */
ONIC_EXPORT int onic_links_load(onic_links_t *links, const char *path);

/** Reads what a user has given as a component's parameter `cost`: "default", such lines, or @FILE;
 *  the others are as by default. False where it is none of these: then a text has been printed,
 *  "bad-cost" of that help file. MPI thread. */
ONIC_EXPORT bool onic_links_given(onic_links_t *links, const char *cost, const char *help_file);
