/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * A program that has used up its descriptors: all that the limit leaves.
 */
#pragma once

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "test/mpi/testlib.h"

enum { DESCRIPTORS = 400 };

static int descriptors[DESCRIPTORS];
static int ndescriptors;

/** Neither the soft limit nor the hard one lets more be opened. */
static inline void descriptors_take(void)
{
    const struct rlimit limit = {DESCRIPTORS, DESCRIPTORS};
    int fd;

    TL_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0, "the limit cannot be set");
    while ((fd = dup(STDOUT_FILENO)) >= 0)
        descriptors[ndescriptors++] = fd;
    TL_CHECK(errno == EMFILE && ndescriptors > 0, "descriptors are left");
}

static inline void descriptors_give(void)
{
    while (ndescriptors > 0)
        close(descriptors[--ndescriptors]);
}
