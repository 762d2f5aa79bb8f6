# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause

EXTRA_DIST += \
	test/fabric/check-roce \
	test/fabric/roce \
	test/fabric/roce-init \
	test/fabric/roce-rank \
	test/fabric/roce-session \
	test/fabric/roce_kernel.py

# ---- soft-RoCE in a virtual machine: make check-fabric-roce --------------------------------------

check_roce = MPIRUN="$(MPIRUN)" OMPI_INFO="$(OMPI_INFO)" \
	$(PYTHON3) $(srcdir)/test/fabric/check-roce --build . $(ROCEFLAGS)

check-fabric-roce: mpi-programs
	@test -n "$(PYTHON3)" || { echo "$@ needs python3 (Debian: apt-get install python3)"; exit 1; }
	$(check_roce)

# A minute's worth of it.
check-fabric-roce-smoke: mpi-programs
	@test -n "$(PYTHON3)" || { echo "$@ needs python3 (Debian: apt-get install python3)"; exit 1; }
	$(check_roce) --smoke

.PHONY: check-fabric-roce check-fabric-roce-smoke
