#!/bin/sh
# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
#
# Makes configure and the Makefile templates. Needs autoconf and automake.
set -eu
cd "$(dirname "$0")"

for tool in autoreconf automake; do
    if ! command -v "$tool" >/dev/null 2>&1; then
        echo "autogen.sh: $tool is missing; on Debian: apt-get install autoconf automake" >&2
        exit 1
    fi
done

exec autoreconf --install --warnings=all,no-obsolete "$@"
