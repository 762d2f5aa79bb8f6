# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause

# ONIC_CHECK_BPF: what nicbarrier-bpf is built with: clang, which compiles for eBPF, bpftool, and libbpf
# 1.0 or later. Their absence is a normal state, unless --with-bpf asks for them; the summary says what
# would mend it. Substitutes BPF_CLANG, BPFTOOL, BPF_MULTIARCH; sets onic_say_bpf.
AC_DEFUN([ONIC_CHECK_BPF], [
    ONIC_FIND([BPF], [bpf], [libbpf], [-lbpf], [libbpf 1.0])
    HAVE_BPF=0
    onic_say_bpf=no
    AC_ARG_VAR([BPF_CLANG], [clang that compiles for eBPF])
    AS_IF([test "$with_bpf" != no],
          [AC_CHECK_PROGS([BPF_CLANG], [clang])
           AC_PATH_PROG([BPFTOOL], [bpftool], [], [$PATH:/usr/sbin:/sbin])
           ONIC_TRY([BPF], [libbpf 1.0], [[
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
]], [[
    return bpf_xdp_detach(1, 0, 0) != 0 || libbpf_major_version() < 1;
]], [onic_have_libbpf=yes], [onic_have_libbpf=no])
           _ONIC_BPF_COMPILES
           AS_IF([test $onic_have_libbpf = yes && test $onic_bpf_compiles = yes && test -n "$BPFTOOL"],
                 [HAVE_BPF=1
                  onic_say_bpf=yes],
                 [ONIC_REFUSE_DIR([bpf], [libbpf 1.0, with clang for eBPF and bpftool])
                  onic_say_bpf="no: apt-get install clang libbpf-dev bpftool"])])
    AM_CONDITIONAL([HAVE_BPF], [test $HAVE_BPF = 1])
    AC_SUBST([HAVE_BPF])
    AC_SUBST([BPF_MULTIARCH])
])

# For eBPF, clang does not look where this machine's own headers are (asm/types.h).
AC_DEFUN([_ONIC_BPF_COMPILES], [
    onic_bpf_compiles=no
    BPF_MULTIARCH=
    onic_multiarch=`$CC -print-multiarch 2>/dev/null`
    AS_IF([test -n "$onic_multiarch"], [BPF_MULTIARCH="-idirafter /usr/include/$onic_multiarch"])
    AC_MSG_CHECKING([whether ${BPF_CLANG:-clang} compiles for eBPF])
    AS_IF([test -n "$BPF_CLANG"],
          [AC_LANG_CONFTEST([AC_LANG_SOURCE([[
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
int x;
]])])
           AS_IF([$BPF_CLANG -target bpf -mcpu=v3 -ffreestanding $BPF_CPPFLAGS $BPF_MULTIARCH \
                      -c -o conftest.bpf.o conftest.c >&AS_MESSAGE_LOG_FD 2>&1],
                 [onic_bpf_compiles=yes])
           rm -f conftest.bpf.o conftest.c])
    AC_MSG_RESULT([$onic_bpf_compiles])
])
