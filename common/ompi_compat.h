/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file All differences between the supported Open MPI series, 4.1, 5.0 and 6.
 *
 *  Include it before any other header of Open MPI: its internal headers rely on its configuration
 *  header and on ptrdiff_t, without including them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ompi_config.h"

/** True if the headers are of release series `major`.`minor` or later. */
#define ONIC_OMPI_AT_LEAST(major, minor)                                                           \
    (OMPI_MAJOR_VERSION > (major) ||                                                               \
     (OMPI_MAJOR_VERSION == (major) && OMPI_MINOR_VERSION >= (minor)))

/** Declares opal_mutex_t and OPAL_THREAD_LOCK. */
#if ONIC_OMPI_AT_LEAST(5, 0)
#define ONIC_MUTEX_HEADER "opal/mca/threads/mutex.h"
#else
#define ONIC_MUTEX_HEADER "opal/threads/mutex.h"
#endif

/** The type for OPAL_THREAD_ADD_FETCH32. */
#if ONIC_OMPI_AT_LEAST(5, 0)
#define ONIC_COUNT32 opal_atomic_int32_t
#else
#define ONIC_COUNT32 volatile int32_t
#endif

/** The interface version in a one-sided component's structure, and the type in which its calls
 *  count elements and displacement units. A macro for a list of initialisers, as are Open MPI's
 *  own. */
#if ONIC_OMPI_AT_LEAST(6, 0)
#define ONIC_OSC_VERSION OMPI_OSC_BASE_VERSION_4_0_0
typedef size_t onic_rma_count_t;
typedef ptrdiff_t onic_disp_unit_t;
#else
#define ONIC_OSC_VERSION OMPI_OSC_BASE_VERSION_3_0_0
typedef int onic_rma_count_t;
typedef int onic_disp_unit_t;
#endif

/** The same for a collective component. */
#if ONIC_OMPI_AT_LEAST(6, 0)
#define ONIC_COLL_VERSION MCA_COLL_BASE_VERSION_3_0_0
#elif ONIC_OMPI_AT_LEAST(5, 0)
#define ONIC_COLL_VERSION MCA_COLL_BASE_VERSION_2_4_0
#else
#define ONIC_COLL_VERSION MCA_COLL_BASE_VERSION_2_0_0
#endif

/** Makes `function` of `module` that of a communicator, if ONIC_COLL_INSTALLS: then a module does
 *  so when it is enabled, and restores the former function when it is disabled. In earlier series
 *  Open MPI does both. */
#if ONIC_OMPI_AT_LEAST(6, 0)
#define ONIC_COLL_INSTALLS 1
#define ONIC_COLL_INSTALL(comm, api, function, module)                                             \
    MCA_COLL_INSTALL_API(comm, api, function, module, "nicbarrier")
#else
#define ONIC_COLL_INSTALLS                             0
#define ONIC_COLL_INSTALL(comm, api, function, module) ((void)(comm))
#endif

/** Argument and return types of callbacks for info keys. */
#if ONIC_OMPI_AT_LEAST(5, 0)
#define ONIC_INFO_CHAR const char
#else
#define ONIC_INFO_CHAR char
#endif

/** Reads an info key into `value`, of `length` + 1 bytes; *found_p tells whether it exists. A
 *  longer value is cut. A macro, for files that include opal/util/info.h. */
#if ONIC_OMPI_AT_LEAST(5, 0)
#define ONIC_INFO_GET(info, key, length, value, found_p)                                           \
    do {                                                                                           \
        opal_cstring_t *onic_string = NULL;                                                        \
        opal_info_get(info, key, &onic_string, found_p);                                           \
        if (*(found_p)) {                                                                          \
            snprintf(value, (length) + 1, "%s", onic_string->string);                              \
            OBJ_RELEASE(onic_string);                                                              \
        }                                                                                          \
    } while (0)
#else
#define ONIC_INFO_GET(info, key, length, value, found_p)                                           \
    (void)opal_info_get(info, key, length, value, found_p)
#endif

/** The error of a call that can never end because a process is gone. */
#if ONIC_OMPI_AT_LEAST(5, 0)
#define ONIC_ERR_PROC_FAILED MPI_ERR_PROC_FAILED
#else
#define ONIC_ERR_PROC_FAILED MPI_ERR_OTHER
#endif

/** True if the communicator, or its collectives, are revoked. Calls that wait on it must then fail
 *  with ONIC_ERR_REVOKED. For files that include ompi/communicator/communicator.h. */
#if ONIC_OMPI_AT_LEAST(5, 0) && defined(OPAL_ENABLE_FT_MPI) && OPAL_ENABLE_FT_MPI
#define ONIC_CAN_REVOKE    1
#define ONIC_REVOKED(comm) (ompi_comm_is_revoked(comm) || ompi_comm_coll_revoked(comm))
#define ONIC_ERR_REVOKED   MPI_ERR_REVOKED
#else
#define ONIC_CAN_REVOKE    0
#define ONIC_REVOKED(comm) ((void)(comm), false)
#define ONIC_ERR_REVOKED   MPI_ERR_OTHER
#endif

/** The interface version in a point-to-point component's structure, and the number by which
 *  messages identify a communicator, on which all its processes have agreed. */
#if ONIC_OMPI_AT_LEAST(5, 0)
#define ONIC_PML_VERSION      MCA_PML_BASE_VERSION_2_1_0
#define ONIC_COMM_INDEX(comm) ((comm)->c_index)
#else
#define ONIC_PML_VERSION      MCA_PML_BASE_VERSION_2_0_0
#define ONIC_COMM_INDEX(comm) ((comm)->c_contextid)
#endif

/** Allocates and frees space in the buffer for MPI_Bsend; from 6.0 on a communicator may have its
 *  own buffer. For files that include ompi/mca/pml/base/pml_base_bsend.h. */
#if ONIC_OMPI_AT_LEAST(6, 0)
#define ONIC_BSEND_ALLOC(comm, bytes) mca_pml_base_bsend_request_alloc_buf(comm, bytes)
#define ONIC_BSEND_FREE(comm, room)   mca_pml_base_bsend_request_free(comm, room)
#else
#define ONIC_BSEND_ALLOC(comm, bytes) mca_pml_base_bsend_request_alloc_buf(bytes)
#define ONIC_BSEND_FREE(comm, room)   mca_pml_base_bsend_request_free(room)
#endif

/** The name of a window or a communicator; from 6.0 on there is none until one is set. */
#if ONIC_OMPI_AT_LEAST(6, 0)
#define ONIC_NAME(name) ((name) != NULL ? (name) : "")
#else
#define ONIC_NAME(name) (name)
#endif
