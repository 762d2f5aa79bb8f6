/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The agreement of all members of a communicator that they have the same of this component.
 */
#ifndef NICSTRIDE_AGREEMENT_H
#define NICSTRIDE_AGREEMENT_H

#include <stdbool.h>

#include "common/ompi_compat.h"
#include "ompi/communicator/communicator.h"

/** Publishes what this process has; in the component's open function, once. OMPI_SUCCESS or an
 *  error. */
int nicstride_agreement_init(void);
void nicstride_agreement_fini(void);
/**
 * Do all members of `comm` have the same of this component? Not collective, but the members that
 * have it get the same answer. The first call for a process asks Open MPI's exchange about it. A
 * text names the host that differs, once on each host. Any MPI thread.
 */
bool nicstride_all_agree(ompi_communicator_t *comm);

#endif
