/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Lists of UCX transports, as in UCX_TLS: "all", "posix,tcp,self", "^ib", "\rc_verbs,ud:aux", and
 * of devices. NULL and "" mean all. Pure.
 */
#ifndef ONIC_TLS_H
#define ONIC_TLS_H

#include <stdbool.h>
#include <stddef.h>

/** Does the list let UCX use a transport of InfiniBand or RoCE, if only to connect? */
bool onic_tls_have_verbs(const char *list);

/** One of them that has RDMA with connections? */
bool onic_tls_have_rdma(const char *list);

/** Does the list let UCX use TCP? */
bool onic_tls_have_tcp(const char *list);

/** Does the list let UCX use shared memory between the processes of a node? */
bool onic_tls_have_shared_memory(const char *list);

/** Does a list of devices, as in UCX_NET_DEVICES ("mlx5_0:1,eth0", "^mlx5_1"; NULL and "" mean
 * all), let UCX use this one ("mlx5_0"), if only one of its ports? */
bool onic_devices_have(const char *list, const char *name);

/**
 * Writes the list without transports of InfiniBand and RoCE. False where nothing is left, or `size`
 * bytes do not hold it; what is written is then of no use.
 */
bool onic_tls_without_verbs(const char *list, char *out, size_t size);

/**
 * Writes the list without posix shared memory, for which System V's stands in where a group of
 * transports held both. False where the list does not have it, nothing is left, or `size` bytes do
 * not hold it.
 */
bool onic_tls_without_posix(const char *list, char *out, size_t size);

#endif
