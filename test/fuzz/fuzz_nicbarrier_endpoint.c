/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Fuzzes what a leader does with the endpoints of others: whatever is understood has one
 * form only. */
#include <string.h>

#include "coll_nicbarrier/engines/datagram/udp_address.h"
#include "test/fuzz/fuzz.h"

static const nicbarrier_udp_address_t mine = {
    .host = 1, .cookie = 2, .port = 3, .n = 1, .ip = {{{[10] = 0xff, 0xff, 10, 0, 0, 1}, 120}}};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    nicbarrier_udp_address_t theirs;
    nicbarrier_ip_t order[NICBARRIER_IPS_MAX + 1];

    if (nicbarrier_udp_address_decode(data, len, &theirs) != NULL)
        return -1;
    FUZZ_CHECK(nicbarrier_udp_address_size(&theirs) == len);
    FUZZ_CHECK(memcmp(data, &theirs, len) == 0);
    const int n = nicbarrier_udp_address_choose(&mine, &theirs, true, order);
    FUZZ_CHECK(n >= 0 && n <= theirs.n + 1);
    return 0;
}

/* What leaders would really say. */
size_t onic_fuzz_seed(unsigned i, uint8_t *buf, size_t cap)
{
    nicbarrier_udp_address_t a = mine;

    a.n = (uint8_t)(1 + i);
    for (unsigned k = 1; k <= i && k < NICBARRIER_IPS_MAX; k++) {
        a.ip[k] = mine.ip[0];
        a.ip[k].bytes[15] = (uint8_t)(1 + k);
    }
    if (i >= NICBARRIER_IPS_MAX || cap < nicbarrier_udp_address_size(&a))
        return 0;
    memcpy(buf, &a, nicbarrier_udp_address_size(&a));
    return nicbarrier_udp_address_size(&a);
}
