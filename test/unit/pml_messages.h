/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file One valid message of each kind, for the tests of their decoder. */
#pragma once

#include <string.h>

#include "pml_superpipe/matching/header.h"

enum { PML_MESSAGE_MAX = 128 };

/** Writes a valid message of that kind; returns its length. */
static inline size_t pml_message(superpipe_kind_t kind, uint8_t *to)
{
    const superpipe_prefix_t prefix = {
        .sender = UINT64_C(0x700000003),
        .kind = (uint8_t)kind,
        .protocol = (uint8_t)(kind == SUPERPIPE_KIND_CTS ? SUPERPIPE_PIPELINE : SUPERPIPE_AUTO),
        .context = kind == SUPERPIPE_KIND_RTS ? 17 : 0};
    const superpipe_rts_t rts = {
        .prefix = prefix,
        .source = 3,
        .tag = -7,
        .offer = {.handle = 5, .length = 1 << 20, .address = 0x7000, .block = 64, .early = 8192}};
    const superpipe_control_t w = {.prefix = prefix, .handle = 11, .value = 4096};
    const superpipe_cts_t cts = {.receive = 12, .ticket = {1, 2, 3}};
    size_t at = kind == SUPERPIPE_KIND_RTS ? sizeof(rts) : sizeof(w);

    memcpy(to, kind == SUPERPIPE_KIND_RTS ? (const void *)&rts : &w, at);
    if (kind == SUPERPIPE_KIND_CTS) {
        memcpy(to + at, &cts, sizeof(cts));
        at += sizeof(cts);
    } else if (kind != SUPERPIPE_KIND_ACK) {
        memset(to + at, 'd', 16);
        at += 16;
    }
    return at;
}
