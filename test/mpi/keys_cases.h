/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Keys of a method that an adapter serves: with a key contiguous puts and gets go by it, all of
 * them, short and long, with and without a request; a target is asked once for each window. So it
 * is in a thousand windows.
 */
#pragma once

/** All of a program with two ranks. `need`, or NULL, skips it where what it needs is not there. */
int keys_cases(const char *method, void (*need)(void), int argc, char **argv);
