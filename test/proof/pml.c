/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Messages of pml_superpipe: the data that is found is what came. */
#include "test/proof/proof.h"

#include "pml_superpipe/matching/header.c"

/** unwind: 1 */
void proof_pml_header(void)
{
    const size_t header_len = any_length(SUPERPIPE_HEADER_MAX + 16), len = any_length(64);
    const bool meets = any_bool();
    unsigned char *header = any_bytes(header_len), *data = any_bytes(len);
    superpipe_incoming_t in;

    if (!superpipe_decode(&in, header, header_len, data, len, meets))
        return;
    PROVE(in.prefix.kind > 0 && in.prefix.kind < SUPERPIPE_KINDS);
    PROVE(in.bytes == 0 || lies_in(in.data, in.bytes, header, header_len) ||
          lies_in(in.data, in.bytes, data, len));
    if (in.prefix.kind == SUPERPIPE_KIND_RTS)
        PROVE(in.bytes <= in.offer.early && in.offer.early <= in.offer.length &&
              in.offer.early <= SUPERPIPE_EARLY_MAX && in.offer.length <= INT64_MAX &&
              in.offer.block > 0 && in.offer.handle != 0);
    if (in.prefix.kind == SUPERPIPE_KIND_CTS)
        PROVE(in.prefix.protocol < SUPERPIPE_PROTOCOLS);
}

/** unwind: 1 */
void proof_pml_short(void)
{
    const size_t header_len = any_length(sizeof(superpipe_short_t) + 16), len = any_length(64);
    unsigned char *header = any_bytes(header_len), *data = any_bytes(len);
    superpipe_incoming_t in;

    if (superpipe_decode_short(&in, header, header_len, data, len))
        PROVE(in.bytes == 0 || lies_in(in.data, in.bytes, header, header_len) ||
              lies_in(in.data, in.bytes, data, len));
}
