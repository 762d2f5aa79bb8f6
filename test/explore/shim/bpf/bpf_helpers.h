/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file In place of libbpf's: what programs for the kernel use of it, to be compiled for a
 *  process. kernel.h defines the functions. */
#pragma once

#include <linux/bpf.h>
#include <stdint.h>

#define SEC(name)
#define __uint(name, value)  int(*name)[value]
#define __type(name, value)  __typeof__(value) *name
#define __array(name, value) __typeof__(value) *name[]

static void *bpf_map_lookup_elem(void *map, const void *key);
static void bpf_spin_lock(struct bpf_spin_lock *lock);
static void bpf_spin_unlock(struct bpf_spin_lock *lock);
static uint32_t bpf_get_prandom_u32(void);
static long bpf_skb_store_bytes(struct __sk_buff *skb, uint32_t at, const void *from, uint32_t len,
                                uint64_t flags);
static long bpf_skb_load_bytes(const struct __sk_buff *skb, uint32_t at, void *to, uint32_t len);
static long bpf_skb_pull_data(struct __sk_buff *skb, uint32_t len);
static long bpf_clone_redirect(struct __sk_buff *skb, uint32_t interface, uint64_t flags);
static long bpf_redirect(uint32_t interface, uint64_t flags);
