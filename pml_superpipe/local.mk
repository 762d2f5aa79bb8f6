# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause

# What decides: pure.
noinst_LIBRARIES += pml_superpipe/libsuperpipe_core.a

pml_superpipe_libsuperpipe_core_a_SOURCES = \
	pml_superpipe/matching/header.c \
	pml_superpipe/matching/match.c \
	pml_superpipe/protocols/choice.c \
	pml_superpipe/protocols/cost.c \
	pml_superpipe/protocols/transfer.c
pml_superpipe_libsuperpipe_core_a_CPPFLAGS = $(pure_cppflags)

# What does: the protocols, of which tests link the rows.
noinst_LIBRARIES += pml_superpipe/libsuperpipe_protocols.a

pml_superpipe_libsuperpipe_protocols_a_SOURCES = \
	pml_superpipe/protocols/copy.c \
	pml_superpipe/protocols/rendezvous.c \
	pml_superpipe/protocols/dispatch.c \
	pml_superpipe/protocols/eager.c \
	pml_superpipe/protocols/loss.c \
	pml_superpipe/protocols/pipeline.c \
	pml_superpipe/protocols/peer.c \
	pml_superpipe/protocols/pick.c \
	pml_superpipe/protocols/receive.c \
	pml_superpipe/protocols/request.c \
	pml_superpipe/protocols/rows.c \
	pml_superpipe/protocols/send.c \
	pml_superpipe/protocols/start.c \
	pml_superpipe/protocols/stream.c \
	pml_superpipe/protocols/unexpected.c
pml_superpipe_libsuperpipe_protocols_a_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
pml_superpipe_libsuperpipe_protocols_a_CFLAGS = $(AM_CFLAGS) $(CX16_CFLAGS)

component_PROGRAMS += .libs/mca_pml_superpipe.so

_libs_mca_pml_superpipe_so_SHORTNAME = pml
_libs_mca_pml_superpipe_so_SOURCES = \
	pml_superpipe/calls/comm.c \
	pml_superpipe/calls/probe.c \
	pml_superpipe/calls/receive.c \
	pml_superpipe/calls/send.c \
	pml_superpipe/component/component.c
_libs_mca_pml_superpipe_so_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE \
	-DOMPI_NIC_HELP_DIR='"$(componentdir)"'
_libs_mca_pml_superpipe_so_CFLAGS = $(AM_CFLAGS) $(CX16_CFLAGS)
_libs_mca_pml_superpipe_so_LDADD = pml_superpipe/libsuperpipe_protocols.a pml_superpipe/libsuperpipe_core.a $(OMPI_INTERNAL_LIBS)
_libs_mca_pml_superpipe_so_DEPENDENCIES = pml_superpipe/libsuperpipe_protocols.a \
	pml_superpipe/libsuperpipe_core.a .libs/libompi_nic_common.so
# nodelete: callbacks of the transport, which another component may keep open, must outlive a dlclose.
_libs_mca_pml_superpipe_so_LDFLAGS = -shared -Wl,-soname,mca_pml_superpipe.so -Wl,-z,nodelete,-Bsymbolic-functions \
	$(common_ldflags) -Wl,-rpath,'$$ORIGIN' $(OMPI_LDFLAGS)

dist_component_DATA += pml_superpipe/help-pml-superpipe.txt
