/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Which part of a program hangs, for those that need what hangs in MPI itself now and then.
 */
#pragma once

/** A new part of the program begins, by the name of a string that stays. A process that is in one
 *  for too long says "stuck in phase NAME" and ends; the runner makes the run again where all that
 *  say so are in phases for which the program asks for that (`retry: NAME...`). Local; also before
 *  MPI_Init. NULL: no watch any more. Takes SIGALRM. */
void phase(const char *name);
