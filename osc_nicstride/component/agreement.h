/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Agreement on the component, before a window is made. */
#ifndef NICSTRIDE_AGREEMENT_H
#define NICSTRIDE_AGREEMENT_H

#include <stdbool.h>
#include <stddef.h>

struct ompi_communicator_t;

/** Publishes what this process has; in the component's open function, once. OMPI_SUCCESS or an
 *  error. */
int nicstride_agreement_init(void);
void nicstride_agreement_fini(void);

/**
 * Do all members of `comm` have the same of this component? By all members that have it, when they
 * choose who makes a window; they get the same answer. A text names the host that differs, once on
 * each host. Any MPI thread.
 */
bool nicstride_all_agree(struct ompi_communicator_t *comm);

/**
 * What the addresses of the members take up at most, in bytes, if they are to be told; 0 where all
 * members know all of them. Behind nicstride_all_agree for the same window, by the same thread of
 * all members, which get the same. OMPI_SUCCESS or an error.
 */
int nicstride_addresses(struct ompi_communicator_t *comm, size_t *most_p);

#endif
