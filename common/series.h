/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What every component does before it does anything else: version check, help texts. */
#ifndef ONIC_SERIES_H
#define ONIC_SERIES_H

#include <stdbool.h>

#include "common/export.h"

/**
 * The structures of Open MPI that a component reads are those of the release series it was built
 * for; in another series the loader's own check may pass and the structures differ. False, after
 * a text, where the running series is another one. `component` is its name for the text.
 */
ONIC_EXPORT bool onic_series_matches(const char *component);

/** Tells Open MPI to look for help texts beside the object that holds `inside`, which may have been
 *  moved since it was installed; in `otherwise` where that cannot be found out. */
ONIC_EXPORT void onic_add_help_dir(const void *inside, const char *otherwise);

#endif
