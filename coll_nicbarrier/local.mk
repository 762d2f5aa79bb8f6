# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause

# What needs no Open MPI: what decides, and the engines but for the transport below engine put.
noinst_LIBRARIES += coll_nicbarrier/libnicbarrier_core.a

coll_nicbarrier_libnicbarrier_core_a_SOURCES = \
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
coll_nicbarrier_libnicbarrier_core_a_CPPFLAGS = $(pure_cppflags) $(verbs_cppflags) -D_GNU_SOURCE
EXTRA_DIST += coll_nicbarrier/engines/datagram/bpf/program.c

# Barriers in the kernel. What a process needs of them is always built.
if HAVE_BPF
noinst_LIBRARIES += coll_nicbarrier/libnicbarrier_kernel.a
coll_nicbarrier_libnicbarrier_kernel_a_SOURCES = \
	coll_nicbarrier/engines/datagram/bpf/kernel.c \
	coll_nicbarrier/engines/datagram/bpf/service.c
nodist_coll_nicbarrier_libnicbarrier_kernel_a_SOURCES = $(bpf_skeleton)
coll_nicbarrier_libnicbarrier_kernel_a_CPPFLAGS = $(pure_cppflags) $(BPF_CPPFLAGS) -D_GNU_SOURCE
bpf_libs = $(BPF_LDFLAGS) $(BPF_LIBS)

sbin_PROGRAMS = tools/nicbarrier-bpf
tools_nicbarrier_bpf_SOURCES = coll_nicbarrier/engines/datagram/bpf/tool.c
tools_nicbarrier_bpf_CPPFLAGS = $(pure_cppflags) -D_GNU_SOURCE
tools_nicbarrier_bpf_LDADD = coll_nicbarrier/libnicbarrier_kernel.a coll_nicbarrier/libnicbarrier_core.a \
	common/libonic_core.a $(bpf_libs)

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

bpf_objects = coll_nicbarrier/engines/datagram/bpf/libnicbarrier_kernel_a-kernel.$(OBJEXT)
$(bpf_objects): $(bpf_skeleton)
endif

component_PROGRAMS += .libs/mca_coll_nicbarrier.so

_libs_mca_coll_nicbarrier_so_SHORTNAME = coll
_libs_mca_coll_nicbarrier_so_SOURCES = \
	coll_nicbarrier/agree/agree.c \
	coll_nicbarrier/team/engines.c \
	coll_nicbarrier/component/component.c \
	coll_nicbarrier/component/barriers.c \
	coll_nicbarrier/component/module.c \
	coll_nicbarrier/component/params.c \
	coll_nicbarrier/component/settings.c
_libs_mca_coll_nicbarrier_so_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE \
	-DOMPI_NIC_HELP_DIR='"$(componentdir)"'
_libs_mca_coll_nicbarrier_so_LDADD = coll_nicbarrier/libnicbarrier_core.a $(verbs_libs) $(OMPI_INTERNAL_LIBS)
_libs_mca_coll_nicbarrier_so_DEPENDENCIES = coll_nicbarrier/libnicbarrier_core.a .libs/libompi_nic_common.so
_libs_mca_coll_nicbarrier_so_LDFLAGS = -shared -Wl,-soname,mca_coll_nicbarrier.so \
	$(common_ldflags) -Wl,-rpath,'$$ORIGIN' $(OMPI_LDFLAGS)

dist_component_DATA += coll_nicbarrier/help-coll-nicbarrier.txt
