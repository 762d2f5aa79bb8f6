# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause

# ONIC_MISSING(WHAT, DEBIAN-PACKAGE, OPTION)
# Notes that WHAT was not found, with what mends it. All are reported together by
# ONIC_STOP_IF_MISSING, so that one run of configure names everything there is to install.
AC_DEFUN([ONIC_MISSING], [
    AC_MSG_WARN([$1 not found])
    AS_VAR_APPEND([onic_missing], ["
    $1
        Debian: apt-get install $2
        elsewhere: configure $3"])
])

AC_DEFUN([ONIC_STOP_IF_MISSING], [
    AS_IF([test -n "$onic_missing"],
          [AC_MSG_ERROR([these are needed and were not found:$onic_missing

See config.log for what was tried.])])
])
