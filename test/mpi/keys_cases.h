/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Keys of a method that an adapter serves: with a key for them contiguous puts and gets go by it,
 * all of them, short and long, with and without a request, also over the end of a piece that has a
 * key of its own; each piece is asked for once. So it is in a thousand windows.
 *
 * In a dynamic window keys are void when memory was detached: what comes next goes by message, to
 * the right place, and then there are other keys.
 */
#pragma once

/** All of a program with two ranks, which runs with osc_nicstride_key_piece 1. `need`, or NULL,
 * skips it where what it needs is not there. */
int keys_cases(const char *method, void (*need)(void), int argc, char **argv);
