# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause

# Layouts and pack kernels, and what else needs no MPI.
noinst_LIBRARIES += common/libonic_core.a common/libonic_pack.a

common_libonic_core_a_SOURCES = \
	common/layout/layout.c \
	common/layout/layout_list.c \
	common/layout/layout_wire.c \
	common/model/link.c \
	common/model/link_file.c \
	common/model/pipeline.c \
	common/transport/row/address.c \
	common/pipeline/core/carrier.c \
	common/pipeline/core/pipe.c \
	common/pipeline/core/pool.c \
	common/pipeline/core/schedules.c \
	common/support/life.c \
	common/support/peer_file.c \
	common/transport/shm/queue.c \
	common/transport/shm/segment.c \
	common/support/handle.c \
	common/transport/ucx/adapters.c \
	common/transport/verbs/requests.c \
	common/transport/verbs/verbs_port.c
common_libonic_core_a_CPPFLAGS = $(pure_cppflags)
common_libonic_core_a_LIBADD = $(common_libonic_pack_a_OBJECTS)
common_libonic_core_a_DEPENDENCIES = $(common_libonic_pack_a_OBJECTS)

# Numbers of networks, for the components' parameters cost.
linksdir = $(componentdir)/links
dist_links_DATA = \
	share/links/infiniband-hdr.txt \
	share/links/quadrics-elan4.txt \
	share/links/roce-100.txt \
	share/links/slingshot-11.txt \
	share/links/tcp-10g.txt \
	share/links/tcp-25g.txt

# Costs of the ways on a node, built in by processor: each text as strings of C.
processors = other xeon zen3 zen4 zen5
EXTRA_DIST += $(processors:%=share/processors/%.txt)
with_processors = common/model/libonic_core_a-link.$(OBJEXT)
$(with_processors): common/model/processors.inc
CLEANFILES += common/model/processors.inc
common/model/processors.inc: $(processors:%=$(srcdir)/share/processors/%.txt)
	$(AM_V_GEN)$(MKDIR_P) common/model && for p in $(processors); do \
		echo "{\"$$p\"," && sed 's/.*/"&\\n"/' $(srcdir)/share/processors/$$p.txt && echo "},"; \
	done >$@

# The compiler vectorises the copy kernels only at -O3.
common_libonic_pack_a_SOURCES = \
	common/layout/copy.c \
	common/layout/pack.c
common_libonic_pack_a_CPPFLAGS = $(pure_cppflags)
common_libonic_pack_a_CFLAGS = $(AM_CFLAGS) -O3 -falign-functions=64 -falign-loops=32

# Queue pairs: libibverbs, where configure found it, and nothing of MPI. It is then needed to load
# the shared library. Unit tests link it by itself.
noinst_LIBRARIES += common/libonic_verbs.a

common_libonic_verbs_a_SOURCES = \
	common/transport/verbs/connect.c \
	common/transport/verbs/connections.c \
	common/transport/verbs/mlx5_library.c \
	common/transport/verbs/verbs.c
common_libonic_verbs_a_CPPFLAGS = $(pure_cppflags) $(verbs_cppflags) -D_GNU_SOURCE

if HAVE_VERBS
verbs_cppflags = $(VERBS_CPPFLAGS)
verbs_libs = $(VERBS_LDFLAGS) $(VERBS_LIBS)
else
verbs_cppflags =
verbs_libs =
endif

# The shared library, with all of these. It and the components lie beside each other in .libs as they will
# once installed, and find each other there through $ORIGIN.
component_PROGRAMS += .libs/libompi_nic_common.so

_libs_libompi_nic_common_so_SOURCES = \
	common/transport/shm/presence.c \
	common/transport/shm/cache.c \
	common/transport/verbs/registrations.c \
	common/transport/loss.c \
	common/transport/shm/neighbour.c \
	common/transport/state.c \
	common/support/device.c \
	common/layout/flatten.c \
	common/support/collective.c \
	common/support/modex.c \
	common/transport/shm/node.c \
	common/transport/shm/inbox.c \
	common/pipeline/shm/rx_pool.c \
	common/pipeline/shm/carrier_shm.c \
	common/pipeline/rma/carrier_rma.c \
	common/pipeline/rma/rma_peer.c \
	common/pipeline/rma/rma_records.c \
	common/model/link_given.c \
	common/pipeline/pipeline.c \
	common/pipeline/transfers.c \
	common/support/help.c \
	common/support/component.c \
	common/support/series.c \
	common/transport/addresses.c \
	common/transport/open.c \
	common/transport/peers.c \
	common/transport/progress.c \
	common/transport/put.c \
	common/transport/receive.c \
	common/transport/row/request.c \
	common/transport/rows.c \
	common/transport/send.c \
	common/transport/server.c \
	common/transport/shm/rings.c \
	common/transport/ucx/config.c \
	common/transport/ucx/data.c \
	common/transport/ucx/endpoints.c \
	common/transport/ucx/messages.c \
	common/transport/ucx/state.c \
	common/transport/ucx/worker.c
_libs_libompi_nic_common_so_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CPPFLAGS) $(verbs_cppflags)
_libs_libompi_nic_common_so_SHORTNAME = common
_libs_libompi_nic_common_so_LDADD = $(verbs_libs) $(OMPI_INTERNAL_LIBS) $(UCX_LIBS) $(HWLOC_LIBS)
_libs_libompi_nic_common_so_DEPENDENCIES = common/libonic_core.a common/libonic_verbs.a
# nodelete: callbacks of UCX and the code of the server thread must outlive a dlclose.
_libs_libompi_nic_common_so_LDFLAGS = -shared -Wl,-soname,libompi_nic_common.so \
	-Wl,-z,nodelete,-Bsymbolic-functions \
	-Wl,--whole-archive,common/libonic_core.a,common/libonic_verbs.a,--no-whole-archive \
	$(OMPI_LDFLAGS) $(UCX_LDFLAGS) $(HWLOC_LDFLAGS)

# How others link it, though they may call nothing in it by themselves.
common_ldflags = -Wl,--push-state,--no-as-needed,.libs/libompi_nic_common.so,--pop-state
