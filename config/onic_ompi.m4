# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause

# ONIC_CHECK_OMPI
# Finds Open MPI by its compiler wrapper, in $PATH or in --with-ompi=DIR, and checks for the
# headers that components are built from. Sets and substitutes
#   OMPI_CPPFLAGS       include path
#   OMPI_LDFLAGS        library path
#   OMPI_LIBS           what an MPI program links
#   OMPI_INTERNAL_LIBS  what a component links
#   OMPI_PROGRAM_LIBS   what a program links that uses Open MPI's internals
#   OMPI_VERSION, OMPI_SERIES, OMPI_MAJOR, OMPI_MINOR
#   OMPI_COMPONENT_DIR  Open MPI's own component directory
#   MPIRUN
AC_DEFUN([ONIC_CHECK_OMPI], [
    AC_ARG_WITH([ompi],
        [AS_HELP_STRING([--with-ompi=DIR],
            [prefix of Open MPI 4.1, 5.0 or 6 with its developer headers
             (default: that of mpicc in PATH)])],
        [], [with_ompi=yes])
    AS_CASE([$with_ompi],
        [yes], [onic_ompi_path=$PATH],
        [no], [AC_MSG_ERROR([ompi-nic cannot be built without Open MPI])],
        [onic_ompi_path=$with_ompi/bin])
    AC_PATH_PROG([MPICC], [mpicc], [], [$onic_ompi_path])
    AC_PATH_PROG([OMPI_INFO], [ompi_info], [], [$onic_ompi_path])
    AC_PATH_PROG([MPIRUN], [mpirun], [], [$onic_ompi_path])

    onic_have_ompi=no
    onic_have_pmix=no
    AS_IF([test -n "$MPICC" && test -n "$OMPI_INFO" && test -n "$MPIRUN"],
          [AC_MSG_CHECKING([whether $MPICC is Open MPI's])
           AS_IF(["$MPICC" --showme:version 2>/dev/null | grep "Open MPI" >/dev/null],
                 [onic_have_ompi=yes])
           AC_MSG_RESULT([$onic_have_ompi])])
    AS_IF([test $onic_have_ompi = yes],
          [_ONIC_OMPI_FLAGS
           _ONIC_OMPI_VERSION
           AS_CASE([$OMPI_SERIES],
               [.], [],
               [4.*], [onic_have_pmix=yes],
               [_ONIC_OMPI_PMIX])
           AS_IF([test $OMPI_SERIES != . && test $onic_have_hwloc = yes && test $onic_have_pmix = yes],
                 [_ONIC_OMPI_HEADERS])],
          [ONIC_MISSING([Open MPI (mpicc, mpirun, ompi_info)], [openmpi-bin libopenmpi-dev],
                        [--with-ompi=DIR])])

    AC_SUBST([OMPI_CPPFLAGS])
    AC_SUBST([OMPI_LDFLAGS])
    AC_SUBST([OMPI_LIBS])
    AC_SUBST([OMPI_INTERNAL_LIBS])
    AC_SUBST([OMPI_PROGRAM_LIBS])
    AC_SUBST([OMPI_VERSION])
    AC_SUBST([OMPI_SERIES])
    AC_SUBST([OMPI_MAJOR])
    AC_SUBST([OMPI_MINOR])
    AC_SUBST([OMPI_COMPONENT_DIR])
])

# System include directories, because Open MPI's headers are not clean under our warnings; never
# /usr/include itself, which would change the order of the compiler's own.
AC_DEFUN([_ONIC_OMPI_FLAGS], [
    OMPI_CPPFLAGS=
    onic_ompi_headers=`"$OMPI_INFO" --path pkgincludedir --parsable | sed 's/^path:pkgincludedir://'`
    for onic_dir in `"$MPICC" --showme:incdirs` "$onic_ompi_headers"; do
        AS_CASE([" $OMPI_CPPFLAGS "],
            [*" -isystem $onic_dir "*], [],
            [AS_IF([test "$onic_dir" != /usr/include && test -d "$onic_dir"],
                   [OMPI_CPPFLAGS="$OMPI_CPPFLAGS -isystem $onic_dir"])])
    done
    # Whatever the wrapper links with: paths (and rpaths) apart from libraries.
    OMPI_LDFLAGS=
    OMPI_LIBS=
    for onic_word in `"$MPICC" --showme:link`; do
        AS_CASE([$onic_word],
            [-l*], [OMPI_LIBS="$OMPI_LIBS $onic_word"],
            [OMPI_LDFLAGS="$OMPI_LDFLAGS $onic_word"])
    done
    # Not libopen-pal, whose name has another number in each series, so that a component cannot even
    # be loaded in another one and say so: libmpi, which has the same name in all, brings it along,
    # and from 6.0 on libopen_mpi, where all internals of MPI are.
    OMPI_INTERNAL_LIBS=-lmpi
    OMPI_PROGRAM_LIBS="$OMPI_LIBS -lopen-pal"
    OMPI_COMPONENT_DIR=`"$OMPI_INFO" --path pkglibdir --parsable | sed 's/^path:pkglibdir://'`
])

# From mpi.h, because the headers are what the component will be made for.
AC_DEFUN([_ONIC_OMPI_VERSION], [
    onic_save_CPPFLAGS=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $OMPI_CPPFLAGS"
    AC_MSG_CHECKING([for the version of Open MPI])
    AC_COMPUTE_INT([OMPI_MAJOR], [OMPI_MAJOR_VERSION], [[#include <mpi.h>]], [OMPI_MAJOR=])
    AC_COMPUTE_INT([OMPI_MINOR], [OMPI_MINOR_VERSION], [[#include <mpi.h>]], [OMPI_MINOR=])
    AC_COMPUTE_INT([onic_ompi_release], [OMPI_RELEASE_VERSION], [[#include <mpi.h>]],
                   [onic_ompi_release=])
    CPPFLAGS=$onic_save_CPPFLAGS
    OMPI_SERIES=$OMPI_MAJOR.$OMPI_MINOR
    OMPI_VERSION=$OMPI_SERIES.$onic_ompi_release
    AC_MSG_RESULT([$OMPI_VERSION])
    AS_CASE([$OMPI_SERIES],
        [4.1|5.0|6.*], [],
        [.], [ONIC_MISSING([Open MPI's mpi.h], [libopenmpi-dev], [--with-ompi=DIR])],
        [AC_MSG_ERROR([Open MPI $OMPI_VERSION is not supported: the release series are 4.1, 5.0 and 6.
    Choose another installation by: configure --with-ompi=DIR])])
])

# From 5.0 on, headers of Open MPI include PMIx's and have inline functions that call it: it must be
# the one that Open MPI itself was built with.
AC_DEFUN([_ONIC_OMPI_PMIX], [
    ONIC_FIND([PMIX], [pmix], [pmix], [-lpmix], [PMIx])
    ONIC_TRY([PMIX], [PMIx], [[#include <pmix.h>]], [[return NULL == PMIx_Get_version();]],
        [onic_have_pmix=yes
         OMPI_CPPFLAGS="$OMPI_CPPFLAGS `AS_ECHO(["$PMIX_CPPFLAGS"]) | sed 's/-I */-isystem /g'`"
         OMPI_LDFLAGS="$OMPI_LDFLAGS $PMIX_LDFLAGS"
         OMPI_INTERNAL_LIBS="$OMPI_INTERNAL_LIBS $PMIX_LIBS"
         OMPI_PROGRAM_LIBS="$OMPI_PROGRAM_LIBS $PMIX_LIBS"],
        [ONIC_MISSING([PMIx], [libpmix-dev], [--with-pmix=DIR])])
])

# Shims stand in for what Open MPI includes and does not install.
AC_DEFUN([_ONIC_OMPI_HEADERS], [
    onic_save_CPPFLAGS=$CPPFLAGS
    onic_save_LDFLAGS=$LDFLAGS
    onic_save_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $OMPI_CPPFLAGS $HWLOC_CPPFLAGS -idirafter $srcdir/common/shim"
    LDFLAGS="$LDFLAGS $OMPI_LDFLAGS"
    LIBS="$OMPI_PROGRAM_LIBS $LIBS"
    AC_MSG_CHECKING([for Open MPI's developer headers and libraries])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[
#include <stddef.h>
#include "ompi_config.h"
#include "opal/runtime/opal_progress.h"
#include "ompi/communicator/communicator.h"
#include "ompi/mca/osc/osc.h"
]], [[
    ompi_osc_base_module_t module = {0};
    opal_progress();
    return NULL != module.osc_put || 0 == ompi_comm_size(MPI_COMM_WORLD);
]])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         ONIC_MISSING([Open MPI's developer headers (ompi/mca/osc/osc.h; made by Open MPI's
    own configure --with-devel-headers)], [libopenmpi-dev], [--with-ompi=DIR])])
    CPPFLAGS=$onic_save_CPPFLAGS
    LDFLAGS=$onic_save_LDFLAGS
    LIBS=$onic_save_LIBS
])
