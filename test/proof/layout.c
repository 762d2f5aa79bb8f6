/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Encoded layouts: any bytes. */
#include "test/proof/proof.h"

#include "common/layout/layout_wire.c"

/** unwind: 11 */
void proof_layout_number(void)
{
    const size_t len = any_length(12);
    unsigned char *bytes = any_bytes(len);
    reader_t r = {bytes, bytes + len};
    uint64_t value;

    if (get_unsigned(&r, &value))
        PROVE(r.next > bytes && r.next <= r.end);
}

/** A number that is written is the one that is read.
 *  unwind: 11 */
void proof_layout_number_again(void)
{
    unsigned char bytes[10];
    writer_t w = {bytes, bytes + sizeof(bytes)};
    const int64_t value = (int64_t)any_64();
    int64_t read;

    PROVE(put_signed(&w, value));
    reader_t r = {bytes, w.next};
    PROVE(get_signed(&r, &read) && read == value && r.next == r.end);
}

/** Any run behind any other.
 *  unwind: 11 */
void proof_layout_run(void)
{
    const size_t len = any_length(12);
    unsigned char *bytes = any_bytes(len);
    reader_t r = {bytes, bytes + len};
    onic_run_t run = {(int64_t)any_64(), any_64(), any_64(), (int64_t)any_64()};
    bool last;

    if (get_run(&r, &run, &last))
        PROVE(run.block > 0 && run.count > 0 && r.next >= bytes + 2 && r.next <= r.end);
}
