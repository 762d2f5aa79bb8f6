/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Method nic of osc_nicstride: the adapter moves strided data by itself. What it is given,
 * requests, doorbells, completions and bytes, is what the algorithm needs; random layouts come out
 * right; the target may be out of MPI, and has no helper thread; memory that was given back and is
 * there again is registered again.
 */
#ifndef TEST_MPI_NIC_CASES_H
#define TEST_MPI_NIC_CASES_H

#include <stdbool.h>

/** All of a program with two ranks: sets parameters, and returns the exit code. `own`: the adapter
 *  is the test's own (test/fabric/adapter.c). */
int nic_cases(bool own, int argc, char **argv);

#endif
