/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Notices of post and complete between two processes: what a wait for one comes to. Pure.
 *
 * Notices are counted. They only ever grow, wrap, and are used one by one; one that came before its
 * sender was lost counts like any other.
 */
#ifndef NICSTRIDE_NOTICE_H
#define NICSTRIDE_NOTICE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum nicstride_notice {
    NICSTRIDE_NOTICE_AWAITED, /**< it may still come */
    NICSTRIDE_NOTICE_HERE,    /**< it is there, to be used */
    NICSTRIDE_NOTICE_NEVER    /**< it will not come any more */
} nicstride_notice_t;

/** `have` notices have come, `used` of them are used. `lost`: their sender cannot be reached any
 *  more; to be read before `have`, so that the last notice before the loss is not overlooked. */
static inline nicstride_notice_t nicstride_notice(uint32_t have, uint32_t used, bool lost)
{
    if (have != used)
        return NICSTRIDE_NOTICE_HERE;
    return lost ? NICSTRIDE_NOTICE_NEVER : NICSTRIDE_NOTICE_AWAITED;
}

#endif
