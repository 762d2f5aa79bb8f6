# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause

# ONIC_CHECK_DIRS
# Ends configure, before it looks at anything else, where a directory was named that is not there or
# lacks what a build needs first: the compiler would go on and take what it finds elsewhere. Nor may
# it be a relative path: libraries record where others are, and the options are handed on as they
# are to the sanitized build, in another directory.
AC_DEFUN([ONIC_CHECK_DIRS], [
    for onic_pair in ompi:bin/mpicc hwloc:include/hwloc.h pmix:include/pmix.h \
        ucx:include/ucp/api/ucp.h verbs:include/infiniband/verbs.h bpf:include/bpf/libbpf.h \
        check:include/check.h; do
        onic_option=${onic_pair%%:*}
        onic_file=${onic_pair#*:}
        eval "onic_dir=\$with_$onic_option"
        AS_CASE([$onic_dir],
            [''|yes|no], [],
            [/*],
                [AS_IF([test ! -d "$onic_dir"],
                       [AC_MSG_ERROR([--with-$onic_option=$onic_dir: there is no such directory])])
                 AS_IF([test ! -f "$onic_dir/$onic_file"],
                       [AC_MSG_ERROR([--with-$onic_option=$onic_dir: there is no $onic_file in it])])],
            [AC_MSG_ERROR([--with-$onic_option=$onic_dir: this is not an absolute path])])
    done
])

# ONIC_FIND(VARIABLE, OPTION, PKG-CONFIG-NAME, DEFAULT-LIBS, WHAT)
# Finds a library in --with-OPTION=DIR, or by pkg-config, or where the compiler looks anyway. Sets
# and substitutes VARIABLE_CPPFLAGS, VARIABLE_LDFLAGS and VARIABLE_LIBS; whether they work is for
# the caller to check. A DIR without the first of DEFAULT-LIBS is refused, as those are that
# ONIC_CHECK_DIRS has looked at.
AC_DEFUN([ONIC_FIND], [
    AC_ARG_WITH([$2], [AS_HELP_STRING([--with-$2=DIR], [prefix of $5 (default: ask pkg-config)])],
                [], [with_$2=yes])
    $1_CPPFLAGS=
    $1_LDFLAGS=
    $1_LIBS="$4"
    AS_CASE([$with_$2],
        [yes],
            [AS_IF([test -n "$PKG_CONFIG" && "$PKG_CONFIG" --exists $3],
                   [$1_CPPFLAGS=`"$PKG_CONFIG" --cflags $3`
                    # It names no directory that is on the loader's path anyway.
                    $1_LDFLAGS=`"$PKG_CONFIG" --libs-only-L --libs-only-other $3 |
                        sed 's,-L\(/@<:@^ @:>@*\),& -Wl\,-rpath\,\1,g'`])],
        [no], [],
        [_ONIC_LIBDIR([$2], m4_bpatsubst([$4], [-l\([^ ]*\).*], [\1]))
         $1_CPPFLAGS="-I$with_$2/include"
         # The caller's own installation is not on the loader's path.
         $1_LDFLAGS="-L$onic_libdir -Wl,-rpath,$onic_libdir"])
    AC_SUBST([$1_CPPFLAGS])
    AC_SUBST([$1_LDFLAGS])
    AC_SUBST([$1_LIBS])
])

# _ONIC_LIBDIR(OPTION, NAME)
# Sets onic_libdir to where libNAME is in the prefix --with-OPTION=DIR, and ends configure where it
# is not.
AC_DEFUN([_ONIC_LIBDIR], [
    onic_libdir=
    onic_multiarch=`$CC -print-multiarch 2>/dev/null`
    onic_dirs="lib lib64${onic_multiarch:+ lib/$onic_multiarch}"
    for onic_dir in $onic_dirs; do
        AS_IF([test -n "$onic_libdir"], [],
              [test -f "$with_$1/$onic_dir/lib$2.so" || test -f "$with_$1/$onic_dir/lib$2.a"],
              [onic_libdir=$with_$1/$onic_dir])
    done
    AS_IF([test -z "$onic_libdir"],
          [AC_MSG_ERROR([--with-$1=$with_$1: there is no lib$2.so or lib$2.a in its $onic_dirs])])
])

# ONIC_REFUSE_DIR(OPTION, WHAT)
# Ends configure where the user named a directory and what is there does not work: going on without
# it is not what was asked for.
AC_DEFUN([ONIC_REFUSE_DIR], [
    AS_CASE([$with_$1],
        [yes|no], [],
        [AC_MSG_ERROR([--with-$1=$with_$1: there is no $2 in it that works; config.log tells more])])
])

# ONIC_TRY(VARIABLE, MESSAGE, INCLUDES, BODY, IF-WORKS, IF-NOT)
# Compiles and links a program with the flags of VARIABLE.
AC_DEFUN([ONIC_TRY], [
    onic_save_CPPFLAGS=$CPPFLAGS
    onic_save_LDFLAGS=$LDFLAGS
    onic_save_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $$1_CPPFLAGS"
    LDFLAGS="$LDFLAGS $$1_LDFLAGS"
    LIBS="$$1_LIBS $LIBS"
    AC_MSG_CHECKING([for $2])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([$3], [$4])], [onic_works=yes], [onic_works=no])
    AC_MSG_RESULT([$onic_works])
    CPPFLAGS=$onic_save_CPPFLAGS
    LDFLAGS=$onic_save_LDFLAGS
    LIBS=$onic_save_LIBS
    AS_IF([test $onic_works = yes], [$5], [$6])
])

# ONIC_CHECK_UCX: UCX 1.12 or later, with active messages and thread support in its interface.
AC_DEFUN([ONIC_CHECK_UCX], [
    ONIC_FIND([UCX], [ucx], [ucx], [-lucp -lucs -lucm], [UCX >= 1.12])
    ONIC_TRY([UCX], [UCX >= 1.12], [[
#include <ucp/api/ucp.h>
#if UCP_API_VERSION < UCP_VERSION(1, 12)
#error "too old"
#endif
]], [[
    ucp_worker_h worker = 0;
    unsigned major, minor, release;
    ucp_get_version(&major, &minor, &release);
    return (int)ucp_worker_progress(worker);
]], [], [ONIC_MISSING([UCX >= 1.12], [libucx-dev], [--with-ucx=DIR])])
    UCX_VERSION=`"${PKG_CONFIG:-false}" --modversion ucx 2>/dev/null`
    AS_IF([test "$with_ucx" != yes || test -z "$UCX_VERSION"], [UCX_VERSION="found"])
])

# ONIC_CHECK_HWLOC: the one that Open MPI itself was built with, where it was an external one: then
# Open MPI's headers include it, so this comes first. Sets onic_have_hwloc.
AC_DEFUN([ONIC_CHECK_HWLOC], [
    ONIC_FIND([HWLOC], [hwloc], [hwloc], [-lhwloc], [hwloc 2])
    ONIC_TRY([HWLOC], [hwloc 2], [[
#include <hwloc.h>
#if HWLOC_API_VERSION < 0x00020000
#error "too old"
#endif
]], [[
    return (int)hwloc_get_api_version();
]], [onic_have_hwloc=yes], [onic_have_hwloc=no
        ONIC_MISSING([hwloc 2], [libhwloc-dev], [--with-hwloc=DIR])])
])

# ONIC_CHECK_VERBS: libibverbs of rdma-core 32 or later and its mlx5 interface. Their absence is a
# normal state, unless a directory was named; the summary says what would mend it.
AC_DEFUN([ONIC_CHECK_VERBS], [
    ONIC_FIND([VERBS], [verbs], [libibverbs], [-libverbs], [libibverbs])
    HAVE_VERBS=0
    HAVE_MLX5DV=0
    AS_IF([test "$with_verbs" != no],
          [ONIC_TRY([VERBS], [libibverbs], [[#include <infiniband/verbs.h>]],
                    [[
    struct ibv_gid_entry entry;
    return ibv_query_gid_ex(0, 1, 0, &entry, 0) != 0;
]], [HAVE_VERBS=1], [ONIC_REFUSE_DIR([verbs], [libibverbs of rdma-core 32 or later])])])
    AM_CONDITIONAL([HAVE_VERBS], [test $HAVE_VERBS = 1])
    AS_IF([test $HAVE_VERBS = 1],
          [MLX5_CPPFLAGS=$VERBS_CPPFLAGS
           MLX5_LDFLAGS=$VERBS_LDFLAGS
           MLX5_LIBS="-lmlx5 $VERBS_LIBS"
           ONIC_TRY([MLX5], [mlx5dv with work requests as bytes], [[
#include <infiniband/mlx5dv.h>
]], [[
    struct mlx5dv_qp_ex *qp = 0;
    mlx5dv_wr_raw_wqe(qp, 0);
]], [HAVE_MLX5DV=1])])
    AC_SUBST([HAVE_VERBS])
    AC_SUBST([HAVE_MLX5DV])
])

# ONIC_CHECK_UNIT: Check, the unit test framework. Only `make check` needs it.
AC_DEFUN([ONIC_CHECK_UNIT], [
    ONIC_FIND([CHECK], [check], [check], [-lcheck -lsubunit -lm -lrt], [Check])
    AS_IF([test "$with_check" = yes && test -n "$PKG_CONFIG" && "$PKG_CONFIG" --exists check],
          [CHECK_LIBS=`"$PKG_CONFIG" --libs-only-l check`])
    onic_have_check=no
    AS_IF([test "$with_check" != no],
          [ONIC_TRY([CHECK], [Check], [[#include <check.h>]],
                    [[srunner_free(srunner_create(suite_create("x")));]],
                    [onic_have_check=yes], [ONIC_REFUSE_DIR([check], [Check])])])
    AS_IF([test $onic_have_check = no && test "$with_check" != no],
          [AC_MSG_WARN([make check will not run without Check
    Debian: apt-get install check
    elsewhere: configure --with-check=DIR])])
    AM_CONDITIONAL([HAVE_CHECK], [test $onic_have_check = yes])
])
