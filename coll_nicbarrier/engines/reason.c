/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Reasons: why an engine could not be had. */
#include <stdarg.h>
#include <stdio.h>

#include "coll_nicbarrier/engines/engine.h"

void nicbarrier_reason(nicbarrier_reason_t *why, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why->text, sizeof(why->text), format, args);
    va_end(args);
}
