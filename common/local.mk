# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause

# Layouts and pack kernels, and what else needs no MPI.
noinst_LTLIBRARIES += common/libonic_core.la common/libonic_pack.la

common_libonic_core_la_SOURCES = \
	common/support/export.h \
	common/layout/kept.c \
	common/layout/kept.h \
	common/layout/layout.c \
	common/layout/layout.h \
	common/layout/layout_list.c \
	common/layout/layout_walk.h \
	common/layout/layout_wire.c \
	common/layout/whole_words.h \
	common/model/burst.h \
	common/model/learn.c \
	common/model/learn.h \
	common/model/link.c \
	common/model/link.h \
	common/model/link_file.c \
	common/model/link_text.c \
	common/model/pipeline.c \
	common/model/pipeline.h \
	common/model/watch.h \
	common/wire/address.c \
	common/wire/address.h \
	common/wire/memory_plan.h \
	common/wire/requirements.h \
	common/mover/pipe/blocks.h \
	common/mover/pipe/carrier.h \
	common/mover/pipe/chunks.h \
	common/mover/pipe/counters.c \
	common/mover/pipe/counters.h \
	common/mover/pipe/pipe.c \
	common/mover/pipe/pipe.h \
	common/mover/pipe/pool.c \
	common/mover/pipe/pool.h \
	common/mover/pipe/terms.c \
	common/mover/pipe/terms.h \
	common/mover/pipe/turns.h \
	common/support/bytes.h \
	common/support/clock.c \
	common/support/clock.h \
	common/support/life.c \
	common/support/life.h \
	common/support/pause.h \
	common/support/peer_file.c \
	common/support/peer_file.h \
	common/node/owned_lock.h \
	common/node/queue.c \
	common/node/queue.h \
	common/node/segment.c \
	common/node/segment.h \
	common/node/stores.h \
	common/support/membarrier.h \
	common/support/handle.c \
	common/support/handle.h \
	common/support/helper_thread.h \
	common/node/patience.h \
	common/wire/adapters.c \
	common/wire/adapters.h \
	common/verbs/places.h \
	common/verbs/rc_terms.h \
	common/verbs/request_queue.c \
	common/verbs/request_queue.h \
	common/verbs/requests.c \
	common/verbs/requests.h \
	common/verbs/strided.h \
	common/verbs/verbs_port.c \
	common/verbs/verbs_port.h
common_libonic_core_la_CPPFLAGS = $(pure_cppflags)
common_libonic_core_la_LIBADD = common/libonic_pack.la

# Numbers of networks, for the components' parameters cost.
linksdir = $(componentdir)/links
dist_links_DATA = \
	share/links/infiniband-hdr.txt \
	share/links/quadrics-elan4.txt \
	share/links/roce-100.txt \
	share/links/slingshot-11.txt \
	share/links/tcp-10g.txt \
	share/links/tcp-25g.txt

# The compiler vectorises the copy kernels only at -O3.
common_libonic_pack_la_SOURCES = \
	common/layout/copy.c \
	common/layout/copy.h \
	common/layout/pack.c \
	common/layout/pack.h \
	common/layout/pack_kernels.h \
	common/layout/pack_pattern.h
common_libonic_pack_la_CPPFLAGS = $(pure_cppflags)
common_libonic_pack_la_CFLAGS = $(AM_CFLAGS) -O3 -falign-functions=64 -falign-loops=32

# Queue pairs: libibverbs, where configure found it, and nothing of MPI. It is then needed to load
# the shared library. Unit tests link it by itself.
noinst_LTLIBRARIES += common/libonic_verbs.la

common_libonic_verbs_la_SOURCES = \
	common/verbs/connect.c \
	common/verbs/connect.h \
	common/verbs/connections.c \
	common/verbs/connections.h \
	common/verbs/mlx5_library.c \
	common/verbs/mlx5_library.h \
	common/verbs/strided_keys.c \
	common/verbs/strided_keys.h \
	common/verbs/verbs.c \
	common/verbs/verbs.h \
	common/verbs/verbs_queue.c
