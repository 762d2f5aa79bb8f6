/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The table of protocols. */
#include "pml_superpipe/protocols/process.h"

static const superpipe_row_t auto_row = {.name = "auto"};

const superpipe_row_t *superpipe_rows[SUPERPIPE_ROWS] = {
    [SUPERPIPE_AUTO] = &auto_row,
    [SUPERPIPE_EAGER] = &superpipe_eager_row,
    [SUPERPIPE_STREAM] = &superpipe_stream_row,
    [SUPERPIPE_PIPELINE] = &superpipe_pipeline_row,
    [SUPERPIPE_COPY] = &superpipe_copy_row,
    [SUPERPIPE_RENDEZVOUS] = &superpipe_rendezvous_row,
};
