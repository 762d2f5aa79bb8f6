/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The table of all methods, and how each begins; see method.h. */
#ifndef NICSTRIDE_METHODS_H
#define NICSTRIDE_METHODS_H

#include "osc_nicstride/methods/method.h"

/** By number. The row of NICSTRIDE_METHOD_AUTO has a name only. */
extern const nicstride_method_row_t nicstride_methods[NICSTRIDE_METHOD_LAST];

nicstride_start_t nicstride_direct_start; /* direct.c */
nicstride_start_t nicstride_cma_start;    /* single_copy.c */
nicstride_start_t nicstride_sieve_start;
nicstride_start_t nicstride_pack_start; /* message.c */
nicstride_start_t nicstride_mover_start;
nicstride_start_t nicstride_zcopy_start;

#endif
