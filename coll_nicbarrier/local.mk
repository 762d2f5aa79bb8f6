# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause

# What decides: pure.
noinst_LTLIBRARIES += coll_nicbarrier/libnicbarrier_core.la

coll_nicbarrier_libnicbarrier_core_la_SOURCES = \
	coll_nicbarrier/arrange.c \
	coll_nicbarrier/arrange.h \
	coll_nicbarrier/crowd.h \
	coll_nicbarrier/engine.h \
	coll_nicbarrier/epoch.c \
	coll_nicbarrier/epoch.h \
	coll_nicbarrier/habit.c \
	coll_nicbarrier/habit.h \
	coll_nicbarrier/offer.c \
	coll_nicbarrier/offer.h \
	coll_nicbarrier/packet.c \
	coll_nicbarrier/packet.h \
	coll_nicbarrier/place.c \
	coll_nicbarrier/place.h \
	coll_nicbarrier/port.c \
	coll_nicbarrier/port.h \
	coll_nicbarrier/rdma.c \
	coll_nicbarrier/rdma.h \
	coll_nicbarrier/reach.c \
	coll_nicbarrier/reach.h \
	coll_nicbarrier/reason.c \
	coll_nicbarrier/schedule.c \
	coll_nicbarrier/schedule.h \
	coll_nicbarrier/shm.c \
	coll_nicbarrier/shm.h \
	coll_nicbarrier/tombstone.c \
	coll_nicbarrier/tombstone.h
coll_nicbarrier_libnicbarrier_core_la_CPPFLAGS = $(pure_cppflags)

# Engine datagram, which needs no MPI either.
noinst_LTLIBRARIES += coll_nicbarrier/libnicbarrier_datagram.la

coll_nicbarrier_libnicbarrier_datagram_la_SOURCES = \
	coll_nicbarrier/datagram.c \
	coll_nicbarrier/datagram.h \
	coll_nicbarrier/datagram_flow.c \
	coll_nicbarrier/datagram_thread.c \
	coll_nicbarrier/datagram_udp.c \
	coll_nicbarrier/datagram_verbs.c \
	coll_nicbarrier/verbs.c \
	coll_nicbarrier/verbs.h
nodist_coll_nicbarrier_libnicbarrier_datagram_la_SOURCES = common/config.h
coll_nicbarrier_libnicbarrier_datagram_la_CPPFLAGS = $(pure_cppflags) $(datagram_cppflags) -D_GNU_SOURCE

# Engine put: neither does it, but for the wire below it.
noinst_LTLIBRARIES += coll_nicbarrier/libnicbarrier_put.la

coll_nicbarrier_libnicbarrier_put_la_SOURCES = coll_nicbarrier/put.c
coll_nicbarrier_libnicbarrier_put_la_CPPFLAGS = $(pure_cppflags)

# libibverbs, where configure found it, is needed to load the component.
if HAVE_VERBS
datagram_cppflags = $(VERBS_CPPFLAGS)
datagram_libs = $(VERBS_LDFLAGS) $(VERBS_LIBS)
else
datagram_cppflags =
datagram_libs =
endif

component_LTLIBRARIES += mca_coll_nicbarrier.la

mca_coll_nicbarrier_la_SOURCES = \
	coll_nicbarrier/agree.c \
	coll_nicbarrier/agree.h \
	coll_nicbarrier/carrier.c \
	coll_nicbarrier/carrier.h \
	coll_nicbarrier/component.c \
	coll_nicbarrier/exchange.c \
	coll_nicbarrier/exchange.h \
	coll_nicbarrier/line.c \
	coll_nicbarrier/module.c \
	coll_nicbarrier/module.h \
	coll_nicbarrier/params.c \
	coll_nicbarrier/pvars.c \
	coll_nicbarrier/request.c \
	coll_nicbarrier/settings.c
nodist_mca_coll_nicbarrier_la_SOURCES = common/config.h
mca_coll_nicbarrier_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE \
	-DOMPI_NIC_HELP_DIR='"$(componentdir)"'
mca_coll_nicbarrier_la_LIBADD = coll_nicbarrier/libnicbarrier_datagram.la coll_nicbarrier/libnicbarrier_put.la \
	coll_nicbarrier/libnicbarrier_core.la $(datagram_libs) $(OMPI_INTERNAL_LIBS)
mca_coll_nicbarrier_la_DEPENDENCIES = coll_nicbarrier/libnicbarrier_datagram.la coll_nicbarrier/libnicbarrier_put.la \
	coll_nicbarrier/libnicbarrier_core.la libompi_nic_common.la
mca_coll_nicbarrier_la_LDFLAGS = -module -shared -avoid-version -no-undefined \
	$(no_undefined_ldflags) $(common_ldflags) -Wl,-rpath,'$$ORIGIN' $(OMPI_LDFLAGS)

dist_component_DATA += coll_nicbarrier/help-coll-nicbarrier.txt

# The help text beside the component, as it will be installed, for runs from the build tree.
all-local: .libs/help-coll-nicbarrier.txt

.libs/help-coll-nicbarrier.txt: coll_nicbarrier/help-coll-nicbarrier.txt mca_coll_nicbarrier.la
	cp $(srcdir)/coll_nicbarrier/help-coll-nicbarrier.txt $@
