# Copyright (c) 2026 The ompi-nic authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause

# What decides: pure.
noinst_LTLIBRARIES += osc_nicstride/libnicstride_core.la

osc_nicstride_libnicstride_core_la_SOURCES = \
	osc_nicstride/apply.c \
	osc_nicstride/apply.h \
	osc_nicstride/batch.c \
	osc_nicstride/batch.h \
	osc_nicstride/cost.c \
	osc_nicstride/cost.h \
	osc_nicstride/epoch.c \
	osc_nicstride/epoch.h \
	osc_nicstride/fence.h \
	osc_nicstride/flow.h \
	osc_nicstride/habit.h \
	osc_nicstride/handle.c \
	osc_nicstride/handle.h \
	osc_nicstride/held.h \
	osc_nicstride/lockq.c \
	osc_nicstride/lockq.h \
	osc_nicstride/notice.h \
	osc_nicstride/place.c \
	osc_nicstride/place.h \
	osc_nicstride/plan.c \
	osc_nicstride/plan.h \
	osc_nicstride/plan_table.c \
	osc_nicstride/patience.h \
	osc_nicstride/proto.c \
	osc_nicstride/proto.h \
	osc_nicstride/proto_short.h \
	osc_nicstride/region.c \
	osc_nicstride/region.h \
	osc_nicstride/sieve.c \
	osc_nicstride/sieve.h \
	osc_nicstride/slot.h \
	osc_nicstride/touch.c \
	osc_nicstride/touch.h \
	osc_nicstride/tune.c \
	osc_nicstride/tune.h
osc_nicstride_libnicstride_core_la_CPPFLAGS = $(pure_cppflags)

# What does.
component_LTLIBRARIES += mca_osc_nicstride.la

mca_osc_nicstride_la_SOURCES = \
	osc_nicstride/accumulate.c \
	osc_nicstride/accumulate.h \
	osc_nicstride/agreement.c \
	osc_nicstride/agreement.h \
	osc_nicstride/answer.c \
	osc_nicstride/calibrate.c \
	osc_nicstride/calibrate.h \
	osc_nicstride/calls.h \
	osc_nicstride/choose.c \
	osc_nicstride/choose.h \
	osc_nicstride/compare_and_swap.c \
	osc_nicstride/component.c \
	osc_nicstride/component.h \
	osc_nicstride/connect.c \
	osc_nicstride/connect.h \
	osc_nicstride/control.h \
	osc_nicstride/counted.c \
	osc_nicstride/counted.h \
	osc_nicstride/dynamic.c \
	osc_nicstride/dynamic.h \
	osc_nicstride/errors.c \
	osc_nicstride/errors.h \
	osc_nicstride/flush.c \
	osc_nicstride/flush.h \
	osc_nicstride/handlers.c \
	osc_nicstride/handlers.h \
	osc_nicstride/handlers_accumulate.c \
	osc_nicstride/handlers_short.c \
	osc_nicstride/hold.c \
	osc_nicstride/hold.h \
	osc_nicstride/lock.c \
	osc_nicstride/lock.h \
	osc_nicstride/lost.c \
	osc_nicstride/lost.h \
	osc_nicstride/module.c \
	osc_nicstride/module.h \
	osc_nicstride/observe.c \
	osc_nicstride/observe.h \
	osc_nicstride/op.c \
	osc_nicstride/op.h \
	osc_nicstride/outbox.c \
	osc_nicstride/outbox.h \
	osc_nicstride/params.c \
	osc_nicstride/put_get.c \
	osc_nicstride/pvars.c \
	osc_nicstride/quick.h \
	osc_nicstride/request.c \
	osc_nicstride/request.h \
	osc_nicstride/single_copy.c \
	osc_nicstride/single_copy.h \
	osc_nicstride/small.c \
	osc_nicstride/small.h \
	osc_nicstride/stream.c \
	osc_nicstride/stream.h \
	osc_nicstride/stream_internal.h \
	osc_nicstride/sync_active.c \
	osc_nicstride/target.c \
	osc_nicstride/target.h \
	osc_nicstride/wake.c \
	osc_nicstride/wake.h \
	osc_nicstride/window.c \
	osc_nicstride/window.h \
	osc_nicstride/window_info.c \
	osc_nicstride/window_memory.c
nodist_mca_osc_nicstride_la_SOURCES = common/config.h
mca_osc_nicstride_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE \
	-DOMPI_NIC_HELP_DIR='"$(componentdir)"'
mca_osc_nicstride_la_LIBADD = osc_nicstride/libnicstride_core.la $(OMPI_INTERNAL_LIBS)
mca_osc_nicstride_la_DEPENDENCIES = osc_nicstride/libnicstride_core.la libompi_nic_common.la
# nodelete: callbacks of the wire, which another component may keep open, must outlive a dlclose.
mca_osc_nicstride_la_LDFLAGS = -module -shared -avoid-version -no-undefined -Wl,-z,nodelete \
	$(common_ldflags) -Wl,-rpath,'$$ORIGIN' $(OMPI_LDFLAGS)

dist_component_DATA += osc_nicstride/help-osc-nicstride.txt

# The help text beside the component, as it will be installed, for runs from the build tree.
all-local: .libs/help-osc-nicstride.txt

.libs/help-osc-nicstride.txt: osc_nicstride/help-osc-nicstride.txt mca_osc_nicstride.la
	cp $(srcdir)/osc_nicstride/help-osc-nicstride.txt $@
