/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What every component does before it does anything else: the version check. */
#ifndef ONIC_SERIES_H
#define ONIC_SERIES_H

#include <stdbool.h>

#include "common/support/export.h"

/**
 * The structures of Open MPI that a component reads are those of the release series it was built
 * for; in another series the loader's own check may pass and the structures differ. They may also
 * differ within a series: by how Open MPI was configured, and where a shim stands in for a header
 * that it does not install (common/shim). False, after a text, where the running series is another
 * one or where the running library has another size for a structure. `component` is its name for
 * the text.
 */
ONIC_EXPORT bool onic_series_matches(const char *component);

#endif
