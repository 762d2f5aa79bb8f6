/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file In place of libbpf's. */
#pragma once

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define bpf_htons(x)       __builtin_bswap16(x)
#define bpf_ntohl(x)       __builtin_bswap32(x)
#define bpf_be64_to_cpu(x) __builtin_bswap64(x)
#define bpf_cpu_to_be64(x) __builtin_bswap64(x)
#else
#define bpf_htons(x)       (x)
#define bpf_ntohl(x)       (x)
#define bpf_be64_to_cpu(x) (x)
#define bpf_cpu_to_be64(x) (x)
#endif
