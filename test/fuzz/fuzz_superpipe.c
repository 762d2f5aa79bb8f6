/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Fuzzes the decoder of the point-to-point layer's messages: what is understood lies within what
 * was received, and is the same when it is decoded again.
 */
#include <string.h>

#include "pml_superpipe/matching/header.h"
#include "test/fuzz/fuzz.h"
#include "test/unit/pml_messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    superpipe_incoming_t in, again;

    if (superpipe_decode_short(&in, data, len, NULL, 0)) {
        FUZZ_CHECK(in.bytes == len - sizeof(superpipe_short_t) && in.offer.length == in.bytes);
        FUZZ_CHECK(in.bytes == 0 || (const uint8_t *)in.data + in.bytes == data + len);
        FUZZ_CHECK(in.offer.handle == 0 && in.offer.early == 0);
    }
    if (!superpipe_decode(&in, data, len, NULL, 0, false))
        return -1;
    const uint8_t *payload = in.data;
    FUZZ_CHECK(in.prefix.kind > 0 && in.prefix.kind < SUPERPIPE_KINDS);
    FUZZ_CHECK(in.bytes == 0 || (payload >= data + 32 && payload + in.bytes == data + len));
    FUZZ_CHECK(in.offer.length <= INT64_MAX);
    FUZZ_CHECK(in.prefix.kind != SUPERPIPE_KIND_RTS ||
               (in.offer.block > 0 && in.offer.handle != 0));
    FUZZ_CHECK(in.prefix.kind != SUPERPIPE_KIND_CTS || in.prefix.protocol < SUPERPIPE_PROTOCOLS);
    FUZZ_CHECK(in.offer.early <= in.offer.length && in.offer.early <= SUPERPIPE_EARLY_MAX);
    FUZZ_CHECK(in.prefix.kind != SUPERPIPE_KIND_RTS || in.bytes <= in.offer.early);
    FUZZ_CHECK(superpipe_decode(&again, data, len, NULL, 0, false));
    FUZZ_CHECK(memcmp(&in, &again, sizeof(in)) == 0);
    return 0;
}

size_t onic_fuzz_seed(unsigned i, uint8_t *buf, size_t cap)
{
    const unsigned kind = SUPERPIPE_KIND_RTS + i;

    return kind < SUPERPIPE_KINDS && cap >= PML_MESSAGE_MAX
               ? pml_message((superpipe_kind_t)kind, buf)
               : 0;
}
