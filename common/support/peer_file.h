/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Files without a name (memory, pipes) that another process of the same node opens through
 *  their owner's descriptor. The kernel allows it to processes that may read the owner as a
 *  debugger would: the same user in the same user namespace, with no capability less. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/support/export.h"

/** Finds a file and tells it from others; travels between processes that share a pid namespace. */
typedef struct onic_file_key {
    int64_t pid; /**< its owner */
    int64_t fd;  /**< the owner's descriptor, or -1: there is no file */
    uint64_t device;
    uint64_t inode;
} onic_file_key_t;

#define ONIC_NO_FILE ((onic_file_key_t){.fd = -1})

/** The key of an open file or pipe of this process; ONIC_NO_FILE where `fd` is negative. The
 *  descriptor must stay open until all that are to open it have done so. */
onic_file_key_t onic_file_offer(int fd);

/** Opens the same file, with `flags` as for open(2), O_CLOEXEC and O_NONBLOCK; -1 where it cannot
 *  be had. What is opened must have the key's inode: the owner may have used its descriptor again.
 *  Any thread. */
int onic_file_open(const onic_file_key_t *key, int flags);

/** Where the kernel names this boot of this machine. */
#define ONIC_BOOT_ID "/proc/sys/kernel/random/boot_id"

/** Reads a file of the kernel's, as a string of at most `size` - 1 bytes with zeroes behind it, and
 *  returns how many there are; 0 where it cannot be read. Any thread. */
ONIC_EXPORT size_t onic_file_text(const char *path, char *text, size_t size);
