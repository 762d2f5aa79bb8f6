/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Fuzzes what a leader does with the endpoints of others: whatever is understood has one
 *  form only. */
#include <string.h>

#include "coll_nicbarrier/engines/datagram/udp_address.h"
#include "test/fuzz/fuzz.h"

static const nicbarrier_udp_address_t mine = {
    .cookie = 2, .port = 3, .n = 1, .ip = {{0x0100000a, 0x000000ff}}};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    nicbarrier_udp_address_t theirs;

    if (nicbarrier_udp_address_decode(data, len, &theirs) != NULL)
        return -1;
    FUZZ_CHECK(nicbarrier_udp_address_size(&theirs) == len);
    FUZZ_CHECK(memcmp(data, &theirs, len) == 0);
    const nicbarrier_address_t to = nicbarrier_udp_address_choose(&mine, &theirs);
    FUZZ_CHECK(to.port == theirs.port && to.ip != mine.ip[0].ip);
    return 0;
}

/* What leaders would really say. */
size_t onic_fuzz_seed(unsigned i, uint8_t *buf, size_t cap)
{
    nicbarrier_udp_address_t a = mine;

    a.n = (uint8_t)(1 + i);
    for (unsigned k = 1; k <= i && k < NICBARRIER_IPS_MAX; k++) {
        a.ip[k] = mine.ip[0];
        a.ip[k].ip += (uint32_t)k << 24;
    }
    if (i >= NICBARRIER_IPS_MAX || cap < nicbarrier_udp_address_size(&a))
        return 0;
    memcpy(buf, &a, nicbarrier_udp_address_size(&a));
    return nicbarrier_udp_address_size(&a);
}
