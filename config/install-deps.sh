#!/bin/sh
# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: config/install-deps.sh build|check|test
#
# Installs the Debian packages that are needed to build, or also for unit tests and MPI tests, or
# for all tests. Does nothing where they are installed; asks for root by sudo only if there is
# something to install.
set -eu

# python3 is for perf/compare, test/run and test/fabric, mandoc for the manual pages, ccache for a second
# run of the tests, clang for libFuzzer and, with libbpf and bpftool, for nicbarrier-bpf, iproute2 and nftables
# for hosts that are network namespaces, valgrind, qemu and what follows for soft-RoCE, debootstrap for
# test/distro.
build="gcc libc6-dev make autoconf automake pkg-config
       openmpi-bin libopenmpi-dev libucx-dev libhwloc-dev libibverbs-dev python3"
check=check
test="mandoc ccache clang libclang-rt-dev clang-format libbpf-dev bpftool iproute2 nftables
      qemu-system-x86 busybox-static ibverbs-utils debootstrap valgrind"

# For examples/; what this release does not have is left out.
examples="gfortran libcoarrays-openmpi-dev libarmci-mpi-dev python3-mpi4py python3-numpy"
optional=

case ${1-} in
build) packages=$build ;;
check) packages="$build $check" ;;
test)
    packages="$build $check $test"
    optional=$examples
    ;;
*)
    echo "usage: $0 build|check|test" >&2
    exit 2
    ;;
esac

if ! command -v apt-get >/dev/null 2>&1; then
    echo "install-deps: no apt-get here; configure will name what is missing" >&2
    exit 0
fi

is_installed()
{
    case $(dpkg-query -W -f '${Status}' "$1" 2>/dev/null) in *" installed") ;; *) return 1 ;; esac
}

missing=
for package in $packages; do
    is_installed "$package" || missing="$missing $package"
done
optional_missing=
for package in $optional; do
    is_installed "$package" || optional_missing="$optional_missing $package"
done
test -n "$missing$optional_missing" || exit 0

if test "$(id -u)" = 0; then
    root=
elif command -v sudo >/dev/null 2>&1; then
    root=sudo
elif test -z "$missing"; then
    exit 0
else
    echo "install-deps: as root, run: apt-get update && apt-get install$missing" >&2
    echo "install-deps: then run this again" >&2
    exit 1
fi

test -z "$missing" || $root apt-get -q -o Acquire::Retries=3 update
for package in $optional_missing; do
    ! apt-cache show "$package" >/dev/null 2>&1 || missing="$missing $package"
done
test -n "$missing" || exit 0
echo "install-deps: installing$missing"
# shellcheck disable=SC2086 # words are meant to be split
$root env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -y -o Acquire::Retries=3 --no-install-recommends install $missing
