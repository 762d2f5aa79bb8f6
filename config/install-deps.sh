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

# python3 is for perf/compare, test/run and test/fabric, ccache for a second run of the tests, clang for libFuzzer, iproute2 and nftables
# for hosts that are network namespaces, qemu and what follows for soft-RoCE, debootstrap for
# test/distro.
build="gcc libc6-dev make autoconf automake libtool pkg-config
       openmpi-bin libopenmpi-dev libucx-dev libhwloc-dev libibverbs-dev python3"
check=check
test="ccache clang libclang-rt-dev clang-format iproute2 nftables
      qemu-system-x86 busybox-static ibverbs-utils debootstrap"

case ${1-} in
build) packages=$build ;;
check) packages="$build $check" ;;
test) packages="$build $check $test" ;;
*)
    echo "usage: $0 build|check|test" >&2
    exit 2
    ;;
esac

if ! command -v apt-get >/dev/null 2>&1; then
    echo "install-deps: no apt-get here; configure will name what is missing" >&2
    exit 0
fi

missing=
for package in $packages; do
    case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) in
    *" installed") ;;
    *) missing="$missing $package" ;;
    esac
done
test -n "$missing" || exit 0

if test "$(id -u)" = 0; then
    root=
elif command -v sudo >/dev/null 2>&1; then
    root=sudo
else
    echo "install-deps: as root, run: apt-get install$missing" >&2
    exit 1
fi

echo "install-deps: installing$missing"
$root apt-get -q -o Acquire::Retries=3 update
# shellcheck disable=SC2086 # words are meant to be split
$root env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -y -o Acquire::Retries=3 --no-install-recommends install $missing
