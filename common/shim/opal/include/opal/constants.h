/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Some of Open MPI's headers include opal/constants.h by its path in the source tree, which is not
 * its path once installed. Searched last, as the other shims are.
 */
#include "opal/constants.h"
