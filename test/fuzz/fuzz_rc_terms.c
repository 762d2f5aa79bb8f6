/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Fuzzes the terms of a connection: whatever is understood has one form only, and can be. */
#include <string.h>

#include "common/verbs/rc_terms.h"
#include "test/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    unsigned char again[ONIC_RC_TERMS_SIZE];
    onic_rc_terms_t t;

    if (onic_rc_terms_decode(data, len, &t) != NULL)
        return -1;
    FUZZ_CHECK(len == sizeof(again) && t.mtu >= 1 && t.mtu <= 5);
    onic_rc_terms_encode(&t, again);
    FUZZ_CHECK(memcmp(again, data, len) == 0);
    return 0;
}

size_t onic_fuzz_seed(unsigned i, uint8_t *buf, size_t cap)
{
    onic_rc_terms_t t = {.address = {.link = ONIC_VERBS_INFINIBAND, .lid = 3, .qpn = 17 + i},
                         .mtu = (uint8_t)(1 + i),
                         .reads = 16,
                         .mark_key = 77 * i,
                         .mark = (uint64_t)i << 40};

    if (i >= 5 || cap < ONIC_RC_TERMS_SIZE)
        return 0;
    onic_rc_terms_encode(&t, buf);
    return ONIC_RC_TERMS_SIZE;
}
