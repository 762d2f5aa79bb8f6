/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * A process is killed while puts and gets by a method that an adapter serves are on their way to
 * it: it was stopped before, so they are not over. All requests end, the flush ends with an error,
 * as does one later; a third process is reached as before. That one is killed then behind a put
 * which is over here: the flush ends with an error, too, and the window is freed. On one machine
 * each process is a node of its own.
 */
#pragma once

#include <mpi.h>

/** Bytes of a block. */
#define KILLED_BLOCK 128

/** All of a program with three ranks; blocks are `stride` bytes apart, KILLED_BLOCK for contiguous
 *  data. `need`, or NULL, skips it where what it needs is not there. */
int killed_cases(const char *method, void (*need)(void), MPI_Aint stride, int argc, char **argv);
