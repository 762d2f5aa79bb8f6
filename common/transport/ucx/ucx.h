/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file UCX, loaded by hand rather than by the linker; include this in place of ucp/api/ucp.h. On
 *  being loaded UCX puts itself before mmap, munmap, mremap and their kin, to learn of memory that
 *  must not stay registered. Those hooks cost, and up to UCX 1.14 the one of mremap drops the
 *  address of MREMAP_FIXED. A process that has nothing that registers memory needs none of them;
 *  but that must be said before UCX is loaded. */
#pragma once

#include <ucm/api/ucm.h>
#include <ucp/api/ucp.h>
#include <ucs/sys/string.h>

/** All that is used of UCX, by prefix and name. */
/* clang-format off */
#define ONIC_UCX_FUNCTIONS(f) \
    f(ucp, am_recv_data_nbx) f(ucp, am_send_nbx) \
    f(ucp, cleanup) \
    f(ucp, config_modify) f(ucp, config_read) f(ucp, config_release) f(ucp, dt_create_generic) \
    f(ucp, dt_destroy) f(ucp, ep_close_nbx) f(ucp, ep_create) f(ucp, ep_flush_nbx) \
    f(ucp, ep_print_info) f(ucp, ep_rkey_unpack) f(ucp, get_nbx) f(ucp, get_version) \
    f(ucp, init_version) f(ucp, mem_map) f(ucp, mem_query) f(ucp, mem_unmap) f(ucp, put_nbx) \
    f(ucp, request_check_status) f(ucp, request_free) f(ucp, rkey_buffer_release) \
    f(ucp, rkey_destroy) f(ucp, rkey_pack) f(ucp, worker_arm) f(ucp, worker_create) \
    f(ucp, worker_destroy) f(ucp, worker_flush_nbx) f(ucp, worker_get_efd) \
    f(ucp, worker_progress) f(ucp, worker_query) f(ucp, worker_release_address) \
    f(ucp, worker_set_am_recv_handler) f(ucs, status_string) f(ucs, str_to_memunits) \
    f(ucm, set_event_handler) f(ucm, set_external_event) \
    f(ucm, unset_event_handler) f(ucm, vm_munmap)
/* clang-format on */

#define ONIC_UCX_POINTER(prefix, name) __typeof__(prefix##_##name) *name;

/** UCX's functions, once onic_ucx_load has succeeded. */
extern struct onic_ucx {
    ONIC_UCX_FUNCTIONS(ONIC_UCX_POINTER)
} onic_ucx;
