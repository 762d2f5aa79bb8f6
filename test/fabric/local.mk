# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
#
# Several hosts on one machine, and soft-RoCE in a virtual machine.

fabric_programs = test/fabric/farewell test/fabric/forge test/fabric/load test/fabric/room test/fabric/rounds
mpi_programs += $(fabric_programs)
EXTRA_PROGRAMS += $(fabric_programs)
test_fabric_farewell_LDADD = $(keep_loaded) $(OMPI_LDFLAGS) $(OMPI_LIBS)
test_fabric_forge_LDADD = coll_nicbarrier/libnicbarrier_core.a common/libonic_core.a
test_fabric_load_LDADD = $(keep_loaded) $(OMPI_LDFLAGS) $(OMPI_LIBS)
test_fabric_room_LDADD = $(keep_loaded) $(OMPI_LDFLAGS) $(OMPI_LIBS)

# Loaded before all else where method nic is tested on a machine without a device.
noinst_PROGRAMS += test/fabric/libadapter.so
test_fabric_libadapter_so_SOURCES = test/fabric/adapter.c
test_fabric_libadapter_so_CPPFLAGS = $(AM_CPPFLAGS) $(verbs_cppflags)
test_fabric_libadapter_so_LDFLAGS = -shared
test_fabric_libadapter_so_LDADD =

EXTRA_DIST += \
	test/fabric/faults \
	test/fabric/hostlib/cases.py \
	test/fabric/hostlib/host.py \
	test/fabric/hostlib/jobs.py \
	test/fabric/hostlib/late.py \
	test/fabric/hostlib/linux.py \
	test/fabric/hostlib/options.py \
	test/fabric/hostlib/rsh \
	test/fabric/hostlib/stepped.py \
	test/fabric/hostlib/supervisor.py \
	test/fabric/hosts \
	test/fabric/selftest \
	test/fabric/check-roce \
	test/fabric/roce \
	test/fabric/roce-init \
	test/fabric/roce-rank \
	test/fabric/roce-session \
	test/fabric/roce_kernel.py

# Each of these prints totals as its last line. Targets that join are added to fabric_checks.
fabric_checks = check-fabric-hosts check-fabric-faults check-fabric-roce

# All of them, also after one that has failed.
check-fabric:
	@failed=""; \
	for check in $(fabric_checks); do $(MAKE) $$check || failed="$$failed $$check"; done; \
	test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

run_fabric = MPIRUN="$(MPIRUN)" OMPI_INFO="$(OMPI_INFO)" $(PYTHON3) $(srcdir)/test/fabric

# Hosts and ranks on each of them.
FABRIC_HOSTS = 2x1,2x2,3x1

check-fabric-python:
	@test -n "$(PYTHON3)" || { echo "check-fabric needs python3 (Debian: apt-get install python3)"; exit 1; }

# The hosts themselves, then all MPI programs over them.
check-fabric-hosts: check-fabric-selftest
	$(run_mpi) --build . --hosts $(FABRIC_HOSTS) $(RUNFLAGS)

check-fabric-selftest: mpi-programs check-fabric-python
	$(run_fabric)/selftest --build .

check-fabric-faults: mpi-programs check-fabric-python
	$(run_fabric)/faults --build .

# What is worth running each time, some 3 minutes: programs, then faults.
quick_programs = ^(accumulate_ops|barrier|barrier_farewell|dynamic|fence|atomicity|locks|operations|operations_puts|p2p_comms|p2p_died|p2p_order|p2p_protocols|progress_(leave|p2p|rma)|pscw|put_get|threads|unasked)$$
quick_faults = ^(killed_on_a_node|stopped|cut|messages_.*|barriers_(loss|cut|stopped)|bpf_(computing|late|users)|farewell|shm_full|shm_left|cma_refused|missing_on_a_host)$$

check-fabric-quick: mpi-programs check-fabric-python
	$(run_mpi) --build . --hosts 2x1,2x2 --methods auto --protocols auto,stream,rendezvous --filter '$(quick_programs)' $(RUNFLAGS)

check-fabric-quick-faults: mpi-programs check-fabric-python
	$(run_fabric)/faults --build . --filter '$(quick_faults)'

.PHONY: check-fabric check-fabric-faults check-fabric-hosts check-fabric-python \
	check-fabric-quick check-fabric-quick-faults check-fabric-selftest

# ---- soft-RoCE in a virtual machine: make check-fabric-roce --------------------------------------

# What is run in two kernels.
if HAVE_BPF
roce_unit_programs = test/unit/check_nicbarrier_bpf
endif

check_roce = MPIRUN="$(MPIRUN)" OMPI_INFO="$(OMPI_INFO)" \
	$(PYTHON3) $(srcdir)/test/fabric/check-roce --build . $(ROCEFLAGS)

check-fabric-roce: mpi-programs $(roce_unit_programs)
	@test -n "$(PYTHON3)" || { echo "$@ needs python3 (Debian: apt-get install python3)"; exit 1; }
	$(check_roce)

# A minute's worth of it.
check-fabric-roce-smoke: mpi-programs
	@test -n "$(PYTHON3)" || { echo "$@ needs python3 (Debian: apt-get install python3)"; exit 1; }
	$(check_roce) --smoke

.PHONY: check-fabric-roce check-fabric-roce-smoke
