/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Descriptors in reserve. Memory of another process is mapped when the first message goes
 *  there, for which a descriptor is needed for a moment; the program may have used up all by then
 *  (ulimit -n). So some are taken early. When none is left most of them are given up, for what
 * other libraries open and what stays open; the others are given up for a moment each, and taken
 * back behind it. Any thread. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/** How many there are, and how many when none has been left. */
enum { ONIC_SPARES = 4, ONIC_SPARES_LEAST = 2 };

/** Takes the reserve, as far as it can be had. Counted: each must be followed by an end. */
void onic_spare_begin(void);
void onic_spare_end(void);

/** Something could not be opened, for a moment or to stay. Gives descriptors up where that was for
 *  lack of one, as errno says: true where it is worth another try. */
typedef enum onic_spare_for { ONIC_FOR_NOW, ONIC_FOR_GOOD } onic_spare_for_t;
bool onic_spare_give(onic_spare_for_t what);

/** Something was closed: takes back what was given up for a moment, as far as it can be had. */
void onic_spare_take_back(void);

/** True if no descriptor was left at some time. Then as little as possible should stay open. */
bool onic_spare_has_run_out(void);

/** Before another library opens files: makes room if no descriptor is left. Two system calls, which
 *  take none while there are some. */
void onic_spare_look(void);

/** True if the process's limit leaves none but those in reserve. */
bool onic_spare_none_left(void);

/** As open(2), for a moment, with O_CLOEXEC; closed by onic_close. */
int onic_open(const char *path, int flags, mode_t mode);
void onic_close(int fd);
