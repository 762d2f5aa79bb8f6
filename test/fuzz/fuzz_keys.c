/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Fuzzing of what a process does with what another tells of its memory: find out whether it is
 * right, then read its blobs, which must lie in it one behind the other.
 */
#include <string.h>

#include "osc_nicstride/protocol/message.h"
#include "test/fuzz/fuzz.h"

static void read_blobs(const uint8_t *bytes, size_t len)
{
    size_t at = NICSTRIDE_KEYS_HEAD, before;
    nicstride_blob_t blob;

    for (before = at; nicstride_keys_next(bytes, len, &at, &blob); before = at) {
        FUZZ_CHECK(blob.len > 0);
        FUZZ_CHECK((const uint8_t *)blob.bytes == bytes + before + NICSTRIDE_BLOB_HEAD);
        FUZZ_CHECK((const uint8_t *)blob.bytes + blob.len == bytes + at && at <= len);
    }
    FUZZ_CHECK(at == len);
}

/** What is not found right is read by nobody; what the walk does with it must end all the same. */
static void walk(const uint8_t *bytes, size_t len)
{
    size_t at = 0;
    nicstride_blob_t blob;

    while (nicstride_keys_next(bytes, len, &at, &blob))
        FUZZ_CHECK(at <= len && (const uint8_t *)blob.bytes + blob.len == bytes + at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    /* A copy of its own size and at an odd address, so that reading beyond it shows. */
    uint8_t *memory = malloc(len + 1);
    nicstride_span_t span;
    const char *why;

    if (memory == NULL)
        return 0;
    if (len > 0)
        memcpy(memory + 1, data, len);
    why = nicstride_keys_check(memory + 1, len, &span);
    if (why == NULL) {
        FUZZ_CHECK(span.size == 0 || span.at + span.size > span.at);
        read_blobs(memory + 1, len);
    }
    walk(memory + 1, len);
    free(memory);
    return why == NULL ? 0 : -1;
}

size_t onic_fuzz_seed(unsigned i, uint8_t *buf, size_t cap)
{
    const nicstride_span_t span = {4096, 65536, i};
    nicstride_keys_t k;
    size_t room;

    if (i >= 4)
        return 0;
    nicstride_keys_begin(&k, i == 0 ? NULL : &span);
    for (unsigned row = 0; row < i; row++) {
        memset(nicstride_keys_room(&k, &room), (int)row, 16);
        nicstride_keys_add(&k, 7 + row, (nicstride_part_of_t)(row % NICSTRIDE_PARTS), 16);
    }
    if (k.len > cap)
        return 0;
    memcpy(buf, k.bytes, k.len);
    return k.len;
}
