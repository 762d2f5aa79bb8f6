/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Texts for errors.
 */
#ifndef NICSTRIDE_ERRORS_H
#define NICSTRIDE_ERRORS_H

#include "osc_nicstride/window/module.h"

/** Says what was wrong with a call on this window and returns `error`. The first errors of a
 * process get a text, later ones only the code. MPI threads only. */
int nicstride_error(const nicstride_module_t *m, const char *call, int error, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));

/** The same of a call that the epoch does not allow. `target`: negative where it is not about one.
 */
int nicstride_sync_error(const nicstride_module_t *m, const char *call, const char *wrong,
                         int target);

#endif
