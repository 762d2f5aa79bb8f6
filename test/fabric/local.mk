# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
#
# Several hosts on one machine.

EXTRA_DIST += \
	test/fabric/hostlib/host.py \
	test/fabric/hostlib/linux.py \
	test/fabric/hostlib/options.py \
	test/fabric/hostlib/rsh \
	test/fabric/hostlib/supervisor.py \
	test/fabric/hosts
