/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Texts for users about a program's misuse of a window. Only the first few are printed. MPI
 *  threads. */
#pragma once

#include "osc_nicstride/check/shadow.h"
#include "osc_nicstride/check/under_way.h"
#include "osc_nicstride/window/module.h"

/** A call conflicts with an earlier one of the same process; `local`: in its buffers. */
void nicstride_report_clash(const nicstride_module_t *m, const nicstride_noted_t *call,
                            const nicstride_clash_t *clash, bool local);
/** A call conflicts with a call of another process, in the memory of `rank`; `buffer`: through a
 *  buffer of its own that lies there. */
void nicstride_report_crossing(const nicstride_module_t *m, const nicstride_noted_t *call, int rank,
                               bool buffer, const nicstride_crossing_t *crossing);
/** A fence was told that no calls precede it, but some do. */
void nicstride_report_precedes(const nicstride_module_t *m);
/** More is under way than can be kept. Reported once per window. */
void nicstride_report_full(const nicstride_module_t *m, const char *call, uint32_t most);
/** The window has no shadows. */
void nicstride_report_no_shadow(size_t bytes);
