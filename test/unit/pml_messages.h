/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file One valid message of each kind, for the tests of their decoder. */
#pragma once

#include <string.h>

#include "pml_superpipe/matching/header.h"

enum { PML_MESSAGE_MAX = 128 };

/** Writes the valid message number `i` of that kind; returns its length, and 0 where there is none.
 *  Of EAGER there are four, of CTS three, of others one. */
static inline size_t pml_message(superpipe_kind_t kind, unsigned i, uint8_t *to)
{
    const superpipe_prefix_t prefix = {.sender = UINT64_C(0x700000003), .kind = (uint8_t)kind};
    size_t at = 0;

    if (kind <= SUPERPIPE_KIND_RTS) {
        superpipe_envelope_t e = {.prefix = prefix, .source = 3, .tag = -7, .sequence = 99};
        const superpipe_offer_t offer = {
            .handle = 5, .length = 1 << 20, .address = 0x7000, .block = 64};
        const bool waits = kind == SUPERPIPE_KIND_EAGER && i % 2 == 1;

        if (i >= (kind == SUPERPIPE_KIND_EAGER ? 4U : 1U))
            return 0;
        e.prefix.context = 17;
        e.early = kind == SUPERPIPE_KIND_RTS ? 8192 : 0;
        e.prefix.flags = waits ? SUPERPIPE_SYNCHRONOUS : 0;
        memcpy(to, &e, sizeof(e));
        at = sizeof(e);
        memcpy(to + at, &offer, sizeof(offer));
        if (kind == SUPERPIPE_KIND_RTS)
            return at + sizeof(offer);
        at += waits ? sizeof(offer.handle) : 0;
        memset(to + at, 'd', 16);
        return at + (i < 2 ? 16 : 0);
    }
    superpipe_control_t w = {.prefix = prefix, .handle = 11, .value = 4096};
    if (i >= (kind == SUPERPIPE_KIND_CTS ? 3U : 1U))
        return 0;
    w.prefix.protocol =
        (uint8_t)(kind == SUPERPIPE_KIND_CTS ? SUPERPIPE_STREAM + i : SUPERPIPE_AUTO);
    memcpy(to, &w, sizeof(w));
    at = sizeof(w);
    if (kind == SUPERPIPE_KIND_CTS) {
        const superpipe_cts_t cts = {.receive = 12, .ticket = {1, 2, 3}};
        memcpy(to + at, &cts, sizeof(cts));
        at += sizeof(cts);
    }
    if (kind == SUPERPIPE_KIND_DATA || kind == SUPERPIPE_KIND_EARLY) {
        memset(to + at, 'd', 16);
        at += 16;
    }
    return at;
}
