/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file UCX, loaded by hand rather than by the linker; include this in place of ucp/api/ucp.h. On
 *  being loaded UCX puts itself before mmap, munmap, mremap and their kin, to learn of memory that
 *  must not stay registered. Those hooks cost, and up to UCX 1.14 the one of mremap drops the
 *  address of MREMAP_FIXED. A process that has nothing that registers memory needs none of them;
 *  but that must be said before UCX is loaded. */
#ifndef ONIC_UCX_H
#define ONIC_UCX_H

#include <ucp/api/ucp.h>
#include <ucs/sys/string.h>

/** All that is used of UCX, by prefix and name. */
/* clang-format off */
#define ONIC_UCX_FUNCTIONS(f) \
    f(ucp, am_data_release) f(ucp, am_recv_data_nbx) f(ucp, am_send_nbx) f(ucp, atomic_op_nbx) \
    f(ucp, cleanup) \
    f(ucp, config_modify) f(ucp, config_read) f(ucp, config_release) f(ucp, dt_create_generic) \
    f(ucp, dt_destroy) f(ucp, ep_close_nbx) f(ucp, ep_create) f(ucp, ep_flush_nbx) \
    f(ucp, ep_print_info) f(ucp, ep_rkey_unpack) f(ucp, get_nbx) f(ucp, get_version) \
    f(ucp, init_version) f(ucp, mem_map) f(ucp, mem_query) f(ucp, mem_unmap) f(ucp, put_nbx) \
    f(ucp, request_check_status) f(ucp, request_free) f(ucp, rkey_buffer_release) \
    f(ucp, rkey_destroy) f(ucp, rkey_pack) f(ucp, worker_arm) f(ucp, worker_create) \
    f(ucp, worker_destroy) f(ucp, worker_flush_nbx) f(ucp, worker_get_efd) \
    f(ucp, worker_progress) f(ucp, worker_query) f(ucp, worker_release_address) \
    f(ucp, worker_set_am_recv_handler) f(ucs, status_string) f(ucs, str_to_memunits)
/* clang-format on */

#define ONIC_UCX_POINTER(prefix, name) __typeof__(prefix##_##name) *name;

/** Where they are, once onic_ucx_load (wire.h) has succeeded. */
extern struct onic_ucx {
    ONIC_UCX_FUNCTIONS(ONIC_UCX_POINTER)
} onic_ucx;

#define ucp_am_data_release   (*onic_ucx.am_data_release)
#define ucp_am_recv_data_nbx  (*onic_ucx.am_recv_data_nbx)
#define ucp_am_send_nbx       (*onic_ucx.am_send_nbx)
#define ucp_atomic_op_nbx     (*onic_ucx.atomic_op_nbx)
#define ucp_cleanup           (*onic_ucx.cleanup)
#define ucp_config_modify     (*onic_ucx.config_modify)
#define ucp_config_read       (*onic_ucx.config_read)
#define ucp_config_release    (*onic_ucx.config_release)
#define ucp_dt_create_generic (*onic_ucx.dt_create_generic)
#define ucp_dt_destroy        (*onic_ucx.dt_destroy)
#define ucp_ep_close_nbx      (*onic_ucx.ep_close_nbx)
#define ucp_ep_create         (*onic_ucx.ep_create)
#define ucp_ep_flush_nbx      (*onic_ucx.ep_flush_nbx)
#define ucp_ep_print_info     (*onic_ucx.ep_print_info)
#define ucp_ep_rkey_unpack    (*onic_ucx.ep_rkey_unpack)
#define ucp_get_nbx           (*onic_ucx.get_nbx)
#define ucp_get_version       (*onic_ucx.get_version)
/* In UCX's header it is a function that calls the one below by its name. */
#define ucp_init(params, config, context)                                                          \
    (*onic_ucx.init_version)(UCP_API_MAJOR, UCP_API_MINOR, params, config, context)
#define ucp_mem_map                    (*onic_ucx.mem_map)
#define ucp_mem_query                  (*onic_ucx.mem_query)
#define ucp_mem_unmap                  (*onic_ucx.mem_unmap)
#define ucp_put_nbx                    (*onic_ucx.put_nbx)
#define ucp_request_check_status       (*onic_ucx.request_check_status)
#define ucp_request_free               (*onic_ucx.request_free)
#define ucp_rkey_buffer_release        (*onic_ucx.rkey_buffer_release)
#define ucp_rkey_destroy               (*onic_ucx.rkey_destroy)
#define ucp_rkey_pack                  (*onic_ucx.rkey_pack)
#define ucp_worker_arm                 (*onic_ucx.worker_arm)
#define ucp_worker_create              (*onic_ucx.worker_create)
#define ucp_worker_destroy             (*onic_ucx.worker_destroy)
#define ucp_worker_flush_nbx           (*onic_ucx.worker_flush_nbx)
#define ucp_worker_get_efd             (*onic_ucx.worker_get_efd)
#define ucp_worker_progress            (*onic_ucx.worker_progress)
#define ucp_worker_query               (*onic_ucx.worker_query)
#define ucp_worker_release_address     (*onic_ucx.worker_release_address)
#define ucp_worker_set_am_recv_handler (*onic_ucx.worker_set_am_recv_handler)
#define ucs_status_string              (*onic_ucx.status_string)
#define ucs_str_to_memunits            (*onic_ucx.str_to_memunits)

#endif
