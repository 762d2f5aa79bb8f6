# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause

# What needs no Open MPI: what decides, and the engines but for the transport below engine put.
noinst_LTLIBRARIES += coll_nicbarrier/libnicbarrier_core.la

coll_nicbarrier_libnicbarrier_core_la_SOURCES = \
	coll_nicbarrier/agree/plan.c \
	coll_nicbarrier/engines/datagram/bpf/client.c \
	coll_nicbarrier/engines/datagram/bpf/local.c \
	coll_nicbarrier/engines/datagram/connect.c \
	coll_nicbarrier/engines/datagram/datagram.c \
	coll_nicbarrier/engines/datagram/group.c \
	coll_nicbarrier/engines/datagram/input.c \
	coll_nicbarrier/engines/datagram/params.c \
	coll_nicbarrier/engines/datagram/send.c \
	coll_nicbarrier/engines/datagram/stepper_bpf.c \
	coll_nicbarrier/engines/datagram/stepper_host.c \
	coll_nicbarrier/engines/datagram/steppers.c \
	coll_nicbarrier/engines/datagram/steps.c \
	coll_nicbarrier/engines/datagram/thread.c \
	coll_nicbarrier/engines/datagram/udp.c \
	coll_nicbarrier/engines/datagram/udp_address.c \
	coll_nicbarrier/engines/datagram/wire/packet.c \
	coll_nicbarrier/engines/mlx5/adapter.c \
	coll_nicbarrier/engines/mlx5/chain.c \
	coll_nicbarrier/engines/mlx5/mlx5.c \
	coll_nicbarrier/engines/mlx5/pairs.c \
	coll_nicbarrier/engines/mlx5/step.c \
	coll_nicbarrier/engines/put/flags.c \
	coll_nicbarrier/engines/put/put.c \
	coll_nicbarrier/engines/put/step.c \
	coll_nicbarrier/engines/shm/shm.c \
	coll_nicbarrier/epoch/nack.c \
	coll_nicbarrier/schedule/schedule.c \
	coll_nicbarrier/team/team.c
coll_nicbarrier_libnicbarrier_core_la_CPPFLAGS = $(pure_cppflags) $(verbs_cppflags) -D_GNU_SOURCE
EXTRA_DIST += coll_nicbarrier/engines/datagram/bpf/program.c

# Barriers in the kernel. What a process needs of them is always built.
if HAVE_BPF
noinst_LTLIBRARIES += coll_nicbarrier/libnicbarrier_kernel.la
coll_nicbarrier_libnicbarrier_kernel_la_SOURCES = \
	coll_nicbarrier/engines/datagram/bpf/kernel.c \
	coll_nicbarrier/engines/datagram/bpf/service.c
nodist_coll_nicbarrier_libnicbarrier_kernel_la_SOURCES = $(bpf_skeleton)
coll_nicbarrier_libnicbarrier_kernel_la_CPPFLAGS = $(pure_cppflags) $(BPF_CPPFLAGS) -D_GNU_SOURCE
bpf_libs = $(BPF_LDFLAGS) $(BPF_LIBS)

sbin_PROGRAMS = tools/nicbarrier-bpf
tools_nicbarrier_bpf_SOURCES = coll_nicbarrier/engines/datagram/bpf/tool.c
tools_nicbarrier_bpf_CPPFLAGS = $(pure_cppflags) -D_GNU_SOURCE
tools_nicbarrier_bpf_LDADD = coll_nicbarrier/libnicbarrier_kernel.la coll_nicbarrier/libnicbarrier_core.la \
	common/libonic_core.la $(bpf_libs)

bpf_program = coll_nicbarrier/engines/datagram/bpf/program
bpf_skeleton = $(bpf_program).skel.h
CLEANFILES += $(bpf_program).bpf.o $(bpf_skeleton)

$(bpf_program).bpf.o: $(bpf_program).c coll_nicbarrier/engines/datagram/bpf/state.h \
		coll_nicbarrier/engines/datagram/wire/packet.h coll_nicbarrier/epoch/rule.h
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(BPF_CLANG) -target bpf -mcpu=v3 -ffreestanding -O2 -g -std=gnu11 -Wall -Wextra \
	    -I$(srcdir) $(BPF_CPPFLAGS) $(BPF_MULTIARCH) -c -o $@ $(srcdir)/$(bpf_program).c

$(bpf_skeleton): $(bpf_program).bpf.o
	$(AM_V_GEN)$(BPFTOOL) gen skeleton $(bpf_program).bpf.o name nicbarrier_program >$@.new && \
	    mv $@.new $@

bpf_objects = coll_nicbarrier/engines/datagram/bpf/libnicbarrier_kernel_la-kernel.lo
$(bpf_objects): $(bpf_skeleton)
endif

component_LTLIBRARIES += mca_coll_nicbarrier.la

mca_coll_nicbarrier_la_SOURCES = \
	coll_nicbarrier/agree/agree.c \
	coll_nicbarrier/team/engines.c \
	coll_nicbarrier/component/component.c \
	coll_nicbarrier/component/barriers.c \
	coll_nicbarrier/component/module.c \
	coll_nicbarrier/component/params.c \
	coll_nicbarrier/component/settings.c
mca_coll_nicbarrier_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE \
	-DOMPI_NIC_HELP_DIR='"$(componentdir)"'
mca_coll_nicbarrier_la_LIBADD = coll_nicbarrier/libnicbarrier_core.la $(verbs_libs) $(OMPI_INTERNAL_LIBS)
mca_coll_nicbarrier_la_DEPENDENCIES = coll_nicbarrier/libnicbarrier_core.la libompi_nic_common.la
mca_coll_nicbarrier_la_LDFLAGS = -module -shared -avoid-version -no-undefined \
	$(common_ldflags) -Wl,-rpath,'$$ORIGIN' $(OMPI_LDFLAGS)

dist_component_DATA += coll_nicbarrier/help-coll-nicbarrier.txt
