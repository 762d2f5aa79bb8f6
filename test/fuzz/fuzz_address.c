/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Fuzzes what a process tells of itself: whatever is understood has one form only, lies within what
 * was received, and names a host that ends.
 */
#include <string.h>

#include "common/transport/row/address.h"
#include "test/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    onic_address_t a;

    if (!onic_address_read(data, len, &a))
        return -1;
    const uint8_t *ucx = a.ucx;
    FUZZ_CHECK(ucx > data && a.ucx_len > 0 && ucx + a.ucx_len == data + len);
    FUZZ_CHECK(memchr(a.queues.name, 0, sizeof(a.queues.name)) != NULL);
    uint8_t *again = malloc(len);
    FUZZ_CHECK(again != NULL && onic_address_write(&a, again, len) == len);
    FUZZ_CHECK(memcmp(again, data, len) == 0);
    free(again);
    return 0;
}

size_t onic_fuzz_seed(unsigned i, uint8_t *buf, size_t cap)
{
    static const char host[] = "0bb1f3f0-6f1c-4b3c-9d3e-0f5ac8a3a001";
    onic_address_t a = {.name = (uint64_t)7 << 32 | i,
                        .cma_id = {.life = {.pid = 1000}},
                        .ucx = "0123456789abcdef",
                        .ucx_len = 1 + i * 5};

    if (i > 0)
        memcpy(a.cma_id.host, host, sizeof(host));
    return i < 4 ? onic_address_write(&a, buf, cap) : 0;
}
