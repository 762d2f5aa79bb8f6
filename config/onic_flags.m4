# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause

# ONIC_ADD_FLAG(VARIABLE, FLAG): appends a compiler flag if the compiler takes it.
AC_DEFUN([ONIC_ADD_FLAG], [
    onic_save_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS -Werror $2"
    AC_MSG_CHECKING([whether $CC takes $2])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [onic_takes=yes], [onic_takes=no])
    AC_MSG_RESULT([$onic_takes])
    CFLAGS=$onic_save_CFLAGS
    AS_IF([test $onic_takes = yes], [$1="$$1 $2"])
])

# ONIC_FLAGS: warnings, sanitizers and fuzzing. Substitutes
#   ONIC_CFLAGS    for everything
#   FUZZ_CFLAGS, FUZZ_LDFLAGS   in addition, for the fuzz targets
AC_DEFUN([ONIC_FLAGS], [
    AC_ARG_ENABLE([werror],
        [AS_HELP_STRING([--enable-werror], [treat compiler warnings as errors])],
        [], [enable_werror=no])
    AC_ARG_ENABLE([sanitizers],
        [AS_HELP_STRING([--enable-sanitizers=LIST],
            [build everything with these sanitizers: address,undefined or thread])],
        [], [enable_sanitizers=no])
    AC_ARG_ENABLE([fuzzing],
        [AS_HELP_STRING([--enable-fuzzing],
            [also build the fuzz targets, by libFuzzer; needs CC=clang. `make check-fuzz' configures
             a directory of its own so])],
        [], [enable_fuzzing=no])

    ONIC_CFLAGS=-std=gnu11
    # Nobody replaces our functions. But not -fno-plt: a component of another series of Open MPI, which
    # lacks some functions, must load and say what it is.
    for onic_flag in -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
                     -fno-semantic-interposition; do
        ONIC_ADD_FLAG([ONIC_CFLAGS], [$onic_flag])
    done
    AS_IF([test "$enable_werror" = yes], [ONIC_CFLAGS="$ONIC_CFLAGS -Werror"])

    AS_IF([test "$enable_sanitizers" = yes], [enable_sanitizers=address,undefined])
    AS_IF([test "$enable_sanitizers" != no],
          [onic_san="-fsanitize=$enable_sanitizers -fno-sanitize-recover=all"
           onic_takes=no
           ONIC_ADD_FLAG([ONIC_CFLAGS], [$onic_san])
           AS_IF([test $onic_takes = no],
                 [AC_MSG_ERROR([$CC cannot build with $onic_san
    Debian: apt-get install libasan8 libubsan1 libtsan2, or libclang-rt-14-dev for clang])])
           ONIC_CFLAGS="$ONIC_CFLAGS -fno-omit-frame-pointer -g"])
    # ThreadSanitizer does not see what atomic_thread_fence orders, and gcc warns of each. Ours order
    # memory of several processes, which it does not see either; what they order for threads of one
    # process is in test/suppressions/tsan.txt.
    # Its calls also hide from gcc what is initialised.
    AS_CASE([$enable_sanitizers],
        [*thread*], [ONIC_ADD_FLAG([ONIC_CFLAGS], [-Wno-tsan])
                     ONIC_ADD_FLAG([ONIC_CFLAGS], [-Wno-maybe-uninitialized])])
    AM_CONDITIONAL([SANITIZERS], [test "$enable_sanitizers" != no])
    AM_CONDITIONAL([THREAD_SANITIZER], [test "$enable_sanitizers" = thread])

    # Open MPI's free lists, which its headers inline, compare and swap 16 bytes.
    AC_CACHE_CHECK([how to compare and swap 16 bytes], [onic_cv_cx16], [
        onic_saved_CFLAGS=$CFLAGS
        onic_cv_cx16=unknown
        for onic_flag in "" -mcx16; do
            CFLAGS="$onic_saved_CFLAGS $onic_flag"
            AC_LINK_IFELSE([AC_LANG_PROGRAM([[static __int128 word;]],
                [[return !__sync_bool_compare_and_swap(&word, 0, 1);]])],
                [AS_IF([test "$onic_cv_cx16" = unknown], [onic_cv_cx16=$onic_flag])])
        done
        CFLAGS=$onic_saved_CFLAGS])
    AS_IF([test "$onic_cv_cx16" = unknown], [CX16_CFLAGS=], [CX16_CFLAGS=$onic_cv_cx16])
    AC_SUBST([CX16_CFLAGS])

    FUZZ_CFLAGS=
    FUZZ_LDFLAGS=
    AS_IF([test "$enable_fuzzing" = yes],
          [onic_takes=no
           ONIC_ADD_FLAG([FUZZ_CFLAGS], [-fsanitize=fuzzer-no-link])
           AS_IF([test $onic_takes = no],
                 [AC_MSG_ERROR([$CC has no libFuzzer
    Debian: apt-get install clang libclang-rt-14-dev
    and: configure CC=clang --enable-fuzzing])])
           FUZZ_LDFLAGS=-fsanitize=fuzzer
           # The code under test must report its coverage too.
           ONIC_CFLAGS="$ONIC_CFLAGS $FUZZ_CFLAGS"])
    AM_CONDITIONAL([LIBFUZZER], [test "$enable_fuzzing" = yes])

    AC_SUBST([ONIC_CFLAGS])
    AC_SUBST([FUZZ_LDFLAGS])
])

# ONIC_CHECK_HOME: before Open MPI is asked, whose programs of 5.0 do nothing without it.
AC_DEFUN([ONIC_CHECK_HOME], [
    AS_IF([test "$prefix" = NONE && test -z "$HOME"],
          [AC_MSG_ERROR([HOME is not set, and without --prefix=DIR all goes there: set it, or give --prefix])])
])

# ONIC_CHECK_COMPONENT_DIR: can what was given be where the components go? Looks at nothing else.
AC_DEFUN([ONIC_CHECK_COMPONENT_DIR], [
    AC_ARG_WITH([component-dir],
        [AS_HELP_STRING([--with-component-dir=DIR],
            [install the components into DIR; `system`: Open MPI's own directory, for all users
             (default: $HOME/.openmpi/components, where Open MPI looks by itself, or LIBDIR/openmpi
             where --prefix is given)])],
        [], [with_component_dir=yes])
    AS_CASE([$with_component_dir],
        [yes|system|/*|'$'*], [],
        [no], [AC_MSG_ERROR([--without-component-dir makes no sense])],
        [AC_MSG_ERROR([--with-component-dir=$with_component_dir: this is neither an absolute path nor `system`])])
])

# ONIC_COMPONENT_DIR: where the components go. Sets componentdir, which make expands, and
# onic_say_componentdir, which is what it comes to. Needs OMPI_COMPONENT_DIR for `system`.
AC_DEFUN([ONIC_COMPONENT_DIR], [
    AC_REQUIRE([ONIC_CHECK_COMPONENT_DIR])
    AS_CASE([$with_component_dir],
        [yes], [AS_IF([test "$prefix" = NONE], [componentdir=$HOME/.openmpi/components],
                      [componentdir='${libdir}/openmpi'])],
        [system], [componentdir=$OMPI_COMPONENT_DIR],
        [componentdir=$with_component_dir])
    AC_SUBST([componentdir])
    onic_prefix=$prefix
    AS_IF([test "$prefix" = NONE], [onic_prefix=$ac_default_prefix])
    onic_exec_prefix=$exec_prefix
    AS_IF([test "$exec_prefix" = NONE], [onic_exec_prefix=$onic_prefix])
    onic_say_componentdir=`prefix=$onic_prefix; exec_prefix=$onic_exec_prefix; eval "libdir=$libdir"
                           eval "echo $componentdir"`
])
