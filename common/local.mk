# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause

# Layouts and pack kernels, and what else needs no MPI.
noinst_LTLIBRARIES += common/libonic_core.la common/libonic_pack.la

common_libonic_core_la_SOURCES = \
	common/export.h \
	common/layout.c \
	common/layout.h \
	common/layout_walk.c \
	common/layout_walk.h \
	common/layout_wire.c \
	common/memory_plan.c \
	common/memory_plan.h \
	common/bytes.h \
	common/clock.h \
	common/life.c \
	common/life.h \
	common/pause.h \
	common/peer_file.c \
	common/peer_file.h \
	common/segment.c \
	common/segment.h \
	common/helper_thread.h \
	common/tls.c \
	common/tls.h \
	common/verbs_port.c \
	common/verbs_port.h
common_libonic_core_la_CPPFLAGS = $(pure_cppflags)
common_libonic_core_la_LIBADD = common/libonic_pack.la

# The compiler vectorises the copy kernels only at -O3.
common_libonic_pack_la_SOURCES = \
	common/pack.c \
	common/pack.h \
	common/pack_kernels.h \
	common/pack_pattern.h
common_libonic_pack_la_CPPFLAGS = $(pure_cppflags)
common_libonic_pack_la_CFLAGS = $(AM_CFLAGS) -O3

# Queue pairs: libibverbs, where configure found it, and nothing of MPI. It is then needed to load
# the shared library. Unit tests link it by itself.
noinst_LTLIBRARIES += common/libonic_verbs.la

common_libonic_verbs_la_SOURCES = \
	common/verbs.c \
	common/verbs.h \
	common/verbs_queue.c
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
	common/beat.c \
	common/beat.h \
	common/cache.c \
	common/cma.c \
	common/collective.h \
	common/device.c \
	common/device.h \
	common/flatten.c \
	common/flatten.h \
	common/modex.c \
	common/modex.h \
	common/node.c \
	common/node.h \
	common/ompi_compat.h \
	common/help.c \
	common/help.h \
	common/series.c \
	common/series.h \
	common/variables.c \
	common/variables.h \
	common/wire.c \
	common/wire.h \
	common/wire_am.c \
	common/wire_config.c \
	common/wire_internal.h \
	common/wire_loop.c \
	common/wire_memory.c \
	common/wire_peers.c \
	common/wire_put.c \
	common/wire_put.h \
	common/wire_server.c
nodist_libompi_nic_common_la_SOURCES = common/config.h
libompi_nic_common_la_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CPPFLAGS)
libompi_nic_common_la_LIBADD = common/libonic_core.la common/libonic_verbs.la $(verbs_libs) \
	$(OMPI_INTERNAL_LIBS) $(UCX_LIBS) $(HWLOC_LIBS)
# nodelete: callbacks of UCX and the code of the server thread must outlive a dlclose.
libompi_nic_common_la_LDFLAGS = -shared -avoid-version -no-undefined \
	-Wl,-z,nodelete $(OMPI_LDFLAGS) $(UCX_LDFLAGS) $(HWLOC_LDFLAGS)

# How others link it: by its file, because for a .la libtool would record where it is now and where
# it will be installed, and link again at installation.
common_ldflags = -Wl,--push-state,--no-as-needed,.libs/libompi_nic_common.so,--pop-state

EXTRA_DIST += \
	common/shim/ompi/mpi/fortran/base/fint_2_int.h \
	common/shim/opal/include/opal/constants.h \
	common/shim/opal/mca/threads/pthreads/threads_pthreads_mutex.h \
	common/shim/opal/mca/threads/pthreads/threads_pthreads_threads.h \
	common/shim/opal/mca/threads/pthreads/threads_pthreads_tsd.h
