# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause

# What decides: pure.
noinst_LTLIBRARIES += pml_superpipe/libsuperpipe_core.la

pml_superpipe_libsuperpipe_core_la_SOURCES = \
	pml_superpipe/matching/header.c \
	pml_superpipe/matching/match.c \
	pml_superpipe/protocols/choice.c \
	pml_superpipe/protocols/cost.c \
	pml_superpipe/protocols/transfer.c
pml_superpipe_libsuperpipe_core_la_CPPFLAGS = $(pure_cppflags)

# What does: the protocols, of which tests link the rows.
noinst_LTLIBRARIES += pml_superpipe/libsuperpipe_protocols.la

pml_superpipe_libsuperpipe_protocols_la_SOURCES = \
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
pml_superpipe_libsuperpipe_protocols_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
pml_superpipe_libsuperpipe_protocols_la_CFLAGS = $(AM_CFLAGS) $(CX16_CFLAGS)

component_LTLIBRARIES += mca_pml_superpipe.la

mca_pml_superpipe_la_SOURCES = \
	pml_superpipe/calls/comm.c \
	pml_superpipe/calls/probe.c \
	pml_superpipe/calls/receive.c \
	pml_superpipe/calls/send.c \
	pml_superpipe/component/component.c
mca_pml_superpipe_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE \
	-DOMPI_NIC_HELP_DIR='"$(componentdir)"'
mca_pml_superpipe_la_CFLAGS = $(AM_CFLAGS) $(CX16_CFLAGS)
mca_pml_superpipe_la_LIBADD = pml_superpipe/libsuperpipe_protocols.la pml_superpipe/libsuperpipe_core.la $(OMPI_INTERNAL_LIBS)
mca_pml_superpipe_la_DEPENDENCIES = pml_superpipe/libsuperpipe_protocols.la \
	pml_superpipe/libsuperpipe_core.la libompi_nic_common.la
# nodelete: callbacks of the transport, which another component may keep open, must outlive a dlclose.
mca_pml_superpipe_la_LDFLAGS = -module -shared -avoid-version -no-undefined -Wl,-z,nodelete,-Bsymbolic-functions \
	$(common_ldflags) -Wl,-rpath,'$$ORIGIN' $(OMPI_LDFLAGS)

dist_component_DATA += pml_superpipe/help-pml-superpipe.txt