nodist_common_libonic_verbs_la_SOURCES = common/config.h
common_libonic_verbs_la_CPPFLAGS = $(pure_cppflags) $(verbs_cppflags) -D_GNU_SOURCE

if HAVE_VERBS
verbs_cppflags = $(VERBS_CPPFLAGS)
verbs_libs = $(VERBS_LDFLAGS) $(VERBS_LIBS)
else
verbs_cppflags =
verbs_libs =
endif

# The shared library. Like the components it is made in the top directory, so that they lie beside
# each other in .libs as they will once installed, and find it there through $ORIGIN.
component_LTLIBRARIES += libompi_nic_common.la

libompi_nic_common_la_SOURCES = \
	common/node/presence.c \
	common/node/presence.h \
	common/node/cache.c \
	common/verbs/registrations.c \
	common/verbs/registrations.h \
	common/wire/loss.c \
	common/wire/neighbour.c \
	common/wire/state.c \
	common/support/collective.h \
	common/support/device.c \
	common/support/device.h \
	common/layout/flatten.c \
	common/layout/flatten.h \
	common/support/collective.c \
	common/support/modex.c \
	common/support/modex.h \
	common/node/node.c \
	common/node/node.h \
	common/node/inbox.c \
	common/node/inbox.h \
	common/node/payload.h \
	common/mover/node/area.c \
	common/mover/node/area.h \
	common/mover/node/carrier_node.c \
	common/mover/node/carrier_node.h \
	common/mover/rma/carrier_rma.h \
	common/mover/rma/carrier_rma.c \
	common/mover/rma/rma_peer.c \
	common/mover/rma/rma_records.c \
	common/model/link_given.c \
	common/mover/mover.c \
	common/mover/mover.h \
	common/mover/transfers.c \
	common/mover/transfers.h \
	common/mover/work.c \
	common/ompi_compat.h \
	common/support/help.c \
	common/support/help.h \
	common/support/component.c \
	common/support/component.h \
	common/wire/wire.c \
	common/wire/message.h \
	common/wire/peer.h \
	common/wire/wire.h \
	common/wire/ucx.c \
	common/wire/ucx.h \
	common/wire/receive.c \
	common/wire/config.c \
	common/wire/endpoints.c \
	common/wire/wire_internal.h \
	common/wire/memory.c \
	common/wire/forget.c \
	common/wire/addresses.c \
	common/wire/peers.c \
	common/wire/progress.c \
	common/wire/atomic_op.h \
	common/wire/put.c \
	common/wire/put.h \
	common/wire/queues.c \
	common/wire/record.c \
	common/wire/send.c \
	common/wire/server.c
nodist_libompi_nic_common_la_SOURCES = common/config.h
libompi_nic_common_la_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CPPFLAGS) $(verbs_cppflags)
libompi_nic_common_la_LIBADD = common/libonic_core.la common/libonic_verbs.la $(verbs_libs) \
	$(OMPI_INTERNAL_LIBS) $(HWLOC_LIBS)
# nodelete: callbacks of UCX and the code of the server thread must outlive a dlclose.
libompi_nic_common_la_LDFLAGS = -shared -avoid-version -no-undefined \
	-Wl,-z,nodelete,-Bsymbolic-functions $(OMPI_LDFLAGS) $(UCX_LDFLAGS) $(HWLOC_LDFLAGS)

# How others link it: by its file, because for a .la libtool would record where it is now and where
# it will be installed, and link again at installation.
common_ldflags = -Wl,--push-state,--no-as-needed,.libs/libompi_nic_common.so,--pop-state

EXTRA_DIST += \
	common/shim/ompi/mpi/fortran/base/fint_2_int.h \
	common/shim/opal/include/opal/constants.h \
	common/shim/opal/mca/threads/pthreads/threads_pthreads_mutex.h \
	common/shim/opal/mca/threads/pthreads/threads_pthreads_threads.h \
	common/shim/opal/mca/threads/pthreads/threads_pthreads_tsd.h
