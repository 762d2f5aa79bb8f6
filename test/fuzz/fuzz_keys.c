/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Fuzzing of what a process does with what another tells of its memory: its blobs lie in it one
 * behind the other.
 */
#include <string.h>

#include "osc_nicstride/protocol/message.h"
#include "test/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    /* A copy of its own size and at an odd address, so that reading beyond it shows. */
    uint8_t *memory = malloc(len + 1);
    nicstride_blob_t blob;
    size_t at = 0, before = 0;

    if (memory == NULL)
        return 0;
    if (len > 0)
        memcpy(memory + 1, data, len);
    for (; nicstride_keys_next(memory + 1, len, &at, &blob); before = at) {
        FUZZ_CHECK(blob.len > 0);
        FUZZ_CHECK((const uint8_t *)blob.bytes == memory + 1 + before + NICSTRIDE_BLOB_HEAD);
        FUZZ_CHECK((const uint8_t *)blob.bytes + blob.len == memory + 1 + at && at <= len);
    }
    free(memory);
    return at == len ? 0 : -1;
}

size_t onic_fuzz_seed(unsigned i, uint8_t *buf, size_t cap)
{
    nicstride_keys_t k = {.len = 0};
    size_t room;

    if (i >= 4)
        return 0;
    for (unsigned row = 0; row <= i; row++) {
        memset(nicstride_keys_room(&k, &room), (int)row, 16);
        nicstride_keys_add(&k, 7 + row, 16);
    }
    if (k.len > cap)
        return 0;
    memcpy(buf, k.bytes, k.len);
    return k.len;
}
