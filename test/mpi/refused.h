/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What programs share in which the kernel refuses to copy between processes: traffic that must be
 * right all the same, and must not ask the kernel again for what it has refused. What the library
 * asks of it passes the functions here, which programs find by name: link with -rdynamic.
 */
#pragma once

#include <stddef.h>

#include "test/mpi/testlib.h"

/** Of one message, and of what is put and got at most. */
#define REFUSED_BYTES ((size_t)1 << 20)

/** Calls of this process that copied less than they were asked for. */
int refused_calls(void);

/** Forbids this process, all its threads, to write to others by process_vm_writev, and to read by
 *  process_vm_readv, too, where `reads`: those fail with this error from now on. False where the
 *  kernel or its user does not have that. */
bool refused_forbid(bool reads, int error);

/** Each process sends one to the next, of REFUSED_BYTES; both have one piece of memory for it. */
void refused_message(void *from, void *to, int number);

/** A window over `memory` of each process, REFUSED_BYTES of it, by all of MPI_COMM_WORLD. */
tl_window_t refused_window(tl_kind_t kind, void *memory);
void refused_window_free(tl_window_t *w, void *memory);

/** Each process puts to the next and gets that again: some bytes and many, rows and all. */
void refused_accesses(const tl_window_t *w);
/** Gets in that, by each process. */
#define REFUSED_GETS 14
