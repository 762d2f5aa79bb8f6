/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What a user reads of a program's misuse of a window. Of many texts the first few are
 *  printed. MPI threads. */
#pragma once

#include "osc_nicstride/check/shadow.h"
#include "osc_nicstride/check/under_way.h"
#include "osc_nicstride/window/module.h"

/** A call conflicts with an earlier one of its process; `local`: in its buffers. */
void nicstride_report_clash(const nicstride_module_t *m, const nicstride_noted_t *call,
                            const nicstride_clash_t *clash, bool local);
/** A call conflicts with one of another process, in the memory of `rank`; `buffer`: by a buffer of
 *  its own that lies there. */
void nicstride_report_crossing(const nicstride_module_t *m, const nicstride_noted_t *call, int rank,
                               bool buffer, const nicstride_crossing_t *crossing);
/** A fence was told that no calls precede it, and some do. */
void nicstride_report_precedes(const nicstride_module_t *m);
/** More is under way than is kept; once for each window. */
void nicstride_report_full(const nicstride_module_t *m, const char *call, uint32_t most);
/** There are no shadows. */
void nicstride_report_no_shadow(size_t bytes);
