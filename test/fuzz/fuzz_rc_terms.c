/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Fuzzes the terms of a connection: whatever is understood can be. */
#include <string.h>

#include "common/verbs/rc_terms.h"
#include "test/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    onic_rc_terms_t t;

    if (onic_rc_terms_read(data, len, &t) != NULL)
        return -1;
    FUZZ_CHECK(len == sizeof(t) && t.mtu >= 1 && t.mtu <= 5);
    FUZZ_CHECK(memcmp(&t, data, len) == 0);
    return 0;
}

size_t onic_fuzz_seed(unsigned i, uint8_t *buf, size_t cap)
{
    onic_rc_terms_t t = {.address = {.link = ONIC_VERBS_INFINIBAND, .lid = 3, .qpn = 17 + i},
                         .mtu = (uint8_t)(1 + i),
                         .reads = 16,
                         .mark_key = 77 * i,
                         .mark = (uint64_t)i << 40};

    if (i >= 5 || cap < sizeof(t))
        return 0;
    memcpy(buf, &t, sizeof(t));
    return sizeof(t);
}
