/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The one place for differences between the Open MPI series we build for, 4.1, 5.0 and 6.
 *
 *  Include it before any other header of Open MPI: the internal headers rely on what the
 *  configuration header defines and on ptrdiff_t, without including them all by themselves. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ompi_config.h"

/** True if the headers we build against are of release series `major`.`minor` or a later one. */
#define ONIC_OMPI_AT_LEAST(major, minor)                                                           \
    (OMPI_MAJOR_VERSION > (major) ||                                                               \
     (OMPI_MAJOR_VERSION == (major) && OMPI_MINOR_VERSION >= (minor)))

/** Where opal_mutex_t and OPAL_THREAD_LOCK are declared. */
#if ONIC_OMPI_AT_LEAST(5, 0)
#define ONIC_MUTEX_HEADER "opal/mca/threads/mutex.h"
#else
#define ONIC_MUTEX_HEADER "opal/threads/mutex.h"
#endif

/** What OPAL_THREAD_ADD_FETCH32 counts in. */
#if ONIC_OMPI_AT_LEAST(5, 0)
#define ONIC_COUNT32 opal_atomic_int32_t
#else
#define ONIC_COUNT32 volatile int32_t
#endif

/** How a one-sided component says what interface it was written for, and what its calls count
 *  elements and displacement units in. A macro for a list of initialisers, as those that it stands
 *  for. */
#if ONIC_OMPI_AT_LEAST(6, 0)
#define ONIC_OSC_VERSION OMPI_OSC_BASE_VERSION_4_0_0
typedef size_t onic_rma_count_t;
typedef ptrdiff_t onic_disp_unit_t;
#else
#define ONIC_OSC_VERSION OMPI_OSC_BASE_VERSION_3_0_0
typedef int onic_rma_count_t;
typedef int onic_disp_unit_t;
#endif

/** The same of a collective component. */
#if ONIC_OMPI_AT_LEAST(6, 0)
#define ONIC_COLL_VERSION MCA_COLL_BASE_VERSION_3_0_0
#elif ONIC_OMPI_AT_LEAST(5, 0)
#define ONIC_COLL_VERSION MCA_COLL_BASE_VERSION_2_4_0
#else
#define ONIC_COLL_VERSION MCA_COLL_BASE_VERSION_2_0_0
#endif

/** Makes `function` of `module` that of a communicator, if ONIC_COLL_INSTALLS: a module does so
 *  when it is enabled, and puts back what was there when it is disabled. Earlier series do both. */
#if ONIC_OMPI_AT_LEAST(6, 0)
#define ONIC_COLL_INSTALLS 1
#define ONIC_COLL_INSTALL(comm, api, function, module)                                             \
    MCA_COLL_INSTALL_API(comm, api, function, module, "nicbarrier")
#else
#define ONIC_COLL_INSTALLS                             0
#define ONIC_COLL_INSTALL(comm, api, function, module) ((void)(comm))
#endif

/** What a parameter's enumerator takes that tells its values, after itself and the text. */
#if ONIC_OMPI_AT_LEAST(5, 0)
#define ONIC_ENUM_DUMP_FORM , mca_base_var_enum_dump_type_t form __attribute__((unused))
#else
#define ONIC_ENUM_DUMP_FORM
#endif

/** What callbacks for info keys take and return. */
#if ONIC_OMPI_AT_LEAST(5, 0)
#define ONIC_INFO_CHAR const char
#else
#define ONIC_INFO_CHAR char
#endif

/** Reads an info key into `value`, of `length` + 1 bytes; *found_p says whether it is there. A
 * macro, for those alone who include opal/util/info.h. A longer value is cut. */
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

/** What a call returns that can never end because a process is gone. */
#if ONIC_OMPI_AT_LEAST(5, 0)
#define ONIC_ERR_PROC_FAILED MPI_ERR_PROC_FAILED
#else
#define ONIC_ERR_PROC_FAILED MPI_ERR_OTHER
#endif

/** Has somebody revoked the communicator, or its collectives? What waits on it must end then, by
 *  ONIC_ERR_REVOKED. For those alone who include ompi/communicator/communicator.h. */
#if ONIC_OMPI_AT_LEAST(5, 0) && defined(OPAL_ENABLE_FT_MPI) && OPAL_ENABLE_FT_MPI
#define ONIC_CAN_REVOKE    1
#define ONIC_REVOKED(comm) (ompi_comm_is_revoked(comm) || ompi_comm_coll_revoked(comm))
#define ONIC_ERR_REVOKED   MPI_ERR_REVOKED
#else
#define ONIC_CAN_REVOKE    0
#define ONIC_REVOKED(comm) ((void)(comm), false)
#define ONIC_ERR_REVOKED   MPI_ERR_OTHER
#endif

/** How a point-to-point component says what interface it was written for, and what a communicator
 *  is called in messages: a number that all its processes have agreed on. */
#if ONIC_OMPI_AT_LEAST(5, 0)
#define ONIC_PML_VERSION      MCA_PML_BASE_VERSION_2_1_0
#define ONIC_COMM_INDEX(comm) ((comm)->c_index)
#else
#define ONIC_PML_VERSION      MCA_PML_BASE_VERSION_2_0_0
#define ONIC_COMM_INDEX(comm) ((comm)->c_contextid)
#endif

/** Room in the buffer for MPI_Bsend, which a communicator may have for itself from 6.0 on, and its
 *  end. For those alone who include ompi/mca/pml/base/pml_base_bsend.h. */
#if ONIC_OMPI_AT_LEAST(6, 0)
#define ONIC_BSEND_ALLOC(comm, bytes) mca_pml_base_bsend_request_alloc_buf(comm, bytes)
#define ONIC_BSEND_FREE(comm, room)   mca_pml_base_bsend_request_free(comm, room)
#else
#define ONIC_BSEND_ALLOC(comm, bytes) mca_pml_base_bsend_request_alloc_buf(bytes)
#define ONIC_BSEND_FREE(comm, room)   mca_pml_base_bsend_request_free(room)
#endif

/** The name of a window or a communicator, of which from 6.0 on there is none until one is given.
 */
#if ONIC_OMPI_AT_LEAST(6, 0)
#define ONIC_NAME(name) ((name) != NULL ? (name) : "")
#else
#define ONIC_NAME(name) (name)
#endif
